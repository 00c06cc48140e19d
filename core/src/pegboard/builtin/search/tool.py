"""The tool `search_tools`: a model finds tools that are not listed."""

from __future__ import annotations

from typing import Annotated, Any

from pegboard import Param, Session, tool

__all__ = ["search_tools"]


@tool(read_only=True, idempotent=True, destructive=False, open_world=False)
def search_tools(
    session: Session,
    query: Annotated[str, Param("What the tool should do, in a few words, or its name")],
    limit: Annotated[int, Param("How many tools to return at most", ge=1, le=50)] = 5,
) -> list[dict[str, Any]]:
    """Find more tools: there are many that are not listed. The tools in the result can be called from then on."""
    return [found.schema().to_dict() for found in session.search(query, limit)]
