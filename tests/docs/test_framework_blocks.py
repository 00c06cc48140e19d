"""Other libraries' code on the pages runs with each library: `nox -s "bridges(langchain)"` and so on."""

import asyncio
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import blocks
from tests.docs.places import FRAMEWORKS, Piece, run_by

Names = dict[str, Any]
ORDER = {"order": "a1"}


def run(piece: Piece, **given: Any) -> Names:
    """Run a block after the first block of its page, if that makes what the block names, and after what is given."""
    names: Names = {"__name__": "__main__", **given}
    for block in (block for block in blocks("python") if block.path == piece.block.path):
        if "class Database" in block.text:
            exec(block.text, names)
    exec(compile(piece.text, piece.label, "exec"), names)
    return names


def langchain_core(piece: Piece, _: Path) -> None:
    names = run(piece)
    assert names["order_state"].invoke({**ORDER, "database": names["mine"]}) == "shipped"


def langchain(piece: Piece, _: Path) -> None:
    """The page's `model` answers at once, and its tools of LangChain are on the toolkit by then."""
    from langchain_core.tools import tool

    from pegboard import Toolkit
    from tests.plugins.bridges.test_langchain import Scripted

    def one(text: str) -> str:
        """Repeat a text."""
        return text

    def another(text: str) -> str:
        """Repeat a text, too."""
        return text

    names = run(piece, model=Scripted(), one=tool(one), another=tool(another), a_langchain_tool=tool(one))
    toolkit: Toolkit = names["toolkit"]
    assert toolkit.call_sync("one", {"text": "hello"}).text == "hello"
    answered = names["agent"].invoke({"messages": [{"role": "user", "content": "go"}]})["messages"]
    assert [message.type for message in answered] == ["human", "ai"]
    toolkit.close()


def fastmcp(piece: Piece, folder: Path) -> None:
    """The program is a server that ends with its client."""
    from fastmcp import Client
    from fastmcp.client.transports import PythonStdioTransport

    before = next(block.text for block in blocks("python") if block.path == piece.block.path)
    program = folder / "program.py"
    program.write_text(before + piece.text, "utf-8")

    async def ask() -> Any:
        async with Client(PythonStdioTransport(program, python_cmd=sys.executable)) as client:
            return (await client.call_tool("order_state", ORDER)).data

    assert asyncio.run(ask()) == "shipped"


def pydantic_ai(piece: Piece, _: Path) -> None:
    """`OPENAI_BASE_URL` names the server here."""
    from tests.plugins.dialects.sdks import servers

    provider = servers.openai_responses()
    with pytest.MonkeyPatch.context() as patch, servers.serving(provider) as url:
        patch.setattr(servers, "CALLS", (("call_1", "order_state", ORDER),))
        patch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        patch.setenv("OPENAI_API_KEY", "a key of the test")
        run(piece)
    assert "'output': 'shipped'" in str(provider.requests[1]["input"])


def llm(piece: Piece, _: Path) -> None:
    import llm as library
    from llm.plugins import pm

    names = run(piece)
    plugin = type("plugin", (), {"register_tools": staticmethod(names["register_tools"])})
    pm.register(plugin, "orders")
    try:
        orders: Any = library.get_tools()["Orders"]
        (tool,) = orders("eu").tools()
        assert tool.implementation(**ORDER) == "shipped"
    finally:
        pm.unregister(plugin)


def agentscope(piece: Piece, _: Path) -> None:
    from agentscope.message import ToolCallBlock
    from agentscope.state import AgentState

    toolkit, state = run(piece)["toolkit"], AgentState()
    state.tool_context.activated_groups.append("shop")

    async def ask() -> list[Any]:
        call = ToolCallBlock(id="1", name="order_state", input='{"order": "a1"}')
        return [each async for each in toolkit.call_tool(call, state)]

    assert "shipped" in str(asyncio.run(ask())[-1].content)


LIBRARIES: dict[str, Callable[[Piece, Path], None]] = {
    each.__name__: each for each in (langchain_core, langchain, fastmcp, pydantic_ai, llm, agentscope)
}


def library(piece: Piece) -> str:
    """The library that a block is of: the first one that it imports."""
    names: list[str] = re.findall(r"^(?:import|from) (\w+)", piece.text, re.MULTILINE)
    return next(name for name in names if name in LIBRARIES)


@pytest.mark.parametrize("piece", run_by(FRAMEWORKS), ids=lambda piece: f"{library(piece)}: {piece.label}")
def test_runs_as_printed(piece: Piece, tmp_path: Path) -> None:
    if importlib.util.find_spec(library(piece)) is None:
        pytest.skip(f"{library(piece)} is not installed here: nox -s bridges")
    LIBRARIES[library(piece)](piece, tmp_path)
