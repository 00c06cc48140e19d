"""What is served beside the tools: resources and prompts of the settings, and resources that sources bring."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pegboard import PegboardError, Toolkit
from pegboard.inspection import plugins_of, sources_of

__all__ = ["settled"]


def settled(toolkit: Toolkit) -> dict[str, Any]:
    """The options `resources` and `prompts` of `serve_mcp` that a toolkit's settings and sources of tools say.

    A source says them by an attribute `served_resources`, a mapping as `serve_mcp` takes it; where the settings name
    the same URI, they are served. Raises `PegboardError` for a function that cannot be loaded.
    """
    resources: dict[str, Any] = {}
    for source in sources_of(toolkit):
        resources |= getattr(source, "served_resources", {})
    settings = plugins_of(toolkit).settings_of("mcp")
    if settings is None:  # a program's toolkit without this pack
        return {"resources": resources}
    resources |= {uri: _source(f"resources.{uri}", entry) for uri, entry in settings.resources.items()}
    return {"resources": resources, "prompts": [_function("prompts", each) for each in settings.prompts]}


def _source(where: str, entry: Mapping[str, Any]) -> tuple[Any, ...]:
    if "function" in entry:
        holds: Any = _function(where, entry["function"])
    else:
        holds = entry["text"] if "text" in entry else Path(entry["path"]).expanduser()
    return holds, entry.get("media_type"), entry.get("meta")


def _function(where: str, target: str) -> Callable[..., Any]:
    """The function `MODULE:NAME`; modules are looked for in the current directory too."""
    module, _, name = target.partition(":")
    if not (module and name):
        raise PegboardError(f"the settings say {target!r} for mcp.{where}; write MODULE:NAME of a function")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # a program may raise anything
        raise PegboardError(f"mcp.{where}: {target} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise PegboardError(f"mcp.{where}: {target} is a {type(found).__name__}; name a function")
    return found  # type: ignore[no-any-return]
