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
path, packs, more = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
sys.path[:0] = [path]
names = [f"bench-{n}" for n in range(packs)] + more
for name in names:
    importlib.import_module(name.replace("bench-", "bench_pack_"))
from pegboard import Toolkit
Toolkit(plugins=())
started = time.process_time()
toolkit = Toolkit(plugins=names)
print(time.process_time() - started, len(toolkit))
"""

WRAPPER = """
import pegboard

@pegboard.hookimpl(wrapper=True)
def provide_tools(settings):
    answers = yield
    for answer in answers:
        answer[:] = [tool for tool in answer if tool.__name__ != "pack_7_7"]
    return answers
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


def _seconds(code: str, expected: int, *arguments: str) -> float:
    """Processor time, that of the system included: nothing is waited for, the files being in memory."""
    seconds, found = _run(code, *arguments).split()
    assert int(found) >= expected, found
    return float(seconds)


def _milliseconds(code: str, expected: int, pace: Pace, *arguments: str) -> list[float]:
    _run(code, *arguments)
    return [_seconds(code, expected, *arguments) * 1000 for _ in range(pace.repeats)]


def _installed(pace: Pace) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as directory:
        site = Path(directory, "300")
        for n in range(300):
            scripts = f"[console_scripts]\ntool{n} = module{n}:main\n" if n % 3 else ""
            fake_distribution(site, f"unrelated-{n}", entry_points=scripts, requires=["attrs"])
        yield Figure.of(
            "B11", "discovery, 300 distributions", _milliseconds(DISCOVERY, 0, pace, str(site)), 15.0, 8.0, "ms"
        )
        yield from _assembled(Path(directory, "50"), pace)


def _assembled(packs: Path, pace: Pace) -> Iterator[Figure]:
    for n in range(50):
        source = PACK.replace("{pack}", str(n)).replace("{{n}}", "{n}")
        modules = {f"bench_pack_{n}": source}
        entry_points = {f"bench-{n}": f"bench_pack_{n}"}
        fake_distribution(packs, f"bench-pack-{n}", entry_points=entry_points, modules=modules)
    times = _milliseconds(ASSEMBLY, 1000, pace, str(packs), "50")
    yield Figure.of("B11", "  Toolkit() with 50 packs of 20 tools", times, 40.0, 15.0, "ms")
    times = _milliseconds(ASSEMBLY, 800, pace, str(packs), "40")
    yield Figure.of("B11", "  with 40 of them", times, 34.0, 13.0, "ms")
    entry_points = {"bench_wrapper": "bench_wrapper"}
    fake_distribution(packs, "bench-wrapper", entry_points=entry_points, modules={"bench_wrapper": WRAPPER})
    found = _run(ASSEMBLY, str(packs), "40", "bench_wrapper").split()[1]
    if found == "799":  # there are revisions whose hooks know no wrappers
        without, within = (
            partial(_seconds, ASSEMBLY, 799, str(packs), "40", *more) for more in ((), ("bench_wrapper",))
        )
        rounds = alternate(without, within, pace.repeats * 2).rounds
        yield Figure.of("B11", "  40 and a wrapper that filters over 40", rounds, 1.15, 1.05)


BENCHMARKS = {"B10": _start, "B11": _installed}
