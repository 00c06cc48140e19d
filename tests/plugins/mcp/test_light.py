"""The pack costs nothing until a server is used."""

import subprocess
import sys


def test_loading_the_plugin_does_not_import_the_sdk() -> None:
    code = (
        "import sys; from pegboard import Toolkit; import pegboard_mcp\n"
        "toolkit = Toolkit(plugins=['mcp'])\n"
        "assert [str(each.state) for each in toolkit.plugins if each.name == 'mcp'] == ['active'], toolkit.plugins\n"
        "pegboard_mcp.McpServer.stdio('never-started')\n"
        "loaded = {'mcp', 'mcp_types', 'pydantic', 'starlette', 'uvicorn', 'httpx2', 'anyio'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
