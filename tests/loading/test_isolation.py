"""A plugin's code can do what it wants; the host stays as it was, and knows what happened."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pegboard._base.errors import traceback_text
from pegboard._plugins.candidates import IsolatedRun, isolated


def test_value() -> None:
    outcome = isolated(lambda: 42)
    assert (outcome.value, outcome.error, outcome.notes) == (42, None, ())


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), SystemExit(3), GeneratorExit(), KeyboardInterrupt(), asyncio.CancelledError(), MemoryError()],
)
def test_whatever_is_raised_is_in_the_outcome(error: BaseException) -> None:
    def fail() -> None:
        raise error

    assert isolated(fail).error is error


def test_endless_recursion() -> None:
    def again() -> None:
        again()

    assert isinstance(isolated(again).error, RecursionError)


class TestKeyboardInterrupt:
    def test_of_a_signal_leaves(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            isolated(lambda: signal.raise_signal(signal.SIGINT))

    def test_of_a_signal_during_plain_code_leaves(self) -> None:
        def work() -> None:
            threading.Timer(
                0.05, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            ).start()
            while True:
                pass

        with pytest.raises(KeyboardInterrupt):
            isolated(work)

    def test_in_another_thread_stays(self) -> None:
        seen: list[IsolatedRun] = []

        def fail() -> None:
            raise KeyboardInterrupt

        thread = threading.Thread(target=lambda: seen.append(isolated(fail)))
        thread.start()
        thread.join()
        assert isinstance(seen[0].error, KeyboardInterrupt)


class TestStandardOutput:
    def test_goes_to_standard_error_and_is_noted(self, capsys: pytest.CaptureFixture[str]) -> None:
        outcome = isolated(lambda: print("hello"))
        assert capsys.readouterr() == ("", "hello\n")
        assert outcome.notes == ("printed to standard output (shown on standard error instead)",)

    def test_keeps_what_code_expects_of_a_stream(self) -> None:
        assert isolated(lambda: sys.stdout.encoding).error is None

    def test_without_a_console(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", None)
        assert isolated(lambda: print("hello")).error is None


class TestPath:
    @pytest.mark.parametrize(
        "change",
        [
            lambda: sys.path.insert(0, "/elsewhere"),
            sys.path.clear,
            lambda: setattr(sys, "path", ["/elsewhere"]),
        ],
    )
    def test_is_restored_and_noted(self, change: Callable[[], Any]) -> None:
        path, entries = sys.path, list(sys.path)
        assert isolated(change).notes == ("changed sys.path (restored)",)
        assert sys.path is path
        assert sys.path == entries


def test_closing_standard_output_closes_nothing() -> None:
    assert isolated(lambda: sys.stdout.close()).error is None  # noqa: PLW0108 - it is another one inside
    assert not sys.stderr.closed
    assert not sys.stdout.closed


class TestTraceback:
    def test_names_the_line(self) -> None:
        error = isolated(lambda: 1 // 0).error
        assert error is not None
        text = traceback_text(error)
        assert "1 // 0" in text
        assert text.endswith("ZeroDivisionError: integer division or modulo by zero\n")

    def test_of_an_exception_that_cannot_be_formatted(self) -> None:
        class Hostile(Exception):
            def __str__(self) -> str:
                raise SystemExit

            @property
            def __notes__(self) -> Any:  # type: ignore[override]  # as hostile as it gets
                raise SystemExit

        assert "Hostile" in traceback_text(Hostile())
