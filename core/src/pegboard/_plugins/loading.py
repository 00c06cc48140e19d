"""Importing plugins: the object that an entry point names, and in a sentence why there is none."""

from __future__ import annotations

from typing import Any

from pegboard._base.errors import PluginError, describe_exception
from pegboard._model.plugin_record import PluginRecord

__all__ = ["failure", "load_plugin"]

_LONGEST_REASON = 400


def load_plugin(entry_point: str) -> Any:
    """Import what an entry point names. Raises what the import raises."""
    from importlib import import_module

    path = entry_point.partition("[")[0]
    module, _, attributes = (part.strip() for part in path.partition(":"))
    try:
        plugin: Any = import_module(module)
    except ModuleNotFoundError as error:
        # Also a package on the way to it; anything else that is missing is missed by the plugin.
        if error.name and f"{module}.".startswith(f"{error.name}."):
            reason = f"its entry point leads to no module: there is no {error.name!r}; reinstall it"
            raise PluginError(reason) from error
        raise
    for attribute in filter(None, attributes.split(".")):
        try:
            plugin = getattr(plugin, attribute)
        except AttributeError as error:
            raise PluginError(f"its entry point leads to nothing: {module!r} has no {attributes!r}") from error
    return plugin


def failure(error: BaseException, where: str, record: PluginRecord) -> str:
    """A plugin's failure as a sentence on one line."""
    if isinstance(error, PluginError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        again = f" (or reinstall {record.distribution})" if record.distribution else ""
        return f"needs the module {missing!r} {where}, which is not installed; pip install {missing}{again}"
    name = type(error).__name__
    message = " ".join(describe_exception(error).removeprefix(f"{name}: ").split())
    if len(message) > _LONGEST_REASON:
        message = f"{message[:_LONGEST_REASON]}..."
    return f"raised {name} {where}" + ("" if message == name else f": {message}")
