"""The tools of the core itself, as a plugin: they are imported when one is first wanted."""

from __future__ import annotations

from pegboard.hookspecs import hookimpl

__all__ = ["provide_tools"]


@hookimpl
def provide_tools() -> list[str]:
    """The meta tools, and the one that pages through long output.

    They hang there when there is something for them to do: `register_meta_tool()`, many deferred tools, output that
    was kept. A pack replaces one by a tool of its name that says so: `replaces="pegboard__search_tools"`.
    """
    return [
        "pegboard.builtin.meta_tools:reset_equipped_tools",
        "pegboard.builtin.meta_tools:read_output",
        "pegboard.builtin.meta_tools:search_tools",
    ]
