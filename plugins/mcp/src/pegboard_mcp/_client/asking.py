"""Questions of a server to a human while a call runs. The session's approver answers, or a client's user."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from textwrap import shorten
from typing import Any, Final, final

from attrs import frozen

from pegboard import (
    Approval,
    ApprovalRequest,
    Note,
    Redaction,
    RegistrationError,
    Suspend,
    TextBlock,
    ToolCall,
    ToolResult,
)
from pegboard_schemas import Form

__all__ = ["Approved", "Asking", "Human", "answer", "current_call", "human_of_this_call"]

MOST_PROBLEMS: Final = 20
"""Problems of one answer that are reported."""
LONGEST: Final = 200
"""Characters of a question that are repeated."""
_CONFIRMATION: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""What is asked where a page is to be opened."""

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
        self, tool: Any, call: ToolCall, loop: asyncio.AbstractEventLoop, redaction: Callable[[], Redaction]
    ) -> None:
        self.unanswered = ""
        """The server's question that could not be answered, for there is no approver."""
        self.declined: list[str] = []
        """Which questions were declined, and why, where there is a reason beside a refusal."""
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
        """The answer to a question, an `ElicitResult`: of the approver, or of the client's user.

        Without both the call is given up, to be resumed by the program. What does not fit the form is declined.
        """
        message = self._redact(_question(parameters))
        try:
            form = None if parameters.mode == "url" else Form(schema := _dumped(parameters.requested_schema))
        except RegistrationError as error:
            return self._decline(message, f"the form cannot be used: {error}")
        shown = None if form is None else self._redaction().deep(schema)
        approver = getattr(self._call.session, "approver", None)
        if self._human is not None and (approver is None or isinstance(approver, Approved)):
            reply = await self._human.ask(message, shown or _CONFIRMATION)
            given = reply.content or {}
            return reply if form is None or reply.action != "accept" else self._accept(message, form, given)
        if approver is None:
            return self._leave_open(parameters)
        request = ApprovalRequest(
            self._tool, self._call.id, self._call.arguments, message, shown, session=self._call.session
        )
        try:
            decision = _decision(await self._answered(approver, request), form)
        except Suspend:
            return self._leave_open(parameters)
        except Exception as error:  # noqa: BLE001 - whatever an approver raises is no answer
            return self._decline(message, f"asking for an answer failed with {type(error).__name__}")
        if decision.decision == "deny":
            return self._decline(message, decision.reason)
        return self._accept(message, form, decision.arguments)

    def _accept(self, message: str, form: Form | None, given: Mapping[str, Any] | None) -> Any:
        """Members for a form, with its defaults; None is an approval alone. Declines what does not fit."""
        from mcp_types import ElicitResult

        if form is None:
            return ElicitResult(action="accept")
        content = form.filled(given or {})
        if problems := form.problems(content):
            what = "an approval alone is no answer to the form" if given is None else "the answer does not fit the form"
            return self._decline(message, f"{what}: {'; '.join(problems[:MOST_PROBLEMS])}")
        try:
            json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
            return ElicitResult(action="accept", content=content)
        except (TypeError, ValueError):  # whose text would quote the answer
            return self._decline(message, "the protocol carries texts, numbers, booleans and lists of texts alone")

    def _decline(self, message: str, why: str) -> Any:
        from mcp_types import ElicitResult

        if why:
            question = shorten(message, LONGEST, placeholder=" ...")
            self.declined.append(self._redact(f'the question "{question}" was declined: {why}'))
        return ElicitResult(action="decline")

    def _leave_open(self, parameters: Any) -> Any:
        from mcp_types import ElicitResult

        self.unanswered = self._redact(parameters.message)
        if (task := self._task) is not None:
            task.get_loop().call_soon_threadsafe(self._give_up)
        return ElicitResult(action="cancel")

    def explained(self, result: ToolResult) -> ToolResult:
        """The result of the call. Why a question was declined is a note, and the model reads it first."""
        if not self.declined:
            return result
        metadata = dict(result.metadata)
        if "content" in (remote := metadata.get("mcp", {})):
            metadata["mcp"] = {**remote, "content": [*({} for _ in self.declined), *remote["content"]]}
        content = (*map(TextBlock, self.declined), *result.content)
        notes = (*result.notes, *(Note(why, kind="declined") for why in self.declined))
        members = result.name, result.status, content, result.data, result.error
        return ToolResult("", *members, notes=notes, metadata=metadata)

    async def _answered(self, approver: Any, request: ApprovalRequest) -> Any:
        """Approvers belong to the caller's loop if they are async, and may block if they are not."""

        async def awaited(answer: Any) -> Any:
            return await answer

        answer = await asyncio.to_thread(approver, request)
        if not inspect.isawaitable(answer):
            return answer
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(awaited(answer), self._loop))


@final
@frozen
class Approved:
    """Approves a call that the client's user has approved. What is asked while it runs was not shown to the user."""

    call_id: str

    def __call__(self, request: ApprovalRequest) -> bool:
        return request.call_id == self.call_id


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


def _decision(answer: Any, form: Form | None) -> Approval:
    if isinstance(answer, Approval):
        return answer
    if isinstance(answer, Mapping) and form is not None:
        return Approval.edit(answer)
    if answer is True or answer is False:
        return Approval.approve() if answer else Approval.deny()
    return Approval.deny("the approver gave neither a verdict nor the members of the form")


def _dumped(schema: Any) -> dict[str, Any]:
    return dict(schema if isinstance(schema, Mapping) else schema.model_dump(by_alias=True, exclude_none=True))
