"""Questions to a human at the client: approvals, suspended calls, and what counts as an answer."""

import asyncio
from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError

from pegboard import Suspend, Toolkit, tool
from pegboard_mcp import Answers, mcp_server
from pegboard_mcp._server.questions import UsedStates

both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COLOR = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"]}
paid: list[int] = []


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    paid.append(amount)
    return f"paid {amount}"


@tool
def who() -> dict[str, Any]:
    """Ask who it is."""
    raise Suspend("Who are you?", key="who", form=NAME)


@tool
def code() -> str:
    """Ask for text."""
    raise Suspend("What is the code?")


@tool
def portrait(answers: Answers) -> str:
    """Ask twice."""
    if "who" not in answers:
        raise Suspend("Who are you?", key="who", form=NAME, again=True)
    if "color" not in answers:
        raise Suspend(f"Which color, {answers['who']['name']}?", key="color", form=COLOR, again=True)
    return f"{answers['who']['name']} in {answers['color']['color']}"


@tool(requires_approval=True)
def transfer(answers: Answers) -> str:
    """Ask for leave, and then for a name."""
    if "who" not in answers:
        raise Suspend("To whom?", key="who", form=NAME, again=True)
    return f"sent to {answers['who']['name']}"


def board() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(pay, who, code, portrait, transfer)
    paid.clear()
    return toolkit


class Human:
    """Answers questions in turn, and remembers them."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    async def __call__(self, context: Any, parameters: Any) -> types.ElicitResult:
        self.asked.append(parameters.message)
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            return types.ElicitResult(action=answer)  # type: ignore[arg-type]  # decline or cancel
        return types.ElicitResult(action="accept", content=answer)


def ask(name: str, human: Any, mode: str, **arguments: Any) -> tuple[bool, str]:
    async def main() -> tuple[bool, str]:
        server = mcp_server(served, all_tools=True)
        async with Client(server, mode=mode, elicitation_callback=human) as client:
            result = await client.call_tool(name, arguments)
            return bool(result.is_error), "\n".join(getattr(block, "text", "") for block in result.content)

    with board() as served:
        answer = asyncio.run(main())
        assert served.pending == []
        return answer


@both_eras
class TestAnswers:
    def test_a_tool_asks_more_than_once(self, mode: str) -> None:
        human = Human({"name": "Ada"}, {"color": "blue"})
        assert ask("portrait", human, mode) == (False, "Ada in blue")
        assert human.asked == ["Who are you?", "Which color, Ada?"]

    def test_after_it_was_approved(self, mode: str) -> None:
        human = Human({}, {"name": "Ada"})
        assert ask("transfer", human, mode) == (False, "sent to Ada")
        assert human.asked == ["May transfer run with these arguments? {}", "To whom?"]

    def test_a_form_answer_that_does_not_fit_is_none(self, mode: str) -> None:
        failed, text = ask("who", Human({"nom": "Ada"}), mode)
        assert failed
        assert text == "the human's answer does not fit the form: name: missing (required string)"

    @pytest.mark.parametrize(
        ("action", "said"),
        [("decline", "the human declined"), ("cancel", "the human closed the question without an answer")],
    )
    def test_a_refusal_is_told_as_that(self, mode: str, action: str, said: str) -> None:
        assert ask("code", Human(action), mode) == (True, said)
        assert ask("pay", Human(action), mode, amount=5) == (True, f"pay was not approved: {said}")
        assert paid == []


class TestStates:
    """What the newer protocol's clients bring back, written by hand."""

    def run(self, scenario: Callable[[ClientSession], Any]) -> Any:
        async def main() -> Any:
            async def never(context: Any, parameters: Any) -> Any:
                raise AssertionError("requests are sent by hand here")

            server, human = mcp_server(served, all_tools=True), never  # type: Any, Any
            async with Client(server, mode="2026-07-28", elicitation_callback=human) as client:
                return await scenario(client.session)

        with board() as served:
            answer = asyncio.run(main())
            assert served.pending == []
            return answer

    async def send(self, session: ClientSession, name: str, arguments: Any = None, **more: Any) -> Any:
        return await session.call_tool(name, arguments or {}, allow_input_required=True, **more)

    def test_an_answer_without_its_question_is_none(self) -> None:
        async def scenario(session: ClientSession) -> None:
            answer = {"approval": types.ElicitResult(action="accept", content={})}
            asked = await self.send(session, "pay", {"amount": 5}, input_responses=answer)
            assert list(asked.input_requests) == ["approval"]
            assert paid == []

        self.run(scenario)

    def test_an_answer_counts_once(self) -> None:
        async def scenario(session: ClientSession) -> None:
            asked = await self.send(session, "pay", {"amount": 5})
            more = {
                "input_responses": {"approval": types.ElicitResult(action="accept", content={})},
                "request_state": asked.request_state,
            }
            assert (await self.send(session, "pay", {"amount": 5}, **more)).content[0].text == "paid 5"
            again = await self.send(session, "pay", {"amount": 5}, **more)
            assert list(again.input_requests) == ["approval"]
            assert paid == [5]

        self.run(scenario)

    def test_an_answer_is_for_its_call_alone(self) -> None:
        async def scenario(session: ClientSession) -> None:
            asked = await self.send(session, "pay", {"amount": 5})
            more = {
                "input_responses": {"approval": types.ElicitResult(action="accept", content={})},
                "request_state": asked.request_state,
            }
            with pytest.raises(MCPError, match="requestState"):
                await self.send(session, "pay", {"amount": 500}, **more)
            assert paid == []

        self.run(scenario)

    def test_an_answer_to_another_question_asks_again(self) -> None:
        async def scenario(session: ClientSession) -> None:
            asked = await self.send(session, "who")
            responses = {"other": types.ElicitResult(action="accept", content={"name": "Ada"})}
            again = await self.send(session, "who", input_responses=responses, request_state=asked.request_state)
            assert list(again.input_requests) == ["who"]

        self.run(scenario)

    def test_unanswered_questions_leave_nothing(self) -> None:
        async def scenario(session: ClientSession) -> None:
            for _ in range(200):
                await self.send(session, "who")

        self.run(scenario)


def test_states_that_were_used_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard_mcp._server.questions.MOST_SPENT", 2)
    asked = UsedStates()
    assert [asked.spend(nonce) for nonce in ("a", "a", "b", "c")] == [True, False, True, False]
    monkeypatch.setattr("pegboard_mcp._server.questions.LIFETIME", -1.0)
    assert asked.spend("a")
