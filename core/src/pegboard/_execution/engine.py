"""The engine: what the calls of one toolkit run on; and its bound tools, for which a session has decided everything."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, final

from pegboard._arguments.decode import fast_decode
from pegboard._arguments.validate import RepairMode, Validation, admit
from pegboard._base.effects import after_fork, pass_interrupt, tried
from pegboard._base.errors import RegistrationError, describe_exception
from pegboard._base.jsonable import owned
from pegboard._base.redaction import Redaction
from pegboard._execution.concurrency import ConcurrencyLimits, Limit
from pegboard._execution.telemetry import Stats, logger
from pegboard._injection.invocation import Invocation
from pegboard._injection.presets import Preset
from pegboard._model.call import Called
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Note, Status, ToolResult
from pegboard._model.tool import Tool
from pegboard._results.factory import ResultFactory
from pegboard.extension import Middleware

if TYPE_CHECKING:
    from pegboard._execution.threads import WorkerPool

# Whether a call may begin with its function; tests say no, to see that the steps do the same.
FAST = True


class Unavailable(NamedTuple):
    """A tool that cannot be called, and why: the status and fault of every call of it."""

    status: Status
    kind: str
    message: str
    details: Mapping[str, Any] | None = None
    exception: BaseException | None = None

    @classmethod
    def unusable(cls, name: str, error: BaseException) -> Unavailable:
        """A tool that hangs there but whose module, annotations or handlers fail."""
        message = f"the tool {name!r} is broken and cannot be used; go on without it"
        return cls(Status.ERROR, "unusable", message, {"reason": describe_exception(error)}, error)


@final
class BoundTool:
    """A tool's plan, presets, policy, permission and middleware under one session; rebuilt when any of them changes.

    `fast_sync` and `fast_async` say that a call from plain code, or from a loop, begins with the function itself: no
    approval, limit, middleware or resolver comes before it. Such a call takes the steps only for what is left to do
    afterwards. `fast_thread`: from a loop it runs in a worker thread.
    """

    def __init__(
        self,
        tool: Tool,
        presets: Mapping[str, Preset],
        policy: ExecutionPolicy,
        permission: Permission | None,
        reason: str,
        middleware: Sequence[Middleware],
        limits: Sequence[Limit],
        engine: Engine,
        asked: str = "",
    ) -> None:
        definition = tool.definition
        locked = frozenset(name for name, preset in presets.items() if preset.locked)
        self.tool = tool
        self.name = tool.name
        self.asked = asked or tool.name  # what the session finds it by: its name there, or an alias
        self.plan: Any = definition.plan(frozenset(presets), locked)
        # Who may not be called learns nothing of the arguments.
        self.accept = _refuse if permission is Permission.NEVER else self.plan.accept
        self.invoke = self.plan.invoke
        self._provide(presets)
        renderers = definition.renderers()
        self.renderers = renderers if self.redact is None else renderers.guarded(self.redact)
        own, timeout = tool.options.policy, tool.options.timeout
        merged = policy if own is None else own.merged_over(policy)
        self.policy = merged if timeout is None else ExecutionPolicy(timeout=timeout).merged_over(merged)
        self.permission = permission or tool.permission
        self._prompted = reason or f"{self.name} always asks"
        self.middleware = tuple(each for each in middleware if not each.whole)
        self.limits = tuple(limits)
        self.max_output = tool.options.max_output or engine.results.max_output
        self.backend = engine.backend_of(tool)
        self.stats = engine.stats.of(self.name)
        self._asks: Any = tool.options.requires_approval if permission is None else None
        # Whether any call may have to be approved.
        self.may_ask = self.permission is Permission.PROMPT or callable(self._asks)
        self.checks = engine.checks
        # Whether somebody looks at the arguments before they run, and may decide on them.
        self.shown = self.may_ask or bool(self.middleware or self.checks)
        self._choose_way(self.plan.kind)

    def _provide(self, presets: Mapping[str, Preset]) -> None:
        self.presets = {name: preset.value for name, preset in presets.items() if preset.computed is None}
        self.computed = {name: preset.computed for name, preset in presets.items() if preset.computed is not None}
        # JSON that a tool could change is made for each attempt.
        self.fresh = {name: preset.make for name, preset in presets.items() if preset.make is not None}
        # What each call is provided with; None until a first call finds the context, or if each has to ask for itself.
        self.provided: Any = None if self.plan.fetches or self.computed or self.fresh else self.presets
        secrets = {name: preset.value for name, preset in presets.items() if preset.secret}
        self.redact = Redaction(secrets.values()) if secrets else None
        self.computed_secrets = tuple(name for name in self.computed if name in secrets)
        # Whether all calls of a session that bring nothing of their own are provided with the same.
        self.standing = self.plan.standing and not self.computed and not self.fresh

    def _choose_way(self, kind: str) -> None:
        begins = FAST and not (self.middleware or self.limits or self.plan.managed or self.may_ask or self.checks)
        in_caller = self.backend == "inline" or (self.backend == "thread" and "timeout" not in self.policy.given)
        self.fast_sync = begins and in_caller and kind in ("sync", "generator")
        # In a thread, a tool that can be told to stop (it may ask for the token) has to be told so: it takes the steps.
        self.fast_thread = begins and kind == "sync" and self.backend == "thread" and self.standing
        waits = bool(self.plan.blocking or self.computed)  # for plain code of the program, which no loop runs
        self.fast_async = self.fast_thread or (begins and kind == "async" and not waits)
        # What a failed attempt may have changed has to be kept before.
        self.retries = self.policy.max_attempts > 1

    def fresh_presets(self) -> dict[str, Any]:
        """The presets of one attempt: none has what another attempt, or another session, has changed."""
        return {**self.presets, **{name: make() for name, make in self.fresh.items()}}

    def approval_reason(self, arguments: Mapping[str, Any]) -> str | None:
        """Why this call has to be approved, if it may have to be; else None. `arguments` are the structured ones."""
        if self.permission is Permission.PROMPT:
            return self._prompted
        try:
            asked = self._asks(dict(arguments))
        except BaseException as error:  # noqa: BLE001 - a predicate that fails must not let the call through
            pass_interrupt(error)
            return f"whether {self.name} needs approval could not be decided: {describe_exception(error)}"
        if isinstance(asked, str) and asked:
            return asked
        return f"{self.name} asks for approval with these arguments" if asked else None


def _refuse(arguments: Any, keys: int, text: str | None) -> tuple[Any, ...]:
    raise ValueError("this tool is not permitted")


@final
class Engine:
    """What calls run on. One for each toolkit; threads and loop begin on first use."""

    def __init__(
        self,
        results: ResultFactory,
        threads: Callable[[], WorkerPool],
        *,
        repair: RepairMode = "safe",
    ) -> None:
        if repair not in ("off", "safe", "max"):
            raise ValueError(f'repair takes "off", "safe" or "max", got {repair!r}')
        self.results = results
        self.repair: RepairMode = repair
        self.stats = Stats()
        self.around: Sequence[Middleware] = ()  # whole calls
        self.checks: Sequence[Callable[[Any], Any]] = ()  # of guards, about each call
        self.limits = ConcurrencyLimits()
        # Where tools run, by the name that they say: the name alone if that is the core's own, else a plugin's.
        self.backends: dict[str, Any] = {}
        self._threads = threads
        self._drivers: Any = None
        self.closed_at = 0.0  # by `perf_counter`, once it is closed
        self._lock = threading.Lock()
        # What `close` stops: `cancel(reason)` of each call that can be stopped, by whoever has to be stopped.
        self.live: dict[Any, Any] = {}
        after_fork(self, Engine._forget_parent)

    def _forget_parent(self) -> None:
        # In a child of a fork no call runs but the one that the fork was made in.
        self._lock = threading.Lock()
        self.live.clear()
        for stats in self.stats.values():
            stats.open = stats.waiting = 0

    @property
    def drivers(self) -> Any:
        """The two drivers, made when the first call needs one: asyncio is not loaded before."""
        return self._drivers or self._made_drivers()

    def _made_drivers(self) -> Any:
        from pegboard._execution.drivers import Drivers

        with self._lock:
            if self._drivers is None:
                drivers = Drivers(self._threads())
                if self.closed_at:
                    drivers.close(lambda: None)
                self._drivers = drivers
            return self._drivers

    def tell(self, what: str, details: Mapping[str, Any]) -> None:
        """Tell middleware around whole calls what happens to the one that runs here."""
        for each in self.around:
            tried(each.told, what, details)

    def statistics(self) -> dict[str, Any]:
        """The counts of all tools, the threads that hang in some of them, and the jobs that wait for a thread."""
        known = self._drivers
        hanging = () if known is None else (known.pool.abandoned, known.abandoned.count, known.pool.queued)
        return self.stats.to_dict(*hanging)

    def close(self) -> None:
        """Stop all calls, then threads and loop; calls that need one end as errors from now on."""
        with self._lock:
            if self.closed_at:
                return
            self.closed_at = perf_counter()
            drivers = self._drivers
        if drivers is None:
            self._stop_all()
        else:
            drivers.close(self._stop_all)

    def backend_of(self, tool: Tool) -> Any:
        """Where a tool runs. Raises `RegistrationError` if that is gone since the tool was registered."""
        name = tool.options.backend or "thread"
        if name not in self.backends:
            raise RegistrationError(f"the backend {name!r} of tool {tool.name!r} is not there any more")
        return self.backends[name]

    def _stop_all(self) -> None:
        for stoppable in list(self.live.values()):
            stoppable.cancel("the toolkit was closed")
        with ExitStack() as closing:  # each of them, whatever one of them raises
            for name, backend in sorted(self.backends.items(), reverse=True):
                if name != backend:
                    closing.callback(backend.close)

    # Arguments -------------------------------------------------------------------------------------------------

    def admission(self, bound: BoundTool, sent: Any, refused: Any = None, again: bool = False) -> Validation:
        """Admit what was sent to a tool; `refused` is what somebody decoded it to who found that it does not fit.

        What was admitted before, or comes from an approver, is read `again`: no warning is due.
        """
        read_only = bound.tool.options.read_only is True
        admission = admit(
            bound.plan,
            sent,
            mode=self.repair,
            read_only=read_only,
            redact=bound.redact,
            refused=refused,
        )
        for note in admission.notes:
            if note.kind == "overridden" and not again:
                logger().warning("%s: %s; a preset that no model may set is Locked or Secret", bound.name, note)
        return admission

    def readmitted(self, invocation: Invocation, edited: Any) -> ToolResult | None:
        """Read the arguments that were shown to an approver anew, or those that it `edited`; the refusal of these."""
        bound: BoundTool = invocation.ready
        shown = invocation.arguments
        admission = as_it_is(bound, None, shown) if edited is None else None
        admission = admission or self.admission(bound, shown if edited is None else edited, again=True)
        if admission.refusal is not None:
            return self.refused(invocation.said, admission)
        invocation.arguments, invocation.values = admission.arguments, admission.values
        if admission.notes:
            said = invocation.call.notes  # those of the first reading are there already
            said.extend(note for note in admission.notes if note not in said)
        call = invocation.seen if edited is None else invocation.call
        if call is not None:
            call.arguments = owned(admission.arguments)
            call.typed = invocation.typed
        if call is not None and edited is not None:
            call.notes.append(Note("the approver edited the arguments", kind="edited"))
        return None

    def not_begun(self, call: Called, bound: BoundTool, error: BaseException) -> ToolResult:
        """The result of a call whose context cannot be read, or a preset of which cannot be computed."""
        pass_interrupt(error)
        message = f"{call.name} cannot run here: a value that the program provides is not available"
        reason = {"reason": self.results.said(error, bound.redact)}
        return self.results.refusal(call, Status.ERROR, "setup", message, reason, error)

    def refused(self, call: Called, admission: Validation) -> ToolResult:
        """The result of a call whose arguments do not fit."""
        details: dict[str, Any] = {"problems": admission.problems or [str(admission.refusal)]}
        if admission.remedy:
            details["remedy"] = admission.remedy
        return self.results.refusal(call, Status.INVALID, "invalid_arguments", str(admission.refusal), details)


def as_it_is(bound: BoundTool, text: str | None, shown: Mapping[str, Any]) -> Validation | None:
    """Arguments that fit as they were sent, or shown before, which is what most do; None for all others."""

    def read() -> Validation:
        decoded, keys = (owned(shown), -1) if text is None else fast_decode(text)
        return Validation(decoded, bound.accept(decoded, keys, text))

    return tried(read)
