"""Fresh interpreters over fresh site directories: what a program finds there, as data."""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pegboard_testing import fake_distribution

__all__ = ["GOOD", "dump", "fresh", "install_good"]

GOOD = """
import pegboard

def {name}_tool(text: str = "x") -> str:
    "Say what was said."
    return text

@pegboard.hookimpl
def provide_tools(settings):
    return [{name}_tool]
"""

DUMP = """
import json, sys
path = list(sys.path)
original = (json.dumps, json.loads)
from pegboard import Toolkit
with Toolkit(**options) as toolkit:
    result = {
        "plugins": [[r.name, str(r.state), r.reason] for r in toolkit.plugins],
        "tools": {t.name: str(t.origin) for t in toolkit},
        "problems": toolkit.problems,
        "errors": [[e.record.name, e.traceback] for e in toolkit.plugin_errors],
        "calls": {n: toolkit.call_sync(n, {"text": "hi"}).text for n in ("apple_tool", "pear_tool")},
        "missing": toolkit.call_sync("bad_tool", {}).text,
        "prefixed": toolkit.call_sync("bad__tool", {}).text,
        "path": sys.path == path,
    }
json.dumps, json.loads = original
print(json.dumps(result))
"""


def fresh(site: Path, code: str, *, env: Mapping[str, str] | None = None, codes: Collection[int] = (0,)) -> str:
    """Run code in a new interpreter whose packs are those in `site` alone; what it prints to standard output."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PEGBOARD")}
    environment = {**inherited, "PYTHONPATH": str(site), "PEGBOARD_BLOCK": "pegboard-*", **(env or {})}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=site, check=False)
    assert done.returncode in codes, done.stderr
    return done.stdout


def dump(site: Path, options: str = "{}", **env: str) -> Any:
    """What a toolkit in a new interpreter says of the site."""
    return json.loads(fresh(site, f"options = {options}\n{DUMP}", env=env).splitlines()[-1])


def install_good(site: Path) -> None:
    """Two packs that must go on working whatever lies beside them."""
    for name in ("apple", "pear"):
        modules = {f"good_{name}": GOOD.format(name=name)}
        fake_distribution(site, f"acme-{name}", "1.0", entry_points={name: f"good_{name}"}, modules=modules)
