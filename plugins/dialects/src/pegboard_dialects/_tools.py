"""The part that all dialects share: rendering the tools that are offered, and recording the losses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, NoReturn

from pegboard import PegboardError, Tool, ToolCall, UnknownNameError
from pegboard_dialects._cut import refuse
from pegboard_dialects._losses import Loss
from pegboard_dialects._nulls import without_nulls
from pegboard_dialects._reading import DEEPEST, decoded
from pegboard_dialects._schemas import AS_WRITTEN, Rules, rendered

__all__ = ["Definition", "Provider", "Wanted", "call_of", "chosen", "refuse_subset", "searches", "wanted"]


_JSON: Final = ("object", "array", "integer", "number", "boolean")


class Definition(NamedTuple):
    """A tool as it is described to a provider."""

    tool: Tool
    parameters: dict[str, Any]
    strict: bool
    losses: list[Loss]

    @property
    def promised(self) -> dict[str, Any] | None:
        """The schema of results that are JSON; None for tools that return text, or have no schema for results."""
        returns = self.tool.returns
        return None if returns is None or returns.get("type") not in _JSON else returns

    @property
    def described(self) -> dict[str, str]:
        """The member `description`, for tools that have one."""
        return {"description": self.tool.description} if self.tool.description else {}


class Provider(NamedTuple):
    """The rules of a provider: for all schemas, for strict ones, and for the other parts of a tool."""

    plain: Rules = AS_WRITTEN
    strict: Rules | None = None
    takes: frozenset[str] = frozenset()
    """The further parts of a tool that the provider takes: `defer`, `examples`."""
    members: str = ".*"
    """A pattern for the names of parameters."""

    def definitions(self, tools: Iterable[Tool], strict: bool) -> list[Definition]:
        """Each tool that can be read; strict if that is wanted and possible."""
        found = (self._definition(tool, strict) for tool in tools)
        return [each for each in found if each is not None]

    def lint(self, tools: Iterable[Tool], *, strict: bool = False) -> list[Loss]:
        """The losses: what the definitions do not carry."""
        return [loss for each in self.definitions(tools, strict) for loss in each.losses]

    def _definition(self, tool: Tool, strict: bool) -> Definition | None:
        try:
            options, schema = tool.options, tool.parameters
        except PegboardError:  # its pack proves to be broken on first use: the tool is not offered
            return None
        losses = [
            Loss(tool.name, "", name, "the provider has no place for it", "info")
            for name in ("defer", "examples")
            if getattr(options, name) and name not in self.takes
        ]
        losses += [
            Loss(tool.name, name, "properties", f"the provider refuses the name {name!r}", "error")
            for name in schema.get("properties") or ()
            if not re.fullmatch(self.members, name)
        ]
        wanted = strict if options.strict is None else options.strict
        if wanted and self.strict is None:
            losses.append(Loss(tool.name, "", "strict", "the provider holds no model to a schema", "info"))
        elif wanted and self.strict is not None:
            found = rendered(tool.name, schema, self.strict)
            if found.parameters is not None:
                return Definition(tool, found.parameters, True, losses + found.losses)
            losses.append(found.losses[-1])
        found = rendered(tool.name, schema, self.plain)
        return Definition(tool, found.parameters or {}, False, losses + found.losses)


SEARCH: Final = "pegboard__search_tools"


def searches(tools: Iterable[Tool]) -> bool:
    """Whether Pegboard's own search is offered. Then it has found the deferred tools, and the model shall see them."""
    return any(
        tool.replaces == SEARCH or (tool.origin.plugin == "pegboard" and tool.name.endswith("search_tools"))
        for tool in tools
    )


def call_of(
    call_id: Any, name: Any, arguments: Any, meta: dict[str, Any], tools: Sequence[Tool], *, cut: str = ""
) -> ToolCall:
    """A call as the toolkit takes it. Nulls for omitted parameters are removed; unreadable arguments stay as they are.

    A call that was `cut` has its result already.
    """
    name = name if isinstance(name, str) else ""
    values = decoded(arguments)
    tool = next((tool for tool in tools if tool.name == name), None) if _has_null(values) else None
    if tool is not None:
        schema = tool.parameters
        values = without_nulls(values, schema, schema)
    call = ToolCall(
        call_id if isinstance(call_id, str) else "",
        name,
        values,
        {key: value for key, value in meta.items() if value is not None},
    )
    if cut:
        refuse(call, cut)
    return call


def _has_null(value: Any, depth: int = 0) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < DEEPEST and any(inner is None or _has_null(inner, depth + 1) for inner in inside)


class Wanted(NamedTuple):
    """A choice: what the model has to do, and which tools it may call (None: all that are listed)."""

    mode: Literal["auto", "required", "none", "tool"]
    names: tuple[str, ...] | None = None


def wanted(choice: Any, offered: Sequence[str], listed: int | None = None) -> Wanted:
    """Read a choice among the tools that are `offered`. `listed` is the number of tools listed, kept ones included.

    Raises `UnknownNameError` for an invalid choice, and for a tool that is not offered.
    """
    several = isinstance(choice, (list, tuple, set, frozenset))
    given = list(choice) if several else [choice]
    if several and all(name in offered for name in given):
        names = tuple(name for name in offered if name in given)
        return Wanted("auto", names) if names else Wanted("none")
    if choice == "none" or (choice in ("auto", "required") and listed and not offered):
        return Wanted("none")
    if choice in ("auto", "required"):
        return Wanted(choice, None if listed in (None, len(offered)) else tuple(offered))
    if choice in offered:
        return Wanted("tool", (choice,))
    unknown = next((name for name in given if name not in offered), choice)
    raise UnknownNameError(
        f"tool_choice takes 'auto', 'required', 'none', the name of a tool that is offered or a list of such names; "
        f"got {unknown!r}. Offered: {', '.join(offered) or 'none'}"
    )


def chosen(choice: Any, tools: Sequence[Tool], kept: Sequence[Tool], definitions: Iterable[Definition]) -> Wanted:
    """The choice among the tools that are offered and have a definition; other definitions may be kept."""
    if choice == "auto" and kept is tools:
        return Wanted("auto")
    listed = {each.tool.name for each in definitions}
    return wanted(choice, [tool.name for tool in tools if tool.name in listed], len(listed))


def refuse_subset(provider: str, names: Sequence[str]) -> NoReturn:
    """Raise an error that names another way to narrow the choice, for a provider that has none."""
    include = ", ".join(map(repr, names))
    raise PegboardError(
        f"{provider} takes one tool as a choice, or all of them, but not some; offer only these: "
        f"view(include=[{include}]).dialect({provider!r})"
    )
