"""Wrong arguments are errors where they are given: no call blocks later, and no server stands open for a slip."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard import PegboardError, SettingsError, Toolkit
from pegboard_mcp import Caller, McpServer, load_mcp_config, mcp_server, serve_mcp, serve_mcp_async
from pegboard_mcp._command.serve import run
from tests.plugins.mcp.over_http import serving

URL = "http://127.0.0.1:9/mcp"
WRONG: dict[str, Callable[[], object]] = {
    "command": lambda: McpServer.stdio(None),  # type: ignore[arg-type]
    "command cannot be empty": lambda: McpServer.stdio(""),
    "args must be a list of texts, not str": lambda: McpServer.stdio("x", "serve"),
    r"args\[0\] must be a text, not int": lambda: McpServer.stdio("x", [1]),  # type: ignore[list-item]
    r"env\['A'\] must be a text, not int": lambda: McpServer.stdio("x", env={"A": 1}),  # type: ignore[dict-item]
    "cwd": lambda: McpServer.stdio("x", cwd=5),  # type: ignore[arg-type]
    "connect_timeout": lambda: McpServer.stdio("x", connect_timeout=None),
    "call_timeout": lambda: McpServer.stdio("x", call_timeout=float("nan")),
    "poll": lambda: McpServer.stdio("x", poll=0),
    "resources": lambda: McpServer.stdio("x", resources=True),
    "max_message": lambda: McpServer.stdio("x", max_message=0),
    "max_tools": lambda: McpServer.stdio("x", max_tools=-1),
    "url takes": lambda: McpServer.http("ftp://example.com"),
    "url takes http": lambda: McpServer.sse("/mcp"),
    "url must be a text": lambda: McpServer.http(None),  # type: ignore[arg-type]
    "no name of a header": lambda: McpServer.http(URL, headers={"A b": "c"}),
    "no header has": lambda: McpServer.http(URL, headers={"A": "b\r\nC: d"}),
    "mcp_server": lambda: McpServer.in_process(Toolkit(plugins=())),
    "session_for": lambda: mcp_server(Toolkit(plugins=()), session_for=5),  # type: ignore[arg-type]
    "name cannot be empty": lambda: McpServer.stdio("x", name=""),
    "name cannot be blank": lambda: McpServer.http(URL, name=" \t"),
    "read_link": lambda: mcp_server(Toolkit(plugins=()), read_link=5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_argument_is_an_error_at_once(said: str) -> None:
    with pytest.raises(ValueError, match=said):
        WRONG[said]()


def test_paths_and_variables_are_arguments() -> None:
    McpServer.stdio(Path("x"), [Path("y")], cwd=Path("z"), call_timeout=None)
    McpServer.http("${NO_SUCH_HOST}/mcp", headers={"Authorization": "Bearer ${NO_SUCH_TOKEN}"}, call_timeout=None)


def test_what_a_file_says_of_a_server_is_an_error_of_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": {"url": "ftp://example.com"}}}))
    with pytest.raises(SettingsError, match=r"mcpServers\.a: url takes"):
        load_mcp_config(path)


def test_an_unknown_option_leaves_no_server_open() -> None:
    with pytest.raises(TypeError, match="did you mean 'verify_token'"):
        serve_mcp(Toolkit(plugins=()), http="127.0.0.1:0", verify_tokens=lambda token: None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no option 'http'"):
        mcp_server(Toolkit(plugins=()), http="127.0.0.1:0")  # type: ignore[call-arg]


@pytest.mark.parametrize("option", ["required_scopes", "authorization_server"])
def test_what_asks_for_a_token_leaves_no_server_open(option: str) -> None:
    options: Any = {option: "https://login.example.com"}
    with pytest.raises(PegboardError, match=f"{option}= wants callers to have a token"):
        asyncio.run(asyncio.wait_for(serve_mcp_async(Toolkit(plugins=()), http="127.0.0.1:0", **options), 5))


def test_scopes_may_be_one_text_as_tokens_have_it() -> None:
    assert Caller("ada", scopes="calendar mail").scopes == ("calendar", "mail")
    assert Caller("ada", scopes=["calendar"]).scopes == ("calendar",)


def test_one_origin_is_no_list_of_letters() -> None:
    async def main() -> int:
        page = "https://page.example.com"
        async with serving(Toolkit(plugins=()), origins=page) as url, httpx2.AsyncClient() as client:
            asked = {"Origin": page, "Access-Control-Request-Method": "POST"}
            return (await client.options(url, headers=asked)).status_code

    assert asyncio.run(main()) == 200


def test_a_module_whose_name_begins_like_a_file_s_ending_is_installed_as_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "board_to_install").mkdir()
    (tmp_path / "board_to_install" / "pytools.py").write_text(
        "from pegboard import Toolkit\ntoolkit = Toolkit(plugins=())\n"
    )
    assert run(["board_to_install.pytools:toolkit", "--install", "cursor"]) == 0
    entry = json.loads(capsys.readouterr().out)["mcpServers"]["pegboard"]
    assert entry["args"][-1] == "board_to_install.pytools:toolkit"
    assert entry["env"]["PYTHONPATH"] == str(tmp_path)


@pytest.mark.parametrize("address", ["nonsense", ":8000", "127.0.0.1:0"])
def test_an_address_that_no_client_reaches_is_not_installed(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--install", "cursor", "--http", address]) == 1
    assert capsys.readouterr().out == ""


def test_an_option_in_short_does_not_get_into_its_own_entry(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["--inst", "cursor"])


def test_an_empty_program_is_not_the_installed_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([""]) == 1
    assert "names no program" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": 5}, "token must be a text, not int"),
        ({"http": 8080}, "http must be a text, not int"),
        ({"name": ""}, "name cannot be empty"),
        ({"name": " "}, "name cannot be blank"),
        ({"authorization_server": "login.example.com"}, r"authorization_server takes http\(s\)://"),
        ({"resource_url": 5}, "resource_url must be a text, not int"),
    ],
)
def test_wrong_options_of_a_server_are_named(options: dict[str, Any], message: str) -> None:
    with Toolkit(plugins=()) as toolkit, pytest.raises(ValueError, match=message):
        serve_mcp(toolkit, **{"http": "127.0.0.1:0", "token": "t", **options})
