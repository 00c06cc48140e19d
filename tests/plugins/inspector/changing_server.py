"""An MCP server whose tools change while it runs: `python changing_server.py` serves over stdin and stdout."""

from pegboard import Toolkit, tool
from pegboard_mcp import serve_mcp

toolkit = Toolkit(plugins=())


@tool
def grow(name: str) -> str:
    """Register another tool."""

    def echo(text: str) -> str:
        return f"{name} says {text}"

    toolkit.register(echo, name=name, description="New here.")
    return f"there is {name} now"


@tool
def shrink(name: str) -> str:
    """Take a tool off the board."""
    toolkit.unregister(name)
    return f"{name} is gone"


if __name__ == "__main__":
    toolkit.register(grow, shrink)
    serve_mcp(toolkit, all_tools=True)
