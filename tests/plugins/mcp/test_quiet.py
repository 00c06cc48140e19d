"""What the SDK logs of a connection is for debugging: a program that asks for no more reads nothing of it."""

import logging
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import mcp
import pytest

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer
from pegboard_mcp._client.secrets import LOGGERS
from tests.plugins.mcp.over_http import started
from tests.support.warm import warm_python

pytestmark = pytest.mark.usefixtures("nothing_left")

SCRIPT = str(Path(__file__).with_name("noisy_board.py"))


def use_and_lose(mode: str, *, call_again: bool) -> None:
    """Call a tool of a server over HTTP, kill the server, and close the toolkit, after another call or without."""
    with started([warm_python(), SCRIPT, "127.0.0.1:0"]) as (process, url), Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.http(url, mode=mode))
        assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
        process.kill()
        assert process.stderr is not None
        process.stderr.read()  # up to the end of all that have it: the server's too
        if call_again:
            assert toolkit.call_sync("add", {"a": 1, "b": 2}).status is Status.ERROR


@pytest.mark.parametrize("call_again", [False, True])
@pytest.mark.parametrize("mode", [pytest.param("auto", marks=pytest.mark.slow), "legacy"])
def test_a_server_that_dies_is_no_line_in_the_log(
    mode: str, call_again: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        use_and_lose(mode, call_again=call_again)
    assert [record.getMessage() for record in caplog.records if record.name not in ("asyncio", "pegboard")] == []
    assert capfd.readouterr().err == ""


def test_a_program_that_debugs_reads_it_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        use_and_lose("legacy", call_again=False)
    logged = [record for record in caplog.records if record.name.startswith(("mcp.client", "httpx2"))]
    assert any("Session termination failed" in record.getMessage() for record in logged)
    assert {record.levelname for record in logged} == {"DEBUG"}


def test_every_logger_of_the_sdk_s_client_is_known() -> None:
    """A release of the SDK that logs elsewhere is noticed here."""
    found = {"client"} if 'getLogger("client")' in _source("mcp.client.session") else set()
    for package in ("mcp.client", "mcp.shared"):
        paths = [str(Path(mcp.__file__).parent / package.rpartition(".")[2])]
        names = [package, *(each.name for each in pkgutil.walk_packages(paths, f"{package}."))]
        found |= {name for name in names if re.search(r"getLogger\(__name__\)", _source(name))}
    # Entry points of the SDK's own, and names of tools that its own servers check.
    found -= {"mcp.client.__main__", "mcp.shared.tool_name_validation"}
    assert found <= set(LOGGERS)


def _source(name: str) -> str:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text("utf-8")
