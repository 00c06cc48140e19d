"""Tools under an index: those that wait to be found, by the words of their names, descriptions and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from pegboard._base.errors import PegboardError
from pegboard._model.subschemas import subschemas
from pegboard._model.tool import Tool
from pegboard.builtin.search.bm25 import Index, counted

__all__ = ["ToolIndex"]

NAME_WEIGHT: Final = 3
"""What a word in a name counts for, against one in a description."""

_COUNTS: Final[WeakKeyDictionary[Tool, Counter[str]]] = WeakKeyDictionary()
"""The words of each tool, counted once, whichever sessions search it."""


@final
class ToolIndex:
    """The deferred tools of one session, by their names there."""

    __slots__ = ("_index", "_tools")

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._index = Index({name: _words(tool) for name, tool in self._tools.items()})

    def search(self, query: str, limit: int) -> list[Tool]:
        """The best ones, best first."""
        return [self._tools[name] for name in self._index.search(query, limit)]


def _words(tool: Tool) -> Counter[str]:
    words = _COUNTS.get(tool)
    if words is None:
        words = _COUNTS[tool] = counted(_texts(tool))
    return words


def _texts(tool: Tool) -> list[tuple[str, int]]:
    name = (tool.name, NAME_WEIGHT)
    try:
        return [name, (tool.description, 1), *_said(tool.parameters)]
    except PegboardError:  # its pack turns out to be broken on first use
        return [name]


def _said(schema: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """The names and descriptions of the parameters, those inside records included."""
    for name in schema.get("properties", ()):
        yield str(name), 1
    for _, _, inner in subschemas(schema):
        if isinstance(inner, Mapping):
            if isinstance(inner.get("description"), str):
                yield inner["description"], 1
            yield from _said(inner)
