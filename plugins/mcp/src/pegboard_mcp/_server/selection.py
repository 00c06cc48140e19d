"""Which tools are served: those that only read, or those that are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from pegboard import PegboardError, Session, Tool, Toolkit
from pegboard_mcp._client.remote_tool import UNTRUSTED

__all__ = ["Selection", "offered"]

NAMED: Final = 20
"""Number of tools that a message names."""
_REMEDY: Final = (
    "name some (--tools, --groups; in a program tools=, groups=) or serve all of them (--all; all_tools=True)"
)


def offered(session: Session) -> list[Tool]:
    """The tools that a client is told of: those for models, and those for pages of apps, which its host tells apart."""
    return [*session.tools, *session.app_tools]


@final
class Selection:
    """The tools to serve: those named, those of the groups, everything, or what only reads.

    A hint that another server gives of itself counts as none. The groups are active. Raises `UnknownNameError` for a
    tool or a group that the toolkit does not have.
    """

    def __init__(
        self, toolkit: Toolkit, tools: Iterable[str] | None, groups: Iterable[str] | None, everything: bool
    ) -> None:
        named, self._groups = tuple(tools or ()), tuple(groups or ())
        toolkit.view(include=named)  # a name that nothing has is an error here, and not a tool that is missing later
        self._is_default = not everything and tools is None and groups is None
        self._where = _any if everything else _only_reads if self._is_default else _chosen(named, self._groups)

    def of(self, session: Toolkit | Session) -> Session:
        """A view of a session, or of the toolkit, with these tools."""
        if self._groups:
            session = session.session(groups={*session.active_groups, *self._groups})
        return session.view(where=self._where)

    def excluded(self, toolkit: Toolkit) -> str:
        """A message that names the tools which are not served because none was chosen; empty if all are served."""
        everything = offered(toolkit)
        names = [tool.name for tool in everything if not _only_reads(tool)] if self._is_default else []
        if not names:
            return ""
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return (
            f"{len(names)} of {len(everything)} tools left out, because they do not say read_only=True: "
            f"{', '.join(names[:NAMED])}{more}; {_REMEDY}"
        )

    def summary(self, toolkit: Toolkit) -> str:
        """What a host will see: the tools with their hints, and what is left out and why."""
        served = self.of(toolkit).tools
        if not served:
            return f"a host will see no tools: {self.why_nothing(toolkit)}"
        more = f" and {len(served) - NAMED} more" if len(served) > NAMED else ""
        shown = f"a host will see {_counted(len(served))}: {', '.join(map(_with_hints, served[:NAMED]))}{more}"
        return f"{shown}; {excluded}" if (excluded := self.excluded(toolkit)) else shown

    def why_nothing(self, toolkit: Toolkit) -> str:
        """Why there is no tool to serve, and what to do."""
        if not offered(toolkit):
            return "the board offers no tools"
        if not self._is_default:
            return "no tool of these names and groups is offered now"
        return f"none of the {len(offered(toolkit))} tools says read_only=True; {_REMEDY}"


def _chosen(names: tuple[str, ...], groups: tuple[str, ...]) -> Callable[[Tool], bool]:
    from fnmatch import fnmatchcase

    def chosen(tool: Tool) -> bool:
        called = (tool.name, tool.qualified_name)
        return any(fnmatchcase(name, pattern) for name in called for pattern in names) or not set(groups).isdisjoint(
            tool.groups
        )

    return chosen


def _counted(number: int) -> str:
    return "1 tool" if number == 1 else f"{number} tools"


def _with_hints(tool: Tool) -> str:
    try:
        hints = tool.hints
    except PegboardError as error:  # a lazy tool whose pack is broken
        return f"{tool.name} ({error})"
    if hints.read_only:
        found = ["read-only"]
    else:
        # Without a hint hosts take the worst, as the protocol has it.
        found = ["changes things" if hints.destructive is False else "may destroy"]
        found += ["may be repeated"] if hints.idempotent else []
    return f"{tool.name} ({', '.join(found)})"


def _any(tool: Tool) -> bool:
    return True


def _only_reads(tool: Tool) -> bool:
    try:
        return tool.hints.read_only is True and UNTRUSTED not in tool.tags
    except PegboardError:  # a lazy tool whose pack is broken
        return False
