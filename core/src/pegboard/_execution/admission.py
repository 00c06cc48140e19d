"""Admission: what a call needs before its function can begin, and the refusals of calls that lack it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard._arguments.validate import Validation, admit
from pegboard._base.effects import pass_interrupt, tried
from pegboard._base.jsonable import owned
from pegboard._execution.bound import BoundTool
from pegboard._execution.engine import Engine
from pegboard._execution.run import Run
from pegboard._execution.telemetry import logger
from pegboard._model.call import Called
from pegboard._model.result import Note, Status, ToolResult


def admitted(
    engine: Engine, bound: BoundTool, sent: Any, *, again: bool = False, decoded: dict[str, Any] | None = None
) -> Validation:
    """Admit what was sent to a tool; `decoded` is what it was decoded to before, which was found not to fit.

    What was admitted before, or comes from an approver, is read `again`: no warning is due.
    """
    read_only = bound.tool.options.read_only is True
    admission = admit(bound.plan, sent, mode=engine.repair, read_only=read_only, redact=bound.redact, refused=decoded)
    for note in admission.notes:
        if note.kind == "overridden" and not again:
            logger().warning("%s: %s; a preset that no model may set is Locked or Secret", bound.name, note)
    return admission


def admit_again(run: Run, edited: Any = None) -> ToolResult | None:
    """Read the arguments that were shown to an approver anew, or those that it `edited`; the refusal of these."""
    shown = run.arguments
    admission = tried(_as_before, run.ready, shown) if edited is None else None
    admission = admission or admitted(run.engine, run.ready, shown if edited is None else edited, again=True)
    if admission.refusal is not None:
        return refused(run.engine, run.called, admission)
    run.arguments, run.values = admission.arguments, admission.values
    if admission.notes:
        notes = run.call.notes  # those of the first reading are there already
        notes.extend(note for note in admission.notes if note not in notes)
    call = run.seen if edited is None else run.call
    if call is not None:
        call.arguments = owned(admission.arguments)
        call.typed = run.typed
    if call is not None and edited is not None:
        call.notes.append(Note("the approver edited the arguments", kind="edited"))
    return None


def _as_before(bound: BoundTool, shown: Mapping[str, Any]) -> Validation:
    """Arguments that fit as they were shown before, which is what most do. Raises anything for the rest."""
    decoded = owned(shown)
    return Validation(decoded, bound.accept(decoded, -1, None))


def refused(engine: Engine, call: Called, admission: Validation) -> ToolResult:
    """The result of a call whose arguments do not fit."""
    details: dict[str, Any] = {"problems": admission.problems or [str(admission.refusal)]}
    if admission.remedy:
        details["remedy"] = admission.remedy
    return engine.results.refusal(call, Status.INVALID, "invalid_arguments", str(admission.refusal), details)


def not_provided(engine: Engine, call: Called, bound: BoundTool, error: BaseException) -> ToolResult:
    """The result of a call whose context cannot be read, or a preset of which cannot be computed."""
    pass_interrupt(error)
    message = f"{call.name} cannot run here: a value that the program provides is not available"
    reason = {"reason": engine.results.said(error, bound.redact)}
    return engine.results.refusal(call, Status.ERROR, "setup", message, reason, error)
