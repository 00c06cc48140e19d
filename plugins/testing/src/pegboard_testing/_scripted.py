"""A model that makes the calls of a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, final

from attrs import frozen

from pegboard import Session, Toolkit, ToolResult

__all__ = ["ScriptedModel", "Turn"]

Call: TypeAlias = tuple[str, Any]
Content: TypeAlias = str | Call | list[str | Call]
Step: TypeAlias = "Content | Callable[[ScriptedModel], Content]"


@final
@frozen(eq=False)
class Turn:
    """One turn of a scripted model.

    Args:
        offered: Names of the tools that were offered to it.
        calls: The calls that it made.
        results: Their results, in the same order.
    """

    offered: tuple[str, ...]
    calls: tuple[Call, ...]
    results: tuple[ToolResult, ...]


@final
class ScriptedModel:
    """Stands for a model in tests: makes scripted calls, turn by turn, and records the results.

    A step is a call `("roll", {"sides": 6})`, the bare name of a tool, a list of calls that are made at once, or a
    function of this model that returns one of these, for what depends on earlier results.

        model = ScriptedModel(("roll", {"sides": 6}), lambda model: ("tell", {"text": model.last.text}))
        model.run_sync(toolkit)
        assert model.last.status == "success"

    Args:
        steps: What it does in each turn.
    """

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self.turns: list[Turn] = []

    @property
    def results(self) -> list[ToolResult]:
        """All results so far, in the order of the calls."""
        return [result for turn in self.turns for result in turn.results]

    @property
    def last(self) -> ToolResult:
        """The newest result. Raises IndexError before the first."""
        return self.results[-1]

    def run_sync(self, toolkit: Toolkit | Session, **options: Any) -> list[ToolResult]:
        """Play the script against a toolkit or a session; `options` are those of `call_many`. All results so far."""
        for step in self.steps:
            offered, calls = _offered(toolkit), self._calls(step)
            self._record(offered, calls, toolkit.call_many_sync(calls, **options))
        return self.results

    async def run(self, toolkit: Toolkit | Session, **options: Any) -> list[ToolResult]:
        """`run_sync` for coroutines."""
        for step in self.steps:
            offered, calls = _offered(toolkit), self._calls(step)
            self._record(offered, calls, await toolkit.call_many(calls, **options))
        return self.results

    def _calls(self, step: Step) -> list[Call]:
        content = step(self) if callable(step) else step
        calls = content if isinstance(content, list) else [content]
        return [(call, {}) if isinstance(call, str) else call for call in calls]

    def _record(self, offered: tuple[str, ...], calls: list[Call], results: list[ToolResult]) -> None:
        self.turns.append(Turn(offered, tuple(calls), tuple(results)))


def _offered(toolkit: Toolkit | Session) -> tuple[str, ...]:
    return tuple(tool.name for tool in toolkit.tools)
