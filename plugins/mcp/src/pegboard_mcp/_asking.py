"""Asking: a server that needs something from a human while a call runs, and the session's approver who answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, final

from pegboard import Approval, ApprovalRequest, ToolCall

__all__ = ["Asking", "answer"]

_current: ContextVar[Asking] = ContextVar("pegboard_mcp_asking")


@final
class Asking:
    """One call that runs, to those who may ask about it: its session, its loop, its task."""

    def __init__(self, tool: Any, call: ToolCall, loop: asyncio.AbstractEventLoop) -> None:
        self.unanswered = ""
        """What the server asked and nobody was there to answer."""
        self._tool = tool
        self._call = call
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None

    def begin(self) -> None:
        """The current task sends the call from now on."""
        self._task = asyncio.current_task()
        _current.set(self)

    async def ask(self, parameters: Any) -> Any:
        """The answer of the approver; without one the call is given up, to be resumed by the program."""
        from mcp_types import ElicitResult

        approver = getattr(self._call.session, "approver", None)
        if approver is None:
            self.unanswered = parameters.message
            if self._task is not None:
                self._task.cancel()
            return ElicitResult(action="cancel")
        request = ApprovalRequest(self._tool, self._call.id, self._call.arguments, _question(parameters))
        decision = _decision(await self._answered(approver, request))
        if decision.decision == "deny":
            return ElicitResult(action="decline")
        if parameters.mode == "url":
            return ElicitResult(action="accept")
        return ElicitResult(action="accept", content=_filled(parameters.requested_schema, decision.arguments or {}))

    async def _answered(self, approver: Any, request: ApprovalRequest) -> Any:
        """Approvers belong to the caller's loop if they are async, and may block if they are not."""

        async def awaited(answer: Any) -> Any:
            return await answer

        answer = await asyncio.to_thread(approver, request)
        if not inspect.isawaitable(answer):
            return answer
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(awaited(answer), self._loop))


async def answer(running: Mapping[Any, Asking], parameters: Any) -> Any:
    """Hand a question to the call that it is about: the one whose task it came to, or the only one that runs.

    The older protocol does not say which call a question belongs to; where several run it is declined.
    """
    from mcp_types import ElicitResult

    asking = _current.get(None)
    if asking is None and len(running) == 1:
        asking = next(iter(running.values()))
    if asking is None:
        return ElicitResult(action="decline")
    return await asking.ask(parameters)


def _question(parameters: Any) -> str:
    url = getattr(parameters, "url", None)
    return f"{parameters.message} ({url})" if url else str(parameters.message)


def _decision(answer: Any) -> Approval:
    if isinstance(answer, Approval):
        return answer
    return Approval.approve() if answer is True else Approval.deny()


def _filled(schema: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, and the form's own defaults for the rest."""
    dumped = schema if isinstance(schema, Mapping) else schema.model_dump(by_alias=True, exclude_none=True)
    properties = dumped.get("properties", {})
    defaults = {name: member["default"] for name, member in properties.items() if "default" in member}
    return {**defaults, **given}
