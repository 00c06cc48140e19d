"""Permissions: what may run unasked, what is asked about, what never runs."""

from typing import Any

import pytest

from pegboard import ApprovalRequest, PegboardError, Status, Toolkit, tool
from tests.support.desk import Desk, run, sent


class TestEach:
    def make(self, **options: Any) -> Toolkit:
        toolkit = Toolkit(plugins=(), **options)
        toolkit.register(lambda: 1, name="free")
        toolkit.register(tool(requires_approval=True)(lambda: 2), name="asks")
        return toolkit

    def test_defaults(self) -> None:
        assert self.make().permissions == {"asks": "prompt", "free": "always"}

    def test_counts_at_once(self) -> None:
        toolkit = self.make()
        toolkit.set_permission("asks", "always")
        assert toolkit.call_sync("asks").value == 2
        toolkit.set_permission("free", "prompt")
        assert toolkit.call_sync("free").status is Status.DENIED
        toolkit.set_permission("free", "never")
        call = toolkit.prepare("free")
        assert call.status is Status.DENIED
        assert "not permitted" in toolkit.call_sync("free").text
        assert "free" in [each.name for each in toolkit.tools]

    def test_what_does_not_exist(self) -> None:
        with pytest.raises(PegboardError, match="free"):
            self.make().set_permission("fre", "never")
        with pytest.raises(ValueError, match="sometimes"):
            self.make().set_permission("free", "sometimes")  # type: ignore[arg-type]

    def test_of_a_session_do_not_leak(self) -> None:
        toolkit = self.make()
        session = toolkit.session()
        session.set_permission("free", "never")
        assert session.call_sync("free").status is Status.DENIED
        assert toolkit.call_sync("free").value == 1


class TestPermissionsAreThoseOfTheMoment:
    @pytest.mark.parametrize("on_a_loop", [False, True])
    def test_never_wins(self, on_a_loop: bool) -> None:
        with Desk(requires_approval=False) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")
            result = run(call, on_a_loop=on_a_loop)
            assert (result.status, result.text) == (Status.DENIED, "Error: delete is not permitted")
            assert desk.ran == []

    def test_never_wins_over_an_approver(self) -> None:
        asked: list[Any] = []
        with Desk(asked.append) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")
            assert call.execute_sync().status is Status.DENIED
            assert asked == []

    def test_prompt_asks(self) -> None:
        asked: list[str] = []
        with Desk(lambda request: asked.append(request.reason), requires_approval=False) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "prompt")
            assert call.execute_sync().status is Status.DENIED
            assert asked == ["delete always asks"]

    def test_always_asks_no_more(self) -> None:
        """An approver that says "always" to the first of several calls is not asked about the others."""
        asked: list[str] = []

        def approver(request: ApprovalRequest) -> bool:
            asked.append(request.call_id)
            desk.toolkit.set_permission("delete", "always")
            return True

        with Desk(approver) as desk:
            calls = [desk.toolkit.prepare("delete", sent(), call_id=f"c{n}") for n in range(3)]
            assert [call.status for call in calls] == [Status.AWAITING_APPROVAL] * 3
            assert [call.execute_sync().status for call in calls] == [Status.SUCCESS] * 3
            assert asked == ["c0"]

    def test_of_the_calls_own_session(self) -> None:
        with Desk(requires_approval=False) as desk:
            ann, bob = desk.toolkit.session(), desk.toolkit.session()
            calls = [session.prepare("delete", sent()) for session in (ann, bob)]
            ann.set_permission("delete", "never")
            assert [call.execute_sync().status for call in calls] == [Status.DENIED, Status.SUCCESS]
            call = bob.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")  # a session is as its toolkit unless it says otherwise
            assert call.execute_sync().status is Status.DENIED

    def test_of_a_tool_that_is_gone(self) -> None:
        with Desk(lambda request: True) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.unregister("delete")
            assert call.execute_sync().status is Status.NOT_FOUND

    def test_a_result_that_is_there_stays(self) -> None:
        with Desk(lambda request: True) as desk:
            call = desk.toolkit.prepare("delete", sent())
            result = call.execute_sync()
            desk.toolkit.set_permission("delete", "never")
            assert call.execute_sync() is result


class TestNamesakes:
    """A tool that takes the name of one that was removed."""

    @pytest.mark.parametrize(("said", "then"), [("always", "prompt"), ("never", "never"), ("prompt", "prompt")])
    def test_what_was_allowed_ends_and_what_was_refused_stays(self, said: Any, then: str) -> None:
        with Desk() as desk:
            desk.toolkit.set_permission("delete", said)
            delete = desk.toolkit["delete"]
            desk.toolkit.unregister("delete")
            desk.toolkit.register(delete)
            assert desk.toolkit.permissions["delete"] == then

    def test_of_a_group(self) -> None:
        with Desk() as desk:
            desk.toolkit.create_group("files")
            desk.toolkit.register(tool(requires_approval=True)(lambda: 1), name="wipe", group="files")
            desk.toolkit.set_permission("wipe", "always")
            desk.toolkit.remove_groups("files")
            desk.toolkit.register(tool(requires_approval=True)(lambda: 2), name="wipe")
            assert desk.toolkit.permissions["wipe"] == "prompt"
