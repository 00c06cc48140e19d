"""A toolkit's tools in agent frameworks, and the frameworks' tools in a toolkit: a module for each framework.

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
    """The tools of an object that a framework made. A program that has such an object has imported the framework."""
    bridge = bridge_of(type(source))
    if bridge is None:
        return None
    try:
        return list(bridge(source).tools())
    except NotNativeError:
        return None  # a class of the program's that inherits from a framework's may offer tools in another way
