"""Listings: all the tools of a server, from however many pages it takes."""

from __future__ import annotations

from typing import Any, Final, final

from attrs import field, frozen

from pegboard_mcp._client.sieve import Sieve

__all__ = ["MOST_TOOLS", "Listing", "list_all"]

MOST_PAGES: Final = 1_000
MOST_TOOLS: Final = 5_000
"""The default; more than any model is offered."""


@final
@frozen
class Listing:
    """The tools as the server describes them, and what is wrong with its list."""

    tools: tuple[Any, ...] = field(default=(), repr=False)
    problems: tuple[str, ...] = ()


async def list_all(client: Any, sieve: Sieve, most: int) -> Listing:
    """Every page of the list. Raises what the client does; a list without end is cut, what is no tool is left out."""
    by_name: dict[str, Any] = {}
    problems: list[str] = []
    cursors: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await _page(client, cursor, sieve, problems)
        for tool in page.tools:
            if tool.name in by_name:
                problems.append(f"it lists {tool.name!r} twice; the first one counts")
            elif len(by_name) < most:
                by_name[tool.name] = tool
            else:
                problems.append(f"it lists more than {most} tools; the first ones count (max_tools= takes more)")
                return Listing(tuple(by_name.values()), tuple(dict.fromkeys(problems)))
        cursor = page.next_cursor
        if not cursor:  # an empty one is how some servers say that there is no more
            break
        if cursor in cursors:
            problems.append(f"its list has no end; the first {len(by_name)} tools count")
            break
        cursors.add(cursor)
    else:
        problems.append(f"its list has more than {MOST_PAGES} pages; the first {len(by_name)} tools count")
    return Listing(tuple(by_name.values()), tuple(dict.fromkeys(problems)))


async def _page(client: Any, cursor: str | None, sieve: Sieve, problems: list[str]) -> Any:
    """One page; asked for again, through the sieve, where the SDK refuses it."""
    try:
        return await client.list_tools(cursor=cursor, cache_mode="bypass")
    except ValueError:  # as errors of validation are
        with sieve.sift(client.protocol_version) as said:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        problems.extend(said)
        return page
