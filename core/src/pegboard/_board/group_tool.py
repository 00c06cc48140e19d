"""The meta tool as a session's model sees it: which groups it may switch, and how they stand, always of now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from pegboard._board.overlay import Overlay

if TYPE_CHECKING:
    from pegboard._model.program import Group

__all__ = ["META_TOOL", "PARAMETER", "GroupFace"]

META_TOOL: Final = "reset_equipped_tools"
PARAMETER: Final = "to_activate"

_INTRODUCTION: Final = (
    "Choose the groups of tools that you need. The groups that you name are active from then on, the other ones are "
    "not: name all that you need, those that are active already too. Only tools of active groups can be called."
)
_NONE: Final = "There are no groups yet."


@final
class GroupFace:
    """How the meta tool looks in one session: its function's schema, with the groups of now written into it."""

    def __init__(self, activation: Overlay) -> None:
        self._activation = activation

    @property
    def description(self) -> str:
        """What the tool does, and every group that the model manages, with its state and its instructions."""
        lines = [self._described(group) for group in self._activation.groups.all("model")]
        return "\n".join([_INTRODUCTION, "", "Groups:", *lines] if lines else [_INTRODUCTION, "", _NONE])

    def _described(self, group: Group) -> str:
        state = "active" if self._activation.is_active(group.name) else "inactive"
        line = f"- {group.name} ({state})" + (f": {group.description}" if group.description else "")
        return f"{line}\n  Instructions: {group.instructions}" if group.instructions else line

    def schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The function's schema, with the names of the groups as the values that there are."""
        if PARAMETER not in schema["properties"]:
            return schema
        array = dict(schema["properties"][PARAMETER])
        if names := [group.name for group in self._activation.groups.all("model")]:
            array["items"] = {**array["items"], "enum": names}
        else:
            array["maxItems"] = 0  # an enum must have a member
        return {**schema, "properties": {**schema["properties"], PARAMETER: array}}
