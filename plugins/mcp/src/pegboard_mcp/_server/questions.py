"""Questions to a human on the client's side: may this call run, and what a suspended call asks for."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Any, Final, final

from attrs import asdict, evolve, field, frozen

from pegboard import ForeignSchema, RegistrationError, ToolCall, ToolResult
from pegboard_mcp._wire.protocol import is_newer

__all__ = ["Answers", "Desk", "NeededError", "Refused", "State", "UsedStates"]

LIFETIME: Final = 600.0
"""Seconds in which a question can be answered; the SDK seals states for as long."""
MOST_OPEN: Final = 1_000
"""Questions that wait for an answer at one time, where the protocol keeps them open."""
MOST_SPENT: Final = 50_000

ANSWER: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string", "description": "The answer to go on with"}},
    "required": ["answer"],
}
APPROVAL: Final = {"type": "object", "properties": {}}


@final
class Answers(Mapping[str, Any]):
    """The answers to a call so far, by the keys of its questions. A tool that asks again gets them by type.

    `raise Suspend("When?", key="date", form={...}, again=True)` has the tool called again with the answer in it.

    Args:
        given: The answers, by the keys of the questions. None for none.
    """

    __pegboard_injectable__ = True

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._given = dict(given or {})

    def __getitem__(self, key: str) -> Any:
        return self._given[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __repr__(self) -> str:
        return f"Answers({', '.join(self._given)})"


@final
@frozen
class State:
    """What a client returns, sealed, when it sends its request again: the question it answers, and earlier answers."""

    key: str = ""
    form: dict[str, Any] = field(factory=dict)
    again: bool = False
    """Whether the tool is called again; otherwise the answer is its result."""
    call_id: str = ""
    approved: bool = False
    answers: dict[str, Any] = field(factory=dict)
    held: str = ""
    """The key of a call that runs here and waits for the answer."""
    nonce: str = ""


class NeededError(Exception):
    """The client has to ask a human and to send its request again: `result` says so."""

    def __init__(self, result: Any) -> None:
        super().__init__("the client has to ask a human")
        self.result = result


class Refused(Exception):  # noqa: N818 - an outcome, not a failure
    """A question that was not answered; the message says why."""


@final
class UsedStates:
    """The states that were used. A state can be used once, so that no answer is reused for another call."""

    def __init__(self) -> None:
        self._spent: OrderedDict[str, float] = OrderedDict()
        self.open = 0

    def spend(self, nonce: str) -> bool:
        """Whether a state may be used now."""
        now = monotonic()
        while self._spent and next(iter(self._spent.values())) < now - LIFETIME:
            self._spent.popitem(last=False)
        if nonce in self._spent or len(self._spent) >= MOST_SPENT:
            return False
        self._spent[nonce] = now
        return True


@final
class Desk:
    """Asks through the client that sent a request.

    The older protocol has a message for that; in the newer one the answer tells the client to ask and to come back.
    """

    def __init__(self, context: Any, parameters: Any, used: UsedStates) -> None:
        self._context = context
        self._used = used
        self._response: Any = None
        sealed = parameters.request_state
        self.state = State() if sealed is None else State(**json.loads(sealed))
        """The state of earlier rounds."""
        # An answer without the state of a question is ignored: any client can write one.
        if sealed is not None:
            self._response = (parameters.input_responses or {}).get(self.state.key)
            if self._response is not None and not used.spend(self.state.nonce):
                self._response = None

    @property
    def can_ask(self) -> bool:
        """Whether the client can put a question to its user."""
        session = self._context.session
        capabilities = session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return False
        return bool(is_newer(self._context.protocol_version) or session.can_send_request)

    @property
    def comes_again(self) -> bool:
        """Whether the client asks and then sends the request again; the older protocol asks while a call runs."""
        return is_newer(self._context.protocol_version)

    @property
    def is_answered(self) -> bool:
        """Whether the request brings the answer to the question of a suspended call."""
        return self._response is not None and bool(self.state.call_id)

    @property
    def held(self) -> str:
        """The call that the request brings an answer for."""
        return self.state.held if self._response is not None else ""

    async def approve(self, call: ToolCall) -> None:
        """Ask whether a call may run. Raises `Refused`, or `NeededError` for a client that has to come back."""
        if self.state.approved:
            return
        arguments = json.dumps(dict(call.arguments or {}), ensure_ascii=False, default=str)
        shown = arguments if len(arguments) <= 1_000 else f"{arguments[:1_000]}..."
        message = f"May {call.name} run with these arguments? {shown}"
        state = evolve(self.state, key="approval", form=APPROVAL, call_id="")
        try:
            if self._response is not None and self.state.key == state.key:
                await self.answer()
            else:
                await self._ask(message, state)
        except Refused as refused:
            raise Refused(f"{call.name} was not approved: {refused}") from refused
        self.state = evolve(self.state, approved=True)

    async def value(self, suspended: ToolResult) -> Any:
        """The answer to what a suspended call asks. Raises `Refused`, or `NeededError`.

        A tool may say what it asks for: `raise Suspend("Who are you?", form={...})`, the schema of an object of plain
        members; its answer is such an object. Without a form the answer is text. `key=` names the question.
        """
        details = suspended.metadata
        form = details.get("form")
        state = evolve(
            self.state,
            key=str(details.get("key", "answer")),
            form=form if isinstance(form, dict) else ANSWER,
            again=details.get("again") is True,
            call_id=suspended.call_id,
        )
        if not self.can_ask:
            raise _missing_capability(
                f"{suspended.name} needs an answer that this client cannot ask for: {suspended.text}"
            )
        return await self._ask(suspended.text, state)

    async def answer(self) -> Any:
        """The answer that the request brings, to the question of its state. Raises `Refused`."""
        response, self._response = self._response, None
        return self._read(response, self.state)

    async def _ask(self, message: str, state: State) -> Any:
        from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

        if self.comes_again:
            sealed = json.dumps(asdict(evolve(state, nonce=secrets.token_hex(12))))
            question = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=state.form))
            raise NeededError(InputRequiredResult(input_requests={state.key: question}, request_state=sealed))
        return self._read(await self.put(message, state.form), state)

    async def put(self, message: str, form: dict[str, Any]) -> Any:
        """Ask while the call waits, as the older protocol can; an `ElicitResult`. Raises `Refused`."""
        if self._used.open >= MOST_OPEN:
            raise Refused(f"too many questions are open here; this one was not asked: {message}")
        self._used.open += 1
        try:
            async with asyncio.timeout(LIFETIME):
                session, request = self._context.session, self._context.request_id
                return await session.elicit_form(message, form, related_request_id=request)
        except TimeoutError:
            raise Refused(f"no answer came to: {message}") from None
        finally:
            self._used.open -= 1

    async def hold(self, message: str, form: dict[str, Any], held: str) -> None:
        """Have the client ask what a remote server does, while the call of that key runs here. Raises `NeededError`."""
        if not held:
            raise Refused(f"too many questions are open here; this one was not asked: {message}")
        await self._ask(message, evolve(self.state, key="question", form=form, held=held, call_id=""))

    def response(self) -> Any:
        """What the request brings for a call that is held, which checks it itself."""
        response, self._response = self._response, None
        return response

    def _read(self, response: Any, state: State) -> Any:
        action = getattr(response, "action", "cancel")
        if action == "decline":
            raise Refused("the human declined")
        if action != "accept":
            raise Refused("the human closed the question without an answer")
        content = dict(getattr(response, "content", None) or {})
        try:
            problems = ForeignSchema(state.form, "the form").problems(content, redact=lambda text: "***")
        except RegistrationError as error:
            raise Refused(f"the question has a form that cannot be used: {error}") from error
        if problems:
            raise Refused(f"the human's answer does not fit the form: {'; '.join(map(str, problems))}")
        value = content["answer"] if state.form == ANSWER else content
        self.state = evolve(state, answers={**state.answers, state.key: value})
        return value


def _missing_capability(message: str) -> Exception:
    """What the newer protocol demands of a server that needs more than its client can do."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, {"requiredCapabilities": {"elicitation": {}}})
