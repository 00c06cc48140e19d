"""Runs tests against a mutant, each in a process of its own that has imported nothing of the package yet."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
from attrs import frozen

from tests.mutants.mutate import Mutant
from tests.workspace.project import ROOT

SECONDS = 120
"""A mutant that runs longer is blocked: the tests would not end, so it counts as red."""
TYPES = (
    "test_compile.py",
    "test_battery.py",
    "test_types.py",
    "test_kinds.py",
    "test_schema.py",
    "test_limits.py",
    "test_edges.py",
    "test_results.py",
    "test_unions.py",
)
PLANS = (
    *("tools/test_signatures.py", "tools/test_schemas.py", "injection/test_presets.py", "injection/test_injection.py"),
    *("arguments/test_bad_calls.py", "toolkit/test_calls.py"),
)


@frozen
class Verdict:
    """Whether the tests told a mutant from the original, and how long that took."""

    mutant: Mutant
    killed: bool
    seconds: float


class _Replacing(MetaPathFinder, Loader):
    """Imports one module from other source."""

    def __init__(self, mutant: Mutant) -> None:
        path = ROOT / "core" / "src" / "pegboard" / f"{mutant.module}.py"
        self._name = f"pegboard.{mutant.module.replace('/', '.')}"
        self._path = str(path)
        self._code: CodeType = compile(mutant.source, self._path, "exec")

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, vars(module))


def judged(mutants: Sequence[Mutant], jobs: int) -> Iterator[Verdict]:
    """The verdicts, as they come in, of `jobs` processes at a time."""
    _load_what_never_changes()
    waiting, running = list(reversed(mutants)), dict[int, tuple[Mutant, float]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[_started(lambda mutant=mutant: _is_caught(mutant))] = mutant, time.monotonic()  # type: ignore[misc]
        process, status = os.wait()
        mutant, began = running.pop(process)
        yield Verdict(mutant, status != 0, time.monotonic() - began)


def _load_what_never_changes() -> None:
    """Import the third parties once for all: a fork has them for nothing."""
    for name in ("hypothesis", "hypothesis_jsonschema", "jsonschema", "cattrs", "annotated_types", "pluggy", "asyncio"):
        importlib.import_module(name)
    own = [name for name in sys.modules if name.partition(".")[0].startswith("pegboard")]
    assert not own, f"a mutant would come too late for {own[0]}"


def _started(is_caught: Callable[[], bool]) -> int:
    process = os.fork()
    if process:
        return process
    signal.alarm(SECONDS)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    caught = True  # also if the mutant cannot even be imported
    try:
        caught = is_caught()
    finally:
        os._exit(int(caught))


def _is_caught(mutant: Mutant) -> bool:
    sys.meta_path.insert(0, _Replacing(mutant))
    return _battery_is_red() or _pytest_is_red(mutant)


def _battery_is_red() -> bool:
    """The quickest tests without a test runner, since collecting takes longer than most mutants live."""
    from tests.types import test_battery
    from tests.types.battery import BATTERY

    tests = (
        test_battery.test_good_values_arrive_as_the_python_type,
        test_battery.test_bad_values_are_refused,
        test_battery.test_structuring_is_the_same_inside_a_generated_function,
        test_battery.test_values_travel_back_and_forth,
    )
    try:
        for test in tests:
            for entry in BATTERY:
                test(entry)
    except BaseException:  # noqa: BLE001 - whatever it is, the test would be red
        return True
    return False


def _pytest_is_red(mutant: Mutant) -> bool:
    # Random values would find one mutant today and another tomorrow.
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-k", "not random"]
    # The third parties are there already, and so are the modules of the battery.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    files = [str(Path("tests", "types", name)) for name in TYPES]
    if mutant.module == "_tools/plan":
        files = [*(str(Path("tests", name)) for name in PLANS), *files]
    os.chdir(ROOT)
    return pytest.main([*options, *(name for name in files if Path(name).exists())]) != pytest.ExitCode.OK
