"""Answers of a human on the client's side: to a question of approval, and for a call that was suspended."""

from __future__ import annotations

import json
from typing import Any, Final, final

from pegboard import ToolCall, ToolResult
from pegboard_mcp._promise import takes_any_schema

__all__ = ["AnswerNeededError", "Desk"]


ANSWER: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string", "description": "The answer to go on with"}},
    "required": ["answer"],
}


class AnswerNeededError(Exception):
    """The client has to ask a human and to send its request again: `result` says so."""

    def __init__(self, result: Any) -> None:
        super().__init__("the client has to ask a human")
        self.result = result


@final
class Desk:
    """Asks through the client that sent a request.

    The older protocol has a message for that; in the newer one the answer tells the client to ask and to come back.
    """

    def __init__(self, context: Any, parameters: Any) -> None:
        self._context = context
        self._parameters = parameters

    @property
    def state(self) -> str | None:
        """What was handed to the client when it was told to come back."""
        state: str | None = self._parameters.request_state
        return state

    async def approval(self, call: ToolCall) -> bool:
        """Whether a human lets the call run; False where the client cannot ask one."""
        arguments = json.dumps(dict(call.arguments or {}), ensure_ascii=False, default=str)
        shown = arguments if len(arguments) <= 1_000 else f"{arguments[:1_000]}..."
        message = f"May {call.name} run with these arguments? {shown}"
        answer = await self._ask("approval", message, {"type": "object", "properties": {}}, "approval")
        return answer is not None and answer.action == "accept"

    async def value(self, suspended: ToolResult) -> tuple[bool, Any]:
        """What completes a suspended call: whether there is an answer, and the answer.

        A tool may say what it asks for: `raise Suspend("Who are you?", form={...})`, the schema of an object of plain
        members; its answer is such an object. Without a form the answer is text. `key=` names the question.
        """
        form = suspended.metadata.get("form")
        schema = form if isinstance(form, dict) else ANSWER
        key = str(suspended.metadata.get("key", "answer"))
        if not self._can_ask() and takes_any_schema(self._context.protocol_version):
            raise _missing_capability(
                f"{suspended.name} needs an answer that this client cannot ask for: {suspended.text}"
            )
        answer = await self._ask(key, suspended.text, schema, suspended.call_id)
        content = None if answer is None or answer.action != "accept" else answer.content
        if not content or (schema is ANSWER and "answer" not in content):
            return False, None
        return True, content["answer"] if schema is ANSWER else content

    async def _ask(self, key: str, message: str, schema: dict[str, Any], state: str) -> Any:
        from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

        if not self._can_ask():
            return None
        if not takes_any_schema(self._context.protocol_version):
            session, request = self._context.session, self._context.request_id
            return await session.elicit_form(message, schema, related_request_id=request)
        given = (self._parameters.input_responses or {}).get(key)
        if given is not None:
            return given
        question = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
        raise AnswerNeededError(InputRequiredResult(input_requests={key: question}, request_state=state))

    def _can_ask(self) -> bool:
        capabilities = self._context.session.client_capabilities
        return capabilities is not None and capabilities.elicitation is not None


def _missing_capability(message: str) -> Exception:
    """What the newer protocol demands of a server that needs more than its client can do."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, {"requiredCapabilities": {"elicitation": {}}})
