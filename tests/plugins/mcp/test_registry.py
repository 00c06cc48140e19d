"""`pegboard serve --server-json`: what the registry of MCP servers is to know, by the registry's own schema.

The schema is `schemas/2025-12-11/server.schema.json` of modelcontextprotocol/static, the current one on 2026-11-27.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.plugins.mcp.test_serving import MORE, PROGRAM

SCHEMA = json.loads(gzip.decompress(Path(__file__).with_name("server_schema.json.gz").read_bytes()))
NAME = "io.github.ada/tidy-board"
METADATA = """Metadata-Version: 2.4
Name: tidy-board
Version: 1.2.3
Summary: Keeps a desk
  tidy.

# Tidy board
"""

Serve = Callable[..., tuple[int, str, str]]


def install(site: Path, *, script: str = "tidy-board = pegboard_cli:main", readme: str = f"mcp-name: {NAME}") -> None:
    """Put a distribution with the program into a folder, as pip does."""
    (site / "tidy_board.py").write_text(PROGRAM + MORE, encoding="utf-8")
    info = site / "tidy_board-1.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA + readme, encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[console_scripts]\n{script}\n", encoding="utf-8")
    (info / "RECORD").write_text("tidy_board.py,,\ntidy_board-1.2.3.dist-info/METADATA,,\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PEGBOARD_MCP_TOKEN", raising=False)
    return tmp_path


@pytest.fixture
def serve(capfd: pytest.CaptureFixture[str]) -> Serve:
    from pegboard_mcp._command.serve import run

    def serve(*arguments: str) -> tuple[int, str, str]:
        status = run(list(arguments))
        out, err = capfd.readouterr()
        return status, out, err

    return serve


def listed(text: str) -> dict[str, Any]:
    """What was printed, which the registry takes."""
    found: dict[str, Any] = json.loads(text)
    Draft7Validator(SCHEMA).validate(found)
    return found


def test_a_package_is_started_by_its_script_as_it_is_served_here(site: Path, serve: Serve) -> None:
    install(site)
    arguments = ["tidy_board:toolkit", "--name", NAME, "--tools", "double,refund", "--env", "DESK_KEY"]
    status, out, err = serve(*arguments, "--server-json")
    assert status == 0, err
    assert listed(out) == {
        "$schema": SCHEMA["$id"],
        "name": NAME,
        "description": "Keeps a desk tidy.",
        "version": "1.2.3",
        "packages": [
            {
                "registryType": "pypi",
                "identifier": "tidy-board",
                "version": "1.2.3",
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [
                    {"type": "positional", "value": each}
                    for each in ("serve", "tidy_board:toolkit", "--tools", "double,refund", "--name", NAME)
                ],
                "environmentVariables": [{"name": "DESK_KEY", "isRequired": True, "isSecret": True}],
            }
        ],
    }
    assert err == "a host will see 2 tools: double (read-only), refund (may destroy)\n"


def test_says_what_is_left_out_and_why(site: Path, serve: Serve) -> None:
    install(site)
    _, _, default = serve("tidy_board:toolkit", "--name", NAME, "--server-json")
    _, _, everything = serve("tidy_board:toolkit", "--name", NAME, "--all", "--server-json")
    assert "a host will see 1 tool: double (read-only); 2 of 3 tools left out" in default
    assert "they do not say read_only=True: refund, wipe" in default
    assert everything == "a host will see 3 tools: double (read-only), refund (may destroy), wipe (may destroy)\n"


def test_a_script_of_the_author_s_own_serves_by_itself(site: Path, serve: Serve) -> None:
    install(site, script="tidy-board = tidy_board:main", readme="")
    _, out, err = serve("tidy_board:toolkit", "--name", NAME, "--server-json")
    assert "packageArguments" not in listed(out)["packages"][0]
    assert f"the README of tidy-board has to say `mcp-name: {NAME}`" in err


class TestSecrets:
    def test_are_named_and_never_written(self, site: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
        install(site)
        monkeypatch.setenv("PEGBOARD_MCP_TOKEN", "s3cret-t0ken")
        monkeypatch.setenv("DESK_KEY", "s3cret-k3y")
        program = ["tidy_board:toolkit", "--name", NAME]
        _, local, _ = serve(*program, "--http", "127.0.0.1:8000", "--env", "DESK_KEY", "--server-json")
        _, remote, _ = serve(*program, "--url", "https://desk.example.com/mcp", "--server-json")
        assert "s3cret" not in local + remote
        (package,) = listed(local)["packages"]
        assert [each["name"] for each in package["environmentVariables"]] == ["DESK_KEY", "PEGBOARD_MCP_TOKEN"]
        (there,) = listed(remote)["remotes"]
        for transport in (package["transport"], there):
            (header,) = transport["headers"]
            assert (header["name"], header["isSecret"], header["value"]) == ("Authorization", True, "Bearer {token}")
        assert (package["transport"]["url"], there["url"]) == (
            "http://127.0.0.1:8000/mcp",
            "https://desk.example.com/mcp",
        )

    def test_that_stand_in_arguments_are_refused_and_not_shown(self, site: Path, serve: Serve) -> None:
        install(site)
        for option, value in (("--env", "DESK_KEY=s3cret"), ("--url", "https://ada:s3cret@desk.example.com/mcp")):
            status, out, err = serve("tidy_board:toolkit", "--name", NAME, option, value, "--server-json")
            assert (status, out) == (1, "")
            assert option in err
            assert "s3cret" not in err


def test_is_written_to_a_file(site: Path, serve: Serve) -> None:
    install(site)
    status, out, err = serve("tidy_board:toolkit", "--name", NAME, "--server-json", "server.json")
    assert (status, out) == (0, "")
    assert "written to server.json" in err
    assert listed((site / "server.json").read_text("utf-8"))["name"] == NAME


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tidy_board:toolkit"], "the registry takes names such as io.github.you/board, and not 'pegboard'"),
        (["--name", NAME], "name MODULE:NAME of an installed one"),
        (["board.py", "--name", NAME], "name MODULE:NAME of an installed one"),
        (["unheard_of:toolkit", "--name", NAME], "no installed package has the module 'unheard_of'"),
        (["tidy_board:toolkit", "--name", NAME, "--mcp", "far.json"], "--mcp is for this machine"),
        (["tidy_board:toolkit", "--name", NAME, "--token-file", "t"], "--token-file is for this machine"),
        (["tidy_board:toolkit", "--name", NAME, "--http", "127.0.0.1:0"], "port 0 is another one each time"),
        (["tidy_board:toolkit", "--name", NAME, "--url", "desk"], "--url takes the public address"),
        (["tidy_board:toolkit", "--name", NAME, "--tools", "sweep"], "sweep"),
    ],
)
def test_says_what_cannot_be_listed(site: Path, serve: Serve, arguments: list[str], message: str) -> None:
    install(site)
    status, out, err = serve(*arguments, "--server-json", "-")
    assert (status, out) == (1, "")
    assert message in err


def test_says_which_script_is_missing(site: Path, serve: Serve) -> None:
    install(site, script="other = tidy_board:main")
    status, _, err = serve("tidy_board:toolkit", "--name", NAME, "--server-json")
    assert status == 1
    assert 'add to its pyproject.toml, under [project.scripts]: tidy-board = "pegboard_cli:main"' in err


def test_the_options_for_it_need_it(serve: Serve) -> None:
    assert serve("--url", "https://desk.example.com/mcp")[0] == 1
    assert "--url and --env are for --server-json" in serve("--env", "DESK_KEY")[2]
