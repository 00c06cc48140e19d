"""Functions: those of the program that answer requests for prompts and resources, called as its tools are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, final

from pegboard import PegboardError, Session, Tool, Toolkit, ToolResult

__all__ = ["Functions", "completed", "message_of"]

MOST_VALUES: Final = 100
"""Values in one answer to a request for completion, as the protocol has it."""


@final
class Functions:
    """Functions in a toolkit of their own, where arguments that come as texts get the parameters' types.

    They are no tools: they are not on the board, and no model calls them. Packs that the environment demands of every
    toolkit are in this one too, so that a lock file holds for it.
    """

    def __init__(self) -> None:
        self._added: list[tuple[Callable[..., Any], str | None]] = []
        self._made: Toolkit | None = None

    @property
    def _toolkit(self) -> Toolkit:
        if self._made is None:
            self._made = _empty_toolkit()
            for function, name in self._added:
                self._made.register(function, name=name)
        return self._made

    def __len__(self) -> int:
        return len(self._added)

    def add(self, function: Callable[..., Any], name: str | None = None) -> Tool:
        """Add one; under its own name unless it gets another. Raises `RegistrationError` if it cannot be read."""
        tool = self._toolkit.register(function, name=name)[0]
        self._added.append((function, name))
        return tool

    def session(self, of: Session) -> Session:
        """Where they are called: the context is that of the session `of`."""
        return self._toolkit.session(context=of.scope, agent=of.agent, subject=of.subject, approver=of.approver)

    def close(self) -> None:
        """End the threads of calls; a later call begins other ones."""
        if self._made is not None:
            self._made.close()
            self._made = None


def _empty_toolkit() -> Toolkit:
    """A toolkit without packs, but for those without which the environment allows none."""
    required = [name.strip() for name in os.environ.get("PEGBOARD_REQUIRE", "").split(",") if name.strip()]
    if any(os.environ.get(f"PEGBOARD_{policy}") for policy in ("LOCK", "PERMISSIONS")):
        required.append("policy")
    # The servers of a file are in the toolkit that is served.
    ours: dict[str, Any] = {"mcp": {"servers": {}, "config": None}}
    return Toolkit(plugins=required, settings=ours if {"mcp", "pegboard-mcp"} & set(required) else None)


def message_of(result: ToolResult) -> str:
    """The message of a failed call."""
    return result.text.removeprefix("Error: ")


def completed(tool: Tool, argument: Any) -> Any:
    """The values of a parameter that begin with what is there, where the type names them; else none."""
    from mcp_types import CompleteResult, Completion

    try:
        schema = tool.json_schema(refs="inline")["properties"].get(argument.name, {})
    except PegboardError:  # a recursive type, which names no values
        schema = {}
    found = [value for value in dict.fromkeys(_values(schema)) if value.startswith(argument.value)]
    values = found[:MOST_VALUES]
    return CompleteResult(completion=Completion(values=values, total=len(found), has_more=len(found) > len(values)))


def _values(schema: dict[str, Any]) -> Iterator[str]:
    """All values of a schema that has few, as texts."""
    named: Iterable[Any] = schema.get("enum", [schema["const"]] if "const" in schema else ())
    if schema.get("type") == "boolean":
        named = (True, False)
    yield from (value if isinstance(value, str) else json.dumps(value) for value in named)
    for each in schema.get("anyOf", ()):
        yield from _values(each)
