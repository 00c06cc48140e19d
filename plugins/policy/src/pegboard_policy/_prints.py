"""Hashes of what was reviewed when a tool was allowed, one per part, so that what has changed can be named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pegboard import PegboardError, Tool
from pegboard.inspection import digest, facts_of, is_own

__all__ = ["Prints", "allowed", "changed", "prints", "prints_of"]

Prints: TypeAlias = Mapping[str, str]
"""A hash of each part of a tool's description, by the part's name."""


def prints(parts: Mapping[str, Any]) -> Prints:
    """A hash of each part."""
    return {name: digest(part) for name, part in parts.items()}


def prints_of(tool: Tool) -> Prints:
    """A hash of each part of a tool; empty for a tool that cannot be read, and for the core's own."""
    try:
        return {} if is_own(tool) else prints(facts_of(tool))
    except PegboardError:
        return {}


def allowed(tool: Tool) -> Prints:
    """The hashes that a permission depends on. Whether the tool asks is not among them: the permission decides that."""
    return {name: print_ for name, print_ in prints_of(tool).items() if name != "approval"}


def changed(before: Prints, now: Prints) -> str:
    """The names of the parts that have changed; empty if none has."""
    return ", ".join(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))
