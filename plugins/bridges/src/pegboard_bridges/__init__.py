"""The board's tools inside agent frameworks, and the frameworks' tools on the board: a module for each framework.

`pegboard_bridges.<framework>` has `to_<framework>(source)` and `from_<framework>(tools)`. No framework is imported
before its module is; `toolkit.register(native_tool)` asks the bridge of the framework that the tool comes from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pegboard import hookimpl
from pegboard_bridges._frameworks import FRAMEWORKS, NotNativeError, bridge_of

__all__ = ["FRAMEWORKS", "NotNativeError", "tools_from"]


@hookimpl
def tools_from(source: Any) -> Iterable[Any] | None:
    """The tools of a framework's own object; a program that has one has imported the framework."""
    bridge = bridge_of(type(source))
    if bridge is None:
        return None
    try:
        return list(bridge(source).tools())
    except NotNativeError:
        return None  # what merely inherits from something of a framework may have tools in another way
