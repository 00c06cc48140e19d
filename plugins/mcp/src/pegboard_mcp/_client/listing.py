"""Listings: all the tools of a server, from however many pages it takes, without entries that are no tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, final

from attrs import field, frozen

from pegboard_mcp._wire.protocol import is_newer

__all__ = ["MOST_TOOLS", "Listing", "Sieve", "list_all"]

MOST_PAGES: Final = 1_000
MOST_TOOLS: Final = 5_000
"""The default; more than any model is offered."""
TASKS_ALONE: Final = (
    "it runs as a task alone, which clients of protocol 2025-11-25 have to ask for by a draft that is not supported; "
    "a server of protocol 2026-07-28 can offer it"
)
NEEDED: Final = frozenset({"name", "inputSchema"})


@final
@frozen
class Listing:
    """The tools as the server describes them, and what is wrong with its list."""

    tools: tuple[Any, ...] = field(default=(), repr=False)
    problems: tuple[str, ...] = ()


async def list_all(client: Any, sieve: Sieve, most: int) -> Listing:
    """All pages of the list, without entries that are not tools; endless ones are cut. Raises what the client does."""
    by_name: dict[str, Any] = {}
    problems: list[str] = []
    cursors: set[str] = set()
    cursor: str | None = None
    newer = is_newer(client.protocol_version)  # there the server decides, and the client declares that it takes tasks
    for _ in range(MOST_PAGES):
        page = await _page(client, cursor, sieve, problems)
        for tool in page.tools:
            if not newer and getattr(tool.execution, "task_support", None) == "required":
                problems.append(f"{tool.name!r} is left out: {TASKS_ALONE}")
            elif tool.name in by_name:
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
    """One page. If the SDK refuses it, it is requested again and passes the sieve."""
    try:
        return await client.list_tools(cursor=cursor, cache_mode="bypass")
    except ValueError:  # as errors of validation are
        with sieve.sift(client.protocol_version) as found:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        problems.extend(found)
        return page


@final
class Sieve:
    """Stands between a transport and the SDK; lets everything pass except during `sift`.

    The SDK takes a list as a whole, or not at all.
    """

    def __init__(self) -> None:
        self._version: str | None = None
        self._problems: list[str] = []

    @contextmanager
    def sift(self, version: str) -> Iterator[list[str]]:
        """Drop list entries that are not tools in that version of the protocol. Yields a list of sentences on them."""
        self._version, self._problems = version, []
        try:
            yield self._problems
        finally:
            self._version = None

    def sifted(self, message: Any) -> Any:
        """The message, without the entries that are not tools."""
        version = self._version
        if version is None:
            return message
        result = getattr(getattr(message, "message", None), "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            listed = enumerate(result["tools"], 1)
            result["tools"] = [tool for place, entry in listed for tool in self._tool(version, result, place, entry)]
        return message

    def _tool(self, version: str, result: dict[str, Any], place: int, entry: Any) -> list[Any]:
        """The tool that an entry is, without fields that are not needed and cannot be read; nothing if it is none."""
        refused = _refused(version, result, entry)
        if refused is None:
            return [entry]
        name = entry.get("name") if isinstance(entry, dict) else None
        called = repr(name) if isinstance(name, str) else f"entry {place} of its list"
        members = {str(each["loc"][2]) for each in refused.errors() if len(each["loc"]) > 2}
        if isinstance(entry, dict) and members and members.isdisjoint(NEEDED):
            lean = {member: value for member, value in entry.items() if member not in members}
            if _refused(version, result, lean) is None:
                self._problems.append(f"{called} is offered without its {', '.join(sorted(members))}: {_why(refused)}")
                return [lean]
        self._problems.append(f"{called} is left out, it is no tool: {_why(refused)}")
        return []


def _refused(version: str, result: dict[str, Any], entry: Any) -> Any:
    """The reason why the SDK refuses a list with that one entry; None if it accepts it."""
    from mcp_types.methods import validate_server_result
    from pydantic import ValidationError

    try:
        validate_server_result("tools/list", version, {**result, "tools": [entry]})
    except ValidationError as error:
        return error
    return None


def _why(error: Any) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"][2:]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])
