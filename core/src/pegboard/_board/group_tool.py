"""The meta tool as a session's model sees it: which groups it may switch, and how they stand, always of now."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from pegboard._board.overlay import Overlay
from pegboard._model.tool import CallPlan, Definition, SchemaRequest, ToolOptions

if TYPE_CHECKING:
    from pegboard._model.facts import Parameter
    from pegboard._model.group import Group

__all__ = ["META_TOOL", "PARAMETER", "GroupTool"]

META_TOOL: Final = "reset_equipped_tools"
PARAMETER: Final = "to_activate"

_INTRODUCTION: Final = (
    "Choose the groups of tools that you need. The groups that you name are active from then on, the other ones are "
    "not: name all that you need, those that are active already too. Only tools of active groups can be called."
)
_NONE: Final = "There are no groups yet."


@final
class GroupTool:
    """The definition of the meta tool in one session: that of its function, with the groups of now written into it."""

    def __init__(self, inner: Any, activation: Overlay) -> None:
        self._inner = inner
        self._activation = activation

    def seen_by(self, activation: Overlay) -> Definition:
        """The same in another session."""
        return GroupTool(self._inner, activation)

    @property
    def description(self) -> str:
        """What the tool does, and every group that the model manages, with its state and its instructions."""
        lines = map(self._described, self._activation.groups.all("model"))
        return "\n".join([_INTRODUCTION, "", "Groups:", *lines] if self._names() else [_INTRODUCTION, "", _NONE])

    def _described(self, group: Group) -> str:
        state = "active" if self._activation.is_active(group.name) else "inactive"
        line = f"- {group.name} ({state})" + (f": {group.description}" if group.description else "")
        return f"{line}\n  Instructions: {group.instructions}" if group.instructions else line

    def _names(self) -> list[str]:
        return [group.name for group in self._activation.groups.all("model")]

    def schema(self, request: SchemaRequest, hidden: frozenset[str]) -> dict[str, Any] | None:
        """The function's schema, with the names of the groups as the values that there are."""
        schema: dict[str, Any] | None = self._inner.schema(request, hidden)
        if schema is None or PARAMETER not in schema.get("properties", ()):
            return schema
        array = dict(schema["properties"][PARAMETER])
        if names := self._names():
            array["items"] = {**array["items"], "enum": names}
        else:
            array["maxItems"] = 0  # an enum must have a member
        return {**schema, "properties": {**schema["properties"], PARAMETER: array}}

    # As the function's own -------------------------------------------------------------------------------------

    @property
    def options(self) -> ToolOptions:
        """What the function declares."""
        options: ToolOptions = self._inner.options
        return options

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function."""
        function: Callable[..., Any] | None = self._inner.function
        return function

    def rebuilt(self, name: str, options: ToolOptions, assembly: Any) -> GroupTool:
        """The tool under other options, or read anew."""
        return GroupTool(self._inner.rebuilt(name, options, assembly), self._activation)

    def parameters(self, hidden: frozenset[str]) -> tuple[Parameter, ...]:
        """The parameters."""
        parameters: tuple[Parameter, ...] = self._inner.parameters(hidden)
        return parameters

    def plan(self, presets: frozenset[str], locked: frozenset[str]) -> CallPlan:
        """The call plan."""
        plan: CallPlan = self._inner.plan(presets, locked)
        return plan

    def renderers(self) -> Any:
        """How returned values become content."""
        return self._inner.renderers()

    def structure_preset(self, name: str, value: Any) -> Any:
        """A preset as the parameter's type."""
        return self._inner.structure_preset(name, value)
