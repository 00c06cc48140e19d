"""`limited`: whatever a function does in its process, the caller learns it in time and goes on."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import CancelToken, PegboardError
from pegboard_process import LimitError, ProcessDiedError, RemoteError, limited
from tests.plugins.process import parsers
from tests.workspace.project import ROOT

MB = 1 << 20
PATIENT = 30.0
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


def called(function: Callable[[Any], Any], data: Any = None, memory: int = 256 * MB, seconds: float = PATIENT) -> Any:
    return limited(function, data, memory=memory, seconds=seconds)


@given(DATA)
def test_data_come_back_as_they_were(data: Any) -> None:
    assert called(parsers.same, data) == data


def test_each_call_has_a_process_of_its_own_and_finds_nothing_of_another() -> None:
    (first, one, parent), (second, other, same_parent) = called(parsers.counted), called(parsers.counted)
    assert first == second == 1
    assert one != other
    assert parent == same_parent


def test_memory() -> None:
    assert called(parsers.takes, 50 * MB, memory=100 * MB) == 50 * MB
    with pytest.raises(LimitError, match=r"parsers\.hoards needs more than 100 MiB of memory for this") as caught:
        called(parsers.hoards, memory=100 * MB)
    assert caught.value.limit == "memory"
    assert called(parsers.takes, 50 * MB, memory=100 * MB) == 50 * MB


def test_a_call_that_is_cancelled_ends_at_once() -> None:
    token = CancelToken()
    timer = threading.Timer(0.3, token.cancel)
    begun = time.monotonic()
    timer.start()
    with pytest.raises(LimitError, match=r"parsers\.spins was stopped: its call was cancelled") as caught:
        limited(parsers.spins, None, memory=256 * MB, seconds=PATIENT, cancel=token)
    timer.join()
    assert (caught.value.limit, time.monotonic() - begun < 5) == ("cancel", True)
    assert limited(parsers.same, 1, memory=256 * MB, seconds=PATIENT, cancel=CancelToken()) == 1


def test_time() -> None:
    called(parsers.counted)
    begun = time.monotonic()
    with pytest.raises(LimitError, match=r"parsers\.spins takes longer than 0\.5 s for this") as caught:
        called(parsers.spins, seconds=0.5)
    assert caught.value.limit == "seconds"
    assert time.monotonic() - begun < PATIENT


def test_programs_that_it_has_started_end_with_it() -> None:
    seconds = f"{time.time_ns() % 10**9}"
    with pytest.raises(LimitError):
        called(parsers.starts_others, float(f"7{seconds}"), seconds=0.5)
    assert gone(f"7{seconds}", PATIENT)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_crash(number: signal.Signals) -> None:
    with pytest.raises(ProcessDiedError, match=number.name):
        called(parsers.crashes, int(number))
    assert called(parsers.same, "on") == "on"


def test_one_that_leaves() -> None:
    with pytest.raises(ProcessDiedError) as caught:
        called(parsers.leaves)
    assert caught.value.exit_code == 3


def test_what_it_raises() -> None:
    with pytest.raises(ValueError, match=r"^line 3: no header$") as caught:
        called(parsers.refuses, "line 3: no header")
    assert isinstance(caught.value, RemoteError)
    assert "in refuses" in str(caught.value.__cause__)


def test_data_alone_travel() -> None:
    with pytest.raises(
        PegboardError, match=r"parsers\.same takes text, numbers, bytes, lists, dicts; not <class 'object'>"
    ):
        called(parsers.same, object())
    with pytest.raises(PegboardError, match=r"gives_an_object returned a object, which is no data"):
        called(parsers.gives_an_object)


def test_a_function_that_cannot_be_imported() -> None:
    local = eval("lambda data: data", {"__name__": parsers.__name__})
    with pytest.raises(PegboardError, match="cannot be called in a process: AttributeError"):
        called(local)


def test_a_function_by_its_import_string() -> None:
    name = f"{parsers.__name__}:same"
    assert limited(name, {"a": 1}, memory=256 * MB, seconds=PATIENT) == {"a": 1}
    with pytest.raises(PegboardError, match="cannot be called in a process: ModuleNotFoundError"):
        limited("no_such_module:same", None, memory=256 * MB, seconds=PATIENT)
    with pytest.raises(PegboardError, match=r"'json\.loads' is no import string of a function"):
        limited("json.loads", None, memory=256 * MB, seconds=PATIENT)


def test_what_it_prints_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    assert called(parsers.talks) == "done"
    assert capfd.readouterr() == ("", "")


def test_large_data() -> None:
    assert called(parsers.same, b"x" * (20 * MB)) == b"x" * (20 * MB)


def test_threads_have_processes_each() -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda number: called(parsers.same, number), range(60)))
    assert found == list(range(60))


def test_an_idle_process_that_was_killed_is_replaced() -> None:
    *_, template = called(parsers.counted)
    os.kill(template, signal.SIGKILL)
    *_, other = called(parsers.counted)
    assert other != template


FORKING = """
import os
from pegboard_process import limited
from tests.plugins.process import parsers

def call():
    return limited(parsers.counted, None, memory=1 << 28, seconds=30)

first = call()[2]  # no guard is needed: the main script is not imported
child = os.fork()
if child == 0:
    print("child", call()[2] != first, flush=True)
else:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("parent", call()[2] == first, code)
"""


def script(text: str, folder: Path) -> "subprocess.Popen[str]":
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::ResourceWarning", str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_after_a_fork(tmp_path: Path) -> None:
    with script(FORKING, tmp_path) as program:
        out, err = program.communicate(timeout=PATIENT)
    assert (out, err) == ("child True\nparent True 0\n", "")


KILLED = """
import threading, time
from pegboard_process import limited
from tests.plugins.process import parsers

print(limited(parsers.counted, None, memory=1 << 28, seconds=30)[2], flush=True)
threading.Thread(target=limited, args=[parsers.spins, None], kwargs={"memory": 1 << 28, "seconds": 2}).start()
time.sleep(60)
"""


def gone(text: str, seconds: float) -> bool:
    """Whether no process has the text in its arguments any more, within some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if text not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout:
            return True
        time.sleep(0.1)
    return False


def test_nothing_is_left_of_a_program_that_is_killed(tmp_path: Path) -> None:
    with script(KILLED, tmp_path) as program:
        assert program.stdout is not None
        assert int(program.stdout.readline()) > 0
        program.kill()
        assert gone(str(tmp_path), PATIENT)  # it is on the path of each of its processes
