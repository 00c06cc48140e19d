"""A plugin in a fresh interpreter: what loading it imports, and the schemas that it makes there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from attrs import frozen

__all__ = ["Probe", "Reference", "probe", "reference_to"]

_SEEDS = ("1", "2")
_CODE = """
import importlib, json, sys
given = json.loads(sys.argv[1])
sys.path[:] = given["path"]
printed, sys.stdout = sys.stdout, sys.stderr
from pegboard import Toolkit
from pegboard.inspection import Plugins
def known(text: str = "") -> str:
    return text
with Toolkit(plugins=()) as toolkit:
    toolkit.register(known)
    toolkit.call_sync("known")
    toolkit.schemas()
Plugins.load(imports=False)  # what plugins are looked for with is no pack's
before = set(sys.modules)
plugin, _, path = given["plugin"].partition(":")
if not given["installed"]:
    plugin = importlib.import_module(plugin)
    for name in filter(None, path.split(".")):
        plugin = getattr(plugin, name)
with Toolkit(plugins=[plugin], settings=given["settings"]) as toolkit:
    for failure in toolkit.plugin_errors:
        sys.exit(failure.record.reason)
    # The core loads some of itself with the first plugin.
    imported = sorted(name for name in set(sys.modules) - before if name.partition(".")[0] != "pegboard")
    schemas = [[tool.name, tool.description, tool.parameters, tool.returns] for tool in toolkit.all_tools]
json.dump({"imported": imported, "schemas": schemas}, printed)
"""


@frozen
class Reference:
    """`package.module`, `package.module:attribute`, or the name of an installed plugin."""

    plugin: str
    installed: bool = False


@frozen
class Probe:
    """What happened there: the modules that loading imported, the tools as text for each seed, or why it failed."""

    imported: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    failure: str = ""


def reference_to(plugin: Any) -> Reference | None:
    """Where another interpreter finds the plugin; None for one that was made by hand."""
    if isinstance(plugin, str):
        return Reference(plugin, installed=True)
    if isinstance(plugin, ModuleType):
        return Reference(plugin.__name__) if _importable(plugin.__name__) else None
    home, path = plugin.__module__, ""
    if isinstance(plugin, type):
        path = plugin.__qualname__
    else:
        module = sys.modules.get(home, ModuleType(home))
        path = next((name for name, value in vars(module).items() if value is plugin), "")
    return Reference(f"{home}:{path}") if path and "<" not in path and _importable(home) else None


def _importable(name: str) -> bool:
    try:
        return name != "__main__" and find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def probe(reference: Reference, settings: Any) -> Probe:
    """Load the plugin in two new interpreters with different hash seeds, at the same time."""
    path = [os.path.abspath(entry) for entry in map(str, sys.path)]  # noqa: PTH100 - entries of the path are text
    where = {"path": path, "plugin": reference.plugin, "installed": reference.installed}
    given = json.dumps({**where, "settings": settings}, default=str)
    runs = [_start(seed, given) for seed in _SEEDS]
    answers = [run.communicate(timeout=120) for run in runs]
    for run, (_, errors) in zip(runs, answers, strict=True):
        if run.returncode:
            lines = errors.strip().splitlines() or [f"exit code {run.returncode}"]
            return Probe(failure=lines[-1])
    found = [json.loads(output) for output, _ in answers]
    return Probe(tuple(found[0]["imported"]), tuple(json.dumps(each["schemas"]) for each in found))


def _start(seed: str, given: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PEGBOARD")}
    return subprocess.Popen(  # noqa: S603 - this interpreter and our own code
        [sys.executable, "-c", _CODE, given],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**environment, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
    )
