"""Catalogs: which tools the programs of one session may call, and what a model reads of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, final

from pegboard import Permission, Session, Tool
from pegboard_code._stubs import PREAMBLE, Stub, Stubs

__all__ = ["Catalog", "CatalogMode", "modules", "offered"]

CatalogMode: TypeAlias = Literal["all", "search", "auto"]
MOST_TEXT: Final = 16_000
"""Characters of stubs above which `auto` lists names alone."""
FOUND: Final = 5
modules: Final = (
    "asyncio, base64, bisect, collections, copy, csv, dataclasses, datetime, decimal, functools, hashlib, itertools, "
    "json, math, pathlib, random, re, time, tomllib, typing"
)
_INTRODUCTION: Final = """\
Run one Python program that calls the tools below as functions. Use it for several calls, loops and filters: what the \
program does not return is not read by you. The program is checked against the types of the tools before it runs.
1. Await each call: x = await tool(name="a"). Arguments go by keyword.
2. Several at once: import asyncio, then a, b = await asyncio.gather(tool(name="a"), tool(name="b")).
3. The last line is an expression; its value is the result. `return value` works too. What is printed comes before it.
4. A call that fails raises ToolError: try: ... except ToolError as error: ...
5. Results are dicts and lists as typed below: read x["key"], not x.key. Dates are texts.
6. An image or a file is a Handle; show(handle) puts it into the result.
7. Modules: {modules}. Import what you use; there are no others.
8. There are no files, network, input() or waiting; the clock stands still.
9. Not supported: yield, class inheritance, del, @property, async with, asyncio.create_task, re.sub with a function.
10. At most {calls} calls and {seconds:g} seconds."""
_SEARCH: Final = """\
Tools by name; `print(await find_tools("query"))` describes those that fit, `print(await describe_tool("name"))` one:"""


def offered(session: Session) -> dict[str, Tool]:
    """The tools that a session may call, deferred ones too: those that are active and not forbidden."""
    permissions = session.permissions
    tools = {tool.name: tool for tool in (*session.tools, *session.deferred_tools)}
    return {name: tool for name, tool in tools.items() if permissions.get(name, Permission.NEVER) != "never"}


@final
class Catalog:
    """The tools of programs: `names` are those that stand in programs, by the tools' own."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._stubs = Stubs(self.tools.values())
        self.stubs: Mapping[str, Stub] = self._stubs.by_name

    @cached_property
    def by_tool(self) -> dict[str, Stub]:
        """The stubs by the tools' own names."""
        return {stub.tool: stub for stub in self.stubs.values()}

    @cached_property
    def text(self) -> str:
        """All stubs."""
        return self._stubs.render()

    @cached_property
    def checked(self) -> str:
        """What programs are checked against."""
        return f"{PREAMBLE}\n{self.text}\n"

    @cached_property
    def digest(self) -> str:
        """A hash of that."""
        return hashlib.sha256(self.checked.encode()).hexdigest()

    @cached_property
    def lookup(self) -> dict[str, Any]:
        """What names of the sandbox stand for functions of the host."""
        return dict.fromkeys((*self.stubs, "describe_tool", "find_tools", "show"), _function)

    def description(self, mode: CatalogMode, max_calls: int, timeout: float) -> str:
        """What a model reads: the rules, and the stubs or the names of the tools."""
        rules = _INTRODUCTION.format(modules=modules, calls=max_calls, seconds=timeout)
        if not self.stubs:
            return f"{rules}\n\nThere are no tools now."
        if mode == "search" or (mode == "auto" and len(self.text) > MOST_TEXT):
            return f"{rules}\n\n{_SEARCH}\n{', '.join(self.stubs)}"
        return f"{rules}\n\n```python\n{self.text}\n```"

    def describe(self, name: str) -> str:
        """The stub of a tool by either of its names, with its types."""
        known = self.stubs.get(name) or self.by_tool.get(name)
        return (
            self._stubs.render([known.name]) if known else f"There is no tool {name!r}; find_tools(query) finds tools."
        )

    def find(self, query: str) -> str:
        """The stubs of the tools that fit best: those with the most of its words, in their names twice."""
        words = set(re.findall(r"[a-z0-9]+", query.lower()))
        scores = {name: _score(words, stub) for name, stub in self.stubs.items()}
        best = sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))[:FOUND]
        return self._stubs.render(best) if best else f"No tool fits {query!r}. Tools: {', '.join(self.stubs)}"

    def heads_in(self, text: str) -> list[str]:
        """The signatures of the tools that a text names."""
        names = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text))
        return [self.stubs[name].head for name in names if name in self.stubs]


def _function() -> None:
    """Stands for a function of the host; calls of it arrive as questions."""


def _score(words: set[str], stub: Stub) -> int:
    in_name, in_text = (
        set(re.findall(r"[a-z0-9]+", each.replace("_", " ").lower())) for each in (stub.name, stub.text)
    )
    return 3 * len(words & in_name) + len(words & in_text)
