"""Admission: from what the model sent to structured arguments, or to every reason why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from pegboard._arguments.decode import DecodeError, decode_wrapped, read, repair_text
from pegboard._base.effects import tried
from pegboard._model.result import Note
from pegboard._model.tool import CallPlan
from pegboard._schema.problems import Problem, Redact, message

RepairMode: TypeAlias = Literal["off", "safe", "max"]


@frozen(eq=False, slots=False)  # half the time of slots
class Validation:
    """The outcome: `values` for the call plan, or a `refusal` for the model."""

    arguments: dict[str, Any] = field(factory=dict)
    values: tuple[Any, ...] = ()
    notes: tuple[Note, ...] = ()
    refusal: str | None = None
    problems: Sequence[str] = ()
    remedy: str = ""


def admit(
    plan: CallPlan,
    sent: Any,
    *,
    mode: RepairMode = "safe",
    read_only: bool = False,
    redact: Redact | None = None,
    refused: dict[str, Any] | None = None,
) -> Validation:
    """Decode strictly, drop what the model may not set, structure, repair, explain. Never raises for what was sent.

    `redact` goes over every text that a message or a note takes from the arguments. `refused` is what `sent` was
    decoded to before, which was found not to fit.
    """
    notes: list[Note] = []
    values = None
    if refused is not None and plan.hidden.isdisjoint(refused):
        arguments = refused
    else:
        try:
            arguments = _without_hidden(plan, _decoded(sent, mode, read_only, notes), notes)
        except DecodeError as error:
            return Validation(refusal=f"invalid arguments: {error}", remedy=error.remedy)
        values = tried(plan.accept, arguments, -1, None)
    given = arguments
    if values is None:
        given, problems, repairs = _examined(plan, arguments, mode != "off", redact, sent)
        values = None if problems else tried(plan.accept, given, -1, None)
        if values is None:
            texts = [str(problem) for problem in problems] or ["the arguments do not fit together"]
            return Validation(arguments, (), tuple(notes), f"invalid arguments:\n{message(texts)}", texts)
        notes += repairs
    for name in filter(plan.overridable.__contains__, given):
        notes.append(Note(f"the model set {name!r}, which the program has a preset for", kind="overridden", path=name))
    return Validation(arguments, values, tuple(notes))


def _decoded(sent: Any, mode: RepairMode, read_only: bool, notes: list[Note]) -> dict[str, Any]:
    try:
        return read(sent)
    except DecodeError as error:
        if mode == "off" or not isinstance(sent, str | bytes | bytearray):
            raise
        wrapped = tried(decode_wrapped, sent)
        # A truncated path must not reach a tool that writes: malformed text is repaired for read-only tools alone.
        if wrapped is None and (mode != "max" or not read_only):
            raise
        arguments, note = wrapped or repair_text(sent, error)
    notes.append(note)
    return arguments


def _without_hidden(plan: CallPlan, arguments: Mapping[str, Any], notes: list[Note]) -> dict[str, Any]:
    """The model learns nothing of parameters that are not its own; the program's note counts the attempts."""
    dropped = [name for name in arguments if name in plan.hidden]
    if dropped:
        noun = "a parameter" if len(dropped) == 1 else f"{len(dropped)} parameters"
        notes.append(Note(f"the model tried to set {noun} that only the program sets; ignored", kind="dropped"))
    return {name: value for name, value in arguments.items() if name not in plan.hidden}


def _examined(
    plan: CallPlan, arguments: dict[str, Any], repair: bool, redact: Redact | None, sent: Any
) -> tuple[dict[str, Any], list[Problem], list[Note]]:
    from pegboard._arguments.examine import examine  # for the first call that needs it

    repaired, problems, repairs = examine(plan.record, arguments, repair=repair, redact=redact, sent=sent)
    if plan.extra is not None:
        known = {member.key for member in getattr(plan.record.shape, "members", ())}
        repaired = dict(repaired)
        for name in [name for name in repaired if name not in known]:
            options = {"repair": repair, "redact": redact, "sent": sent}
            repaired[name], wrong, more = examine(plan.extra, repaired[name], name, **options)
            problems += wrong
            repairs += more
    return repaired, problems, repairs
