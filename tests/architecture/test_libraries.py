"""What each of the five libraries does for the core at run time: not what is installed, but what runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import attrs
import pytest

from pegboard import Toolkit, hookimpl
from tests.support.profiling import profiled
from tests.workspace.project import CORE

LIBRARIES = ("attrs", "cattrs", "importlib_metadata", "jsonschema", "pluggy")


def running(work: Callable[[], Any]) -> set[str]:
    """The libraries of which functions run, those that they generate included."""
    homes = {}
    for name in LIBRARIES:
        source = importlib.import_module("attr" if name == "attrs" else name).__file__
        assert source is not None
        homes[name] = str(Path(source).parent)
    found: set[str] = set()

    def begins(frame: FrameType, event: str) -> None:
        file = frame.f_code.co_filename
        found.update(name for name, home in homes.items() if file.startswith((home, f"<{name} generated")))

    profiled(work, begins)
    return found


@attrs.frozen
class Settings:
    sizes: tuple[int, ...] = ()


def pack() -> ModuleType:
    module = ModuleType("acme")
    vars(module)["settings_type"] = hookimpl(lambda: Settings)
    return module


class ByHand:
    name = "by_hand"
    description = "A tool whose schema says more than types do."
    parameters = {"type": "object", "properties": {"x": {"oneOf": [{"minimum": 1}, {"maximum": -1}]}}}  # noqa: RUF012

    def call(self, call: Any) -> str:
        return "done"


def call_by_hand() -> None:
    toolkit = Toolkit(plugins=())
    toolkit.register(ByHand())
    assert toolkit.call_sync("by_hand", {"x": 0}).status == "invalid"


def add(a: int, b: int = 1) -> int:
    return a + b


WORK: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "what is installed is found": (lambda: Toolkit(plugins="installed", block=["*"]), {"importlib_metadata"}),
    "plugins are registered": (lambda: Toolkit(plugins=[pack()]), {"pluggy"}),
    "settings are structured": (
        lambda: Toolkit(plugins=[pack()], settings={"acme": {"sizes": [1]}}),
        {"cattrs", "pluggy"},
    ),
    "arguments are checked by a schema by hand": (call_by_hand, {"jsonschema"}),
}


@pytest.mark.parametrize("what", WORK)
def test_what_runs(what: str) -> None:
    work, libraries = WORK[what]
    work()  # what is found once for a process is found
    assert libraries <= running(work)


def test_records_are_those_of_attrs() -> None:
    from pegboard import ExecutionPolicy, Tool, TypePlan

    assert all(map(attrs.has, (ExecutionPolicy, Tool, TypePlan)))


def test_a_call_needs_none_of_them() -> None:
    toolkit = Toolkit(plugins=())
    toolkit.register(add)
    toolkit.call_sync("add", '{"a": 1}')
    assert running(lambda: toolkit.call_sync("add", '{"a": 1}')) <= {"attrs"}


def test_there_are_no_others() -> None:
    names = {text.partition(">")[0].replace("-", "_") for text in CORE.project["dependencies"]}
    assert names == {*LIBRARIES}
