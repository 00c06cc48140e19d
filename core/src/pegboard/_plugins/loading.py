"""Loading: a plugin's code is found and run so that nothing it does reaches the host; what it did is said."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, NamedTuple

from pegboard._base.effects import pass_interrupt, tried
from pegboard._base.errors import PluginError, describe_exception
from pegboard._base.known_packs import known_pack
from pegboard._base.names import normalise
from pegboard._model.plugin_record import PluginRecord
from pegboard._plugins.settings import MissingSettingsError

_LONGEST_REASON = 400


class IsolatedRun(NamedTuple):
    """How plugin code ended: a value or an error; `notes` say what else it did; `seconds` is its wall time."""

    value: Any = None
    error: BaseException | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def isolated(action: Callable[[], Any]) -> IsolatedRun:
    """Run `action`; whatever it raises is in the outcome, SystemExit included. Only a real Ctrl-C passes through.

    What it prints goes to standard error, for a host may speak a protocol on standard output; `sys.path` is restored.
    """
    spill = _Spill()
    path, entries = sys.path, list(sys.path)
    value, error = None, None
    started = time.perf_counter()
    try:
        with redirect_stdout(spill):
            value = action()
    except BaseException as raised:  # noqa: BLE001 - a plugin may raise anything, and must take nobody down
        pass_interrupt(raised)
        error = raised
    seconds = time.perf_counter() - started
    notes = ["printed to standard output (shown on standard error instead)"] if spill.used else []
    if sys.path is not path or sys.path != entries:
        notes.append("changed sys.path (restored)")
        sys.path = path
        path[:] = entries
    return IsolatedRun(value, error, tuple(notes), seconds)


class _Spill:
    """Stands in for standard output: standard error that remembers whether it was written to."""

    used = False

    def write(self, text: str) -> int:
        """Write to standard error, where there is one."""
        self.used = True
        return len(text) if sys.stderr is None else sys.stderr.write(text)

    def close(self) -> None:
        """Do nothing: standard error is everybody's."""

    def __getattr__(self, name: str) -> Any:
        # For code that wants `buffer`, `encoding`, `reconfigure`; without a console (pythonw) there is none of them.
        return getattr(sys.stderr, name)


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


def _remedy(module: str, distribution: str | None) -> str:
    """What to install for a module that is missing: what the pack itself requires, or a pack of ours; never a guess."""
    from importlib_metadata import distribution as installed
    from importlib_metadata import requires

    required = {line: re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in tried(requires, distribution or "") or ()}
    absent = {line: name for line, name in required.items() if name != "pegboard" and not tried(installed, name)}
    named = [name for name in absent.values() if normalise(name) == normalise(module)]
    known = known_pack(module) if module.startswith("pegboard_") else None
    wanted = named or ([known.distribution] if known else [name for line, name in absent.items() if ";" not in line])
    return f"; pip install {' '.join(sorted(wanted))}" if wanted else ""


def failure(error: BaseException, where: str, record: PluginRecord) -> str:
    """A plugin's failure as a sentence on one line."""
    if isinstance(error, PluginError | MissingSettingsError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        return f"needs the module {missing!r} {where}, which is not installed{_remedy(missing, record.distribution)}"
    name = type(error).__name__
    message = " ".join(describe_exception(error).removeprefix(f"{name}: ").split())
    if len(message) > _LONGEST_REASON:
        message = f"{message[:_LONGEST_REASON]}..."
    return f"raised {name} {where}" + ("" if message == name else f": {message}")
