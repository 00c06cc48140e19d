"""Whatever path a model sends, to whichever tool: nothing outside is touched, no call blocks, refusals are typed."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pegboard import ToolResult
from pegboard_files import FileToolError, FileTools, _tools
from tests.plugins.files import hostile
from tests.plugins.files.conftest import CONFINED, Make, names_in
from tests.support.thinning import one_in
from tests.support.waiting import within

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the traps are those of POSIX systems")

TOOLS: dict[str, Callable[[FileTools, str], str | ToolResult]] = {
    "view": lambda tools, path: tools.view_text_file(path),
    "view the end": lambda tools, path: tools.view_text_file(path, "-1,-1"),
    "list": lambda tools, path: tools.list_directory(path),
    "find": lambda tools, path: tools.find_files("**", path),
    "find a glob": lambda tools, path: tools.find_files(path),
    "search": lambda tools, path: tools.search_text("e", path),
    "search a glob": lambda tools, path: tools.search_text("e", glob=path),
    "edit": lambda tools, path: tools.edit_text_file(path, "e", hostile.KEPT, 1),
    "insert": lambda tools, path: tools.insert_text_file(path, hostile.KEPT, 1),
    "replace lines": lambda tools, path: tools.write_text_file(path, hostile.KEPT, "1,1"),
    "write": lambda tools, path: tools.write_text_file(path, hostile.KEPT),
    "write with version": lambda tools, path: tools.write_text_file(path, hostile.KEPT, version="0" * 8),
}
PLACEHOLDER = Path("/placeholder")


def answer(tool: Callable[[FileTools, str], str | ToolResult], tools: FileTools, path: str) -> tuple[str, str]:
    """What the tool says, and the name of its refusal or "". Any other exception goes on, and fails the test."""
    try:
        reply = tool(tools, path)
    except FileToolError as refusal:
        return str(refusal), type(refusal).__name__
    return (reply if isinstance(reply, str) else f"{reply.text}\n{reply.data}"), ""


def test_there_are_enough_attacks() -> None:
    paths = [path for kind, paths in hostile.attacks(PLACEHOLDER).items() if kind != "inside" for path in paths]
    assert len(paths) == len(set(paths)) >= 150


@pytest.mark.parametrize("tool", one_in(3, TOOLS))
def test_no_tool_leaves_the_directory(tool: str, tmp_path: Path, make: Make) -> None:
    root = hostile.build(tmp_path)
    tools = make(root)
    for kind, paths in hostile.attacks(tmp_path).items():
        before = hostile.protected(tmp_path)
        for path in paths:
            reply, _ = within(partial(answer, TOOLS[tool], tools, path))
            assert hostile.SECRET not in reply, path
            assert str(tmp_path) not in reply.replace(path, ""), path
            assert "\0" not in reply, path
            reply.encode()  # whole text, no half characters
        after = hostile.protected(tmp_path)
        assert {name for name, what in before.items() if after.get(name) != what} == set(), kind
    assert [name for name in names_in(root) if name.startswith(".pegboard")] == []


@pytest.mark.parametrize("engine", sorted(CONFINED))
def test_refusals_say_why(tmp_path: Path, make: Make, engine: str) -> None:
    tools = make(hostile.build(tmp_path))
    wrong = []
    for kind, paths in hostile.attacks(tmp_path).items():
        expected = {"inside": ("",), "Windows": ("MissingError", "OutsideError", "DeniedError")}.get(kind, (kind,))
        for path in paths:
            reply, refusal = answer(TOOLS["view"], tools, path)
            if refusal not in expected or (hostile.INSIDE in reply) != (not refusal):
                wrong.append((path, expected, reply))
    assert wrong == []


@pytest.mark.slow
def test_engines_agree_on_every_attack_and_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own tree, and both trees go through the same states."""
    sides = []
    for name, engine in CONFINED.items():
        (tmp_path / name).mkdir()
        monkeypatch.setattr(_tools, "open_root", engine)
        sides.append((tmp_path / name, FileTools(hostile.build(tmp_path / name), durability="rename")))
    both = [[path for paths in hostile.attacks(parent).values() for path in paths] for parent, _ in sides]
    for twins in zip(*both, strict=True):
        for name, tool in TOOLS.items():
            answers = set()
            for (parent, tools), path in zip(sides, twins, strict=True):
                reply, refusal = answer(tool, tools, path)
                answers.add((reply.replace(str(parent), ""), refusal))
            assert len(answers) == 1, (twins, name, answers)


SYSTEM = [
    "proc/self/root/etc/passwd",
    "proc/self/cwd",
    "proc/self/exe",
    "proc/self/fd/0",
    "proc/self/fd",
    "proc/self/ns/net",
    "proc/self/mem",
    "proc/self/pagemap",
    "proc/kmsg",
    "dev/kmsg",
    "dev/stdin",
    "dev/zero",
    "dev/tty",
    "dev/ptmx",
    "sys/kernel/debug/tracing/trace_pipe",
]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="the traps are those of Linux")
@pytest.mark.parametrize("engine", sorted(CONFINED))
@pytest.mark.parametrize("tool", ["view", "view the end", "search"])
def test_root_of_the_system_as_the_directory(tool: str, make: Make, engine: str) -> None:
    """Rules that allow everything: no call blocks, and no magic link is followed."""
    tools = make(Path("/"), read_only=True)
    for path in SYSTEM:
        reply, refusal = within(partial(answer, TOOLS[tool], tools, path))
        assert refusal or reply.startswith("0 lines found"), (path, reply)
