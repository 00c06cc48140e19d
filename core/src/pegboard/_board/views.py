"""Views: a board as one session shows it, without some of the tools, or with others under other names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from attrs import field, frozen
from attrs.converters import optional

from pegboard._base.errors import ConflictError, RegistrationError, UnknownNameError, suggestion
from pegboard._base.names import OWN, Rename, check_name, listed, renamed
from pegboard._board.board import View
from pegboard._model.tool import Tool

_WILD: Final = frozenset("*?[")


@frozen(eq=False)
class ViewRules:
    """What a session shows of the wider view: a tool that fits everything that is asked, under its new name.

    The tool that pages through long output is always there and keeps its name: results speak of it.
    """

    include: tuple[str, ...] | None = field(converter=optional(listed))
    exclude: tuple[str, ...] = field(converter=listed)
    tags: tuple[str, ...] = field(converter=listed)
    prefix: str
    rename: Rename | None
    where: Callable[[Tool], bool] | None

    def check(self, wider: View, view: View) -> None:
        """Raise `UnknownNameError` for a name that names nothing, and the error of names that cannot be given."""
        known = {name for each, tool in wider.tools.items() for name in _names(wider, each, tool)}
        others = list(self.rename) if isinstance(self.rename, Mapping) else []
        for name in (*(self.include or ()), *self.exclude, *others):
            if name not in known and (name in others or not _WILD & set(name)):
                hint = suggestion(name, wider.tools, noun="tools")
                raise UnknownNameError(f"the view cannot find a tool {name!r}. {hint}")
        for error in view.refused.values():
            raise error

    def applied(self, wider: View) -> View:
        """What these rules show of a wider view."""
        by_name: dict[str, list[tuple[str, Tool]]] = {}
        for name, tool in wider.tools.items():
            if tool.pack is None and tool.origin.plugin == OWN:
                by_name.setdefault(name, []).append((name, tool))
            elif self._shows(_names(wider, name, tool), name, tool):
                by_name.setdefault(renamed(name, self.rename, self.prefix, name), []).append((name, tool))
        refused: dict[str, RegistrationError] = {}
        for name, candidates in by_name.items():
            error = _refusal(name, [wide for wide, _ in candidates])
            if error is not None:
                refused[name] = error
        tools = {name: candidates[0][1] for name, candidates in by_name.items() if name not in refused}
        return View(wider.board, tools, {tool.entry: name for name, tool in tools.items()}, refused)

    def _shows(self, names: tuple[str, ...], name: str, tool: Tool) -> bool:
        return (
            (self.include is None or _fits(names, self.include))
            and not _fits(names, self.exclude)
            and (not self.tags or not set(self.tags).isdisjoint(tool.tags))
            and (self.where is None or bool(self.where(tool if name == tool.name else tool.evolve(name=name))))
        )


def _names(wider: View, name: str, tool: Tool) -> tuple[str, ...]:
    """What a tool goes by: on the board also by its pack's name, in a view only by the name shown there."""
    return (name, tool.qualified_name) if wider.names is None else (name,)


def _fits(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _refusal(name: str, candidates: list[str]) -> RegistrationError | None:
    if len(candidates) > 1:
        both = " and ".join(map(repr, candidates))
        return ConflictError(f"{both} would both be called {name!r} in this view; rename one of them, or leave it out")
    try:
        check_name(name)
    except RegistrationError as error:
        return RegistrationError(f"{candidates[0]!r} cannot be called that in this view: {error}")
    return None
