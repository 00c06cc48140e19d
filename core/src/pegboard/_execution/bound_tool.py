"""Bound tools: a tool with everything that one session decides about it, so that a call decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from pegboard._arguments.decode import FastDecode, fast_decode
from pegboard._base.effects import is_interrupt
from pegboard._base.errors import describe_exception
from pegboard._execution.concurrency import Limit
from pegboard._execution.telemetry import ToolStats
from pegboard._injection.presets import Preset, secret_texts
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Status
from pegboard._model.tool import Tool, ToolOptions
from pegboard.extension import Middleware

FAST = True
"""Whether a call may begin with its function; tests say no, to see that the steps do the same."""


@final
class Unavailable:
    """A tool that cannot be called, and why: the status and fault of every call of it."""

    __slots__ = ("details", "exception", "kind", "message", "status")

    def __init__(
        self,
        status: Status,
        kind: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        exception: BaseException | None = None,
    ) -> None:
        self.status = status
        self.kind = kind
        self.message = message
        self.details = details or {}
        self.exception = exception

    @classmethod
    def unusable(cls, name: str, error: BaseException) -> Unavailable:
        """A tool that hangs there but whose module, annotations or handlers fail."""
        message = f"the tool {name!r} cannot be used: {describe_exception(error)}"
        return cls(Status.ERROR, "unusable", message, exception=error)


@final
class BoundTool:
    """A tool's plan, presets, policy, permission and middleware under one session; rebuilt when any of them changes.

    `fast_sync` and `fast_async` say that a call from plain code, or from a loop, begins with the function itself: no
    approval, limit, middleware or resolver comes before it. Such a call takes the steps only for what is left to do
    afterwards. `fast_thread`: from a loop it runs in a worker thread.
    """

    __slots__ = (
        "_asks",
        "accept",
        "backend",
        "computed",
        "computed_secrets",
        "decode",
        "fast_async",
        "fast_sync",
        "fast_thread",
        "invoke",
        "limits",
        "max_output",
        "may_ask",
        "middleware",
        "name",
        "permission",
        "plan",
        "policy",
        "presets",
        "provided",
        "renderers",
        "secrets",
        "standing",
        "stats",
        "tool",
    )

    def __init__(
        self,
        tool: Tool,
        presets: Mapping[str, Preset],
        policy: ExecutionPolicy,
        permission: Permission,
        middleware: Sequence[Middleware],
        limits: Sequence[Limit],
        stats: ToolStats,
        *,
        explicit_permission: bool,
        max_output: int | None,
        backend: Any = "thread",
        decode: FastDecode = fast_decode,
    ) -> None:
        definition = tool.definition
        locked = frozenset(name for name, preset in presets.items() if preset.locked)
        self.tool = tool
        self.name = tool.name
        self.plan: Any = definition.plan(frozenset(presets), locked)
        # Who may not be called learns nothing of the arguments.
        self.accept = _refuse if permission is Permission.NEVER else self.plan.accept
        self.invoke = self.plan.invoke
        self.decode = decode
        self.renderers = definition.renderers()
        self.presets = {name: preset.value for name, preset in presets.items() if preset.computed is None}
        self.computed = {name: preset.computed for name, preset in presets.items() if preset.computed is not None}
        # What each call is provided with; None until a first call finds the context, or if each has to ask for itself.
        self.provided: Any = None if self.plan.fetches or self.computed else self.presets
        self.secrets = secret_texts(preset.value for preset in presets.values() if preset.secret) if presets else ()
        self.computed_secrets = tuple(name for name in self.computed if presets[name].secret)
        self.policy = _policy(tool.options, policy)
        self.permission = permission
        self.middleware = tuple(middleware)
        self.limits = tuple(limits)
        self.max_output = tool.options.max_output or max_output
        self.backend = backend
        self.stats = stats
        self._asks = None if explicit_permission else tool.options.requires_approval
        self.may_ask = permission is Permission.PROMPT or callable(self._asks)
        """Whether any call may have to be approved."""
        self.standing = self.plan.standing and not self.computed
        """Whether all calls of a session that bring nothing of their own are provided with the same."""
        kind = self.plan.kind
        begins = FAST and not (self.middleware or self.limits or self.plan.managed or self.may_ask)
        in_caller = self.backend == "inline" or (self.backend == "thread" and "timeout" not in self.policy.given)
        self.fast_sync = begins and in_caller and kind in ("sync", "generator")
        # In a thread, a tool that can be told to stop (it may ask for the token) has to be told so: it takes the steps.
        self.fast_thread = begins and kind == "sync" and self.backend == "thread" and self.standing
        self.fast_async = self.fast_thread or (begins and kind == "async")

    def approval_reason(self, arguments: Mapping[str, Any]) -> str | None:
        """Why this call has to be approved; None if it need not be. `arguments` are the structured ones."""
        if self.permission is Permission.PROMPT:
            return f"the permission of {self.name} is prompt"
        if not callable(self._asks):
            return None
        predicate: Callable[[Mapping[str, Any]], Any] = self._asks
        try:
            asked = predicate(dict(arguments))
        except BaseException as error:  # a predicate that fails must not let the call through
            if is_interrupt(error):
                raise
            return f"whether {self.name} needs approval could not be decided: {describe_exception(error)}"
        if isinstance(asked, str) and asked:
            return asked
        return f"{self.name} asks for approval with these arguments" if asked else None


def _refuse(arguments: Any, keys: int, text: str | None) -> tuple[Any, ...]:
    raise ValueError("this tool is not permitted")


def _policy(options: ToolOptions, wider: ExecutionPolicy) -> ExecutionPolicy:
    merged = wider if options.policy is None else options.policy.merged_over(wider)
    return merged if options.timeout is None else ExecutionPolicy(timeout=options.timeout).merged_over(merged)
