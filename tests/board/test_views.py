"""Views: some of the tools, under names of their own; what is not shown does not exist."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from pegboard import (
    ConflictError,
    Dialect,
    Permission,
    RegistrationError,
    Session,
    Status,
    Suspend,
    Tool,
    Toolkit,
    UnknownNameError,
    tool,
    toolset,
)
from pegboard.hookspecs import hookimpl
from tests.support.board_tools import add, board, named, names, shown


@toolset
class Files:
    @tool(tags=["read"], read_only=True)
    def read(self, path: str, root: str = "/") -> str:
        """Read a file."""
        return f"{root}{path}"

    @tool(tags=["write"])
    def write(self, path: str) -> str:
        """Write a file."""
        return f"wrote {path}"

    @tool(tags=["write", "danger"])
    def wipe(self, path: str) -> str:
        """Delete a file."""
        return f"wiped {path}"


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(Files(), add)
    return toolkit


class TestWhatIsShown:
    @pytest.mark.parametrize(
        ("lens", "expected"),
        [
            ({}, ["read", "write", "wipe", "add"]),
            ({"include": "read"}, ["read"]),
            ({"include": ["wipe", "read"]}, ["read", "wipe"]),
            ({"include": ["w*", "add"]}, ["write", "wipe", "add"]),
            ({"include": []}, []),
            ({"include": "nothing_*"}, []),
            ({"exclude": "wipe"}, ["read", "write", "add"]),
            ({"exclude": "*"}, []),
            ({"include": "w*", "exclude": ["wi?e"]}, ["write"]),
            ({"tags": "write"}, ["write", "wipe"]),
            ({"tags": ["danger", "read"]}, ["read", "wipe"]),
            ({"tags": "write", "exclude": "wipe"}, ["write"]),
            ({"where": lambda tool: tool.hints.read_only is True}, ["read"]),
            ({"prefix": "fs_"}, ["fs_read", "fs_write", "fs_wipe", "fs_add"]),
            ({"rename": {"read": "open"}}, ["open", "write", "wipe", "add"]),
            ({"rename": {"read": "open"}, "prefix": "fs_", "tags": "read"}, ["fs_open"]),
            ({"rename": str.upper}, ["READ", "WRITE", "WIPE", "ADD"]),
            ({"rename": {"read": "write", "write": "read"}}, ["write", "read", "wipe", "add"]),
        ],
    )
    def test_fits_everything_that_is_asked(self, toolkit: Toolkit, lens: dict[str, Any], expected: list[str]) -> None:
        for maker in (toolkit, toolkit.session()):
            view = maker.view(**lens)
            assert names(view) == expected
            assert [each.name for each in view.schemas()] == expected
            assert [each.name for each in view] == [each.name for each in view.all_tools] == expected
            assert len(view) == len(expected)
            assert all(name in view and view[name].name == view[name].name == name for name in expected)
            assert list(view.permissions) == expected

    def test_leaves_the_toolkit_as_it_was(self, toolkit: Toolkit) -> None:
        before = toolkit.schemas()
        toolkit.view(prefix="x_", exclude="read").schemas()
        assert toolkit.schemas() == before

    def test_toolsets(self, toolkit: Toolkit) -> None:
        (files,) = toolkit.view(tags="write", prefix="fs_").toolsets
        assert [each.name for each in files.tools] == ["fs_write", "fs_wipe"]
        assert toolkit.view(include="add").toolsets == []

    def test_dialects(self) -> None:
        class Pack:
            @hookimpl
            def provide_dialects(self) -> list[Any]:
                return [Dialect("names", lambda tools: [{"name": tool.name} for tool in tools])]

        toolkit = Toolkit(plugins=[Pack()])
        toolkit.register(add)
        assert toolkit.view(prefix="x_").schemas(dialect="names") == [{"name": "x_add"}]

    def test_packs_by_their_names(self) -> None:
        class Acme:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [named("look"), named("roll")]

        toolkit = Toolkit(plugins=[Acme()])
        toolkit.register(add)
        assert names(toolkit.view(include="acme__*")) == ["look", "roll"]
        assert names(toolkit.view(exclude="acme__look")) == ["roll", "add"]
        assert "acme__look" in toolkit
        assert "acme__look" not in toolkit.view()

    def test_follows_the_board(self, toolkit: Toolkit) -> None:
        view = toolkit.view(include=["read", "new_*"], prefix="v_")
        toolkit.register(named("new_one"))
        assert names(view) == ["v_read", "v_new_one"]
        assert view.call_sync("v_new_one").text == "new_one"
        toolkit.unregister("read")
        assert names(view) == ["v_new_one"]
        assert view.call_sync("v_read", {"path": "a"}).status is Status.NOT_FOUND

    def test_is_computed_once_for_a_board(self, toolkit: Toolkit) -> None:
        asked: list[str] = []

        def where(tool: Tool) -> bool:
            asked.append(tool.name)
            return True

        view = toolkit.view(where=where)
        view.schemas()
        for session in (view, view.session(), view.session()):
            session.call_sync("read", {"path": "a"})
            session.update_groups([], True)
            names(session)
        assert asked == ["read", "write", "wipe", "add"]


class TestCalls:
    def test_by_the_names_shown(self, toolkit: Toolkit) -> None:
        view = toolkit.view(include="read", prefix="fs_")
        result = view.call_sync("fs_read", {"path": "a"})
        assert (result.name, result.text) == ("fs_read", "/a")
        prepared = view.prepare("fs_read", {"path": "a"})
        assert (prepared.name, prepared.execute_sync().name) == ("fs_read", "fs_read")
        assert [each.name for each in view.call_many_sync([("fs_read", {"path": "a"})] * 2)] == ["fs_read"] * 2

    @pytest.mark.parametrize("name", ["write", "fs_write", "read", "wipe"])
    def test_hidden_tools_do_not_exist(self, toolkit: Toolkit, name: str) -> None:
        view = toolkit.view(include="read", prefix="fs_")
        result = view.call_sync(name, {"path": "a"})
        assert result.status is Status.NOT_FOUND
        assert "fs_read" in result.text
        assert not {"'write'", "'read'", "wipe?", "'wipe'?", "'fs_write'?"} & set(result.text.split())
        assert name not in view
        for attempt in (view.__getitem__, view.presets_of, lambda name: view.set_permission(name, "never")):
            with pytest.raises(UnknownNameError, match="fs_read"):
                attempt(name)

    def test_names_that_change_places(self, toolkit: Toolkit) -> None:
        view = toolkit.view(rename={"read": "write", "write": "read"})
        assert view.call_sync("read", {"path": "a"}).text == "wrote a"
        assert view.call_sync("write", {"path": "a"}).text == "/a"
        assert toolkit.call_sync("read", {"path": "a"}).text == "/a"

    def test_every_message_speaks_of_the_names_shown(self) -> None:
        def secretly(a: int) -> None:
            raise Suspend("later")

        toolkit = Toolkit(plugins=())
        toolkit.create_group("off", active=False)
        toolkit.register(secretly)
        toolkit.register(secretly, name="secretly_off", group="off")
        view = toolkit.view(rename=lambda name: name.replace("secretly", "openly"))
        seen = [view.call_sync("openly", {"b": 1}), view.call_sync("openly_off"), view.call_sync("openly", {"a": 1})]
        view.set_permission("openly", "never")
        seen.append(view.call_sync("openly", {"a": 1}))
        view.set_permission("openly", "prompt")
        seen.append(view.call_sync("openly", {"a": 1}))
        statuses = [Status.INVALID, Status.INACTIVE, Status.SUSPENDED, Status.DENIED, Status.DENIED]
        assert [each.status for each in seen] == statuses
        assert [call.name for call in view.pending] == ["openly"]
        assert "secretly" not in "".join(f"{each.to_dict()} {each.error and each.error.details}" for each in seen)
        assert view.resume(view.pending[0].id, 3).name == "openly"

    def test_exclusive_is_exclusive_under_every_name(self) -> None:
        import threading
        import time

        running, most = [0], [0]
        lock = threading.Lock()

        @tool(exclusive=True)
        def alone() -> None:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.02)
            with lock:
                running[0] -= 1

        toolkit = Toolkit(plugins=())
        toolkit.register(alone)
        view = toolkit.view(prefix="v_")
        calls: list[Callable[[], Any]] = [lambda: view.call_sync("v_alone"), lambda: toolkit.call_sync("alone")]
        threads = [threading.Thread(target=call) for call in calls * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == [1]


class TestAsASession:
    def test_presets_by_the_names_shown(self, toolkit: Toolkit) -> None:
        toolkit.set_presets("read", {"root": "/srv/"})
        view = toolkit.view(prefix="fs_")
        view.set_presets("fs_read", {"path": "a"})
        assert view.call_sync("fs_read").text == "/srv/a"
        assert shown(view, "fs_read") == []
        assert shown(toolkit, "read") == ["path"]
        assert view.presets_of("fs_read").keys() == {"path", "root"}
        with pytest.raises(UnknownNameError, match="fs_read"):
            view.session(presets={"read": {"path": "a"}})
        assert view.session(presets={"fs_read": {"path": "b"}}).call_sync("fs_read").text == "/srv/b"

    def test_permissions_by_the_names_shown(self, toolkit: Toolkit) -> None:
        toolkit.set_permission("wipe", "never")
        view = toolkit.view(prefix="fs_")
        assert view.permissions["fs_wipe"] is Permission.NEVER
        assert view.call_sync("fs_wipe", {"path": "a"}).status is Status.DENIED
        view.set_permission("fs_read", "never")
        assert view.call_sync("fs_read", {"path": "a"}).status is Status.DENIED
        assert toolkit.permissions["read"] is Permission.ALWAYS

    def test_a_name_given_to_another_tool_brings_it_no_permission(self, toolkit: Toolkit) -> None:
        toolkit.set_permission("wipe", "never")
        view = toolkit.view(rename={"read": "wipe", "wipe": "read"})
        assert view.call_sync("wipe", {"path": "a"}).text == "/a"
        assert view.call_sync("read", {"path": "a"}).status is Status.DENIED

    def test_groups_are_the_wider_sessions_until_it_says_otherwise(self) -> None:
        toolkit = board(a="x", b_off="y")
        view = toolkit.view(prefix="v_")
        assert names(view) == ["v_x"]
        toolkit.update_groups("b_off", True)
        assert names(view) == ["v_x", "v_y"]
        view.update_groups("a", False)
        assert (names(view), names(toolkit)) == (["v_y"], ["x", "y"])

    def test_sessions_of_a_view_see_through_it(self, toolkit: Toolkit) -> None:
        view = toolkit.view(include="read", prefix="fs_")
        session = view.session()
        assert names(session) == ["fs_read"]
        assert session.call_sync("wipe", {"path": "a"}).status is Status.NOT_FOUND

    def test_tools_that_ask_for_the_session_stay_in_the_view(self, toolkit: Toolkit) -> None:
        def nested(session: Session) -> str:
            return session.call_sync("wipe", {"path": "a"}).status.value

        toolkit.register(nested)
        assert toolkit.call_sync("nested").text == "success"
        assert toolkit.view(include="nested").call_sync("nested").text == "not_found"

    def test_the_meta_tool(self) -> None:
        toolkit = board(a_off="x")
        toolkit.register_meta_tool()
        view = toolkit.view(prefix="v_")
        text = view.call_sync("v_x").text
        assert "call v_reset_equipped_tools, with 'a_off'" in text
        view.call_sync("v_reset_equipped_tools", {"to_activate": ["a_off"]})
        assert view.call_sync("v_x").text == "x"
        assert toolkit.active_groups == ()
        assert names(view) == ["v_x", "v_reset_equipped_tools"]

    def test_what_is_too_long_can_be_read_on(self) -> None:
        def tell() -> str:
            return "x" * 300

        toolkit = Toolkit(plugins=(), max_output=100, overflow="spill")
        toolkit.register(tell)
        view = toolkit.view(include="tell", prefix="v_")
        text = view.call_sync("v_tell").text
        handle = text.partition('handle="')[2].partition('"')[0]
        assert names(view) == ["read_output", "v_tell"]
        assert view.call_sync("read_output", {"handle": handle, "offset": 200}).text == "x" * 100

    def test_middleware_is_chosen_by_the_tools_own_name(self) -> None:
        from pegboard import Middleware, ToolCall

        heard: list[str] = []

        def around(call: ToolCall, proceed: Callable[[], Any]) -> Any:
            heard.append(call.name)
            return proceed()

        class Pack:
            @hookimpl
            def provide_middleware(self) -> list[Any]:
                return [Middleware(around, applies=lambda tool: tool.name == "add")]

        toolkit = Toolkit(plugins=[Pack()])
        toolkit.register(add)
        toolkit.view(prefix="v_").call_sync("v_add", {"a": 1})
        assert heard == ["v_add"]


class TestViewsOfViews:
    def test_see_through_both(self, toolkit: Toolkit) -> None:
        outer = toolkit.view(tags="write", prefix="a_")
        inner = outer.view(exclude="a_wipe", prefix="b_")
        assert names(inner) == ["b_a_write"]
        assert inner.call_sync("b_a_write", {"path": "x"}).text == "wrote x"
        with pytest.raises(UnknownNameError, match=r"no|cannot find a tool 'write'"):
            outer.view(include="write")
        assert names(outer.view(where=lambda tool: tool.name == "a_wipe")) == ["a_wipe"]

    def test_can_never_show_more(self, toolkit: Toolkit) -> None:
        outer = toolkit.view(include="read")
        assert names(outer.view(include="*")) == ["read"]
        assert names(outer.session().view()) == ["read"]

    def test_say_what_they_say_of_one_tool(self, toolkit: Toolkit) -> None:
        outer = toolkit.view(prefix="a_")
        inner = outer.view(rename={"a_read": "look"})
        outer.set_presets("a_read", {"root": "/o/"})
        inner.set_presets("look", {"path": "p"})
        assert inner.call_sync("look").text == "/o/p"
        assert outer.call_sync("a_read", {"path": "q"}).text == "/o/q"


class TestRefused:
    @pytest.mark.parametrize(
        "lens", [{"include": "raed"}, {"exclude": ["raed"]}, {"rename": {"raed": "open"}}, {"rename": {"w*": "x"}}]
    )
    def test_a_name_that_nothing_has(self, toolkit: Toolkit, lens: dict[str, Any]) -> None:
        with pytest.raises(UnknownNameError, match=r"the view cannot find a tool '(raed'. Did you mean 'read'|w\*)"):
            toolkit.view(**lens)

    def test_two_tools_of_one_name(self, toolkit: Toolkit) -> None:
        with pytest.raises(ConflictError, match=r"'read' and 'write' would both be called 'io' in this view"):
            toolkit.view(rename={"read": "io", "write": "io"})
        with pytest.raises(ConflictError, match="'read' and 'write' and 'wipe' and 'add'"):
            toolkit.view(rename=lambda name: "same")
        assert names(toolkit.view(rename={"read": "io", "write": "io"}, exclude="write")) == ["io", "wipe", "add"]

    @pytest.mark.parametrize("lens", [{"prefix": "fs."}, {"prefix": "x" * 61}, {"rename": {"read": "re ad"}}])
    def test_names_that_providers_refuse(self, toolkit: Toolkit, lens: dict[str, Any]) -> None:
        with pytest.raises(RegistrationError, match="cannot be a tool name"):
            toolkit.view(**lens)

    def test_a_clash_that_comes_later(self, toolkit: Toolkit) -> None:
        view = toolkit.view(rename=lambda name: name.removeprefix("old_"))
        toolkit.register(named("old_read"))
        assert names(view) == ["write", "wipe", "add"]
        result = view.call_sync("read", {"path": "a"})
        assert result.status is Status.NOT_FOUND
        assert "'read' and 'old_read' would both be called 'read'" in result.text
        assert view.problems == [
            "'read' and 'old_read' would both be called 'read' in this view; rename one of them, or leave it out"
        ]
        toolkit.unregister("old_read")
        assert view.call_sync("read", {"path": "a"}).text == "/a"
        assert view.problems == []

    def test_a_name_too_long_that_comes_later(self, toolkit: Toolkit) -> None:
        view = toolkit.view(prefix="p" * 40)
        toolkit.register(named("n" * 40))
        assert len(names(view)) == 4
        assert "cannot be called that in this view" in view.problems[0]

    def test_a_predicate_that_fails_later(self, toolkit: Toolkit) -> None:
        def where(tool: Any) -> bool:
            if tool.name == "late":
                raise LookupError("no")
            return True

        view = toolkit.view(where=where)
        toolkit.register(named("late"))
        result = view.call_sync("add", {"a": 1})
        assert (result.status, result.error and result.error.kind) == (Status.ERROR, "unusable")


def test_parameters_of_tools_in_views_keep_their_types(toolkit: Toolkit) -> None:
    def scale(factor: Annotated[int, "How much"]) -> int:
        return factor * 10

    toolkit.register(scale)
    view = toolkit.view(prefix="v_")
    assert view.call_sync("v_scale", '{"factor": 2}').value == 20
    assert view["v_scale"].parameters == toolkit["scale"].parameters
