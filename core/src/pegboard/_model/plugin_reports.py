"""What is told of plugins afterwards: what a reload changed, and how one failed."""

from __future__ import annotations

from attrs import field, frozen

from pegboard._base.records import Compared, Shown
from pegboard._model.plugin_record import PluginRecord

__all__ = ["PluginChanges", "PluginFailure"]


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
