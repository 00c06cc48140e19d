"""The tasks extension (SEP-2663): its messages, and its declaration to servers. The SDK has a place for it alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NoReturn

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import EmptyResult, InputRequests, InputResponses, Request, RequestParams, Result

from pegboard_mcp._wire.reasons import TaskStartedError

__all__ = [
    "TASKS",
    "Acknowledged",
    "Answered",
    "CancelTask",
    "GetTask",
    "Named",
    "TaskState",
    "TasksExtension",
    "UpdateTask",
]

TASKS: Final = "io.modelcontextprotocol/tasks"


class StartedTask(Result):
    """The answer to a call that goes on as a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    status_message: str | None = None
    poll_interval_ms: float | None = None


class TaskState(Result):
    """The answer to `tasks/get`. Times are in milliseconds."""

    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    poll_interval_ms: float | None = None
    input_requests: InputRequests | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Acknowledged(EmptyResult):
    """The answer to `tasks/update` and to `tasks/cancel`."""


class Named(RequestParams):
    """Which task."""

    task_id: str


class Answered(Named):
    """Which task, and the answers to its questions by their keys."""

    input_responses: InputResponses


class GetTask(Request[Named, Literal["tasks/get"]]):
    """Ask for the state of a task."""

    method: Literal["tasks/get"] = "tasks/get"
    params: Named
    name_param = "taskId"


class UpdateTask(Request[Answered, Literal["tasks/update"]]):
    """Answer questions of a task."""

    method: Literal["tasks/update"] = "tasks/update"
    params: Answered
    name_param = "taskId"


class CancelTask(Request[Named, Literal["tasks/cancel"]]):
    """Ask for the end of a task."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: Named
    name_param = "taskId"


class TasksExtension(ClientExtension):
    """Declares to servers that they may answer a call with a task, and hands such answers on."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """The answer that is a task; the older protocol has none."""
        return (ResultClaim(result_type="task", model=StartedTask, resolve=_hand_on),)


async def _hand_on(task: StartedTask, context: ClaimContext) -> NoReturn:
    """A task outlives its connection, and so what follows it does: it is no work of the SDK's client."""
    raise TaskStartedError(task)
