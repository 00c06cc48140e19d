"""Admission: from what the model sent to structured arguments, or to every reason why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from pegboard._arguments.decode import DecodeError, decode, decode_twice, repair_text
from pegboard._base.effects import is_interrupt
from pegboard._model.result import Note
from pegboard._model.shapes import TypePlan
from pegboard._schema.problems import Problem, message

RepairMode: TypeAlias = Literal["off", "safe", "max"]


class ValidationPlan(Protocol):
    """What admission needs of a call plan."""

    hidden: frozenset[str]
    record: TypePlan
    extra: TypePlan | None

    def accept(self, arguments: dict[str, Any], keys: int, text: str | None, /) -> tuple[Any, ...]:
        """Structure the arguments, or raise."""


@frozen(eq=False, slots=False)  # half the time of slots
class Validation:
    """The outcome: `values` for the call plan, or a `refusal` for the model."""

    arguments: dict[str, Any] = field(factory=dict)
    values: tuple[Any, ...] = ()
    notes: tuple[Note, ...] = ()
    refusal: str | None = None
    problems: Sequence[str] = ()


def admit(
    plan: ValidationPlan,
    sent: Any,
    *,
    mode: RepairMode = "safe",
    read_only: bool = False,
    redact: Callable[[str], str] | None = None,
    refused: dict[str, Any] | None = None,
    read: Callable[[Any], dict[str, Any]] = decode,
) -> Validation:
    """Decode strictly, drop what the model may not set, structure, repair, explain. Never raises for what was sent.

    `redact` goes over every text that a message or a note takes from the arguments. `refused` is what `sent` was
    decoded to by somebody who then found that it does not fit. `read` is `decode`, or what does the same faster.
    """
    notes: list[Note] = []
    values = None
    if refused is not None and plan.hidden.isdisjoint(refused):
        arguments = refused
    else:
        try:
            arguments = _without_hidden(plan, _decoded(sent, mode, read_only, notes, read), notes)
        except DecodeError as error:
            return Validation(refusal=f"invalid arguments: {error}")
        values = _accepted(plan, arguments)
    if values is None:
        mended, problems, repairs = _examined(plan, arguments, mode != "off", redact)
        values = None if problems else _accepted(plan, mended)
        if values is None:
            texts = [str(problem) for problem in problems] or ["the arguments do not fit together"]
            return Validation(arguments, (), tuple(notes), f"invalid arguments:\n{message(texts)}", texts)
        notes += repairs
    return Validation(arguments, values, tuple(notes))


def _decoded(
    sent: Any, mode: RepairMode, read_only: bool, notes: list[Note], read: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    try:
        return read(sent)
    except DecodeError as error:
        twice = None if mode == "off" else decode_twice(sent)
        if twice is None:
            # A truncated path must not reach a tool that writes: malformed text is mended for read-only tools alone.
            if mode != "max" or not read_only:
                raise
            twice = repair_text(sent, error)
    arguments, note = twice
    notes.append(note)
    return arguments


def _without_hidden(plan: ValidationPlan, arguments: Mapping[str, Any], notes: list[Note]) -> dict[str, Any]:
    """The model learns nothing of parameters that are not its own; the program's note counts the attempts."""
    dropped = [name for name in arguments if name in plan.hidden]
    if dropped:
        noun = "a parameter" if len(dropped) == 1 else f"{len(dropped)} parameters"
        notes.append(Note(f"the model tried to set {noun} that only the program sets; ignored", kind="dropped"))
    return {name: value for name, value in arguments.items() if name not in plan.hidden}


def _accepted(plan: ValidationPlan, arguments: dict[str, Any]) -> tuple[Any, ...] | None:
    """The structured arguments, if they fit."""
    try:
        return plan.accept(arguments, 0, None)
    except BaseException as error:  # type handlers may raise anything for a value that does not fit
        if is_interrupt(error):
            raise
        return None


def _examined(
    plan: ValidationPlan, arguments: dict[str, Any], mends: bool, redact: Callable[[str], str] | None
) -> tuple[dict[str, Any], list[Problem], list[Note]]:
    from pegboard._arguments.examine import examine  # for the first call that needs it

    mended, problems, repairs = examine(plan.record, arguments, mends=mends, redact=redact)
    if plan.extra is not None:
        known = {member.key for member in getattr(plan.record.shape, "members", ())}
        mended = dict(mended)
        for name in [name for name in mended if name not in known]:
            mended[name], wrong, more = examine(plan.extra, mended[name], name, mends=mends, redact=redact)
            problems += wrong
            repairs += more
    return mended, problems, repairs
