"""How many files one opens to follow a command: what runs of the pack."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pegboard_cli
from tests.plugins.cli.command import Outcome, tool
from tests.support.plugin_site import Site
from tests.support.profiling import profiled

SOURCE = f"{Path(pegboard_cli.__file__).parent}/"


def test_doctor_finds_something(site: Site, run: Callable[..., Outcome]) -> None:
    site.add("dice", tool("roll", description=" "))
    entered: set[str] = set()

    def enter(frame: FrameType, event: str, _argument: Any = None) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    def doctor() -> None:
        assert "[no-description]" in run("doctor").out

    doctor()  # loads what is loaded at first use
    threading.setprofile(enter)
    try:
        profiled(doctor, enter)
    finally:
        threading.setprofile(None)
    files = sorted(file.removeprefix(SOURCE) for file in entered if file.startswith(SOURCE))
    assert {"_program.py", "_commands/doctor.py", "_checks/tools.py"} <= {*files}
    assert len(files) <= 10, files
