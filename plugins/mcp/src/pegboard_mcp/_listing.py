"""Listings: all the tools of a server, from however many pages it takes."""

from __future__ import annotations

from typing import Any, Final, final

from attrs import field, frozen

__all__ = ["Listing", "list_all"]

MOST_PAGES: Final = 1_000
MOST_TOOLS: Final = 20_000


@final
@frozen
class Listing:
    """The tools as the server describes them, and what is wrong with its list."""

    tools: tuple[Any, ...] = field(default=(), repr=False)
    problems: tuple[str, ...] = ()


async def list_all(client: Any) -> Listing:
    """Every page of the list. Raises what the client does; a list without end is cut."""
    by_name: dict[str, Any] = {}
    problems: list[str] = []
    cursors: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        for tool in page.tools:
            if tool.name in by_name:
                problems.append(f"it lists {tool.name!r} twice; the first one counts")
            by_name.setdefault(tool.name, tool)
        cursor = page.next_cursor
        if cursor is None:
            break
        if cursor in cursors or len(by_name) > MOST_TOOLS:
            problems.append(f"its list has no end; the first {len(by_name)} tools count")
            break
        cursors.add(cursor)
    else:
        problems.append(f"its list has more than {MOST_PAGES} pages; the first {len(by_name)} tools count")
    return Listing(tuple(by_name.values()), tuple(dict.fromkeys(problems)))
