"""Permissions: what guards decide about tools, the strictest of all, and what a tool was when it was allowed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from weakref import WeakKeyDictionary

from attrs import asdict

from pegboard._base.effects import pass_interrupt
from pegboard._base.errors import PegboardError, describe_exception
from pegboard._base.jsonable import digest
from pegboard._base.names import OWN
from pegboard._model.policy import Permission
from pegboard._model.tool import Origin, Tool
from pegboard.extension import Guard, Verdict

_ORDER: Final = (None, Permission.ALWAYS, Permission.PROMPT, Permission.NEVER)
_SILENT: Final = Verdict()


def strictest(*permissions: Permission | None) -> Permission | None:
    """The strictest of several: never, prompt, always, nothing."""
    return max(permissions, key=_ORDER.index)


class Guards:
    """The guards of one toolkit. Each is asked once about a tool; one that fails keeps the tool back."""

    def __init__(self, guards: Iterable[tuple[Guard, Origin]] = ()) -> None:
        self._guards = list(guards)
        self._said: WeakKeyDictionary[Tool, list[tuple[Guard, str, Verdict]]] = WeakKeyDictionary()

    def __bool__(self) -> bool:
        return bool(self._guards)

    def verdict(self, tool: Tool) -> Verdict:
        """What holds for a tool by its name on the board; the reason is that of the strictest guard."""
        if not self._guards:
            return _SILENT
        verdicts = (verdict for _, _, verdict in self.verdicts(tool))
        return max(verdicts, key=lambda each: (not each.offered, _ORDER.index(each.permission)))

    def _asked(self, guard: Guard, origin: Origin, tool: Tool) -> tuple[str, Verdict]:
        label = f"the guard {guard.name!r} of {origin}" if guard.name else f"the guard of {origin}"
        try:
            verdict: Any = guard.judge(tool)
            if verdict is None or isinstance(verdict, Verdict):
                return label, _SILENT if verdict is None else verdict
            reason = f"{label} gave {type(verdict).__name__!r} for {tool.name!r}, not a Verdict"
        except BaseException as error:  # noqa: BLE001 - what cannot be judged is kept back, whatever was raised
            pass_interrupt(error)
            reason = f"{label} failed for {tool.name!r}: {describe_exception(error)}"
        return label, Verdict(offered=False, reason=f"{reason}; the tool is kept back")

    def verdicts(self, tool: Tool) -> list[tuple[Guard, str, Verdict]]:
        """What each guard says, with the guard as messages name it."""
        known = self._said.get(tool)
        if known is None:
            known = self._said[tool] = [(guard, *self._asked(guard, origin, tool)) for guard, origin in self._guards]
        return known

    def asks_again(self, tool: Tool) -> str:
        """Why a guard that keeps decisions asks about a tool; empty if none does, or has no reason."""
        kept = [each for guard, _, each in self.verdicts(tool) if guard.decided is not None] if self._guards else []
        return next((each.reason for each in kept if each.permission is Permission.PROMPT and each.reason), "")

    def hear(self, tool: Tool, permission: Permission | None, *, keep: bool) -> bool:
        """Tell the guards of a decision before anything changes; whether one of them keeps it.

        Raises `PegboardError` naming a guard that holds the tool more strictly and hears of no decision, and what a
        guard raises that does. Without `keep` none is told: the decision is that of a session alone.
        """
        for guard, label, verdict in self.verdicts(tool) if permission is not None else ():
            holds = not verdict.offered or _ORDER.index(verdict.permission) > _ORDER.index(permission)
            if holds and guard.decided is None:
                state = "back" if not verdict.offered else f"at {str(verdict.permission)!r}"
                raise PegboardError(f"{label} holds {tool.name!r} {state}: {verdict.reason or 'it gives no reason'}")
        kept = [guard.decided(tool, permission) for guard, _ in self._guards if keep and guard.decided is not None]
        self._said.clear()
        return any(kept)


def facts_of(tool: Tool) -> dict[str, Any]:
    """What a person who allows a tool goes by, JSON-able. Raises `PegboardError` for one that cannot be read.

    Args:
        tool: The tool.
    """
    requires = tool.options.requires_approval
    approval = "sometimes" if callable(requires) else "always" if requires else "never"
    said = {"approval": approval, "description": tool.description, "hints": asdict(tool.hints)}
    return {**said, "origin": asdict(tool.origin), "parameters": tool.parameters, "returns": tool.returns}


def fingerprint(tool: Tool) -> str:
    """A hash of what a permission goes by: not whether the tool asks, for it decides that whatever the tool says.

    Empty for a tool that cannot be read, and for the core's own.
    """
    if is_own(tool):
        return ""
    try:
        return tool._remember("fingerprint", lambda: digest(facts_of(tool) | {"approval": ""}))
    except PegboardError:
        return ""


def is_own(tool: Tool) -> bool:
    """Whether a tool is one of the core's own.

    Args:
        tool: The tool.
    """
    return (tool.face is not None and tool.face.own) or (tool.pack is None and tool.origin.plugin == OWN)
