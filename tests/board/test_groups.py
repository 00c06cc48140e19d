"""Groups and sessions: who sees what, nothing leaks, nothing is done by halves, and namesakes inherit nothing."""

import gc
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard import (
    Group,
    PegboardError,
    RegistrationError,
    Secret,
    Session,
    SettingsError,
    Status,
    Toolkit,
    UnknownNameError,
    tool,
)
from pegboard._board.board import Board, Registry
from pegboard.hookspecs import hookimpl
from pegboard_policy import Policy
from tests.support.board_tools import add, board, double, named, names, shown


class TestSeeds:
    """The samples of the documents that asked for this."""

    def test_create_register_switch_and_ask(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("basic", "Basic tools", active=True)
        toolkit.create_group("admin", "Admin tools", active=False)
        toolkit.register(named("look"), group="basic")
        toolkit.register(named("wipe"), group="admin")
        assert toolkit.active_groups == ("basic",)
        assert names(toolkit) == ["look"]
        toolkit.update_groups(["admin"], True)
        toolkit.update_groups(["basic"], False)
        assert toolkit.active_groups == ("admin",)
        assert names(toolkit) == ["wipe"]

    @pytest.mark.parametrize(
        ("role", "offered"),
        [
            ("guest", ["look"]),
            ("user", ["look", "write"]),
            ("admin", ["look", "write", "wipe"]),
        ],
    )
    def test_by_role(self, role: str, offered: list[str]) -> None:
        toolkit = board(guest="look", user="write", admin="wipe")
        match role:
            case "guest":
                toolkit.update_groups(["guest"], True)
                toolkit.update_groups(["user", "admin"], False)
            case "user":
                toolkit.update_groups(["guest", "user"], True)
                toolkit.update_groups(["admin"], False)
            case "admin":
                toolkit.update_groups(["guest", "user", "admin"], True)
        assert names(toolkit) == offered

    def test_roles_of_several_users_at_once(self) -> None:
        toolkit = board(guest="look", user="write", admin="wipe")
        roles = {"guest": ["guest"], "user": ["guest", "user"], "admin": ["guest", "user", "admin"]}
        sessions = {role: toolkit.session(groups=groups) for role, groups in roles.items()}
        assert {role: names(session) for role, session in sessions.items()} == {
            "guest": ["look"],
            "user": ["look", "write"],
            "admin": ["look", "write", "wipe"],
        }
        assert sessions["user"].call_sync("wipe").status is Status.INACTIVE
        assert sessions["admin"].call_sync("wipe").text == "wipe"

    def test_presets_of_each_login(self) -> None:
        def upload_file(name: str, user_id: str = "", session_id: str = "") -> str:
            return f"{name} by {user_id} in {session_id}"

        toolkit = Toolkit(plugins=())
        toolkit.register(upload_file, presets={"upload_file": {"user_id": "nobody"}})
        ann = toolkit.session(presets={"upload_file": {"user_id": "ann", "session_id": "1"}})
        toolkit.update_presets("upload_file", {"session_id": "0"})
        assert ann.call_sync("upload_file", {"name": "a"}).text == "a by ann in 1"
        assert toolkit.call_sync("upload_file", {"name": "a"}).text == "a by nobody in 0"
        assert shown(ann, "upload_file") == ["name"]


class TestGroups:
    def test_are_listed_in_the_order_in_which_they_were_created(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("b", "B", instructions="Be brief", managed_by="program")
        toolkit.create_group("a", active=False)
        assert toolkit.groups == (Group("b", "B", True, "program", "Be brief"), Group("a", active=False))
        assert toolkit.session().groups == toolkit.groups

    @pytest.mark.parametrize("name", ["", "  "])
    def test_need_a_name(self, name: str) -> None:
        with pytest.raises(RegistrationError, match="a tool group needs a name"):
            Toolkit(plugins=()).create_group(name)

    def test_have_a_known_manager(self) -> None:
        with pytest.raises(RegistrationError, match='"model" or "program", got \'user\''):
            Toolkit(plugins=()).create_group("a", managed_by="user")  # type: ignore[arg-type]

    def test_one_name_needs_no_list(self) -> None:
        toolkit = board(abc="x", xyz_off="y")
        toolkit.update_groups("abc", False)
        assert list(toolkit.active_groups) == []
        toolkit.set_active_groups("xyz_off")
        assert list(toolkit.active_groups) == ["xyz_off"]
        assert toolkit.session(groups="abc").active_groups == ("abc",)
        toolkit.remove_groups("abc")
        assert [group.name for group in toolkit.groups] == ["xyz_off"]

    @pytest.mark.parametrize("name", [3, None, ("a",)])
    def test_what_is_no_name_is_unknown(self, name: Any) -> None:
        with pytest.raises(UnknownNameError, match="there is no tool group"):
            board(a="x").update_groups([name], True)

    def test_final_set_of_those_managed_alike(self) -> None:
        toolkit = board(a="x", b="y")
        toolkit.create_group("core", managed_by="program")
        toolkit.set_active_groups(["b"], managed_by="model")
        assert toolkit.active_groups == ("b", "core")
        with pytest.raises(UnknownNameError, match=r"no tool group 'core'. Known groups managed by the model: a, b"):
            toolkit.set_active_groups(["b", "core"], managed_by="model")
        assert toolkit.active_groups == ("b", "core")

    def test_a_tool_in_several_groups_needs_one(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("a")
        toolkit.create_group("b", active=False)
        toolkit.register(add, group=["a", "b"])
        assert names(toolkit.session(groups=["b"])) == ["add"]
        assert names(toolkit.session(groups=[])) == []

    def test_a_pack_names_groups_that_were_not_created(self) -> None:
        @tool(group=["admin", "ops"])
        def wipe() -> str:
            return "wiped"

        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [wipe]

        toolkit = Toolkit(plugins=[Pack()])
        result = toolkit.call_sync("wipe")
        assert result.status is Status.INACTIVE
        assert result.error is not None
        assert "create_group('admin', ...), for there is no such group yet" in result.error.details["remedy"]
        session = toolkit.session()
        toolkit.create_group("ops", active=False)
        session.update_groups("ops", True)
        assert session.call_sync("wipe").text == "wiped"
        assert toolkit.call_sync("wipe").status is Status.INACTIVE

    def test_the_group_of_an_import_string_counts(self) -> None:
        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [f"{__name__}:guarded"]

        toolkit = Toolkit(plugins=[Pack()])
        assert names(toolkit) == []
        assert toolkit.call_sync("guarded").status is Status.INACTIVE
        toolkit.create_group("guards")
        assert toolkit.call_sync("guarded").text == "guarded"
        toolkit.remove_groups("guards")
        assert "guarded" not in toolkit

    def test_leaving_a_group_whose_other_members_clash(self) -> None:
        """When one side of a clash goes, the other gets its plain name back, in the middle of the operation."""

        def pack(name: str, groups: list[str]) -> Any:
            @tool(name="roll", group=groups)
            def roll() -> str:
                return name

            hook = hookimpl(lambda: [roll])
            return type(name, (), {"provide_tools": staticmethod(hook)})()

        toolkit = Toolkit(plugins=[pack("one", ["x"]), pack("two", ["x", "y"])])
        toolkit.create_group("x")
        toolkit.create_group("y")
        assert names(toolkit) == ["one__roll", "two__roll"]
        toolkit.remove_groups("x")
        assert names(toolkit) == ["roll"]
        assert toolkit["roll"].groups == ("y",)
        assert toolkit.call_sync("roll").text == "two"


@tool(group="guards")
def guarded() -> str:
    return "guarded"


class TestSessionsAreApart:
    def test_groups(self) -> None:
        toolkit = board(a="x", b_off="y")
        ann, bob = toolkit.session(), toolkit.session()
        ann.update_groups(["a"], False)
        bob.update_groups(["b_off"], True)
        assert (names(toolkit), names(ann), names(bob)) == (["x"], [], ["x", "y"])

    def test_follow_the_toolkit_in_what_they_do_not_say(self) -> None:
        toolkit = board(a="x", b_off="y")
        ann = toolkit.session()
        ann.update_groups("a", False)
        toolkit.update_groups(["a", "b_off"], True)
        assert names(ann) == ["y"]

    def test_sessions_of_sessions(self) -> None:
        toolkit = board(a="x", b_off="y")
        user = toolkit.session(groups=["b_off"], presets={"x": {"note": "!"}})
        request = user.session()
        assert names(request) == ["y"]
        request.update_groups("a", True)
        assert (names(request), names(user)) == (["y", "x"], ["y"])
        assert request.call_sync("x").text == "x!"
        user.update_presets("x", {"note": "?"})
        assert request.call_sync("x").text == "x?"
        user.set_permission("y", "never")
        assert request.call_sync("y").status is Status.DENIED
        assert toolkit.session(groups=["b_off"]).call_sync("y").status is Status.SUCCESS

    def test_exactly_these_groups_whatever_comes_later(self) -> None:
        toolkit = board(a="x")
        guest = toolkit.session(groups=["a"])
        later = toolkit.session()
        toolkit.create_group("admin")
        toolkit.register(named("wipe"), group="admin")
        assert names(guest) == names(guest.session()) == ["x"]
        assert names(later) == names(toolkit) == ["x", "wipe"]
        guest.update_groups("admin", True)
        assert names(guest) == ["x", "wipe"]

    def test_an_active_group_is_active_however_the_toolkit_was_set_before(self) -> None:
        toolkit = board(a="x")
        toolkit.set_active_groups([])
        toolkit.create_group("b")
        assert toolkit.active_groups == ("b",)

    def test_a_change_in_one_session_costs_the_others_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        toolkit = board("t", a="x")
        other = toolkit.session()
        assert [each.name for each in other.schemas()] == ["t", "x"]
        first, generation = other.schemas()[0], toolkit._core.registry.generation
        session = toolkit.session(presets={"t": {"note": "?"}}, groups=[])
        session.update_groups("a", True)
        session.set_permission("t", "prompt")
        session.update_presets("t", {"note": "!"})
        assert other.schemas()[0] is first
        assert toolkit._core.registry.generation == generation

    def test_switching_does_not_make_the_board_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        toolkit = board("t", a="x")
        session = toolkit.session()
        session.session()
        names(session)
        builds = []
        build = Registry._build

        def counted(registry: Registry) -> Board:
            builds.append(registry)
            return build(registry)

        monkeypatch.setattr(Registry, "_build", counted)
        session.update_groups("a", False)
        toolkit.update_groups("a", True)
        toolkit.set_presets("t", {"note": "!"})
        toolkit.create_group("b")
        assert (names(session), names(toolkit)) == (["t"], ["t", "x"])
        assert builds == []

    def test_a_thousand_cost_next_to_nothing(self) -> None:
        toolkit = board(*(f"t{number}" for number in range(100)))
        sessions = [toolkit.session(presets={"t1": {"note": str(number)}}) for number in range(1000)]
        assert {session.call_sync("t1").text for session in sessions} == {f"t1{number}" for number in range(1000)}
        assert all(len(session._cache) == 1 and not session._memo for session in sessions)

    def test_leave_nothing_behind(self) -> None:
        toolkit = board("t")

        def living() -> int:
            gc.collect()
            return sum(type(each) is Session for each in gc.get_objects())

        before = living()
        for _ in range(50):
            session = toolkit.session(presets={"t": {"note": "!"}}, groups=[])
            session.call_sync("t")
            session.view(prefix="p_").call_sync("p_t")
            del session
        assert living() == before

    def test_tools_get_the_session_that_calls(self) -> None:
        def who(session: Session) -> str:
            return str(session.agent)

        toolkit = Toolkit(plugins=())
        toolkit.register(who)
        assert toolkit.session(agent="ann").call_sync("who").text == "ann"
        assert toolkit.session(agent="ann").view(prefix="p_").call_sync("p_who").text == "ann"

    def test_one_after_the_other_switched_from_many_threads(self) -> None:
        toolkit = board(a="x", b_off="y")
        wrong: list[object] = []

        def user(groups: list[str], offered: list[str]) -> None:
            session = toolkit.session()
            for _ in range(200):
                session.set_active_groups(groups)
                if names(session) != offered:
                    wrong.append(names(session))
                if session.call_sync(offered[0]).text != offered[0]:
                    wrong.append(groups)

        threads = [threading.Thread(target=user, args=choice) for choice in [(["a"], ["x"]), (["b_off"], ["y"])] * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


class TestLookup:
    def test_as_in_a_toolkit(self) -> None:
        session = board("t", a_off="x").session()
        assert "x" in session
        assert "y" not in session
        assert 3 not in session
        assert len(session) == 2
        assert [each.name for each in session] == [each.name for each in session.all_tools] == ["t", "x"]
        assert session["x"].description == "What x does."
        with pytest.raises(UnknownNameError, match="there is no tool 'y'"):
            session["y"]

    def test_as_its_model_sees_it(self) -> None:
        session = board("t").session(presets={"t": {"note": "!"}})
        assert shown(session, "t") == []
        assert [tool.parameters["properties"] for tool in session] == [{}]

    def test_repr_imports_nothing(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register("no_such_module:thing")
        assert repr(toolkit.session()) == "Session(1 tools, groups=[], agent=None)"


class TestNamesakes:
    """What was set for a removed tool or group does not hold for another one of its name."""

    @pytest.mark.parametrize("again", [add, double])
    def test_presets_of_a_live_session(self, again: Callable[..., int]) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(add, name="t")
        toolkit.set_presets("t", {"a": 100})
        session = toolkit.session(presets={"t": {"a": Secret(5)}})
        inner = session.session()
        assert inner.call_sync("t").value == 6
        toolkit.unregister("t")
        toolkit.register(again, name="t")
        for each in (toolkit, session, inner):
            assert "a" in shown(each, "t")
            assert each.call_sync("t").status is Status.INVALID
            assert each.call_sync("t", {"a": 1}).value == 2
        assert session.presets_of("t") == {}
        session.update_presets("t", {"a": 7})
        assert session.presets_of("t").keys() == {"a"}

    def test_presets_and_replacing(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(add, name="t", presets={"a": 1, "b": 2})
        session = toolkit.session(presets={"t": {"b": 5}})
        toolkit.register(double, name="t", on_conflict="replace", presets={"a": 4})
        assert session.call_sync("t").value == 8
        assert session.presets_of("t").keys() == {"a"}

    def test_presets_of_a_packs_tool_and_the_programs_of_its_name(self) -> None:
        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [add]

        toolkit = Toolkit(plugins=[Pack()])
        session = toolkit.session(presets={"add": {"a": 1}})
        toolkit.register(double, name="add")
        assert session.call_sync("add").status is Status.INVALID
        toolkit.unregister("add")
        assert session.call_sync("add").status is Status.INVALID
        assert session.call_sync("add", {"a": 1}).value == 2

    def test_what_a_session_allowed(self) -> None:
        @tool(requires_approval=True)
        def wipe() -> str:
            return "wiped"

        toolkit = Toolkit(plugins=())
        toolkit.register(wipe)
        session = toolkit.session()
        session.set_permission("wipe", "always")
        assert session.session().call_sync("wipe").text == "wiped"
        toolkit.unregister("wipe")
        toolkit.register(wipe)
        assert session.call_sync("wipe").status is session.session().call_sync("wipe").status is Status.DENIED

    def test_what_a_session_forbade_stays_forbidden(self) -> None:
        toolkit = board("t")
        session = toolkit.session()
        session.set_permission("t", "never")
        toolkit.unregister("t")
        toolkit.register(double, name="t")
        assert session.call_sync("t", {"a": 1}).status is Status.DENIED
        assert toolkit.call_sync("t", {"a": 1}).value == 2

    def test_an_allowance_holds_for_the_tool_that_takes_the_place(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(tool(requires_approval=True)(named("t")))
        session = toolkit.session()
        session.set_permission("t", "always")
        toolkit.register(tool(requires_approval=True)(named("t")), on_conflict="replace")
        assert session.call_sync("t").text == "t"
        toolkit.unregister("t")
        toolkit.register(tool(requires_approval=True)(named("t")))
        assert session.call_sync("t").status is Status.DENIED

    def test_presets_of_a_tool_whose_name_becomes_another(self) -> None:
        """Two packs with tools of one name: what was said of each is said of it under both of its names."""

        class One:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [named("roll")]

        class Two(One): ...

        toolkit = Toolkit(plugins=[One(), Two()])
        session = toolkit.session(presets={"one__roll": {"note": "!"}})
        toolkit.unregister("two__roll")
        assert names(session) == ["roll"]
        assert session.call_sync("roll").text == "roll!"

    def test_a_session_keeps_no_tool_that_is_gone(self) -> None:
        function = named("t")
        gone = weakref.ref(function)
        toolkit = Toolkit(plugins=())
        toolkit.create_group("a")
        toolkit.register(function, group="a")
        session = toolkit.session(presets={"t": {"note": "!"}}, groups=["a"])
        session.set_permission("t", "prompt")
        toolkit.unregister("t")
        del function
        names(session)
        gc.collect()
        assert gone() is None

    def test_groups(self) -> None:
        toolkit = board(a_off="x")
        session = toolkit.session()
        session.update_groups("a_off", True)
        toolkit.remove_groups("a_off")
        toolkit.create_group("a_off", active=False)
        toolkit.register(named("x"), group="a_off")
        assert session.call_sync("x").status is Status.INACTIVE
        assert toolkit.active_groups == session.active_groups == ()

    def test_groups_of_a_session_that_is_closed(self) -> None:
        toolkit = board(a="x")
        guest = toolkit.session(groups=["a"])
        toolkit.remove_groups("a")
        toolkit.create_group("a")
        assert guest.active_groups == ()


class TestAllOrNone:
    @pytest.mark.parametrize(
        "attempt",
        [
            lambda toolkit: toolkit.unregister("x", "nothing", "t"),
            lambda toolkit: toolkit.remove_groups(["a", "nothing", "b_off"]),
            lambda toolkit: toolkit.update_groups(["a", "nothing"], False),
            lambda toolkit: toolkit.set_active_groups(["b_off", "nothing"]),
            lambda toolkit: toolkit.session(groups=["a", "nothing"]),
            lambda toolkit: toolkit.session(presets={"t": {"note": "!"}, "nothing": {}}),
            lambda toolkit: toolkit.set_presets("t", {"note": "!", "nothing": 1}),
            lambda toolkit: toolkit.update_presets("t", {"note": 3}),
            lambda toolkit: toolkit.create_group("a", active=False),
            lambda toolkit: toolkit.create_group("c", managed_by="nobody"),
            lambda toolkit: toolkit.register(named("z"), group=["a", "nothing"]),
        ],
    )
    def test_a_refused_change_changes_nothing(self, attempt: Callable[[Toolkit], Any]) -> None:
        toolkit = board("t", a="x", b_off="y")
        session = toolkit.session()

        def state() -> Any:
            return (
                [[(each.name, each.groups, each.parameters) for each in some] for some in (toolkit, session)],
                [names(each) for each in (toolkit, session)],
                toolkit.groups,
                toolkit.active_groups,
                session.active_groups,
                toolkit.permissions,
            )

        before = state()
        with pytest.raises(PegboardError):
            attempt(toolkit)
        assert state() == before

    @pytest.mark.parametrize(
        "attempt", [lambda toolkit: toolkit.unregister("x", "y"), lambda toolkit: toolkit.remove_groups(["a"])]
    )
    def test_a_file_that_cannot_be_written(
        self, attempt: Callable[[Toolkit], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        toolkit = Toolkit(plugins=[Policy(permissions=tmp_path / "permissions.json")])
        toolkit.create_group("a")
        toolkit.register(named("x"), named("y"), group="a")
        toolkit.set_permission("x", "always")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(SettingsError, match="No space left"):
            attempt(toolkit)
        with pytest.raises(SettingsError, match="No space left"):
            toolkit.set_permission("y", "never")
        assert names(toolkit) == ["x", "y"]
        assert toolkit.active_groups == ("a",)
        assert toolkit.permissions == {"x": "always", "y": "always"}
        assert toolkit.call_sync("y").status is Status.SUCCESS

    def test_no_deletion(self) -> None:
        toolkit = Toolkit(plugins=(), allow_tool_deletion=False)
        toolkit.create_group("a")
        toolkit.register(add, group="a")
        session = toolkit.session()
        for attempt in (
            lambda: toolkit.unregister("add"),
            lambda: toolkit.unregister("nothing"),
            lambda: toolkit.remove_groups("a"),
            lambda: toolkit.register(double, name="add", on_conflict="replace"),
        ):
            with pytest.raises(PegboardError, match="allow_tool_deletion=False"):
                attempt()
        assert session.call_sync("add", {"a": 1}).value == 2
        session.update_groups("a", False)
        assert names(session) == []
