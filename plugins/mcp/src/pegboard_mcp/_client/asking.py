"""Questions of a server to a human while a call runs. The session's approver answers, or a client's user."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, final

from pegboard import Approval, ApprovalRequest, ToolCall

__all__ = ["Asking", "Human", "answer", "current_call", "human_of_this_call"]

current_call: ContextVar[Asking] = ContextVar("pegboard_mcp_asking")
human_of_this_call: ContextVar[Human | None] = ContextVar("pegboard_mcp_human", default=None)


@final
class Human:
    """The user of the client that made a call. `put(message, form)` asks at once; without it a question waits.

    The newer protocol cannot ask while a call runs: the client sends its request again, with the answer.
    """

    def __init__(self, put: Callable[[str, dict[str, Any]], Any] | None) -> None:
        self.questions: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._put = put
        self._loop = asyncio.get_running_loop()
        self._one_by_one = asyncio.Lock()
        self._answer: asyncio.Future[Any] | None = None

    async def ask(self, message: str, form: dict[str, Any]) -> Any:
        """The human's answer, an `ElicitResult`; may be awaited on any loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._ask(message, form), self._loop))

    async def _ask(self, message: str, form: dict[str, Any]) -> Any:
        async with self._one_by_one:
            if self._put is not None:
                return await self._put(message, form)
            self._answer = self._loop.create_future()
            self.questions.put_nowait((message, form))
            return await self._answer

    def answer(self, response: Any) -> None:
        """Give the answer to the question that waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(response)


@final
class Asking:
    """A running call as a server's question sees it: its session, its loop, its task."""

    def __init__(
        self, tool: Any, call: ToolCall, loop: asyncio.AbstractEventLoop, redaction: Callable[[], Callable[[str], str]]
    ) -> None:
        self.unanswered = ""
        """The server's question that could not be answered, for there is no approver."""
        self.under_way = True
        """Whether the answer to the call is outstanding; later questions do not belong to it."""
        self._tool = tool
        self._call = call
        self._loop = loop
        self._redaction = redaction  # made when something is asked: most calls never do
        self._task: asyncio.Task[Any] | None = None
        self._given_up = False
        self._human = human_of_this_call.get()

    @contextmanager
    def while_sent(self) -> Iterator[None]:
        """The current task sends the call inside. It is cancelled if the call is given up, and continues after that."""
        token = current_call.set(self)
        self._task = task = asyncio.current_task()
        try:
            yield
        finally:
            self._task = None
            current_call.reset(token)
            if self._given_up and task is not None:
                task.uncancel()

    def _give_up(self) -> None:
        if self._task is not None and not self._given_up:
            self._given_up = True
            self._task.cancel()

    def _redact(self, text: str) -> str:
        return self._redaction()(text)

    async def ask(self, parameters: Any) -> Any:
        """The answer of the approver; without one the call is given up, to be resumed by the program."""
        from mcp_types import ElicitResult

        approver = getattr(self._call.session, "approver", None)
        if approver is None and self._human is not None:
            return await self._human.ask(_question(parameters), _form(parameters))
        if approver is None:
            self.unanswered = self._redact(parameters.message)
            if (task := self._task) is not None:
                task.get_loop().call_soon_threadsafe(self._give_up)
            return ElicitResult(action="cancel")
        request = ApprovalRequest(self._tool, self._call.id, self._call.arguments, self._redact(_question(parameters)))
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

    asking = current_call.get(None)
    if asking is None and len(calls := [each for each in list(running.values()) if each.under_way]) == 1:
        asking = calls[0]
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
    """The given values, and the form's defaults for the rest."""
    properties = _dumped(schema).get("properties", {})
    defaults = {name: member["default"] for name, member in properties.items() if "default" in member}
    return {**defaults, **given}


def _dumped(schema: Any) -> dict[str, Any]:
    return dict(schema if isinstance(schema, Mapping) else schema.model_dump(by_alias=True, exclude_none=True))


def _form(parameters: Any) -> dict[str, Any]:
    """The form to fill in; if a page is to be opened, a form that only confirms it."""
    schema = getattr(parameters, "requested_schema", None)
    return {"type": "object", "properties": {}} if schema is None else _dumped(schema)
