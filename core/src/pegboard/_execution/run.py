"""A run: the record of one call that has left the straight road, how far it has come, and how it is admitted."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

from pegboard._arguments.validate import Validation, admit
from pegboard._base.effects import TIMED_OUT, AttemptTimeoutError, pass_interrupt, tried
from pegboard._base.jsonable import owned
from pegboard._execution.telemetry import logger
from pegboard._injection.invocation import Invocation
from pegboard._model.call import Called
from pegboard._model.result import Note, Status, ToolResult

if TYPE_CHECKING:
    from pegboard._execution.bound import BoundTool
    from pegboard._execution.concurrency import Permit
    from pegboard._execution.engine import Engine


@final
class Run(Invocation):
    """One call: under which policy it runs, what was agreed to, and its attempts so far."""

    ready: BoundTool
    runner: Any  # a `CallRunner`, which this room's later modules make
    provided: Any = None  # what this attempt is given, if not where the function runs
    agreed: Any = None  # the definition of the tool that was approved, with these arguments
    judged: Any = None  # the arguments that guards were asked about
    permit: Permit | None = None  # what it holds while it runs
    sent = False  # whether a backend has got the arguments of this attempt
    tries = 0
    begun = 0  # how often the function has begun
    yielded: list[Any]  # by the tool, in this attempt
    retries: deque[Mapping[str, Any]] | None = None
    resume: Any = None  # what makes the result of an answer, while the call is suspended

    @property
    def engine(self) -> Engine:
        """What the call runs on."""
        engine: Engine = self.runner.engine
        return engine

    @property
    def timeout_counts(self) -> bool:
        """Whether the timeout holds in plain code too, which needs another thread: where it was asked for."""
        return "timeout" in self.policy.given

    def attempted(self, error: BaseException | None) -> None:
        """Count an attempt that has come to an end."""
        self.tries += 1
        if isinstance(error, AttemptTimeoutError):
            self.end_attempt(TIMED_OUT)  # an abandoned thread can see that it is not waited for


# Admitting -----------------------------------------------------------------------------------------------------------


def admitted(
    engine: Engine, bound: BoundTool, sent: Any, *, again: bool = False, decoded: dict[str, Any] | None = None
) -> Validation:
    """Admit what was sent to a tool; `decoded` is what it was decoded to before, which was found not to fit.

    What was admitted before, or comes from an approver, is read `again`: no warning is due.
    """
    plan, redact = bound.plan, bound.redact
    admission = admit(plan, sent, mode=engine.repair, read_only=bound.read_only, redact=redact, refused=decoded)
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
