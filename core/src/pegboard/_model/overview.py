"""What a toolkit shows of itself: its groups and toolsets, plugins that failed, and what a reload changed."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

from pegboard._base.records import Compared, Shown
from pegboard._model.plugin_record import PluginRecord
from pegboard._model.tool import Entry, Tool

__all__ = ["Group", "Manager", "PluginChanges", "PluginFailure", "Toolset"]

Manager: TypeAlias = Literal["model", "program"]


@frozen(eq=False, repr=False)
class Group(Compared):
    """A group: `managed_by` says whether the meta tool may switch it, `instructions` are for whoever uses its tools.

    At most `max_concurrency` calls of its tools run at once; None for no limit.
    """

    name: str
    description: str = ""
    active: bool = True
    managed_by: Manager = "model"
    instructions: str | None = None
    max_concurrency: int | None = None
    entry: Entry = field(factory=Entry, init=False, eq=False, repr=False)


@frozen(eq=False, repr=False)
class Toolset(Compared):
    """Tools that belong together: a class with `@tool` methods, or a pack."""

    name: str
    description: str
    tools: tuple[Tool, ...]


@frozen(eq=False, repr=False)
class PluginChanges(Compared):
    """What `toolkit.reload_plugins()` changed; false if nothing.

    `added` are active now and were not, `removed` were active and are not (as they were), `changed` are otherwise new
    or different. `tools_added` and `tools_removed` are names on the board.
    """

    added: tuple[PluginRecord, ...] = ()
    removed: tuple[PluginRecord, ...] = ()
    changed: tuple[PluginRecord, ...] = ()
    tools_added: tuple[str, ...] = ()
    tools_removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != PluginChanges()


@frozen(eq=False, repr=False)
class PluginFailure(Shown):
    """A plugin that failed; `traceback` is empty where nothing was raised."""

    record: PluginRecord
    traceback: str = field(default="", repr=False)
    exception: BaseException | None = field(default=None, repr=False)
