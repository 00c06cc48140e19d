"""The Model Context Protocol."""

from typing import Any

import pytest

from pegboard import PegboardError, Status, tool
from tests.plugins.dialects.desk import BLOCKS, IMAGE, PIXEL, bound, result, toolkit_of


@tool(read_only=True, destructive=False)
def count(text: str) -> int:
    """Count letters."""
    return len(text)


@tool
def look() -> dict[str, int]:
    return {"n": 1}


def test_description() -> None:
    first, second = bound("mcp", count, look).tools()
    assert first == {
        "name": "count",
        "description": "Count letters.",
        "inputSchema": toolkit_of(count)["count"].parameters,
        "outputSchema": {
            "type": "object",
            "properties": {"result": {"type": "integer"}},
            "required": ["result"],
            "x-fastmcp-wrap-result": True,
        },
        "annotations": {"readOnlyHint": True, "destructiveHint": False},
    }
    assert second["outputSchema"]["type"] == "object"
    assert "x-fastmcp-wrap-result" not in second["outputSchema"]


def request(name: str, arguments: Any, request_id: Any = "a") -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": 1}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def test_requests() -> None:
    chat = bound("mcp", count, look)
    (call,) = chat.calls(request("count", {"text": "abc"}))
    assert (call.id, call.name, call.arguments) == ("a", "count", {"text": "abc"})
    assert call.provider_meta == {"_meta": {"progressToken": 1}}
    (numbered,) = chat.calls(request("count", {"text": "abc"}, 7))
    assert (numbered.id, numbered.provider_meta["id"]) == ("7", 7)
    assert [each.name for each in chat.calls([request("look", None), {"name": "count"}])] == ["look", "count"]
    with pytest.raises(PegboardError, match="mcp: calls are read from a tools/call request"):
        chat.calls({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})


def test_results() -> None:
    toolkit = toolkit_of(count, look)
    chat = toolkit.dialect("mcp")
    results = toolkit.call_many_sync(chat.calls([request("count", {"text": "abc"}), request("look", {}, "b")]))
    assert chat.messages(results) == [
        {"content": [{"type": "text", "text": "3"}], "isError": False, "structuredContent": {"result": 3}},
        {"content": [{"type": "text", "text": '{"n": 1}'}], "isError": False, "structuredContent": {"n": 1}},
    ]
    (failed,) = chat.messages([toolkit.call_sync("count", {})])
    assert failed["isError"] is True
    assert "structuredContent" not in failed


def test_every_block_has_a_form() -> None:
    (answer,) = bound("mcp", count).messages([result(*BLOCKS.values(), IMAGE)])
    kinds = [each["type"] for each in answer["content"]]
    assert kinds == [
        "text", "image", "resource_link", "image", "audio", "resource", "resource", "resource", "resource_link", "image"
    ]  # fmt: skip
    assert answer["content"][1] == {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def test_what_came_to_nothing() -> None:
    (answer,) = bound("mcp", count).messages([result(status=Status.SUSPENDED)])
    assert answer == {"content": [{"type": "text", "text": "(no output)"}], "isError": True}


def test_there_is_no_tool_choice() -> None:
    with pytest.raises(PegboardError, match="the dialect 'mcp' has no tool_choice"):
        bound("mcp", count).tool_choice("auto")
