"""`assert_backend_conforms`: what is sound passes, and each fault is found by its name."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import pytest

from pegboard import Job, RegistrationError, Tool
from pegboard_testing import assert_backend_conforms, backend_conformance
from pegboard_testing._backend_checks import CHECKS


class Single:
    """One thread, as the page on hooks has it."""

    name = "single"

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)

    def submit(self, job: Job) -> Future[Any]:
        """Run a job."""
        return self.pool.submit(job)

    def close(self) -> None:
        """Wait for it."""
        self.pool.shutdown()


class Changing(Single):
    """Gives texts, whatever a tool gives."""

    def submit(self, job: Job) -> Future[Any]:
        return self.pool.submit(lambda: repr(job()))


class Blurring(Single):
    """Says that something was wrong, and not what."""

    def submit(self, job: Job) -> Future[Any]:
        def run() -> Any:
            try:
                return job()
            except Exception:  # noqa: BLE001 - that is the fault
                raise RuntimeError("something was wrong") from None

        return self.pool.submit(run)


class Deaf(Single):
    """Passes on nothing that a tool yields, and draws it itself."""

    def submit(self, job: Job) -> Future[Any]:
        def run() -> Any:
            args, kwargs = job.arguments()
            value = job.function(*args, **kwargs)
            return list(value) if isinstance(value, Iterator) else value

        return self.pool.submit(run)


class Hasty(Single):
    """Says that it ends what is late."""

    keeps_time = True

    def submit(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        running = self.pool.submit(job)

        def wait() -> None:
            try:
                future.set_result(running.result(job.timeout))
            except TimeoutError:
                future.set_exception(job.timed_out())

        ThreadPoolExecutor(1).submit(wait)
        return future


class Headstrong(Single):
    """Takes a job apart at once, and runs it though it was cancelled while it waited."""

    def submit(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        args, kwargs = job.arguments()

        def run() -> None:
            value = job.function(*args, **kwargs)
            if not future.cancelled():
                future.set_result(value)

        self.pool.submit(run)
        return future


class Stuck(Single):
    """Never answers."""

    def submit(self, job: Job) -> Future[Any]:
        return Future()


class Open(Single):
    """Never closes."""

    def close(self) -> None:
        """Do nothing."""


class Endless(Single):
    """Takes long to close."""

    def close(self) -> None:
        """Wait."""
        time.sleep(4)
        super().close()


class Closed(Single):
    """Refuses what needs a session, and does not say why."""

    def check(self, tool: Tool) -> None:
        if "use_" in tool.name and tool.name != "use_secret":
            raise RegistrationError("no")


class Silent(Single):
    """Takes no secret, and does not say why."""

    def check_secret(self, tool: Tool, parameter: str) -> None:
        raise RegistrationError("no")


class Discreet(Single):
    """Takes no secret, and says why."""

    def check_secret(self, tool: Tool, parameter: str) -> None:
        raise RegistrationError(f"{parameter!r} of {tool.name} is a Secret; read it there")


class Slow(Single):
    """Refuses every tool."""

    def check(self, tool: Tool) -> None:
        raise RegistrationError("not today")


FAULTS: list[tuple[Callable[[], Any], str, str]] = [
    (Changing, "results", "data of 'number' is '-7', not -7"),
    (Blurring, "errors", "the type is 'RuntimeError', not 'OddError'"),
    (Deaf, "chunks", "20 chunks each of emit and yield came as"),
    (Hasty, "timeout", "a tool goes on after its time, though the backend keeps time"),
    (Headstrong, "queue", "a call that was stopped while it waited ran all the same"),
    (Stuck, "results", "no return after 2 s"),
    (Endless, "closing", "no return after 2 s"),
    (Open, "leftovers", "after close() there is still: the thread ThreadPoolExecutor"),
    (Closed, "context", "use_session is refused without saying why: no"),
    (Silent, "secrets", "a secret preset is refused without saying why"),
    (Slow, "registration", "plain tools are refused: not today"),
]


missing = pytest.mark.skipif(find_spec("pegboard_process") is None, reason="pegboard-process is not installed here")
each_backend = pytest.mark.parametrize("backend", ["inline", "thread", pytest.param("process", marks=missing), Single])


SLOW = ("queue", "timeout", "leftovers", "closing")


@pytest.mark.slow
@each_backend
def test_those_that_there_are_conform(backend: Any) -> None:
    assert_backend_conforms(backend)


@each_backend
def test_those_that_there_are_give_what_tools_give(backend: Any) -> None:
    assert_backend_conforms(backend, only=["results", "errors", "chunks", "context", "secrets", "leftovers"])


def test_one_that_takes_no_secret_and_says_why_conforms() -> None:
    assert_backend_conforms(Discreet(), only=["secrets"])


@pytest.mark.parametrize(
    ("made", "check", "what"),
    [pytest.param(*each, marks=pytest.mark.slow if each[0] is Stuck or each[1] in SLOW else ()) for each in FAULTS],
)
def test_a_fault_is_found(made: Callable[[], Any], check: str, what: str) -> None:
    only = [check] if check in CHECKS else ["results"]
    patience = 2.0 if check in ("results", "leftovers", "closing") else 20.0
    found = backend_conformance(made, only=only, patience=patience)
    assert [each.check for each in found if what in each.what], found
    assert {each.check for each in found} <= {check, "place"}


def test_all_faults_are_told_with_their_remedies() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_backend_conforms(Blurring(), only=["errors"])
    told = str(raised.value)
    assert told.startswith("the backend 'single' does not conform, 4 things to fix:")
    assert "name the class of what stands for it as its own was named" in told


def test_a_check_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="there is no check resluts; there are: results, errors"):
        assert_backend_conforms("inline", only=["resluts"])


def test_one_that_is_not_there_says_so() -> None:
    began = time.monotonic()
    (found,) = backend_conformance("nowhere", plugins=(), only=["results"])
    assert "there is no backend 'nowhere'" in found.what
    assert time.monotonic() - began < 30
