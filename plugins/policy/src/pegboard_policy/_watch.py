"""The watch: counts the calls of one toolkit as they begin, and holds them to limits and flow rules."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from fnmatch import fnmatchcase
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, final
from weakref import WeakKeyDictionary, WeakSet

import attrs

from pegboard import Fault, Permission, Status, Tool, ToolCall, ToolResult, Verdict
from pegboard.inspection import function_kind, is_own
from pegboard_policy._flow import FlowRule, fits
from pegboard_policy._history import Histories, History
from pegboard_policy._limits import LimitedTools

if TYPE_CHECKING:
    from pegboard import EnteredCall

__all__ = ["Concern", "Watch"]

# One for all toolkits: a session of one may call tools of another. It is held for an instant; a signal handler may call
# a tool in between.
_lock: Final = threading.RLock()
_CALLER: Final[ContextVar[History | None]] = ContextVar("pegboard_policy_history", default=None)
"""That of the session whose call runs here: what a tool calls in turn counts for it."""
_NOT_BEGUN: Final = frozenset({"invalid", "denied", "not_found", "inactive"})


@attrs.frozen
class Concern:
    """What limits and rules mean for one tool: those that hold it, and the kinds by which it makes rules apply."""

    limits: tuple[LimitedTools, ...] = ()
    kinds: tuple[str, ...] = ()
    rules: tuple[FlowRule, ...] = ()


@final
class Watch:
    """Limits and flow rules of one toolkit. With `recorded`, the journal says what other processes have called."""

    def __init__(self, limits: Iterable[LimitedTools], rules: Iterable[FlowRule], *, recorded: bool = False) -> None:
        self.limits = tuple(dict.fromkeys(limits))
        self.rules = tuple(dict.fromkeys(rules))
        self.recorded = recorded
        self._concerns: WeakKeyDictionary[Any, dict[str, Concern]] = WeakKeyDictionary()
        self._histories = Histories()
        self._times: dict[LimitedTools, deque[float]] = {each: deque() for each in self.limits if each.seconds}
        self._begun: WeakSet[ToolCall] = WeakSet()

    def concern(self, tool: Tool) -> Concern:
        """What holds for a tool, by its name on the board. The core's own tools are of no concern."""
        if is_own(tool):
            return Concern()
        kinds = dict.fromkeys(word for rule in self.rules for word in rule.after)
        return Concern(
            tuple(each for each in self.limits if fits(tool, each.pattern)),
            tuple(word for word in kinds if fits(tool, word)),
            tuple(rule for rule in self.rules if rule.concerns(tool)),
        )

    # As guards and middleware ----------------------------------------------------------------------------------

    def judge(self, tool: Tool) -> None:
        """Note what holds for a tool, by its name on the board: a view may call it otherwise."""
        self._concerns.setdefault(tool.definition, {})[tool.name] = self.concern(tool)

    def around(self, call: EnteredCall, proceed: Callable[[], Any]) -> Any:
        """Let what a call calls in turn count for the session that it is made in."""
        history = None if call.session is None else self._history(call.session)
        token = _CALLER.set(history)
        try:
            result = proceed()
        finally:
            _CALLER.reset(token)
        return result if isinstance(result, ToolResult) else self._awaited(result, history)

    async def _awaited(self, result: Any, history: History | None) -> ToolResult:
        token = _CALLER.set(history)
        try:
            while not isinstance(result, ToolResult):
                result = await result
        finally:
            with suppress(ValueError):  # a coroutine that is collected is closed in another context
                _CALLER.reset(token)
        return result

    def look(self, call: ToolCall) -> Verdict | None:
        """Deny a call that is beyond a limit, and hold it to the flow rules; nothing is counted yet."""
        concerns, history = self._of(call), self._history(call.session)
        if self.recorded and history.session is not None:
            self._read(history, call, concerns)
        with _lock:
            if call in self._begun:  # it is looked at anew, with other arguments
                return None
            if (full := self._full(concerns, history)) is not None:
                return full
            reasons = [
                (rule, reason)
                for rule in _each(concerns, "rules")
                if (reason := rule.reason(call.name, history.first)) is not None
            ]
        denying = next((reason for rule, reason in reasons if rule.then == "deny"), None)
        if denying is not None:
            return Verdict(offered=False, reason=f"a flow rule: {denying}", message=f"a rule denies it: {denying}")
        why = "; ".join(dict.fromkeys(reason for _, reason in reasons))
        return Verdict(permission=Permission.PROMPT, reason=why) if why else None

    def counts_plain(self, tool: Tool) -> bool:
        """Whether calls of a tool count, and its function is a plain one."""
        return self._counts(tool) and not _is_awaited(tool)

    def counts_awaited(self, tool: Tool) -> bool:
        """Whether calls of a tool count, and its function is awaited."""
        return self._counts(tool) and _is_awaited(tool)

    def begin(self, call: ToolCall, proceed: Callable[[], ToolResult]) -> ToolResult:
        """Count a call of a plain function as it begins."""
        return self._begin(call) or proceed()

    async def begin_awaited(self, call: ToolCall, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Count a call of a function that is awaited as it begins."""
        return self._begin(call) or await proceed()

    def _counts(self, tool: Tool) -> bool:
        concern = self.concern(tool)
        return bool(concern.limits or concern.kinds)

    def _begin(self, call: ToolCall) -> ToolResult | None:
        """Count a call; its denial if others have begun since it was looked at, and a limit has no more room."""
        concerns, history = self._of(call), self._history(call.session)
        with _lock:
            if call in self._begun:
                return None
            if (full := self._full(concerns, history)) is not None:
                message = f"{call.name} was not run: {full.message}"
                return ToolResult(
                    call.id, call.name, Status.DENIED, f"Error: {message}", error=Fault("denied", message)
                )
            limits = dict.fromkeys(_each(concerns, "limits"))
            for each in limits:
                if each.seconds is None:
                    history.counts[each] += 1
                else:
                    self._times[each].append(monotonic())
            if self.recorded and any(each.seconds is None for each in limits):
                history.own[call.name, call.id] += 1
            for kind in _each(concerns, "kinds"):
                history.first.setdefault(kind, call.name)
            self._begun.add(call)
        return None

    # Looking things up -----------------------------------------------------------------------------------------

    def _history(self, session: Any) -> History:
        found = _CALLER.get()
        if found is not None:
            return found
        with _lock:
            return self._histories.of(session)

    def _of(self, call: ToolCall) -> list[Concern]:
        return self.concerning(call.session[call.name])

    def concerning(self, tool: Tool) -> list[Concern]:
        """What concerns a tool of a session; where a view renames one of several that share a function, of all."""
        known = self._concerns.get(tool.definition) or {tool.name: self.concern(tool)}
        return [known[tool.name]] if tool.name in known else list(known.values())

    def _full(self, concerns: list[Concern], history: History) -> Verdict | None:
        """The denial of a call for which a limit has no room; of several limits, that which ends last."""
        now = monotonic()
        found: list[tuple[float, LimitedTools]] = []
        for each in _each(concerns, "limits"):
            if each.seconds is None:
                if history.count(each) >= each.limit.calls:
                    found.append((float("inf"), each))
                continue
            times = self._times[each]
            while times and times[0] <= now - each.seconds:
                times.popleft()
            if len(times) >= each.limit.calls:
                found.append((times[0] + each.seconds - now, each))
        if not found:
            return None
        left, last = max(found, key=lambda each: each[0])
        return Verdict(offered=False, reason=f"a limit: {last}", message=last.message(left))

    def _read(self, history: History, call: ToolCall, concerns: list[Concern]) -> None:
        """Add to a history what the journal says that other processes have called in its session.

        Raises `PegboardError` for a toolkit without a journal, or one that cannot be read.
        """
        from pegboard_journal import Journal

        limits = {each for each in _each(concerns, "limits") if each.seconds is None}
        kinds = {word for rule in _each(concerns, "rules") for word in rule.after if word not in history.first}
        if not limits and not kinds:
            return
        elsewhere: Counter[LimitedTools] = Counter()
        first: dict[str, str] = {}
        own = Counter(history.own)  # ids are not unique: some servers of models count from one in each message
        for entry in Journal.of(call.session.toolkit).calls(session=history.session):
            if entry.status in _NOT_BEGUN:
                continue
            recorded = self._recorded_as(entry.tool, call.session)
            first |= dict.fromkeys(kinds.intersection(_each(recorded, "kinds")) - first.keys(), entry.tool)
            if own[entry.tool, entry.call_id] > 0:
                own[entry.tool, entry.call_id] -= 1
            else:
                elsewhere.update(limits.intersection(_each(recorded, "limits")))
        with _lock:
            history.first = first | history.first
            history.elsewhere.update({each: elsewhere[each] - history.elsewhere[each] for each in limits})

    def _recorded_as(self, name: str, session: Any) -> list[Concern]:
        """What concerned a tool that was recorded under a name. One that is not known here may be of any kind."""
        known = session if name in session else session.toolkit
        if name in known:
            return self.concerning(known[name])
        limits = tuple(each for each in self.limits if fnmatchcase(name, each.pattern))
        return [Concern(limits, tuple(word for rule in self.rules for word in rule.after))]


def _each(concerns: list[Concern], name: str) -> Iterator[Any]:
    return (each for concern in concerns for each in getattr(concern, name))


def _is_awaited(tool: Tool) -> bool:
    return tool.function is not None and function_kind(tool.function).startswith("async")
