"""Which tools are served: those that only read, or those that somebody named."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pegboard import PegboardError, Session, Tool, Toolkit
from pegboard_mcp._remote_tool import UNTRUSTED

__all__ = ["select"]


def select(toolkit: Toolkit, tools: Iterable[str] | None, groups: Iterable[str] | None, everything: bool) -> Session:
    """A view of the toolkit with the tools to serve: those named, those of the groups, everything, or what only reads.

    A hint that another server gives of itself counts as none. The groups are active in the view. Raises
    `UnknownNameError` for a tool or a group that is not there.
    """
    if tools is None and groups is None:
        return toolkit.view(where=_any if everything else _only_reads)
    named, grouped = tuple(tools or ()), tuple(groups or ())
    toolkit.view(include=named)  # a name that nothing has is an error here, and not a tool that is missing later
    session = toolkit.session(groups={*toolkit.active_groups, *grouped}) if grouped else toolkit.session()
    return session.view(where=_any if everything else _chosen(named, grouped))


def _chosen(names: tuple[str, ...], groups: tuple[str, ...]) -> Callable[[Tool], bool]:
    from fnmatch import fnmatchcase

    def chosen(tool: Tool) -> bool:
        called = (tool.name, tool.qualified_name)
        return any(fnmatchcase(name, pattern) for name in called for pattern in names) or not set(groups).isdisjoint(
            tool.groups
        )

    return chosen


def _any(tool: Tool) -> bool:
    return True


def _only_reads(tool: Tool) -> bool:
    try:
        return tool.hints.read_only is True and UNTRUSTED not in tool.tags
    except PegboardError:  # a lazy tool whose pack is broken
        return False
