"""The tools of the core: a model changes what its own session offers, finds more, or pages through long output.

What they need of the session they get as any tool would: by a parameter, and from public methods.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from pegboard import Param, Session, ToolError, tool
from pegboard._base.errors import suggestion
from pegboard.hookspecs import hookimpl


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
    new = [group for group in active if group.instructions and group.name not in before]
    lines += [f"Instructions for {group.name}: {group.instructions}" for group in new]
    return "\n".join(lines)


@tool(read_only=True, idempotent=True, destructive=False, open_world=False)
def search_tools(
    session: Session,
    query: Annotated[str, Param("What the tool should do, in a few words, or its name")],
    limit: Annotated[int, Param("How many tools to return at most", ge=1, le=50)] = 5,
) -> list[dict[str, Any]]:
    """Find more tools: there are many that are not listed. The tools in the result can be called from then on."""
    return [found.schema().to_dict() for found in session.search(query, limit)]


# Its pages are short by themselves; a page that spilled would never end.
@tool(read_only=True, idempotent=True, max_output=sys.maxsize)
def read_output(session: Session, handle: str, offset: Annotated[int, Param(ge=0)] = 0) -> str:
    """Read on in the output of a tool that was too long to be shown at once.

    Args:
        handle: The handle that stands at the end of the shortened output
        offset: How many characters to skip
    """
    return session.read_output(handle, offset)


@hookimpl
def provide_tools() -> list[str]:
    """The meta tools, and the one that pages through long output.

    They are registered when there is something for them to do: `register_meta_tool()`, many deferred tools, output that
    was kept. A pack replaces one by a tool of its name that says so: `replaces="pegboard__search_tools"`.
    """
    return [f"{__name__}:{name}" for name in ("reset_equipped_tools", "read_output", "search_tools")]
