"""A trial: a pack's wheel in an environment of its own, with conformance and the pack's own tests."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final, Literal

from attrs import asdict, define, field

from pegboard_cli._trials.environment import Environment, Failed, Installer
from pegboard_cli._trials.pythons import Python
from pegboard_cli._trials.wheel import Wheel, needs_of_tests

__all__ = ["Core", "Outcome", "Trials", "tests_of"]

Core = tuple[str, tuple[str, ...]]
"""What was asked for, `0.1.0` or `newest`, and the requirements that install it."""
Result = Literal["passed", "failed", "none", "not run"]

_CONFORMANCE: Final = """
import json, sys
from importlib.metadata import version
from pegboard_testing import conformance
found = [[each.check, each.what, each.remedy] for name in sys.argv[1:] for each in conformance(name)]
print("\\n" + json.dumps({"core": version("pegboard"), "findings": found}))
"""
_NEVER_COPIED: Final = ("__pycache__", "*.pyc")
_NOT_COPIED: Final = ("src", "build", "dist", "site", "node_modules", "venv", "env", "*.egg-info", ".*", *_NEVER_COPIED)
_TESTS: Final = ("tests", "test")


@define
class Outcome:
    """What became of one environment. `reason` says what failed."""

    python: str
    core: str
    installed: Result = "not run"
    conformance: Result = "not run"
    tests: Result = "not run"
    seconds: float = 0.0
    reason: str = field(default="", repr=False)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return (self.installed, self.conformance) == ("passed", "passed") and self.tests in ("passed", "none")

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON-able data."""
        return {**asdict(self), "passed": self.passed}


@define
class Trials:
    """The trials of one pack. `links` is a folder of wheels that are installed before those of the index."""

    wheel: Wheel
    source: Path
    project: Mapping[str, Any]
    folder: Path
    installer: Installer
    links: Path
    _number: int = 0

    def run(self, python: Python | str, core: Core) -> Outcome:
        """Make one environment and try the pack there; whatever fails is in the outcome."""
        self._number += 1
        began = time.monotonic()
        outcome = Outcome(python if isinstance(python, str) else python.version, core[0])
        outcome.installed = "failed"
        try:
            if isinstance(python, str):
                raise Failed(f"there is no Python {python} on this machine")
            self._try(python, core[1], self.folder / f"trial-{self._number}", outcome)
        except Failed as error:
            outcome.reason = str(error)
        outcome.seconds = round(time.monotonic() - began, 1)
        return outcome

    def _try(self, python: Python, core: Sequence[str], folder: Path, outcome: Outcome) -> None:
        folder.mkdir()
        environment = Environment.make(python.path, folder / "env")
        wanted = (*needs_of_tests(self.wheel, self.project), "pegboard-testing[pytest]", *core)
        self.installer.install(environment, *wanted, links=self.links)
        outcome.installed = "passed"
        outcome.tests = self._tests(environment, folder / "copy", outcome)
        outcome.conformance = self._conformance(environment, folder, outcome)

    def _conformance(self, environment: Environment, folder: Path, outcome: Outcome) -> Result:
        try:
            printed = environment.run("-I", "-c", _CONFORMANCE, *self.wheel.plugins, cwd=folder)
        except Failed as error:
            outcome.reason = _joined(outcome.reason, str(error))
            return "failed"
        found = json.loads(printed.splitlines()[-1])
        outcome.core = found["core"]
        faults = [f"{check}: {what}\n    {remedy}" for check, what, remedy in found["findings"]]
        outcome.reason = _joined(outcome.reason, *faults)
        return "failed" if faults else "passed"

    def _tests(self, environment: Environment, copy: Path, outcome: Outcome) -> Result:
        """The pack's own tests, where the installed wheel is all that can be imported of it."""
        if tests_of(self.source) is None:
            return "none"
        shutil.copytree(self.source, copy, ignore=self._left_out, symlinks=True)
        try:
            environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", cwd=copy)
        except Failed as error:
            outcome.reason = str(error)
            return "failed"
        return "passed"

    def _left_out(self, folder: str, names: list[str]) -> set[str]:
        """What is not copied: of the pack's folder itself its source, and what was built or installed there."""
        patterns = [*_NOT_COPIED, *self.wheel.packages] if Path(folder) == self.source else _NEVER_COPIED
        return {name for name in names if name not in _TESTS and any(fnmatch(name, each) for each in patterns)}


def tests_of(folder: Path) -> Path | None:
    """The folder of a pack's tests; None if it has none."""
    return next((folder / name for name in _TESTS if (folder / name).is_dir()), None)


def _joined(*texts: str) -> str:
    return "\n".join(filter(None, texts))
