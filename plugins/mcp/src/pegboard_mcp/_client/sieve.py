"""The sieve: of a list with entries that are no tools, the tools. The SDK takes a list as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, final

__all__ = ["Sieve"]

NEEDED: Final = frozenset({"name", "inputSchema"})


@final
class Sieve:
    """Stands between a transport and the SDK; lets everything pass until it is told to `sift`."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._said: list[str] = []

    @contextmanager
    def sift(self, version: str) -> Iterator[list[str]]:
        """Take out of lists of tools what is none in that version of the protocol; a sentence for each comes."""
        self._version, self._said = version, []
        try:
            yield self._said
        finally:
            self._version = None

    def sifted(self, message: Any) -> Any:
        """The message, without the entries that are no tools."""
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
                self._said.append(f"{called} is offered without its {', '.join(sorted(members))}: {_why(refused)}")
                return [lean]
        self._said.append(f"{called} is left out, it is no tool: {_why(refused)}")
        return []


def _refused(version: str, result: dict[str, Any], entry: Any) -> Any:
    """Why the SDK refuses a list with that one entry; None if it does not."""
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
