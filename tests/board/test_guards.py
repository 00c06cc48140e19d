"""Guards decide about tools: the strictest counts, and one that fails keeps the tool back."""

import asyncio
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Approval, ApprovalRequest, Guard, PegboardError, Tool, ToolCall, Toolkit, Verdict, hookimpl, tool

PERMISSIONS = st.sampled_from([None, "always", "prompt", "never"])


def pack(name: str, *guards: Guard) -> ModuleType:
    module = ModuleType(name)
    vars(module)["provide_guards"] = hookimpl(lambda settings: guards)
    return module


def saying(verdict: Verdict | None, **options: Any) -> Guard:
    """A guard that says the same of `wipe`, and nothing of other tools."""
    return Guard(lambda tool: verdict if tool.name == "wipe" else None, **options)


@tool
def wipe(folder: str = "tmp") -> str:
    """Empty a folder."""
    return folder


@tool
def read() -> str:
    """Read."""
    return "text"


def board(*guards: Guard, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=[pack("corp", *guards)], **options)
    toolkit.register(wipe, read)
    return toolkit


class TestVerdicts:
    def test_not_offered_is_neither_listed_nor_called(self) -> None:
        toolkit = board(saying(Verdict(offered=False, reason="not in this house")))
        assert [each.name for each in toolkit.tools] == ["read"]
        result = toolkit.call_sync("wipe")
        assert result.status == "denied"
        assert "house" not in result.text
        assert result.error is not None
        assert result.error.details == {"remedy": "not in this house"}
        assert toolkit.call_sync("read").text == "text"

    @pytest.mark.parametrize(
        ("permission", "status"), [("always", "success"), ("prompt", "denied"), ("never", "denied")]
    )
    def test_permission(self, permission: Any, status: str) -> None:
        toolkit = board(saying(Verdict(permission=permission)))
        assert toolkit.permissions == {"wipe": permission, "read": "always"}
        assert toolkit.call_sync("wipe").status == status

    def test_the_reason_is_told_to_the_approver(self) -> None:
        told: list[str] = []

        def approve(request: ApprovalRequest) -> bool:
            told.append(request.reason)
            return True

        toolkit = board(saying(Verdict(permission="prompt", reason="it cannot be undone")), approver=approve)
        assert (toolkit.call_sync("wipe").text, told) == ("tmp", ["it cannot be undone"])

    @pytest.mark.parametrize("order", [1, -1])
    def test_the_strictest_counts(self, order: int) -> None:
        verdicts = [None, Verdict(), Verdict(permission="always"), Verdict(permission="never")]
        guards = [saying(each) for each in verdicts][::order]
        assert board(*guards).permissions["wipe"] == "never"
        assert [each.name for each in board(*guards, saying(Verdict(offered=False))).tools] == ["read"]

    @given(
        st.lists(st.none() | st.builds(Verdict, st.booleans(), PERMISSIONS, st.sampled_from(["", "so"])), max_size=4)
    )
    def test_the_strictest_of_any_counts_in_any_order(self, verdicts: list[Verdict | None]) -> None:
        order = ["always", "prompt", "never"]
        said = [each for each in verdicts if each is not None]
        kept_back = any(not each.offered for each in said)
        wanted = max((str(each.permission) for each in said if each.permission), key=order.index, default="always")
        toolkit = board(*map(saying, verdicts))
        assert ("wipe" in [each.name for each in toolkit.tools]) is not kept_back
        if not kept_back:
            assert toolkit.permissions["wipe"] == wanted
        assert toolkit.permissions["read"] == "always"

    def test_stricter_than_the_program_and_its_sessions(self) -> None:
        toolkit = board(saying(Verdict(permission="prompt")))
        with pytest.raises(PegboardError):
            toolkit.set_permission("wipe", "always")
        toolkit.set_permission("wipe", "never")
        assert toolkit.permissions["wipe"] == "never"

    def test_of_tools_that_come_later_and_in_views(self) -> None:
        toolkit = board(saying(Verdict(offered=False)))
        toolkit.unregister("wipe")
        toolkit.register(wipe)
        assert [each.name for each in toolkit.session().view(prefix="x_").tools] == ["x_read"]


class TestFailures:
    @pytest.mark.parametrize("error", [SystemExit, ValueError, KeyboardInterrupt, MemoryError])
    def test_a_guard_that_fails_keeps_the_tool_back(self, error: type[BaseException]) -> None:
        def judge(tool: Tool) -> Verdict | None:
            if tool.name == "wipe":
                raise error("no such luck")
            return None

        toolkit = board(Guard(judge, name="lock"))
        assert [each.name for each in toolkit.tools] == ["read"]
        assert toolkit.call_sync("wipe").status == "denied"
        (problem,) = toolkit.problems
        assert problem.startswith("the guard 'lock' of corp failed for 'wipe': ")

    def test_what_is_no_verdict(self) -> None:
        toolkit = board(Guard(lambda tool: True))  # type: ignore[arg-type,return-value]
        assert toolkit.tools == []
        assert "gave 'bool' for 'read', not a Verdict" in " ".join(toolkit.problems)

    def test_a_check_that_fails_denies_the_call(self) -> None:
        def check(call: ToolCall) -> Verdict | None:
            raise SystemExit

        result = board(Guard(lambda tool: None, check=check)).call_sync("read")
        assert (result.status, result.attempts) == ("denied", 0)


class TestDecided:
    def test_hears_of_decisions_before_anything_changes(self) -> None:
        told: list[Any] = []

        def decided(tool: Tool, permission: Any) -> None:
            told.append((tool.name, permission))
            if permission == "never":
                raise PegboardError("the file cannot be written")

        toolkit = board(Guard(lambda tool: None, decided=decided))
        toolkit.set_permission("wipe", "prompt")
        with pytest.raises(PegboardError, match="the file cannot be written"):
            toolkit.set_permission("wipe", "never")
        assert (told, toolkit.permissions["wipe"]) == ([("wipe", "prompt"), ("wipe", "never")], "prompt")

    def test_what_a_guard_keeps_it_says_from_then_on(self) -> None:
        kept: dict[str, Any] = {}

        def decided(tool: Tool, permission: Any) -> bool:
            kept[tool.name] = permission
            return True

        toolkit = board(Guard(lambda tool: Verdict(permission=kept.get(tool.name)), decided=decided))
        for permission in ("never", "always", "prompt"):
            toolkit.set_permission("wipe", permission)
            assert toolkit.permissions["wipe"] == permission

    def test_a_sessions_own_decision_is_no_ones_to_keep(self) -> None:
        told: list[Any] = []
        toolkit = board(Guard(lambda tool: None, decided=lambda *said: told.append(said)))
        session = toolkit.session()
        session.set_permission("wipe", "never")
        assert (told, session.permissions["wipe"], toolkit.permissions["wipe"]) == ([], "never", "always")

    @pytest.mark.parametrize(
        "held",
        [Verdict(offered=False, reason="pinned"), Verdict(permission="prompt", reason="pinned")],
    )
    def test_what_a_guard_holds_names_the_guard(self, held: Verdict) -> None:
        toolkit = board(saying(held, name="lock"))
        for one in (toolkit, toolkit.session()):
            with pytest.raises(PegboardError, match=r"the guard 'lock' of corp holds 'wipe' .*: pinned"):
                one.set_permission("wipe", "always")


class TestCheck:
    @pytest.fixture
    def toolkit(self) -> Toolkit:
        def check(call: ToolCall) -> Verdict | None:
            if call.arguments.get("folder") == "/":
                return Verdict(permission="never", reason="the whole disk")
            return None

        return board(saying(None, check=check, name="disk"))

    def test_denies_a_call_by_its_arguments(self, toolkit: Toolkit) -> None:
        assert toolkit.call_sync("wipe", {"folder": "a"}).text == "a"
        result = toolkit.call_sync("wipe", {"folder": "/"})
        assert (result.status, "disk" in result.text) == ("denied", False)
        assert result.error is not None
        assert result.error.details == {"remedy": "the whole disk"}

    def test_on_a_loop(self, toolkit: Toolkit) -> None:
        results = asyncio.run(toolkit.call_many([("wipe", {"folder": "/"}), ("read", {}), ("wipe", {"folder": "b"})]))
        assert [result.status for result in results] == ["denied", "success", "success"]

    def test_is_asked_only_where_a_guard_has_it(self) -> None:
        asked: list[str] = []

        def check(call: ToolCall) -> None:
            asked.append(call.name)

        toolkit = board(saying(None), Guard(lambda tool: None, check=check))
        assert (toolkit.call_sync("read").text, asked) == ("text", ["read"])

    def test_is_asked_once_for_each_call(self) -> None:
        asked: list[Any] = []

        def check(call: ToolCall) -> None:
            asked.append(call.arguments)

        toolkit = board(Guard(lambda tool: None, check=check))
        toolkit.call_sync("wipe", {"folder": "a"})
        toolkit.prepare("wipe", {"folder": "b"}).execute_sync()
        assert asked == [{"folder": "a"}, {"folder": "b"}]

    def test_may_ask_the_approver(self) -> None:
        told: list[str] = []

        def approve(request: ApprovalRequest) -> bool:
            told.append(request.reason)
            return bool(request.arguments["folder"] == "a")

        def check(call: ToolCall) -> Verdict:
            return Verdict(permission="prompt", reason="it leaves the house")

        toolkit = board(Guard(lambda tool: None, check=check), approver=approve)
        assert toolkit.call_sync("wipe", {"folder": "a"}).text == "a"
        assert toolkit.call_sync("wipe", {"folder": "b"}).status == "denied"
        assert told == ["it leaves the house"] * 2
        alone = board(Guard(lambda tool: None, check=check)).call_sync("wipe")
        assert (alone.status, "house" in alone.text) == ("denied", False)

    def test_is_asked_before_the_approver(self) -> None:
        asked: list[str] = []
        verdicts = iter([Verdict(offered=False), Verdict(permission="prompt", reason="it leaves the house"), None])

        def approve(request: ApprovalRequest) -> bool:
            asked.append(request.reason)
            return True

        toolkit = board(Guard(lambda tool: None, check=lambda call: next(verdicts, None)), approver=approve)
        toolkit.set_permission("wipe", "prompt")
        assert [toolkit.call_sync("wipe").status for _ in range(2)] == ["denied", "success"]
        assert asked == ["it leaves the house"]  # once, with the reason of the guard

    def test_may_say_to_the_model_why_it_denies(self) -> None:
        verdict = Verdict(offered=False, reason="rule 7", message="the disk is full until noon")
        result = board(Guard(lambda tool: None, check=lambda call: verdict)).call_sync("wipe")
        assert (result.status, result.text) == ("denied", "Error: wipe was not run: the disk is full until noon")
        assert result.error is not None
        assert result.error.details == {"remedy": "rule 7"}

    @pytest.mark.parametrize("said", [False, True, "no"])
    def test_what_is_no_verdict_denies(self, said: Any) -> None:
        result = board(Guard(lambda tool: None, check=lambda call: said)).call_sync("wipe")
        assert (result.status, result.text) == ("denied", "Error: wipe was not run: a policy denies this call")

    def test_is_asked_again_about_what_an_approver_edited(self, toolkit: Toolkit) -> None:
        session = toolkit.session(approver=lambda request: Approval.edit({"folder": "/"}))
        session.set_permission("wipe", "prompt")
        assert session.call_sync("wipe", {"folder": "a"}).status == "denied"
