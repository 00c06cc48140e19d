"""What is seen while a tool runs: a spinner at a terminal, and chunks as they come."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, final

from pegboard import Chunk, Tool
from pegboard_cli._output import clean, console, text

__all__ = ["Live"]


@final
class Live:
    """Shows progress. What a generator yields is its result, and goes to `stdout` at once; the rest is for the eye."""

    def __init__(self, stdout: TextIO, *, quiet: bool = False) -> None:
        self._stdout = stdout
        self._quiet = quiet
        self._yields = False
        self._written: list[str] = []
        self._spinner: Any = None

    def begin(self, tool: Tool | None, name: str) -> None:
        """Start the spinner, where there is a terminal."""
        self._yields = tool is not None and _is_generator(tool)
        if sys.stderr.isatty() and not self._quiet:
            self._spinner = console(err=True).status(clean(f"{name} ..."))
            self._spinner.start()

    def end(self) -> None:
        """Stop the spinner for good, and end the line that chunks have begun."""
        self._stop()
        if self._written and not self._written[-1].endswith("\n"):
            self._stdout.write("\n")
        self._stdout.flush()

    def chunk(self, chunk: Chunk) -> None:
        """Show a chunk."""
        if not chunk.text:
            return
        if self._yields and not self._quiet:
            self._stop()
            self._written.append(chunk.text)
            self._stdout.write(clean(chunk.text) if self._stdout.isatty() else chunk.text)
            self._stdout.flush()
        elif self._spinner is not None:
            self._spinner.console.print(text(chunk.text))  # above the spinner, which goes on
        else:
            sys.stderr.write(f"{clean(chunk.text)}\n")
            sys.stderr.flush()

    def showed(self, result: str) -> bool:
        """Whether this text, a result, was shown already, piece by piece."""
        return bool(self._written) and "".join(self._written) == result

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without the spinner, for a question."""
        spinner = self._spinner
        self._stop()
        try:
            yield
        finally:
            if spinner is not None:
                self._spinner = spinner
                spinner.start()

    def _stop(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None


def _is_generator(tool: Tool) -> bool:
    try:
        function = inspect.unwrap(tool.function) if tool.function is not None else None
    except Exception:  # noqa: BLE001 - a pack that turns out to be broken says so in the result of the call
        return False
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
