"""Questions with forms at a terminal: member by member, each until its value fits."""

from __future__ import annotations

import select
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from getpass import getpass
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, final

import click

from pegboard import Approval, RegistrationError
from pegboard_cli._output.printing import clean, dumps

if TYPE_CHECKING:
    from pegboard_schemas import Form, FormField

__all__ = ["ask_form", "ask_letter", "interrupts_questions"]

HELP: Final = (
    "An empty line takes the default or leaves the member out; it declines where a value is required. "
    "Ctrl-C declines at any time."
)
DECLINED: Final = "the user said no"
LOOK: Final = 0.1
"""Seconds between two checks whether the user has pressed Ctrl-C."""


def ask_form(schema: Mapping[str, Any]) -> Approval:
    """Ask the members of a form at the terminal: an edit with what the user wrote, or a denial with its reason.

    Questions are asked one at a time, in any thread. In others than the main one Ctrl-C declines where the main thread
    is inside of `interrupts_questions`.
    """
    try:
        from pegboard_schemas import Form
    except ImportError:
        return Approval.deny("its form is read by pegboard-schemas, which is missing: pip install pegboard-schemas")
    try:
        form = Form(schema)
    except RegistrationError as error:
        return Approval.deny(f"the form cannot be used: {error}")
    with _KEYBOARD.lock:
        try:
            members = _answer(form)
        except (KeyboardInterrupt, EOFError):
            _say("")
            members = None
    return Approval.deny(DECLINED) if members is None else Approval.edit(members)


def ask_letter(prompt: str, letters: str) -> str:
    """One of these letters, by default the first; that is the answer to Ctrl-C, too."""
    with _KEYBOARD.lock:
        try:
            return _letter(prompt, letters)
        except (KeyboardInterrupt, EOFError):
            _say("")
            return letters[0]


@contextmanager
def interrupts_questions() -> Iterator[None]:
    """Inside, Ctrl-C declines the question that is asked in another thread. If none is asked it does what it did.

    It is for the main thread, where signals arrive; in another one it changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupted(number: int, frame: FrameType | None) -> None:
        if not _KEYBOARD.interrupt() and callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _letter(prompt: str, letters: str) -> str:
    while (letter := _KEYBOARD.line(prompt).strip().lower()[:1]) not in letters:
        _say(f"expected one of {', '.join(letters)}")
    return letter or letters[0]


def _answer(form: Form) -> dict[str, Any] | None:
    """The members that the user gives; None for a refusal."""
    if not form.fields:
        return {} if _letter("Accept? (y)es, (n)o [n]: ", "ny") == "y" else None
    _say(HELP)
    members = {}
    for each in form.fields:
        _describe(each)
        while text := _KEYBOARD.line(_prompt(each), hidden=each.private):
            try:
                members[each.name] = form.value(each, text)
                break
            except ValueError as error:
                _say(f"  {error}")
        if each.required and not each.has_default and each.name not in members:
            return None
    return members


def _describe(member: FormField) -> None:
    if member.description:
        _say(member.description)
    for number, (value, label) in enumerate(member.choices, 1):
        written = value if isinstance(value, str) else dumps(value, ensure_ascii=False)
        _say(f"  {number}) {label}" if label == written else f"  {number}) {label} ({written})")
    if member.several:
        _say("  several with commas in between")


def _prompt(member: FormField) -> str:
    default = "***" if member.private else dumps(member.schema.get("default"), ensure_ascii=False, default=str)
    needed = f"default {default}" if member.has_default else "required" if member.required else "optional"
    return f"{member.title or member.name} ({member.kind}, {needed}): "


def _say(line: str) -> None:
    click.echo(clean(line), err=True)


@final
class _Keyboard:
    """Lines of the user, in whatever thread they are waited for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._is_waiting = False
        self._interrupted = threading.Event()

    def interrupt(self) -> bool:
        """End the wait for a line, if one is waited for."""
        if self._is_waiting:
            self._interrupted.set()
        return self._is_waiting

    def line(self, prompt: str, *, hidden: bool = False) -> str:
        """A line without its end. Raises `KeyboardInterrupt` for Ctrl-C and EOFError at the end of the input."""
        self._interrupted.clear()
        self._is_waiting = True
        try:
            line = self._line(clean(prompt), hidden)
        finally:
            self._is_waiting = False
        if not line:
            raise EOFError
        return line.rstrip("\r\n")

    def _line(self, prompt: str, hidden: bool) -> str:
        if hidden and sys.platform == "win32":
            return f"{getpass(prompt)}\n"
        with _unseen() if hidden else nullcontext():
            click.echo(prompt, nl=False, err=True)  # who reads it may type at once
            while not _has_come():
                if self._interrupted.is_set():
                    raise KeyboardInterrupt
            return sys.stdin.readline()


_KEYBOARD: Final = _Keyboard()


def _has_come() -> bool:
    """Whether a line can be read at once; where that cannot be known it is read anyway."""
    try:
        return bool(select.select([sys.stdin], [], [], LOOK)[0])
    except (OSError, ValueError):
        return True


@contextmanager
def _unseen() -> Iterator[None]:
    """The terminal does not show what is typed."""
    import termios

    try:
        before = termios.tcgetattr(sys.stdin)
    except (OSError, ValueError, termios.error):  # it is none
        yield
        return
    quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        click.echo("", err=True)
