"""Admission: from what the model sent to structured arguments, or to every reason why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from pegboard._arguments.decode import DecodeError, decode, decode_twice, repair_text
from pegboard._arguments.verdicts import Verdicts
from pegboard._base.effects import is_interrupt
from pegboard._model.result import Note
from pegboard._model.shapes import TypePlan
from pegboard._schema.problems import Problem, message

__all__ = ["RepairMode", "Validation", "ValidationPlan", "admit"]

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
    if refused is not None and plan.hidden.isdisjoint(refused):
        return _mended(plan, refused, notes, mode, redact)
    try:
        arguments = _decoded(sent, mode, read_only, notes, read)
    except DecodeError as error:
        return Validation(refusal=f"invalid arguments: {error}")
    return _structured(plan, _without_hidden(plan, arguments, notes), notes, mode, redact)


def _decoded(
    sent: Any, mode: RepairMode, read_only: bool, notes: list[Note], read: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    try:
        return read(sent)
    except DecodeError:
        twice = None if mode == "off" else decode_twice(sent)
        if twice is None:
            # A truncated path must not reach a tool that writes: malformed text is mended for read-only tools alone.
            if mode != "max" or not read_only:
                raise
            twice = repair_text(sent)
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


def _structured(
    plan: ValidationPlan,
    arguments: dict[str, Any],
    notes: list[Note],
    mode: RepairMode,
    redact: Callable[[str], str] | None,
) -> Validation:
    try:
        return Validation(arguments, plan.accept(arguments, 0, None), tuple(notes))
    except BaseException as error:  # type handlers may raise anything for a value that does not fit
        if is_interrupt(error):
            raise
        return _mended(plan, arguments, notes, mode, redact)


def _mended(
    plan: ValidationPlan,
    arguments: dict[str, Any],
    notes: list[Note],
    mode: RepairMode,
    redact: Callable[[str], str] | None,
) -> Validation:
    """Arguments that do not fit, repaired; or every reason why that cannot be."""
    verdicts = Verdicts()
    repaired = arguments
    if mode != "off":
        repaired, repairs = _repaired(plan, arguments, mode, redact, verdicts)
        try:
            if repairs:  # what nobody changed does not fit now either
                return Validation(arguments, plan.accept(repaired, 0, None), (*notes, *repairs))
        except BaseException as error:  # as above; only what could not be mended is explained below
            if is_interrupt(error):
                raise
    problems = [str(problem) for problem in _problems(plan, repaired, redact, verdicts)]
    return Validation(arguments, (), tuple(notes), f"invalid arguments:\n{message(problems)}", problems)


def _repaired(
    plan: ValidationPlan,
    arguments: dict[str, Any],
    mode: Literal["safe", "max"],
    redact: Callable[[str], str] | None,
    verdicts: Verdicts,
) -> tuple[dict[str, Any], list[Note]]:
    repair, _ = _walks()
    repaired, notes = repair(plan.record, arguments, mode, redact=redact, verdicts=verdicts)
    if plan.extra is not None:
        repaired = dict(repaired)
        for name in _extra_names(plan, repaired):
            repaired[name], more = repair(plan.extra, repaired[name], mode, name, redact=redact, verdicts=verdicts)
            notes.extend(more)
    return repaired, notes


def _problems(
    plan: ValidationPlan, arguments: dict[str, Any], redact: Callable[[str], str] | None, verdicts: Verdicts
) -> list[Problem]:
    _, explain = _walks()
    problems = explain(plan.record, arguments, redact=redact, verdicts=verdicts)
    extra: list[Problem] = []
    if plan.extra is not None:
        for name in _extra_names(plan, arguments):
            extra.extend(explain(plan.extra, arguments[name], name, redact=redact, verdicts=verdicts))
    if extra:
        # What is wrong with the whole was only that something is wrong inside.
        problems = [problem for problem in problems if problem.path] + extra
    return problems or [Problem("", "the arguments do not fit together")]


@cache
def _walks() -> tuple[Callable[..., tuple[dict[str, Any], list[Note]]], Callable[..., list[Problem]]]:
    """`repair` and `explain`, loaded for the first call that needs them; later an import statement would cost time."""
    from pegboard._arguments.explain import explain
    from pegboard._arguments.repair import repair

    return repair, explain


def _extra_names(plan: ValidationPlan, arguments: Mapping[str, Any]) -> list[str]:
    known = {member.key for member in getattr(plan.record.shape, "members", ())}
    return [name for name in arguments if name not in known]
