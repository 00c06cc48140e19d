"""B10 and B11: fresh processes, with what is installed and with hundreds of distributions."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pegboard_testing import fake_distribution
from tests.benchmarks.measuring import Figure, Pace, alternate, waited

__all__ = ["BENCHMARKS"]

FIRST_CALL = """
import pegboard

@pegboard.tool
def forecast(city: str, days: int = 1) -> str:
    return city

toolkit = pegboard.Toolkit(plugins=())
toolkit.register(forecast)
assert toolkit.call_sync("forecast", '{"city": "Bern"}').text == "Bern"
"""

DISCOVERY = """
import importlib_metadata, sys, time
from pegboard._plugins.discovery import discover
sys.path[:] = sys.argv[1:]  # these alone: what else is installed differs from machine to machine
started = time.process_time()
found = discover().found
print(time.process_time() - started, len(found))
"""

ASSEMBLY = """
import importlib, importlib_metadata, sys, time
sys.path[:0] = sys.argv[1:]
for n in range(50):
    importlib.import_module(f"bench_pack_{n}")
from pegboard import Toolkit
Toolkit(plugins=())
started = time.process_time()
toolkit = Toolkit(plugins=[f"bench-{n}" for n in range(50)])
print(time.process_time() - started, len(toolkit))
"""

PACK = """
import pegboard

def made(n):
    def work(city: str, days: int = 1) -> str:
        "Weather forecast for a city."
        return city
    work.__name__ = f"pack_{pack}_{{n}}"
    return work

tools = [made(n) for n in range(20)]

@pegboard.hookimpl
def provide_tools(settings):
    return tools
"""


def _run(code: str, *arguments: str) -> str:
    # Installers compile what they install; with PYTHONDONTWRITEBYTECODE a checkout would be compiled at each start.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir(), f"pegboard-bench-bytecode-{os.getuid()}"))
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def _start(pace: Pace) -> Iterator[Figure]:
    floor = partial(waited, partial(_run, ""))
    works = {"import pegboard": ("import pegboard", 4.0, 2.0), "  import, define, call": (FIRST_CALL, 9.0, 6.0)}
    for work, (code, must, aim) in works.items():
        rounds = alternate(floor, partial(waited, partial(_run, code)), pace.repeats * 3).rounds
        yield Figure.of("B10", work, rounds, must, aim)


def _milliseconds(code: str, expected: int, path: Path, pace: Pace) -> list[float]:
    """Processor time, that of the system included: neither waits for anything, the files being in memory."""
    _run(code, str(path))
    times = []
    for _ in range(pace.repeats):
        seconds, found = _run(code, str(path)).split()
        assert int(found) >= expected, found
        times.append(float(seconds) * 1000)
    return times


def _installed(pace: Pace) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as directory:
        site = Path(directory, "300")
        for n in range(300):
            scripts = f"[console_scripts]\ntool{n} = module{n}:main\n" if n % 3 else ""
            fake_distribution(site, f"stranger-{n}", entry_points=scripts, requires=["attrs"])
        yield Figure.of("B11", "discovery, 300 distributions", _milliseconds(DISCOVERY, 0, site, pace), 15.0, 8.0, "ms")
        packs = Path(directory, "50")
        for n in range(50):
            source = PACK.replace("{pack}", str(n)).replace("{{n}}", "{n}")
            modules = {f"bench_pack_{n}": source}
            entry_points = {f"bench-{n}": f"bench_pack_{n}"}
            fake_distribution(packs, f"bench-pack-{n}", entry_points=entry_points, modules=modules)
        times = _milliseconds(ASSEMBLY, 1000, packs, pace)
        yield Figure.of("B11", "  Toolkit() with 50 packs of 20 tools", times, 40.0, 15.0, "ms")


BENCHMARKS = {"B10": _start, "B11": _installed}
