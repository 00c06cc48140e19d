"""What releases of the SDK differ in."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["connection_of", "known_options"]


def known_options(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """Those of the options that this release knows; an older one does without."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known}


def connection_of(context: Any) -> Any:
    """The connection of a request: its state, its end and its own channel, for which the context has no name."""
    return context.session._connection
