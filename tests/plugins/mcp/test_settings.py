"""Servers that the settings name."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pegboard_mcp
from pegboard import SettingsError, Toolkit
from pegboard.inspection import plugins_of

pytestmark = pytest.mark.usefixtures("nothing_left")

SCRIPT = str(Path(__file__).with_name("bad_server.py"))


def served(case: str = "good", **terms: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SCRIPT, case], "connect_timeout": 8.0, "timeout": 8, **terms}


def board(**settings: Any) -> Toolkit:
    return Toolkit(plugins=[pegboard_mcp], settings={"mcp": settings})


def names(toolkit: Toolkit) -> list[str]:
    return [tool.name for tool in toolkit.tools]


def test_nothing_is_set_and_nothing_is_registered() -> None:
    with board() as toolkit:
        assert (names(toolkit), toolkit.sources, toolkit.problems) == ([], [], [])


def test_servers_are_registered_under_their_names() -> None:
    with board(servers={"one": served(), "two": served("list-pages")}) as toolkit:
        assert names(toolkit) == ["one__echo", *(f"two__echo{page}" for page in range(10))]
        assert toolkit.call_sync("one__echo", {"text": "hello"}).text == "hello"
        assert toolkit["mcp__one__echo"].pack == "mcp"
        assert [source.name for source in toolkit.sources] == ["one", "two"]


def test_terms_of_the_registration() -> None:
    terms = served(
        "list-pages",
        enable=["echo1", "echo2", "echo3"],
        disable=["echo3"],
        prefix="",
        rename={"echo2": "second"},
        presets={"echo1": {"text": "from the settings"}},
    )
    with board(servers={"pages": terms}) as toolkit:
        assert names(toolkit) == ["echo1", "second"]
        assert toolkit["echo1"].parameters["properties"] == {}
        assert toolkit.call_sync("echo1", {"text": "forged"}).text == "from the settings"


def test_a_group_is_the_programs_to_create() -> None:
    with board(servers={"one": served(group="office")}) as toolkit:
        assert names(toolkit) == []
        toolkit.create_group("office")
        assert names(toolkit) == ["one__echo"]


def test_secrets_are_presets_that_stay_hidden() -> None:
    with board(servers={"one": served("rpc-error", secrets={"echo": {"text": "the disk"}})}) as toolkit:
        assert toolkit["one__echo"].parameters["properties"] == {}
        assert toolkit.call_sync("one__echo", {"text": "forged"}).text.endswith("*** is full")


def test_a_disabled_server_is_not_started() -> None:
    with board(servers={"one": served(disabled=True)}) as toolkit:
        assert (names(toolkit), toolkit.sources) == ([], [])


def test_an_unavailable_server_affects_no_other() -> None:
    lost = {"command": "no-such-server"}
    with board(servers={"lost": lost, "one": served()}) as toolkit:
        assert names(toolkit) == ["one__echo"]
        assert toolkit.problems == [
            "the MCP server 'lost' cannot be reached: there is no command 'no-such-server'",
        ]


def test_a_name_that_the_server_does_not_know_is_told() -> None:
    with board(servers={"one": served(enable=["echo", "ehco"])}) as toolkit:
        assert names(toolkit) == ["one__echo"]
        assert toolkit.problems == ["'one': this registration has no tool 'ehco'. Did you mean 'echo'?"]


def test_a_server_of_the_program_displaces_none() -> None:
    with board(servers={"one": served()}) as toolkit:
        toolkit.register(pegboard_mcp.McpServer.stdio(sys.executable, [SCRIPT], connect_timeout=60.0), prefix="own__")
        assert names(toolkit) == ["one__echo", "own__echo"]


def test_a_file_and_terms_for_it(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    plain = {"command": sys.executable, "args": [SCRIPT, "good"]}
    off = {"command": "x", "disabled": True}
    file.write_text(json.dumps({"mcpServers": {"one": plain, "two": plain, "off": off}}), encoding="utf-8")
    with board(config=str(file), servers={"two": {"prefix": "second_"}}) as toolkit:
        assert names(toolkit) == ["one__echo", "second_echo"]


WRONG: list[tuple[Any, str]] = [
    ({"servers": {"a": 1}}, "servers.a must be a table"),
    ({"servers": {"a": {"comand": "x"}}}, "servers.a: unknown key 'comand'. Did you mean 'command'?"),
    ({"servers": {"a": {}}}, 'servers.a needs a "command" or a "url", or to be a server of the file'),
    ({"servers": {"a": {"command": 3}}}, "servers.a.command must be a text"),
    ({"servers": {"a": {"command": "x", "args": "y"}}}, "servers.a.args must be a list of texts"),
    ({"servers": {"a": {"command": "x", "cwd": 3}}}, "servers.a.cwd must be a text"),
    ({"servers": {"a": {"command": "x", "enable": "y"}}}, "servers.a.enable must be a list of texts"),
    ({"servers": {"a": {"command": "x", "disable": [1]}}}, "servers.a.disable must be a list of texts"),
    ({"servers": {"a": {"command": "x", "group": 1}}}, "servers.a.group must be a list of texts"),
    ({"servers": {"a": {"command": "x", "prefix": 1}}}, "servers.a.prefix must be a text"),
    ({"servers": {"a": {"command": "x", "disabled": "no"}}}, "servers.a.disabled must be true or false"),
    ({"servers": {"a": {"command": "x", "rename": {"b": 1}}}}, "servers.a.rename must be a table of texts"),
    ({"servers": {"a": {"command": "x", "presets": ["b"]}}}, "servers.a.presets must be a table"),
    ({"servers": {"a": {"command": "x", "secrets": {"b": "c"}}}}, "servers.a.secrets.b must be a table"),
    ({"servers": {"a": {"command": "x", "timeout": "1"}}}, "servers.a.timeout must be a number of seconds above 0"),
    ({"servers": {"a": {"command": "x", "connect_timeout": 0}}}, "servers.a.connect_timeout must be a number"),
    ({"servers": {"a": {"url": "http://x", "type": "carrier"}}}, "servers.a.type is 'carrier'"),
    ({"resources": {"x://a": "text"}}, "resources.x://a must be a table"),
    ({"resources": {"x://a": {"txt": "b"}}}, "resources.x://a: unknown key 'txt'. Known keys: text, path, function"),
    ({"resources": {"x://a": {"text": "b", "path": "c"}}}, "resources.x://a needs one of these: text, path, function"),
    ({"resources": {"x://a": {"media_type": "b/c"}}}, "resources.x://a needs one of these"),
    ({"resources": {"x://a": {"text": 3}}}, "resources.x://a.text must be a text"),
    ({"resources": {"x://a": {"text": "b", "meta": 3}}}, "resources.x://a.meta must be a table"),
    ({"config": "/no/such/file.json"}, "/no/such/file.json cannot be read"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_a_wrong_entry_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        board(**settings)
    assert message in str(caught.value)
    assert f"mcp.{next(iter(settings))}" in str(caught.value)


def test_a_wrong_entry_is_named_also_where_it_holds_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_TEST_KEY", "hunter2")
    entry = {"command": "x", "env": {"KEY": "${PEGBOARD_TEST_KEY}"}, "comand": "${PEGBOARD_TEST_KEY}"}
    with pytest.raises(SettingsError, match="unknown key 'comand'") as caught:
        board(servers={"a": entry})
    assert "hunter2" not in str(caught.value)


def test_no_secret_shows() -> None:
    complains = "import os, sys; sys.exit('bad key ' + os.environ['KEY'])"
    entry = {"command": sys.executable, "args": ["-c", complains], "env": {"KEY": "hunter2"}, "connect_timeout": 8.0}
    with board(servers={"a": entry}) as toolkit:
        shown = [
            *toolkit.problems,
            repr(toolkit.sources),
            repr(plugins_of(toolkit).settings.effective()),
            repr(pegboard_mcp.Settings(servers={"a": entry})),
            toolkit.call_sync("a__echo").text,
        ]
    assert "bad key ***" in shown[0]
    assert "hunter2" not in " ".join(shown)


CONFIG = """
[mcp.servers.far]
command = {command}
args = [{script}, "good"]
env = {{ KEY = "hunter2" }}

[mcp.servers.lost]
command = "no-such-server"
"""


def pegboard(directory: Path, *arguments: str) -> tuple[int, str]:
    pytest.importorskip("pegboard_cli")
    command = [sys.executable, "-m", "pegboard_cli", *arguments, "--plugins", "mcp"]
    run = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60, cwd=directory)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.slow
def test_the_command_line_has_them_too(tmp_path: Path) -> None:
    text = CONFIG.format(command=json.dumps(sys.executable), script=json.dumps(SCRIPT))
    (tmp_path / "pegboard.toml").write_text(text, encoding="utf-8")
    code, listed = pegboard(tmp_path, "tools")
    assert code == 0
    assert "far__echo" in listed
    assert "tools are missing of 1 source: lost" in listed
    code, called = pegboard(tmp_path, "call", "far__echo", '{"text": "hello"}')
    assert (code, "hello" in called) == (0, True)
    code, said = pegboard(tmp_path, "doctor")
    assert code == 1
    assert "there is no command 'no-such-server'" in said
    _, settings = pegboard(tmp_path, "settings")
    assert "hunter2" not in listed + called + said + settings
