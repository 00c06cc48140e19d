"""The tool `reset_equipped_tools`: a model switches the groups that it manages, in its own session."""

from __future__ import annotations

from typing import Annotated

from pegboard import Param, Session, ToolError, tool
from pegboard._base.errors import suggestion

__all__ = ["reset_equipped_tools"]


@tool(idempotent=True, destructive=False, open_world=False)
def reset_equipped_tools(
    session: Session, to_activate: Annotated[list[str], Param("The names of all groups that shall be active")]
) -> str:
    """Switch the groups that the model manages, in the session that calls this and nowhere else."""
    known = [group.name for group in session.groups if group.managed_by == "model"]
    unknown = [name for name in to_activate if name not in known]
    if unknown:
        # A group that the program manages does not exist for the model.
        hints = (f"there is no tool group {name!r}. {suggestion(name, known, noun='groups')}" for name in unknown)
        raise ToolError(f"{' '.join(hints)} Nothing was changed.")
    before = session.active_groups
    session.set_active_groups(to_activate, managed_by="model")
    return _report(session, before)


def _report(session: Session, before: tuple[str, ...]) -> str:
    now = session.active_groups
    active = [group for group in session.groups if group.managed_by == "model" and group.name in now]
    lines = [f"Active groups: {', '.join(group.name for group in active)}." if active else "No group is active."]
    lines += [
        f"Instructions for {group.name}: {group.instructions}"
        for group in active
        if group.instructions and group.name not in before
    ]
    return "\n".join(lines)
