"""A bound tool: a tool with all that one session decides about it, ready to be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from pegboard._arguments.decode import ATOMS, MAX_KEYS, check_value, fast_decode
from pegboard._base.effects import pass_interrupt
from pegboard._base.errors import RegistrationError, describe_exception
from pegboard._base.jsonable import owned
from pegboard._base.redaction import Redaction
from pegboard._execution.concurrency import Limit
from pegboard._injection.presets import Preset
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Status
from pegboard._model.tool import Tool
from pegboard.extension import Middleware

if TYPE_CHECKING:
    from pegboard._execution.engine import Engine


class Unavailable(NamedTuple):
    """A tool that cannot be called, and why: the status and fault of every call of it."""

    status: Status
    kind: str
    message: str
    details: Mapping[str, Any] | None = None
    exception: BaseException | None = None

    @classmethod
    def unusable(cls, name: str, error: BaseException) -> Unavailable:
        """A tool that is registered, but whose module, annotations or handlers fail."""
        message = f"the tool {name!r} is broken and cannot be used; go on without it"
        return cls(Status.ERROR, "unusable", message, {"reason": describe_exception(error)}, error)


@final
class BoundTool:
    """A tool's plan, presets, policy, permission and middleware under one session; rebuilt when any of them changes.

    `begins` and `begins_on_loop` say that a call from plain code, or from a loop, may begin with the function itself:
    no approval, limit, middleware or resolver comes before it; `straight` that such a call from plain code needs no
    record; `in_thread` that from a loop it runs in a worker thread.
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
        # A caller for whom it is not permitted learns nothing of the arguments.
        self.accept = _refuse if permission is Permission.NEVER else self.plan.accept
        self.invoke = self.plan.invoke
        self._provide(presets)
        self.renderers = definition.renderers() if self.redact is None else definition.renderers().guarded(self.redact)
        own, timeout = tool.options.policy, tool.options.timeout
        merged = policy if own is None else own.merged_over(policy)
        self.policy = merged if timeout is None else ExecutionPolicy(timeout=timeout).merged_over(merged)
        self.permission = permission or tool.permission
        self._prompt_reason = reason or f"{self.name} always asks"
        self.middleware = tuple(each for each in middleware if not each.whole)
        self.limits = tuple(limits)
        self.max_output = tool.options.max_output or engine.results.max_output
        self.read_only = tool.options.read_only is True
        self.backend = _backend_of(tool, engine.backends)
        self.stats = engine.stats.of(self.name)
        self._asks: Any = tool.options.requires_approval if permission is None else None
        # Whether any call may have to be approved.
        self.may_ask = self.permission is Permission.PROMPT or callable(self._asks)
        self.checks = engine.checks
        # Whether the arguments are shown before they run, and may be decided on.
        self.shown = self.may_ask or bool(self.middleware or self.checks)
        self._choose_beginning(self.plan.kind)

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

    def _choose_beginning(self, kind: str) -> None:
        begins = not (self.middleware or self.limits or self.plan.managed or self.may_ask or self.checks)
        alone = len(self.middleware) == 1 and not (self.limits or self.may_ask or self.checks or self.redact)
        self.answer = self.middleware[0].answer if alone else None
        in_caller = self.backend == "inline" or (self.backend == "thread" and "timeout" not in self.policy.given)
        self.begins = begins and in_caller and kind in ("sync", "generator")
        self.straight = self.begins and not self.computed  # what is computed for each call is in its record
        # In a thread, a tool that can be told to stop (it may ask for the token) has to be told so, by its stages.
        self.in_thread = begins and kind == "sync" and self.backend == "thread" and self.standing
        waits = bool(self.plan.blocking or self.computed)  # for plain code of the program, which no loop runs
        self.begins_on_loop = self.in_thread or (begins and kind == "async" and not waits)
        # What a failed attempt may have changed has to be kept before.
        self.retries = self.policy.max_attempts > 1

    def read(self, sent: Any) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """The arguments and their values, where they fit as they were sent; raises anything for the rest."""
        if type(sent) is str:
            decoded, keys = fast_decode(sent)
            return decoded, self.accept(decoded, keys, sent)
        decoded = _as_dict(sent, self.shown)
        return decoded, self.accept(decoded, 0, None)

    def fresh_presets(self) -> dict[str, Any]:
        """The presets of one attempt: none has what another attempt, or another session, has changed."""
        return {**self.presets, **{name: make() for name, make in self.fresh.items()}}

    def approval_reason(self, run: Any) -> str | None:
        """Why this call has to be approved, if it may have to be; else None.

        A predicate is asked about the structured arguments; one with a method `for_call` about the call itself.
        """
        if self.permission is Permission.PROMPT:
            return self._prompt_reason
        try:
            for_call = getattr(self._asks, "for_call", None)
            asked = self._asks(dict(run.typed)) if for_call is None else for_call(run.call)
        except BaseException as error:  # noqa: BLE001 - a predicate that fails must not let the call through
            pass_interrupt(error)
            return f"whether {self.name} needs approval could not be decided: {describe_exception(error)}"
        if isinstance(asked, str) and asked:
            return asked
        return f"{self.name} asks for approval with these arguments" if asked else None


def _backend_of(tool: Tool, backends: Mapping[str, Any]) -> Any:
    """Where a tool runs. Raises `RegistrationError` if that was removed since the tool was registered."""
    name = tool.options.backend or "thread"
    if name not in backends:
        raise RegistrationError(f"the backend {name!r} of tool {tool.name!r} is not there any more")
    return backends[name]


def _refuse(arguments: Any, keys: int, text: str | None) -> tuple[Any, ...]:
    raise ValueError("this tool is not permitted")


def _as_dict(sent: Any, shown: bool) -> dict[str, Any]:
    """Arguments that did not come as text. Raises TypeError for what has to be read first.

    What is `shown` before it runs is copied: the caller may change its own mapping meanwhile.
    """
    if sent is None:
        return {}
    if type(sent) is not dict:
        raise TypeError(f"arguments came as a {type(sent).__name__}")
    if len(sent) > MAX_KEYS:
        check_value(sent)
    for key, value in sent.items():
        if not key.isascii() or (type(value) not in ATOMS and (type(value) is not str or not value.isascii())):
            check_value(sent)
            break
    return owned(sent) if shown else sent
