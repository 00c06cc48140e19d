"""The pack costs nothing until a server is used."""

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
