"""Board A served, board B consuming it: the same schemas and the same results for the tools of our packs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Tool, Toolkit
from pegboard_mcp import McpServer, mcp_server

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("view_text_file", {"file_path": "a.txt"}),
    ("view_text_file", {"file_path": "a.txt", "ranges": "1,1"}),
    ("view_text_file", {"file_path": "none.txt"}),
    ("list_directory", {"dir_path": "."}),
    ("find_files", {"pattern": "*.txt"}),
    ("search_text", {"pattern": "two"}),
    ("write_text_file", {"file_path": "b.txt", "content": "same"}),
    ("insert_text_file", {"file_path": "none.txt", "content": "zero", "line_number": 1}),
    ("edit_text_file", {"file_path": "a.txt", "old_text": "none", "new_text": "x"}),
    ("execute_shell_command", {"command": "echo hello"}),
]


@pytest.fixture(params=["auto", "legacy"])
def boards(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Toolkit, Toolkit]]:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("same", encoding="utf-8")
    settings = {"files": {"base_dir": str(tmp_path)}}
    far = Toolkit(plugins=["files", "shell"], settings=settings, approver=lambda asked: True)
    near = Toolkit(plugins=(), approver=lambda asked: True)
    with far, near:
        if not far.tools:
            pytest.skip("none of the packs with tools is installed here")
        near.register(McpServer.in_process(mcp_server(far, all_tools=True), mode=request.param))
        yield far, near


def shape(tool: Tool) -> tuple[Any, ...]:
    return tool.name, tool.description, tool.parameters, tool.returns, tool.hints.read_only, tool.hints.destructive


def test_same_definitions(boards: tuple[Toolkit, Toolkit]) -> None:
    far, near = boards
    assert [shape(tool) for tool in near.tools] == [shape(tool) for tool in far.tools]


def test_same_results(boards: tuple[Toolkit, Toolkit]) -> None:
    far, near = boards
    called: set[str] = set()
    for name, arguments in CALLS:
        if name not in far:
            continue
        there, here = far.call_sync(name, arguments), near.call_sync(name, arguments)
        called.add(name)
        assert (here.content, here.is_error) == (there.content, there.is_error), name
        if far[name].returns is not None and not there.is_error:
            assert here.data == there.data, name
    assert called == {tool.name for tool in far.tools}
