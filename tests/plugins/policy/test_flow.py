"""Flow rules: what may follow once a session has called certain tools."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pegboard import (
    ApprovalRequest,
    Middleware,
    Session,
    SettingsError,
    Status,
    ToolCall,
    Toolkit,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard_policy import TRIFECTA, FlowRule, Limit, Policy

from .desk import board, fetch, look, made, send, statuses

AFTER_FETCH = FlowRule(after="open_world", tools="send")


class Approver:
    """Answers as it is told, and keeps the reasons."""

    def __init__(self, answer: bool = True) -> None:
        self.answer = answer
        self.reasons: list[str] = []

    def __call__(self, request: ApprovalRequest) -> bool:
        self.reasons.append(request.reason)
        return self.answer


class TestAsks:
    def test_the_approver_with_the_reason(self) -> None:
        approver = Approver()
        with board(flow=[AFTER_FETCH], approver=approver) as toolkit:
            session, other = toolkit.session(), toolkit.session()
            calls = [("send", {"to": "ann"}), ("fetch", {}), ("look", {}), ("send", {"to": "ann"})]
            assert statuses([session.call_sync(*call) for call in calls]) == ["success"] * 4
            assert approver.reasons == ["this session has called fetch (open_world) before send"]
            approver.answer = False
            assert session.call_sync("send", {"to": "ann"}).text == "Error: send was not run: it was not approved"
            assert other.call_sync("send", {"to": "ann"}).status == "success"

    def test_and_denies_where_nobody_can_be_asked(self) -> None:
        with board(flow=[AFTER_FETCH]) as toolkit:
            session = toolkit.session()
            session.call_sync("fetch")
            denied = session.call_sync("send", {"to": "ann"})
            assert denied.status == "denied"
            assert denied.text.endswith("it needs approval, which cannot be given here; go on without it")

    def test_once_about_a_tool_that_asks_anyway_and_with_this_reason(self) -> None:
        approver = Approver()

        @tool(requires_approval=True)
        def pay(euros: int) -> str:
            """Pay."""
            return f"paid {euros}"

        with board(pay, flow=[FlowRule("fetch", "pay")], approver=approver) as toolkit:
            toolkit.call_sync("fetch")
            assert toolkit.call_sync("pay", {"euros": 1}).text == "paid 1"
            assert approver.reasons == ["this session has called fetch before pay"]


class TestDenies:
    def test_with_a_message_that_says_what_came_before(self) -> None:
        rules = [FlowRule("look", "send", "ask"), FlowRule("fetch", "send", "deny")]
        with board(flow=rules, approver=Approver()) as toolkit:
            session = toolkit.session()
            session.call_sync("look")
            session.call_sync("fetch")
            denied = session.call_sync("send", {"to": "ann"})
            why = "a rule denies it: this session has called fetch before send"
            assert denied.text == f"Error: send was not run: {why}"

    def test_a_tool_of_both_kinds_after_its_first_call(self) -> None:
        with board(flow=[FlowRule("fetch", "fetch", "deny")]) as toolkit:
            assert statuses([toolkit.call_sync("fetch") for _ in range(2)]) == ["success", "denied"]

    def test_what_did_not_begin_makes_no_rule_apply(self) -> None:
        with board(flow=[FlowRule("fetch", "send", "deny")]) as toolkit:
            toolkit.set_permission("fetch", "prompt")
            assert statuses([toolkit.call_sync("fetch"), toolkit.call_sync("fetch", {"uri": ""})])[0] == "denied"
            assert toolkit.call_sync("send", {"to": "ann"}).status == "success"

    def test_what_other_middleware_answers_was_called(self) -> None:
        class Cache:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                return [Middleware(keep, "cache", lambda tool: tool.name == "fetch", -10)]

        def keep(call: ToolCall, proceed: Any) -> ToolResult:
            return ToolResult(call.id, call.name, Status.SUCCESS, "the page as it was")

        with board(plugins=(Cache(),), flow=[FlowRule("fetch", "send", "deny")], limits={"fetch": Limit(1)}) as toolkit:
            assert toolkit.call_sync("fetch").text == "the page as it was"
            assert toolkit.call_sync("fetch").status == "denied"
            assert toolkit.call_sync("send", {"to": "ann"}).status == "denied"


class TestWords:
    @pytest.mark.parametrize(
        ("after", "applies"),
        [
            ("open_world", True),
            ("not read_only", False),
            ("not destructive", True),
            ("destructive", False),
            ("web", True),
            ("fe*", True),
            ("Fe*", False),
            (["fe*", "open_world"], True),
            (["fe*", "look"], False),
        ],
    )
    def test_name_a_tool(self, after: Any, applies: bool) -> None:
        tagged = made("fetch", tags=["web"], read_only=True, open_world=True)
        with Toolkit(plugins=[Policy(flow={"after": after, "tools": ["send"], "then": "deny"})]) as toolkit:
            toolkit.register(tagged, send)
            toolkit.call_sync("fetch")
            assert (toolkit.call_sync("send", {"to": "ann"}).status == "denied") is applies

    @pytest.mark.parametrize(
        "rule",
        [
            {"after": "not web", "tools": "send"},
            {"after": [], "tools": "send"},
            {"after": "fetch", "tools": ""},
            {"after": "fetch", "tools": "send", "then": "stop"},
            {"tools": "send"},
            "trifekta",
        ],
    )
    def test_what_is_no_rule_is_refused(self, rule: Any) -> None:
        with pytest.raises(SettingsError, match="a flow rule is 'trifecta', or"):
            Policy(flow=[rule])
        with pytest.raises(SettingsError, match=r"policy\.flow"):
            Toolkit(plugins=["policy"], settings={"policy": {"flow": [rule]}})


class TestTrifecta:
    @pytest.mark.parametrize("before", [["look"], ["fetch"], []])
    def test_two_parts_ask_nothing(self, before: list[str]) -> None:
        with board(flow="trifecta") as toolkit:
            assert statuses([toolkit.call_sync(name) for name in [*before, "fetch"]]) == ["success"] * (len(before) + 1)

    def test_a_way_out_asks_after_private_data_and_untrusted_content(self) -> None:
        approver = Approver()
        post = made("post", tags=["way-out"])
        with board(post, flow="trifecta", approver=approver) as toolkit:
            for name in ("fetch", "look"):
                toolkit.call_sync(name)
            for name in ("fetch", "look"):
                toolkit.call_sync(name)
            toolkit.call_sync("post", {"to": "ann"})
            came = "this session has called look (private data) and fetch (untrusted content) before"
            assert approver.reasons == [f"{came} fetch", f"{came} post"]

    def test_tags_say_what_hints_do_not(self) -> None:
        private = made("diary", tags=["private-data"])
        public = made("manual", tags=["public-data"], read_only=True, open_world=False)
        mail = made("mail", tags=["untrusted-content"])
        with Toolkit(plugins=[Policy(flow="trifecta")]) as toolkit:
            toolkit.register(private, public, mail, made("post", tags=["way-out"]))
            for name, arguments in (("mail", {"to": ""}), ("manual", {}), ("post", {"to": ""}), ("diary", {"to": ""})):
                assert toolkit.call_sync(name, arguments).status == "success"
            assert toolkit.call_sync("post", {"to": ""}).status == "denied"

    def test_by_settings_among_rules(self) -> None:
        rules = ["trifecta", {"after": "look", "tools": ["se*"], "then": "deny"}]
        for flow in (rules, "trifecta"):
            with Toolkit(plugins=["policy"], settings={"policy": {"flow": flow}}) as toolkit:
                toolkit.register(fetch, send, look)
                calls = [toolkit.call_sync(name) for name in ("look", "fetch", "fetch")]
                assert statuses(calls) == ["success", "success", "denied"]
                assert (toolkit.call_sync("send", {"to": "ann"}).status == "denied") is (flow is rules)
        assert TRIFECTA.then == "ask"


class TestOfTheCaller:
    def test_a_sub_agent_makes_rules_apply_to_who_asked_it_and_is_held_to_them(self) -> None:
        agents = pytest.importorskip("pegboard_agent")
        from tests.plugins.agent.desk import Scripted, calls

        pages = board(flow=[AFTER_FETCH])
        asked = calls(("fetch", {}), ("send", {"to": "eve"}))
        reader = agents.Agent("reader", Scripted(asked, "read", asked, "read again"), pages)
        with pages, board(reader, flow=[AFTER_FETCH]) as toolkit:
            script = [calls(("call_reader", {"message": "read"})), calls(("send", {"to": "ann"})), "done"]
            boss = agents.Agent("boss", Scripted(*script), toolkit)
            events = asyncio.run(_results(boss))
            assert [(each.name, each.status.value) for each in events] == [
                ("call_reader", "success"),
                ("send", "denied"),
            ]
            session = toolkit.session()
            session.call_sync("fetch")
            assert session.call_sync("call_reader", {"message": "read"}).status == "success"
            told = reader.model.messages[-1]
            assert [each["content"][:5] for each in told if each["role"] == "tool"] == ["page ", "Error"]

    def test_a_batch_and_a_session_within(self) -> None:
        @tool
        async def research(session: Session) -> str:
            """Read a page in a session of its own."""
            return str((await session.toolkit.session().call("fetch")).text)

        with board(research, flow=[AFTER_FETCH]) as toolkit:
            session = toolkit.session()
            both = asyncio.run(session.call_many([("research", {}), ("look", {})]))
            assert statuses(both) == ["success", "success"]
            assert session.call_sync("send", {"to": "ann"}).status == "denied"


async def _results(agent: Any) -> list[Any]:
    return [event.result async for event in agent.stream("go") if type(event).__name__ == "CallEnded"]


class TestInAJournal:
    """Two toolkits with one journal stand for two processes."""

    @pytest.fixture(autouse=True)
    def journal(self, tmp_path: Path) -> dict[str, Any]:
        pytest.importorskip("pegboard_journal")
        return {"journal": {"url": f"sqlite:///{tmp_path}/calls.db"}}

    def two(self, journal: dict[str, Any], *more: Any, **policy: Any) -> tuple[Toolkit, Toolkit]:
        policy = {"history": "journal", "plugins": ("journal",), "settings": journal, **policy}
        return board(*more, **policy), board(*more, **policy)

    def test_rules_and_limits_hold_in_every_process(self, journal: dict[str, Any]) -> None:
        one, two = self.two(journal, flow=[AFTER_FETCH], limits={"fetch": {"calls": 3}, "*": {"calls": 9}})
        with one, two:
            a, b, other = one.session(id="chat"), two.session(id="chat"), two.session(id="other")
            assert a.call_sync("fetch", call_id="c1").status == "success"
            assert a.call_sync("fetch", {"uri": 1}).status == "invalid"
            assert b.call_sync("send", {"to": "ann"}).status == "denied"
            assert other.call_sync("send", {"to": "ann"}).status == "success"
            assert b.call_sync("fetch", call_id="c1").status == "success"
            assert statuses([a.call_sync("fetch"), b.call_sync("fetch")]) == ["success", "denied"]
            assert a.call_sync("fetch").text.endswith(
                "3 calls per session of fetch is reached; it ends with this session"
            )

    def test_what_a_tool_called_in_a_session_without_a_name(self, journal: dict[str, Any]) -> None:
        @tool
        def research(session: Session) -> str:
            """Read a page in a session of its own."""
            return str(session.toolkit.session().call_sync("fetch").text)

        one, two = self.two(journal, research, flow=[AFTER_FETCH])
        with one, two:
            assert one.session(id="chat").call_sync("research").status == "success"
            assert two.session(id="chat").call_sync("send", {"to": "ann"}).status == "denied"

    def test_a_conversation_that_goes_on_in_another_process(self, journal: dict[str, Any], tmp_path: Path) -> None:
        agents = pytest.importorskip("pegboard_agent")
        from tests.plugins.agent.desk import Scripted, calls

        def worker(toolkit: Toolkit, *script: Any) -> Any:
            return agents.Agent(
                "desk", Scripted(*script, "done"), toolkit, memory=agents.Memory(tmp_path / "talk.jsonl")
            )

        one, two = self.two(journal, flow=[AFTER_FETCH])
        with one, two:
            sends = calls(("send", {"to": "ann"}))
            worker(one, calls(("fetch", {}))).call_sync("read", session_id="ann")
            first = worker(two, sends, "done", sends)
            first.call_sync("send", session_id="ann")
            first.call_sync("send", session_id="bob")
            answers = [each["content"] for asked in first.model.messages for each in asked if each["role"] == "tool"]
            assert [answer.startswith("Error: send was not run: it needs approval") for answer in answers[-2:]] == [
                True,
                False,
            ]

    def test_a_tool_that_is_not_known_here_may_be_of_any_kind(self, journal: dict[str, Any]) -> None:
        one, two = self.two(journal, flow=[AFTER_FETCH], limits={"gr*": {"calls": 1}})
        with one, two:
            one.register(made("grope"))
            one.session(id="chat").call_sync("grope")
            assert two.session(id="chat").call_sync("send", {"to": "ann"}).status == "denied"
            two.register(made("grind"))
            assert two.session(id="chat").call_sync("grind").status == "denied"

    def test_without_the_pack_there_is_no_toolkit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_policy.find_spec", lambda name: None)
        with pytest.raises(SettingsError, match="pegboard-policy\\[journal\\]"):
            board(history="journal", limits={"*": {"calls": 1}})

    def test_without_a_journal_the_calls_of_a_named_session_are_denied(self) -> None:
        with board(history="journal", limits={"*": {"calls": 1}}) as toolkit:
            assert toolkit.session(id="chat").call_sync("look").status == "denied"
            assert toolkit.session().call_sync("look").status == "success"
