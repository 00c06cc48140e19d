"""What a person sees and answers while a tool runs: a spinner, chunks as they come, and a request for approval."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO, final

import click
from attrs import define

from pegboard import Approval, ApprovalRequest, Chunk, Tool
from pegboard_cli._output.forms import ask_form, ask_letter
from pegboard_cli._output.printing import clean, console, dumps, json_lines, loads, safe_json, text

__all__ = ["Approver", "Live"]

UNATTENDED: Final = "there is no terminal to ask at; approve it beforehand with --yes, or run the command at a terminal"
_BAR: Final = 24  # cells


@final
class Live:
    """Shows progress. What a generator yields goes to `stdout` at once, as its result; the terminal gets the rest."""

    def __init__(self, stdout: TextIO, *, quiet: bool = False) -> None:
        self._stdout = stdout
        self._quiet = quiet
        self._yields = False
        self._name = ""
        self._written: list[str] = []
        self._spinner: Any = None

    def begin(self, tool: Tool | None, name: str) -> None:
        """Start the spinner, where there is a terminal."""
        self._name = name
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
        """Show a chunk; how far the work has come, at a terminal as a bar beside the spinner."""
        if chunk.progress is not None:
            self._progress(chunk.text, *chunk.progress)
            return
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

    def _progress(self, message: str, done: float, total: float | None) -> None:
        far = f"{done:g}" if total is None else f"{done:g}/{total:g}"
        if self._spinner is not None:
            filled = 0 if not total else round(_BAR * min(max(done / total, 0.0), 1.0))
            bar = f" {'█' * filled}{'░' * (_BAR - filled)}" if total else ""
            self._spinner.update(text(clean(f"{self._name}{bar} {far} {message}".rstrip())))
        elif not self._quiet:
            sys.stderr.write(f"{clean(f'{far} {message}'.rstrip())}\n")
            sys.stderr.flush()

    @property
    def wrote(self) -> bool:
        """Whether anything of a result was shown already."""
        return bool(self._written)

    def showed(self, result: str) -> bool:
        """Whether this text of a result was already shown in pieces."""
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


@final
@define
class Approver:
    """Answers requests for approval: yes if the command line approves, else by asking, else no."""

    live: Live
    approved: bool = False

    def __call__(self, request: ApprovalRequest) -> Approval:
        """Ask, if there is a terminal to ask at."""
        if self.approved:
            return Approval.approve()
        # A spinner takes the place of standard error, and need not say that there is a terminal behind it.
        with self.live.paused():
            if sys.stdin.isatty() and sys.stderr.isatty():
                return self._ask(request)
        return Approval.deny(UNATTENDED)

    def _ask(self, request: ApprovalRequest) -> Approval:
        out = console(err=True)
        what = "asks for approval" if request.form is None else "asks"
        out.print(text(f"{request.tool.name} {what}", "bold yellow"))
        if request.reason:
            out.print(text(request.reason))
        out.print(json_lines(dict(request.arguments)), soft_wrap=True)
        if request.form is not None:
            return ask_form(request.form)
        answer = ask_letter("Run it? (y)es, (n)o, (e)dit [n]: ", "nye")
        if answer == "e":
            return _edited(request)
        return Approval.approve() if answer == "y" else Approval.deny("the user said no")


def _edited(request: ApprovalRequest) -> Approval:
    """The arguments as they come back from an editor; no answer and no JSON object mean no."""
    before = safe_json(dumps(dict(request.arguments), ensure_ascii=False, indent=2, default=str))
    after = click.edit(before, extension=".json")
    if after is None:
        return Approval.deny("the user left the editor without saving")
    try:
        arguments = loads(after)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return Approval.deny("what the user wrote instead is no JSON object")
    return Approval.edit(arguments)
