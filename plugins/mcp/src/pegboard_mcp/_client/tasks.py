"""Tasks: a call that a server goes on with after its answer is followed until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, final

from pegboard_mcp._client.asking import Asking, answer
from pegboard_mcp._wire.reasons import TaskEndedError, UnreachableError

__all__ = ["TaskLink", "followed"]

POLL: Final = 1.0
"""Seconds between two looks at a task whose server does not say how long to wait."""
SHORTEST: Final = 0.05
LONGEST: Final = 30.0
RETURNS: Final = 60.0
"""Seconds in which a server whose connection was lost has to return, so that its task is not given up."""


class TaskLink(Protocol):
    """What a task needs of its server."""

    async def request(self, request: Any, kind: Any) -> Any:
        """The answer to a request, over a new connection if need be. Raises what the SDK's client does."""

    def send_off(self, request: Any, kind: Any) -> None:
        """Send a request without waiting for its answer."""


async def followed(
    link: TaskLink, started: Any, progress: Callable[..., Awaitable[None]] | None, asking: Asking, seconds: float | None
) -> Any:
    """The result of a task. Where it is not waited for until its end, the server is told to cancel it.

    It may take `seconds`, without the time in which a human is asked. Raises `TaskEndedError` for one that came to no
    result, and MCPError for one that took too long or cannot be asked after.
    """
    from mcp import MCPError
    from mcp_types import REQUEST_TIMEOUT

    from pegboard_mcp._wire.tasks import Acknowledged, CancelTask, Named

    task, limit = _Task(link, started, progress), asyncio.timeout(seconds)
    try:
        with asking.while_sent():
            async with limit:
                return await task.result(limit)
    except TaskEndedError:
        raise
    except BaseException as error:
        link.send_off(CancelTask(params=Named(task_id=started.task_id)), Acknowledged)
        if isinstance(error, TimeoutError) and limit.expired():
            raise MCPError(REQUEST_TIMEOUT, f"its task had not ended after {seconds:g} seconds") from None
        raise


@final
class _Task:
    """A task of a server, as far as it is known here."""

    def __init__(self, link: TaskLink, started: Any, progress: Callable[..., Awaitable[None]] | None) -> None:
        self._link = link
        self._id: str = started.task_id
        self._progress = progress
        self._state = started
        self._messages = 0
        self._message: str | None = None
        self._done: set[str] = set()

    async def result(self, limit: asyncio.Timeout) -> Any:
        """The result, once there is one."""
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS

        from pegboard_mcp._wire.tasks import GetTask, Named, TaskState

        while True:
            await self._report()
            await asyncio.sleep(_pause(self._state.poll_interval_ms))
            try:
                self._state = await self._sent(GetTask(params=Named(task_id=self._id)), TaskState)
            except MCPError as error:
                if error.code != INVALID_PARAMS:
                    raise
                message = "it does not know the task any more, as after a restart; it may have run, and is not repeated"
                raise TaskEndedError("task_lost", message) from error
            match self._state.status:
                case "completed":
                    return _result(self._state.result)
                case "failed":
                    raise TaskEndedError("task_failed", f"its task failed: {_failure(self._state)}")
                case "cancelled":
                    why = self._state.status_message
                    raise TaskEndedError("task_cancelled", "it cancelled its task" + (f": {why}" if why else ""))
                case "input_required":
                    await self._report()
                    await self._answer(limit)

    async def _report(self) -> None:
        """Report the message of the state as progress, if it is another one."""
        message = self._state.status_message
        if message and message != self._message and self._progress is not None:
            self._messages += 1
            await self._progress(float(self._messages), None, message)
        self._message = message

    async def _sent(self, request: Any, kind: Any) -> Any:
        """The answer to a request. A lost connection is opened again, and it is sent anew: the task goes on meanwhile.

        Raises MCPError as for a lost connection where the server does not return.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        clock = asyncio.get_running_loop().time
        lost, pause = 0.0, POLL / 2
        while True:
            try:
                return await self._link.request(request, kind)
            except (UnreachableError, RuntimeError, MCPError) as error:
                if getattr(error, "code", CONNECTION_CLOSED) != CONNECTION_CLOSED:
                    raise
                lost = lost or clock()
                if clock() - lost > RETURNS:
                    raise MCPError(CONNECTION_CLOSED, f"the task is lost: {error}") from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST)

    async def _answer(self, limit: asyncio.Timeout) -> None:
        """Have a human answer the questions that are new. The task's time does not run meanwhile."""
        from pegboard_mcp._wire.tasks import Acknowledged, Answered, UpdateTask

        questions = self._state.input_requests or {}
        new = {key: each for key, each in questions.items() if key not in self._done}
        if not new:
            return
        clock = asyncio.get_running_loop().time
        left = None if (end := limit.when()) is None else end - clock()
        limit.reschedule(None)
        answers = {key: await _answered(each) for key, each in new.items()}
        limit.reschedule(None if left is None else clock() + left)
        await asyncio.sleep(0)  # a call that was given up for want of an answer ends here
        self._done |= set(answers)
        await self._sent(UpdateTask(params=Answered(task_id=self._id, input_responses=answers)), Acknowledged)


async def _answered(question: Any) -> Any:
    """The answer to a question to the user. Raises MCPError for a request of another kind."""
    from mcp import MCPError
    from mcp_types import INVALID_REQUEST, ElicitRequest

    if not isinstance(question, ElicitRequest):
        raise MCPError(INVALID_REQUEST, f"its task asks for {question.method}, which this client does not have")
    return await answer({}, question.params)


def _pause(milliseconds: float | None) -> float:
    return POLL if milliseconds is None else min(LONGEST, max(SHORTEST, milliseconds / 1_000))  # which NaN is below


def _result(raw: Mapping[str, Any] | None) -> Any:
    from mcp_types import CallToolResult

    return CallToolResult.model_validate(raw or {}, by_name=False)


def _failure(state: Any) -> str:
    found = (state.error or {}).get("message") or state.status_message
    return str(found or "it does not say why")
