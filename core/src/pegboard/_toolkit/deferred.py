"""Large boards: tools that wait to be found, and the search that finds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, final
from weakref import WeakKeyDictionary

from pegboard._base.errors import PegboardError
from pegboard._model.subschemas import subschemas
from pegboard._model.tool import Tool

if TYPE_CHECKING:
    from pegboard._toolkit.bm25 import Index

__all__ = ["DEFER_THRESHOLD", "OFF_BOARD", "Catalogue", "Listing", "Searched"]

OFF_BOARD: Final = ".search_tools"
"""What the search is called where tools go by their names on the board: none can have this one."""

DEFER_THRESHOLD: Final = 10
"""How many deferred tools are still listed like any other: as many as a model picks from without help."""

NAME_WEIGHT: Final = 3
"""What a word in a name counts for, against one in a description."""


@final
class Listing:
    """What a session shows: the `tools`, and those of all offered ones that are `deferred`.

    `is_partial` while there are so many of these that only those that were found are listed. `rival` is the tool that
    has the name of the search, for which everything has to be listed.
    """

    __slots__ = ("deferred", "is_partial", "rival", "tools")

    def __init__(
        self, tools: list[Tool], deferred: list[Tool], is_partial: bool = False, rival: Tool | None = None
    ) -> None:
        self.tools = tools
        self.deferred = deferred
        self.is_partial = is_partial
        self.rival = rival

    @classmethod
    def of(cls, offered: Iterable[Tool], threshold: int, rival: Tool | None, found: Callable[[Tool], bool]) -> Listing:
        """Everything offered while no more than `threshold` tools are deferred, else without those not yet `found`."""
        tools = list(offered)
        deferred = [tool for tool in tools if tool.options.defer]
        if len(deferred) <= threshold:
            return cls(tools, deferred)
        if rival is not None:
            return cls(tools, deferred, rival=rival)
        return cls([tool for tool in tools if not tool.options.defer or found(tool)], deferred, is_partial=True)


@final
class Searched:
    """The deferred tools of one session under an index, by their names there."""

    __slots__ = ("index", "tools")

    def __init__(self, index: Index, tools: Iterable[Tool]) -> None:
        self.index = index
        self.tools = {tool.name: tool for tool in tools}

    def search(self, query: str, limit: int) -> list[Tool]:
        """The best ones, best first."""
        return [self.tools[name] for name in self.index.search(query, limit)]


@final
class Catalogue:
    """Counts the words of tools, each tool once, whichever sessions search it."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[Tool, Counter[str]] = WeakKeyDictionary()

    def index(self, tools: Iterable[Tool]) -> Index:
        """An index over tools as one session sees them."""
        from pegboard._toolkit.bm25 import Index

        return Index({tool.name: self._of(tool) for tool in tools})

    def _of(self, tool: Tool) -> Counter[str]:
        counts = self._counts.get(tool)
        if counts is None:
            from pegboard._toolkit.bm25 import counted

            counts = self._counts[tool] = counted(_texts(tool))
        return counts


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
