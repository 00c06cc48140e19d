"""The pack costs nothing until a server is used."""

from pathlib import Path

import pytest

from tests.support.interpreters import printed


def test_loading_the_plugin_does_not_import_the_sdk() -> None:
    code = (
        "import sys; from pegboard import Toolkit; import pegboard_mcp\n"
        "toolkit = Toolkit(plugins=['mcp'])\n"
        "assert [str(each.state) for each in toolkit.plugins if each.name == 'mcp'] == ['active'], toolkit.plugins\n"
        "pegboard_mcp.McpServer.stdio('never-started')\n"
        "loaded = {'mcp', 'mcp_types', 'pydantic', 'starlette', 'uvicorn', 'httpx2', 'anyio'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    printed(code)


@pytest.mark.slow
def test_the_time_for_loading_the_sdk_is_not_the_server_s() -> None:
    code = f"""
import sys, time
from importlib.abc import MetaPathFinder
from pegboard import Toolkit
from pegboard_mcp import McpServer

class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "mcp":
            time.sleep(3)

sys.meta_path.insert(0, Slow())
with Toolkit(plugins=()) as toolkit:
    toolkit.register(McpServer.stdio(sys.executable, [{SERVER!r}, "good"], mode="legacy", connect_timeout=2.5))
    print(toolkit.problems, [tool.name for tool in toolkit.tools])
"""
    assert printed(code) == "[] ['echo']"


SERVER = str(Path(__file__).with_name("bad_server.py"))
