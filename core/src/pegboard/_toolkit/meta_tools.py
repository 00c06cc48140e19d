"""Meta tools: tools with which a model changes what its own session offers."""

from __future__ import annotations

from typing import Annotated, Any

from pegboard._base.errors import ToolError, suggestion
from pegboard._base.markers import Param
from pegboard._base.names import SEARCH_TOOL
from pegboard._board.group_tool import META_TOOL, GroupFace
from pegboard._model.tool import Origin, Tool, ToolOptions
from pegboard._toolkit.deferred import OFF_BOARD
from pegboard._toolkit.session import Session
from pegboard._toolkit.state import ToolkitState
from pegboard._tools.definition import ToolDefinition
from pegboard._tools.signature import TypeTables, read_function

__all__ = ["register_meta_tool", "reset_equipped_tools", "search_tool", "search_tools"]


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


def search_tools(
    session: Session,
    query: Annotated[str, Param("What the tool should do, in a few words, or its name")],
    limit: Annotated[int, Param("How many tools to return at most", ge=1, le=50)] = 5,
) -> list[dict[str, Any]]:
    """Find more tools: there are many that are not listed. The tools in the result can be called from then on."""
    return [tool.schema().to_dict() for tool in session.search(query, limit)]


def register_meta_tool(core: ToolkitState, session: Session) -> Tool:
    """Hang up `reset_equipped_tools`, once. Raises `ConflictError` where the program has another tool of that name."""
    hanging = core.registry.find(META_TOOL)
    if hanging is None or hanging.definition.face is None:
        options = ToolOptions(idempotent=True, destructive=False, open_world=False)
        face = GroupFace(session._overlay)
        definition = ToolDefinition(read_function, reset_equipped_tools, META_TOOL, options, core.assembly, face=face)
        hanging = Tool(META_TOOL, definition, options)
        core.registry.add([hanging], (), "raise")
    return session.seen(hanging)


def search_tool(assembly: TypeTables) -> Tool:
    """The tool `search_tools`; it hangs on no board, sessions show it while they hide tools that wait to be found."""
    options = ToolOptions(read_only=True, idempotent=True, destructive=False, open_world=False)
    definition = ToolDefinition(read_function, search_tools, SEARCH_TOOL, options, assembly)
    return Tool(OFF_BOARD, definition, options, origin=Origin("pegboard"))
