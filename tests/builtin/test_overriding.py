"""What the core brings itself comes through the hooks that packs use, and a pack may bring its own instead."""

from typing import Any

import pytest

from pegboard import Injector, PegboardError, Session, Status, Toolkit, hookimpl, tool
from pegboard.inspection import plugins_of
from tests.support.board_tools import named, names


def pack(**hooks: Any) -> Any:
    """A plugin with these hooks, each answering with what it is given."""

    def answering(answer: list[Any]) -> Any:
        return staticmethod(hookimpl(lambda: answer))

    return type("Acme", (), {name: answering(answer) for name, answer in hooks.items()})()


@pytest.mark.parametrize("hook", ["provide_types", "provide_injectors", "provide_converters", "provide_tools"])
def test_the_core_is_a_plugin_too(hook: Any) -> None:
    found = plugins_of(Toolkit(plugins=())).contributions(hook)
    assert found
    assert all(each.builtin and str(each.origin).startswith("pegboard.builtin.") for each in found)


class TestTools:
    def test_the_tool_that_switches_groups(self) -> None:
        @tool(name="reset_equipped_tools", replaces="pegboard__reset_equipped_tools")
        def only(session: Session, to_activate: str) -> str:
            """Activate one group."""
            session.set_active_groups([to_activate])
            return "switched"

        toolkit = Toolkit(plugins=[pack(provide_tools=[only])])
        toolkit.create_group("a", active=False)
        toolkit.create_group("b")
        toolkit.register(named("x"), group="a")
        assert toolkit.register_meta_tool().description == "Activate one group."
        assert "call reset_equipped_tools" in toolkit.call_sync("x").text
        assert toolkit.call_sync("reset_equipped_tools", {"to_activate": "a"}).text == "switched"
        assert (toolkit.active_groups, toolkit.call_sync("x").text) == (("a",), "x")

    def test_the_search(self) -> None:
        @tool(replaces="pegboard__search_tools")
        def search_tools(session: Session, first: str) -> list[str]:
            """Find tools by their first letters."""
            found = [each.name for each in session.deferred_tools if each.name.startswith(first)]
            session.add_found_tools(*found)
            return found

        toolkit = Toolkit(plugins=[pack(provide_tools=[search_tools])], defer_threshold=2)
        toolkit.register(*(tool(defer=True)(named(name)) for name in ("ant", "asp", "bee")))
        toolkit.register(named("plain"))
        assert (names(toolkit), toolkit.problems) == (["search_tools", "plain"], [])
        session = toolkit.session()
        assert session.call_sync("search_tools", {"first": "a"}).data == ["ant", "asp"]
        assert names(session) == ["search_tools", "plain", "ant", "asp"]
        assert session.found_tools == ("ant", "asp")
        assert toolkit.found_tools == ()

    @pytest.mark.parametrize("parameters", ["first: str", "limit: int, query: str", "query: str, limit: int = 9"])
    @pytest.mark.parametrize(
        "answer", ["found", "[session[each].schema().to_dict() for each in found]", "'listed ' + ', '.join(found)"]
    )
    def test_the_search_of_the_program_asks_it_too(self, parameters: str, answer: str) -> None:
        source = f"""
def search_tools(session: Session, {parameters}):
    "Find tools by their first letters."
    asked.append({{name: each for name, each in locals().items() if name != "session"}})
    wanted = {"first" if "first" in parameters else "query"}
    found = [each.name for each in session.deferred_tools if each.name.startswith(wanted)]
    session.add_found_tools(*found)
    return {answer}
"""
        made: dict[str, Any] = {"Session": Session, "asked": []}
        exec(source, made)
        own = tool(replaces="pegboard__search_tools")(made["search_tools"])
        toolkit = Toolkit(plugins=[pack(provide_tools=[own])], defer_threshold=2)
        toolkit.register(*(tool(defer=True)(named(name)) for name in ("ant", "asp", "bee")))
        session = toolkit.session()
        assert [each.name for each in session.search("a", 2)] == ["ant", "asp"]
        assert (session.found_tools, toolkit.found_tools) == (("ant", "asp"), ())
        limit = {"limit": 2} if "limit" in parameters else {}
        assert made["asked"] == [{"first" if "first" in parameters else "query": "a", **limit}]
        view = toolkit.view(prefix="v_")
        assert [each.name for each in view.search("v_b")] == ["v_bee"]

    def test_a_search_that_fails_raises(self) -> None:
        @tool(replaces="pegboard__search_tools")
        def search_tools(query: str) -> list[str]:
            """Find nothing."""
            raise ValueError("the index is gone")

        toolkit = Toolkit(plugins=[pack(provide_tools=[search_tools])])
        with pytest.raises(PegboardError, match="the index is gone"):
            toolkit.search("a")

    def test_the_tool_that_reads_on(self) -> None:
        @tool(replaces="pegboard__read_output")
        def read_output(session: Session, handle: str) -> str:
            """The next five characters."""
            return session.read_output(handle, 100)[:5]

        toolkit = Toolkit(plugins=[pack(provide_tools=[read_output])], max_output=100, overflow="spill")
        toolkit.register(lambda: "-" * 100 + "56789x", name="tell")
        handle = toolkit.call_sync("tell").text.partition('handle="')[2].partition('"')[0]
        assert toolkit.call_sync("read_output", {"handle": handle}).text == "56789"
        assert names(toolkit) == ["read_output", "tell"]

    def test_a_namesake_that_does_not_say_so_replaces_nothing(self) -> None:
        toolkit = Toolkit(plugins=[pack(provide_tools=[named("read_output")])], max_output=100, overflow="spill")
        assert toolkit.call_sync("read_output", {"handle": "output_0"}).status is Status.ERROR
        assert toolkit.call_sync("acme__read_output").text == "read_output"

    def test_kept_output_is_read_by_the_program_too(self) -> None:
        toolkit = Toolkit(plugins=(), max_output=100, overflow="spill")
        toolkit.register(lambda: "-" * 103 + "789", name="tell")
        session = toolkit.session()
        handle = session.call_sync("tell").text.partition('handle="')[2].partition('"')[0]
        assert session.read_output(handle, 103) == toolkit.read_output(handle, 103) == "789"
        with pytest.raises(Exception, match="no output 'x' is kept"):
            toolkit.read_output("x")
        with pytest.raises(Exception, match="long output is cut here"):
            Toolkit(plugins=()).read_output(handle)


class Audited:
    """What a pack gives out in the place of the core's own."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner


@pytest.mark.parametrize("special", [Session, Toolkit])
def test_injectors_of_session_and_toolkit(special: Any) -> None:
    def provide(invocation: Any) -> Any:
        return Audited(special)

    provide.__annotations__ = {"invocation": _invocation()}

    def who(given: special) -> str:
        return type(given).__name__

    own, other = Toolkit(plugins=()), Toolkit(plugins=[pack(provide_injectors=[Injector(special, provide)])])
    for toolkit, expected in [(own, "Toolkit"), (other, "Audited")]:  # a toolkit is its own root session
        toolkit.register(who)
        assert toolkit.call_sync("who").text == expected


def test_a_tool_gets_the_toolkit_of_its_session() -> None:
    given: list[Any] = []

    def who(toolkit: Toolkit, session: Session) -> None:
        given.extend([toolkit, session])

    toolkit = Toolkit(plugins=())
    toolkit.register(who)
    session = toolkit.session()
    session.call_sync("who")
    assert given == [toolkit, session]
    assert session.toolkit is toolkit


def _invocation() -> Any:
    from pegboard._injection.invocation import Invocation

    return Invocation
