"""What Pegboard brings itself: ordinary plugins, last in precedence and overridable like any other."""

from __future__ import annotations

from types import ModuleType


def plugins() -> tuple[ModuleType, ...]:
    """The built-in plugins, each a module with hook implementations."""
    from pegboard.builtin import backends, sources, tools, types, values

    return backends, sources, tools, types, values
