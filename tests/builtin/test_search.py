"""Large boards: deferred tools, and `search_tools` that finds them."""

import json
from typing import Annotated, Any

import pytest

from pegboard import Param, Session, Status, Toolkit, tool
from pegboard.hookspecs import hookimpl
from tests.support.board_tools import named, names, shown

SEARCH = "search_tools"


def deferred(name: str, description: str = "") -> Any:
    return tool(defer=True, name=name, description=description or f"What {name} does.")(named(name))


@tool(defer=True)
def sendInvoice(customer: Annotated[str, "Who has to pay"], total_cents: int) -> str:
    """Write a bill and post it."""
    return f"{customer} owes {total_cents}"


@tool(defer=True)
def get_weather(city: Annotated[str, "Where"], days: Annotated[int, Param("How far ahead", ge=1)] = 1) -> str:
    """Forecast for a city."""
    return city


def board(count: int = 12, threshold: int = 10, **options: Any) -> Toolkit:
    """`count` deferred tools, among them two that say something, and one that is not deferred."""
    toolkit = Toolkit(plugins=(), defer_threshold=threshold, **options)
    toolkit.register(named("plain"), sendInvoice, get_weather)
    for number in range(count - 2):
        toolkit.register(deferred(f"other_{number:02}"))
    return toolkit


def found(board: Toolkit | Session, query: str, **more: Any) -> list[str]:
    result = board.call_sync(SEARCH, {"query": query, **more})
    assert result.status is Status.SUCCESS, result.text
    return [each["name"] for each in json.loads(result.text)]


class TestThreshold:
    def test_up_to_it_everything_is_listed(self) -> None:
        toolkit = board(10)
        assert len(names(toolkit)) == 11
        assert SEARCH not in toolkit
        assert toolkit.call_sync(SEARCH, {"query": "x"}).status is Status.NOT_FOUND
        with pytest.raises(KeyError):
            toolkit[SEARCH]

    def test_above_it_they_are_found(self) -> None:
        toolkit = board(11)
        assert names(toolkit) == ["plain", SEARCH]
        assert [schema.name for schema in toolkit.schemas()] == ["plain", SEARCH]
        assert SEARCH in toolkit
        assert toolkit[SEARCH].name == SEARCH
        assert len(toolkit) == len(toolkit.all_tools) == 12
        assert "sendInvoice" in toolkit

    def test_the_tool(self) -> None:
        (schema,) = [each for each in board().schemas() if each.name == SEARCH]
        assert schema.parameters == {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few words, or its name"},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 50,
                    "description": "How many tools to return at most",
                    "default": 5,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        }

    def test_can_be_set(self) -> None:
        assert names(board(2, threshold=2)) == ["plain", "sendInvoice", "get_weather"]
        assert names(board(2, threshold=1)) == names(board(2, threshold=0)) == ["plain", SEARCH]
        assert names(Toolkit(plugins=(), defer_threshold=0)) == []
        with pytest.raises(ValueError, match="defer_threshold takes a number of tools, 0 or more; got -1"):
            Toolkit(plugins=(), defer_threshold=-1)

    def test_comes_and_goes_with_the_tools(self) -> None:
        toolkit = board(10)
        session = toolkit.session()
        assert SEARCH not in names(session)
        toolkit.register(deferred("one_more"))
        assert names(session) == ["plain", SEARCH]
        toolkit.unregister("one_more")
        assert len(names(session)) == 11

    def test_only_offered_tools_count(self) -> None:
        toolkit = Toolkit(plugins=(), defer_threshold=2)
        toolkit.create_group("off", active=False)
        toolkit.register(deferred("a"), deferred("b"))
        toolkit.register(deferred("c"), group="off")
        assert names(toolkit) == ["a", "b"]
        session = toolkit.session(groups=["off"])
        assert names(session) == [SEARCH]
        assert names(toolkit) == ["a", "b"]
        assert toolkit.call_sync(SEARCH, {"query": "a"}).status is Status.NOT_FOUND


class TestSearch:
    def test_the_result_holds_what_is_needed_to_call(self) -> None:
        toolkit = board()
        result = toolkit.call_sync(SEARCH, {"query": "bill", "limit": 1})
        assert result.data == [toolkit["sendInvoice"].schema().to_dict()]
        assert json.loads(result.text) == result.data
        assert result.data[0].keys() == {"name", "description", "parameters"}

    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("sendInvoice", "sendInvoice"),
            ("invoices", "sendInvoice"),
            ("posting bills", "sendInvoice"),
            ("customer", "sendInvoice"),
            ("cents", "sendInvoice"),
            ("who pays", "sendInvoice"),
            ("weather in a city", "get_weather"),
            ("far ahead", "get_weather"),
            ("other_07", "other_07"),
        ],
    )
    def test_finds_by_name_description_and_parameters(self, query: str, name: str) -> None:
        assert found(board(), query)[0] == name

    def test_limit(self) -> None:
        toolkit = board()
        assert found(toolkit, "other") == [f"other_{number:02}" for number in range(5)]
        assert found(toolkit, "other", limit=2) == ["other_00", "other_01"]
        assert toolkit.call_sync(SEARCH, {"query": "other", "limit": 0}).status is Status.INVALID

    def test_nothing_fits(self) -> None:
        toolkit = board()
        assert found(toolkit, "quantum chromodynamics") == found(toolkit, "") == []
        assert names(toolkit) == ["plain", SEARCH]

    def test_tools_that_are_listed_anyway_are_not_searched(self) -> None:
        assert found(board(), "plain") == []

    def test_follows_the_board(self) -> None:
        toolkit = board()
        session = toolkit.session()
        assert found(session, "parcel") == []
        toolkit.register(deferred("track", "Where a parcel is"))
        assert found(session, "parcel") == ["track"]
        toolkit.unregister("track")
        assert found(session, "parcel") == []

    def test_respects_groups(self) -> None:
        toolkit = board()
        toolkit.create_group("off", active=False)
        toolkit.register(deferred("track", "Where a parcel is"), group="off")
        session = toolkit.session()
        assert found(session, "parcel") == []
        session.update_groups("off", True)
        assert found(session, "parcel") == ["track"]
        assert "track" in names(session)
        session.update_groups("off", False)
        assert "track" not in names(session)

    def test_respects_permissions(self) -> None:
        toolkit = board()
        session = toolkit.session()
        session.set_permission("sendInvoice", "never")
        assert found(session, "invoice") == []
        assert found(toolkit, "invoice") == ["sendInvoice"]

    def test_respects_presets(self) -> None:
        toolkit = board()
        session = toolkit.session(presets={"sendInvoice": {"total_cents": 5}})
        assert found(session, "cents") == []
        (schema,) = session.call_sync(SEARCH, {"query": "invoice"}).data
        assert list(schema["parameters"]["properties"]) == ["customer"]
        assert shown(session, "sendInvoice") == ["customer"]
        assert found(toolkit, "cents") == ["sendInvoice"]

    def test_from_the_program(self) -> None:
        toolkit = board()
        session = toolkit.session()
        assert [each.name for each in session.search("weather", 1)] == ["get_weather"]
        assert session.found_tools == ("get_weather",)
        assert [each.name for each in board(2).session().search("weather", 1)] == ["get_weather"]

    def test_a_tool_whose_pack_is_broken(self) -> None:
        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return ["no_such_module:broken"]

        toolkit = Toolkit(plugins=[Pack()], defer_threshold=0)
        toolkit.register(get_weather)
        assert names(toolkit.session())[-1] == SEARCH
        assert found(toolkit, "weather broken") == ["get_weather"]

    def test_import_strings_may_be_deferred(self) -> None:
        toolkit = Toolkit(plugins=(), defer_threshold=0)
        toolkit.register(f"{__name__}:get_weather")
        assert names(toolkit) == [SEARCH]
        assert found(toolkit, "weather") == ["get_weather"]


class TestFound:
    def test_is_listed_from_then_on(self) -> None:
        session = board().session()
        found(session, "weather")
        assert names(session) == ["plain", "get_weather", SEARCH]  # the first look is in board order
        assert [schema.name for schema in session.schemas()] == names(session)
        found(session, "invoice")
        assert names(session) == ["plain", "get_weather", SEARCH, "sendInvoice"]
        assert session.found_tools == ("sendInvoice", "get_weather")

    def test_in_that_session_only(self) -> None:
        toolkit = board()
        ann, bob = toolkit.session(), toolkit.session()
        found(ann, "weather")
        inner = ann.session()
        found(inner, "invoice")
        assert ann.found_tools == ("get_weather",)
        assert inner.found_tools == ("sendInvoice", "get_weather")
        assert names(bob) == names(toolkit) == ["plain", SEARCH]

    def test_a_namesake_has_to_be_found_anew(self) -> None:
        toolkit = board()
        session = toolkit.session()
        found(session, "weather")
        toolkit.unregister("get_weather")
        toolkit.register(get_weather)
        assert session.found_tools == ()

    def test_calling_by_name_always_works(self) -> None:
        session = board().session()
        assert session.call_sync("get_weather", {"city": "Ulm"}).text == "Ulm"
        assert names(session) == ["plain", SEARCH]


class TestRivals:
    def test_a_tool_of_the_program(self) -> None:
        toolkit = board()
        toolkit.register(named(SEARCH))
        assert len(names(toolkit)) == 14
        assert toolkit.call_sync(SEARCH).text == SEARCH
        (problem,) = toolkit.problems
        assert problem == (
            "all deferred tools are listed, for 'search_tools' (the program) has the name of the search for them; give "
            "it another one"
        )
        toolkit.unregister(SEARCH)
        assert names(toolkit) == ["plain", SEARCH]
        assert toolkit.problems == []

    def test_a_tool_of_a_pack(self) -> None:
        class Acme:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [named(SEARCH), *(deferred(f"t{number}") for number in range(3))]

        toolkit = Toolkit(plugins=[Acme()], defer_threshold=2)
        assert len(names(toolkit)) == 4
        assert "'search_tools' (Acme)" in toolkit.problems[0]
        view = toolkit.view(prefix="x_", rename={SEARCH: "acme_search"})
        assert view.problems == []
        assert names(view) == ["x_acme_search", f"x_{SEARCH}"]
        assert view.call_sync("x_acme_search").text == SEARCH
        view.set_presets("x_acme_search", {"note": "!"})
        view.set_permission("x_acme_search", "never")
        assert shown(view, f"x_{SEARCH}") == ["query", "limit"]
        assert view.call_sync(f"x_{SEARCH}", {"query": "t1"}).data[0]["name"] == "x_t1"

    def test_no_problem_where_nothing_is_left_out(self) -> None:
        toolkit = board(3)
        toolkit.register(named(SEARCH))
        assert toolkit.problems == []


class TestViews:
    def test_have_a_search_of_their_own(self) -> None:
        toolkit = board()
        view = toolkit.view(prefix="v_", exclude="sendInvoice")
        assert names(view) == ["v_plain", "v_search_tools"]
        result = view.call_sync("v_search_tools", {"query": "weather invoice"})
        assert (result.name, [each["name"] for each in result.data]) == ("v_search_tools", ["v_get_weather"])
        assert names(view) == ["v_plain", "v_search_tools", "v_get_weather"]
        assert view.call_sync("v_get_weather", {"city": "Ulm"}).text == "Ulm"
        assert names(toolkit) == ["plain", SEARCH]
        assert view.call_sync(SEARCH, {"query": "x"}).status is Status.NOT_FOUND

    def test_count_what_they_show(self) -> None:
        toolkit = board()
        assert len(names(toolkit.view(exclude="other_*"))) == 3
        assert names(toolkit.view(include="other_*"))[-1] == "other_09"

    def test_what_the_wider_session_found_is_found(self) -> None:
        toolkit = board()
        session = toolkit.session()
        found(session, "weather")
        assert names(session.view(prefix="v_")) == ["v_plain", "v_get_weather", "v_search_tools"]


def test_presets_and_permissions_of_the_search_itself() -> None:
    toolkit = board()
    session = toolkit.session()
    session.set_presets(SEARCH, {"limit": 1})
    assert shown(session, SEARCH) == ["query"]
    assert found(session, "other") == ["other_00"]
    session.set_permission(SEARCH, "never")
    assert session.call_sync(SEARCH, {"query": "x"}).status is Status.DENIED
    assert len(found(toolkit, "other")) == 5


def test_search_is_deterministic_over_a_thousand_tools() -> None:
    toolkit = Toolkit(plugins=())
    toolkit.register(*(deferred(f"tool_{number}", f"Does thing {number % 7}") for number in range(1000)))
    again = Toolkit(plugins=())
    again.register(*(deferred(f"tool_{number}", f"Does thing {number % 7}") for number in reversed(range(1000))))
    assert found(toolkit, "thing 3", limit=20) == found(again, "thing 3", limit=20)
