"""Approval: of each call, or once of a whole program."""

from typing import Any

import pytest

from pegboard import Approval, ApprovalRequest, Guard, Status, Suspend, Toolkit, Verdict, hookimpl
from pegboard_code import CodeMode
from tests.plugins.code.desk import MODES, Tools, coded, ran

TWO = "await send_mail(to='a')\nawait send_mail(to='b')"


class Approver:
    """Answers, and remembers what it was asked."""

    def __init__(self, answer: Any = True) -> None:
        self.answer = answer
        self.requests: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Any:
        self.requests.append(request)
        if isinstance(self.answer, Suspend):
            raise self.answer
        return self.answer

    @property
    def asked(self) -> list[str]:
        """The tools that were asked about."""
        return [request.tool.name for request in self.requests]


@pytest.mark.parametrize("mode", MODES)
class TestEachCall:
    def test_is_asked_about(self, mode: str) -> None:
        tools, approver = Tools(), Approver()
        with coded(tools, approver) as toolkit:
            assert ran(toolkit, TWO, mode).data == "sent to b"
        assert approver.asked == ["send_mail", "send_mail"]
        assert tools.sent == ["a", "b"]
        assert approver.requests[0].arguments == {"to": "a"}


@pytest.mark.parametrize("mode", MODES)
class TestWholeProgram:
    def test_is_asked_about_once(self, mode: str) -> None:
        tools, approver = Tools(), Approver()
        with coded(tools, approver, approve="program") as toolkit:
            assert ran(toolkit, TWO, mode).data == "sent to b"
        assert approver.asked == ["run_code"]
        (request,) = approver.requests
        assert request.arguments == {"code": TWO}
        assert "send_mail" in request.reason
        assert "get_weather" not in request.reason
        assert tools.sent == ["a", "b"]

    def test_that_calls_nothing_of_that_kind_is_not(self, mode: str) -> None:
        approver = Approver()
        with coded(None, approver, approve="program") as toolkit:
            assert ran(toolkit, "(await get_weather(city='a'))['city']", mode).data == "a"
        assert approver.asked == []

    def test_that_was_denied_does_not_run(self, mode: str) -> None:
        tools, approver = Tools(), Approver(Approval.deny("not today"))
        with coded(tools, approver, approve="program") as toolkit:
            result = ran(toolkit, TWO, mode)
        assert result.status is Status.DENIED
        assert "not today" in result.text
        assert tools.sent == []

    def test_a_tool_whose_name_was_not_there_is_asked_about(self, mode: str) -> None:
        tools, approver = Tools(), Approver()
        code = "f = eval('send' + '_mail')\nawait f(to='a')"
        with coded(tools, approver, approve="program", check=False) as toolkit:
            assert ran(toolkit, code, mode).data == "sent to a"
        assert approver.asked == ["send_mail"]

    def test_an_edit_covers_what_was_asked_about_alone(self, mode: str) -> None:
        tools, approver = Tools(), Approver()
        other = "await get_weather(city='a')\nawait purge()"
        approver.answer = Approval.edit({"code": other})
        with coded(tools, approver, approve="program") as toolkit:
            toolkit.register(lambda: "purged", name="purge")
            toolkit.set_permission("purge", "prompt")

            def second(request: ApprovalRequest) -> bool:
                approver.requests.append(request)
                return False

            def first(request: ApprovalRequest) -> Any:
                toolkit.approver = second
                return approver(request)

            toolkit.approver = first
            result = ran(toolkit, TWO, mode)
        assert result.status is Status.ERROR
        assert approver.asked == ["run_code", "purge"]

    def test_a_program_that_is_allowed_without_asking_covers_nothing(self, mode: str) -> None:
        tools, approver = Tools(), Approver()
        with coded(tools, approver, approve="program") as toolkit:
            assert ran(toolkit, TWO, mode).data == "sent to b"
            toolkit.set_permission("run_code", "always")
            assert ran(toolkit, TWO, mode).data == "sent to b"
        assert approver.asked == ["run_code", "send_mail", "send_mail"]

    def test_the_next_run_is_asked_about_again(self, mode: str) -> None:
        approver = Approver()
        with coded(None, approver, approve="program") as toolkit:
            ran(toolkit, TWO, mode)
            ran(toolkit, TWO, mode)
        assert approver.asked == ["run_code", "run_code"]

    def test_what_a_guard_asks_about_a_call_is_asked_all_the_same(self, mode: str) -> None:
        class Watch:
            @hookimpl
            def provide_guards(self) -> list[Guard]:
                def check(call: Any) -> Verdict | None:
                    return Verdict(permission="prompt") if call.name == "send_mail" else None

                return [Guard(lambda tool: None, check=check)]

        approver = Approver()
        with Toolkit(plugins=["dataclasses", Watch()], approver=approver) as toolkit:
            toolkit.register(Tools(), CodeMode(toolkit, approve="program"))
            ran(toolkit, "await send_mail(to='a')", mode)
        assert approver.asked == ["run_code", "send_mail"]


def test_an_agent_parks_until_a_person_has_approved_the_program() -> None:
    agents, testing = pytest.importorskip("pegboard_agent"), pytest.importorskip("pegboard_testing")
    tools, approver = Tools(), Approver(Suspend("a person has to decide"))
    replies = [("run_code", {"code": TWO}), "Sent."]
    with coded(tools, approver, approve="program") as toolkit, testing.ScriptedServer(*replies) as server:
        model = agents.OpenAIChat("scripted", base_url=server.url, api_key="none")
        agent = agents.Agent("clerk", model, toolkit.view(include="run_code"))
        assert len(agent.call_sync("Write to both.").parked) == 1
        assert tools.sent == []
        approver.answer = True
        assert agent.call_sync().text == "Sent."
    assert approver.asked == ["run_code", "run_code"]
    assert tools.sent == ["a", "b"]
