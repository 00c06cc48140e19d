"""How many files one opens to follow a command: what runs of the pack, in this process and in the supervisor's."""

import asyncio
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pegboard_shell
from pegboard_shell import ShellTools
from pegboard_shell._running import process
from tests.plugins.shell.helpers import use_sandbox
from tests.support.profiling import profiled

SOURCE = f"{Path(pegboard_shell.__file__).parent}/"

# Notes the files of a supervisor before it begins: what it holds then shows no more of the file system than its plan.
BEGIN = """import os, sys
notes, known = os.open({notes!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND), set()
def profile(frame, event, argument):
    file = frame.f_code.co_filename
    if event == "call" and file not in known:
        known.add(file)
        os.write(notes, (file + chr(10)).encode())
sys.setprofile(profile)
"""


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_shell_command_runs_in_its_sandbox(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_sandbox(sandbox, monkeypatch)
    tools = ShellTools(tmp_path, allow=["true"], sandbox="required")
    entered: set[str] = set()

    def enter(frame: FrameType, event: str, _argument: Any = None) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    def run() -> None:
        result = asyncio.run(tools.execute_shell_command("true"))
        assert (result.data["exit_code"], result.data["sandbox"]) == (0, sandbox)

    run()  # loads what is loaded at first use, and tries which sandbox works
    notes = tmp_path.parent / f"{tmp_path.name}.notes"
    monkeypatch.setattr(process, "_BEGIN", BEGIN.format(notes=str(notes)) + process._BEGIN)
    threading.setprofile(enter)
    try:
        profiled(run, enter)
    finally:
        threading.setprofile(None)
    entered.update(notes.read_text("utf-8").splitlines())
    files = sorted(file.removeprefix(SOURCE) for file in entered if file.startswith(SOURCE))
    assert {"_tools.py", "_running/run.py", "_running/supervisor.py"} <= {*files}
    assert len(files) <= 10, files
