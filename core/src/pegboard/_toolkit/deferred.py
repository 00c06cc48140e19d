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

__all__ = ["DEFER_THRESHOLD", "OFF_BOARD", "Catalogue", "FoundTools", "Listing", "Searched"]

_NOTHING: Final[Mapping[str, int]] = {}

OFF_BOARD: Final = ".search_tools"
"""What the search is called where tools go by their names on the board: none can have this one."""

DEFER_THRESHOLD: Final = 10
"""How many deferred tools are still listed like any other: as many as a model picks from without help."""

NAME_WEIGHT: Final = 3
"""What a word in a name counts for, against one in a description."""


@final
class Listing:
    """What a session shows: the `tools`, and by name those of all offered ones that are `deferred`.

    `is_partial` while there are so many of these that only those that were found are listed. `rival` is the tool that
    has the name of the search, for which everything has to be listed.
    """

    __slots__ = ("deferred", "is_partial", "rival", "tools")

    def __init__(
        self,
        tools: tuple[Tool, ...],
        deferred: Mapping[str, Tool],
        is_partial: bool = False,
        rival: Tool | None = None,
    ) -> None:
        self.tools = tools
        self.deferred = deferred
        self.is_partial = is_partial
        self.rival = rival

    @classmethod
    def of(cls, offered: Iterable[Tool], threshold: int, rival: Tool | None, found: Callable[[str], bool]) -> Listing:
        """Everything offered while no more than `threshold` tools are deferred, else without those not yet `found`."""
        tools = tuple(offered)
        deferred = {tool.name: tool for tool in tools if tool.options.defer}
        if len(deferred) <= threshold:
            return cls(tools, deferred)
        if rival is not None:
            return cls(tools, deferred, rival=rival)
        listed = (tool for tool in tools if tool.name not in deferred or found(tool.name))
        return cls(tuple(listed), deferred, is_partial=True)


@final
class Searched:
    """The deferred tools of one session under an index: by their names there, each with its name on the board."""

    __slots__ = ("index", "tools")

    def __init__(self, index: Index, tools: Mapping[str, tuple[str, Tool]]) -> None:
        self.index = index
        self.tools = tools

    def search(self, query: str, limit: int) -> dict[str, Tool]:
        """The best ones by their names on the board, best first."""
        return dict(self.tools[name] for name in self.index.search(query, limit))


@final
class FoundTools:
    """The deferred tools that were found in one session, by name; those of the wider session are found too.

    A tool that is taken down is forgotten: `removals(name)` counts how often that has happened.
    """

    __slots__ = ("_found", "_removals", "_wider")

    def __init__(self, removals: Callable[[str], int], wider: FoundTools | None = None) -> None:
        self._found: Mapping[str, int] = _NOTHING
        self._removals = removals
        self._wider = wider

    def __contains__(self, name: str) -> bool:
        if self._found.get(name) == self._removals(name):
            return True
        return self._wider is not None and name in self._wider

    def add(self, names: Iterable[str]) -> bool:
        """Remember names; whether one of them is new."""
        fresh = {name: self._removals(name) for name in names if name not in self}
        self._found = {**self._found, **fresh}
        return bool(fresh)

    def clear(self) -> None:
        """Forget what was found here."""
        self._found = _NOTHING


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
    for inner in subschemas(schema):
        if isinstance(inner, Mapping):
            if isinstance(inner.get("description"), str):
                yield inner["description"], 1
            yield from _said(inner)
