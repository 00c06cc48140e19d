"""Overriding how a type maps: by an installed pack, by the program, for one parameter; and who wins."""

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest

import pegboard_dataclasses
from pegboard import (
    Param,
    RegistrationError,
    SettingsError,
    Text,
    Toolkit,
    TypeHandler,
    TypePlan,
    Types,
    hookimpl,
    record_member,
    shaped,
    tool,
)
from pegboard_testing import fake_distribution
from tests.workspace.project import ROOT

ACME_UNITS = ROOT / "docs" / "examples" / "acme-units" / "src"
NOON = "2024-05-06T12:00:00Z"

PACK = """
from datetime import date, datetime
import pegboard

def build(annotation, types):
    schema = {"type": "string", "pattern": "^NAME:", "$comment": "NAME"}
    return pegboard.shaped(schema, pegboard.Text(lambda text: parse(text)), lambda value: f"NAME:{value:%Y}")

def parse(text):
    if not text.startswith("NAME:"):
        raise ValueError("write NAME:")
    return datetime(int(text.removeprefix("NAME:")), 1, 1)

@pegboard.hookimpl
def provide_types():
    return [pegboard.TypeHandler(MATCHES, build, priority=PRIORITY)]
"""


def year(mark: str) -> Callable[[Any, Types], TypePlan]:
    """Maps moments as `mark:2024`."""

    def parse(text: str) -> dt.datetime:
        name, _, digits = text.partition(":")
        if name != mark:
            raise ValueError(f"write {mark}:")
        return dt.datetime(int(digits), 1, 1)  # noqa: DTZ001 - a year is all that there is

    def build(annotation: Any, types: Types) -> TypePlan:
        schema = {"type": "string", "pattern": f"^{mark}:[0-9]{{4}}$", "$comment": mark}
        return shaped(schema, Text(parse), lambda value: f"{mark}:{value:%Y}")

    return build


def plugin(name: str, *handlers: TypeHandler) -> ModuleType:
    @hookimpl
    def provide_types() -> list[TypeHandler]:
        return list(handlers)

    module = ModuleType(name)
    vars(module)["provide_types"] = provide_types
    return module


@dataclass
class Event:
    """Something that happens."""

    at: dt.datetime
    also: list[dt.datetime | None]


@tool
def next_year(moment: dt.datetime) -> dt.datetime:
    """One year later."""
    return moment.replace(year=moment.year + 1)


@tool
def shift(events: dict[str, Event]) -> list[Event]:
    """Hand events back."""
    return list(events.values())


def mark_of(toolkit: Toolkit) -> str:
    """Which handler the schema of the parameter and the one of the result come from."""
    returns = toolkit["next_year"].returns or {}
    parameter = toolkit["next_year"].parameters["properties"]["moment"]
    assert parameter.get("$comment") == returns.get("$comment")
    return str(parameter.get("$comment", parameter.get("format")))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install packs that map moments, as an installer would."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def installed(name: str, version: str, *, matches: str = "datetime", priority: int = 0) -> None:
        source = PACK.replace("NAME", name).replace("MATCHES", matches).replace("PRIORITY", str(priority))
        module = f"overriding_{name}"
        fake_distribution(
            tmp_path,
            f"acme-{name}",
            version,
            entry_points={name: module},
            modules={module: source},
            requires=["pegboard"],
        )

    yield installed
    for module in set(sys.modules) - before:
        if module.startswith("overriding_"):
            del sys.modules[module]


class TestByAPack:
    def test_installed_it_holds_for_parameters_and_results(self, install: Callable[..., None]) -> None:
        install("years", "1.2")
        with Toolkit(plugins=["years"]) as toolkit:
            toolkit.register(next_year)
            assert mark_of(toolkit) == "years"
            assert toolkit.call_sync("next_year", {"moment": "years:2024"}).data == "years:2025"
            refused = toolkit.call_sync("next_year", {"moment": NOON})
            assert (refused.status, "write years:" in refused.text) == ("invalid", True)

    def test_removed_it_is_gone(self, install: Callable[..., None]) -> None:
        install("years", "1.2")
        with Toolkit(plugins=["years"], block=["years"]) as toolkit:
            toolkit.register(next_year)
            assert mark_of(toolkit) == "date-time"

    def test_of_two_packs_that_map_the_same_the_first_counts(self, install: Callable[..., None]) -> None:
        install("years", "1.2")
        install("ages", "0.9")
        with Toolkit(plugins=["years", "ages", "dataclasses"]) as toolkit:
            toolkit.register(next_year, shift)
            assert mark_of(toolkit) == "ages"
            assert toolkit.types.handler_for(dt.datetime)[1].plugin == "ages"
            (problem,) = toolkit.problems
            assert problem == (
                "acme-ages 0.9 and acme-years 1.2 both map datetime.datetime; acme-ages 0.9 counts; choose with "
                'settings={"pegboard": {"types": {"datetime.datetime": "years"}}}, or map it in the program with '
                "register_type(...)"
            )

    def test_priority_decides(self, install: Callable[..., None]) -> None:
        install("years", "1.2", priority=1)
        install("ages", "0.9")
        with Toolkit(plugins=["years", "ages"]) as toolkit:
            toolkit.register(next_year)
            assert mark_of(toolkit) == "years"

    @pytest.mark.parametrize(
        ("chosen", "mark"), [("years", "years"), ("ages", "ages"), ("year", "ages"), ("pegboard", "date-time")]
    )
    def test_settings_decide(self, install: Callable[..., None], tmp_path: Path, chosen: str, mark: str) -> None:
        install("years", "1.2")
        install("ages", "0.9", priority=1 if chosen == "years" else 0)
        (tmp_path / "pegboard.toml").write_text(f'[pegboard.types]\n"datetime.datetime" = "{chosen}"', "utf-8")
        said: list[dict[str, Any]] = [
            {"settings": {"pegboard": {"types": {"datetime.datetime": chosen}}}},
            {"config": tmp_path / "pegboard.toml"},
        ]
        for options in said:
            with Toolkit(plugins=["years", "ages"], **options) as toolkit:
                toolkit.register(next_year)
                assert (mark_of(toolkit), len(toolkit.problems)) == (mark, 2 if chosen == "year" else 0)

    @pytest.mark.parametrize(
        ("own", "said"),
        [({"type": {}}, "unknown key 'type'"), ({"types": ["datetime"]}, r"pegboard\.types takes dict")],
    )
    def test_settings_that_say_something_else(self, own: dict[str, Any], said: str) -> None:
        with pytest.raises(SettingsError, match=said):
            Toolkit(plugins=(), settings={"pegboard": own})

    def test_the_program_breaks_the_tie(self, install: Callable[..., None]) -> None:
        install("years", "1.2")
        install("ages", "0.9")
        with Toolkit(plugins=["years", "ages"]) as toolkit:
            toolkit.register_type(TypeHandler(dt.datetime, year("mine")))
            toolkit.register(next_year)
            assert mark_of(toolkit) == "mine"

    def test_packs_that_differ_in_specificity_do_not_tie(self, install: Callable[..., None]) -> None:
        install("years", "1.2")
        install("dates", "3.0", matches="date")
        with Toolkit(plugins=["years", "dates"]) as toolkit:
            toolkit.register(next_year)
            assert mark_of(toolkit) == "years"


class TestByTheProgram:
    def test_registered_tools_follow_at_once(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(next_year)
            assert toolkit.call_sync("next_year", {"moment": NOON}).data == "2025-05-06T12:00:00+00:00"
            assert mark_of(toolkit) == "date-time"

            toolkit.register_type(TypeHandler(dt.datetime, year("mine")))
            assert mark_of(toolkit) == "mine"
            assert toolkit.schemas()[0].parameters["properties"]["moment"]["$comment"] == "mine"
            assert toolkit.call_sync("next_year", {"moment": "mine:2024"}).data == "mine:2025"
            assert toolkit.call_sync("next_year", {"moment": NOON}).status == "invalid"

    def test_sessions_follow_too(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(next_year)
            session = toolkit.session()
            assert session.call_sync("next_year", {"moment": NOON}).status == "success"
            toolkit.register_type(TypeHandler(dt.datetime, year("mine")))
            assert session.call_sync("next_year", {"moment": "mine:2024"}).data == "mine:2025"
            assert session.schemas()[0].parameters["properties"]["moment"]["$comment"] == "mine"

    def test_tools_of_packs_follow_even_under_clashing_names(self) -> None:
        @hookimpl
        def provide_tools() -> list[Any]:
            return [next_year]

        packs = [ModuleType("one"), ModuleType("two")]
        for pack in packs:
            vars(pack)["provide_tools"] = provide_tools
        with Toolkit(plugins=packs) as toolkit:
            names = [each.name for each in toolkit]
            assert names == ["one__next_year", "two__next_year"]
            toolkit.register_type(TypeHandler(dt.datetime, year("mine")))
            for name in names:
                assert toolkit.call_sync(name, {"moment": "mine:2024"}).data == "mine:2025"

    def test_other_toolkits_do_not_notice(self) -> None:
        with Toolkit(plugins=()) as one, Toolkit(plugins=()) as other:
            for toolkit in (one, other):
                toolkit.register(next_year)
            one.register_type(TypeHandler(dt.datetime, year("mine")))
            assert (mark_of(one), mark_of(other)) == ("mine", "date-time")

    def test_the_last_word_counts(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(next_year)
            for mark in ("first", "last"):
                toolkit.register_type(TypeHandler(dt.datetime, year(mark)))
            assert mark_of(toolkit) == "last"

    def test_a_handler_that_a_tool_cannot_be_read_with_changes_nothing(self) -> None:
        def refuse(annotation: Any, types: Types) -> TypePlan:
            raise RegistrationError("no moments here")

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(next_year)
            with pytest.raises(RegistrationError, match=r"'next_year'.*'moment'.*no moments here"):
                toolkit.register_type(TypeHandler(dt.datetime, refuse))
            assert toolkit.call_sync("next_year", {"moment": NOON}).status == "success"
            toolkit.register(next_year, name="again")
            assert toolkit.call_sync("again", {"moment": NOON}).status == "success"


class TestForOneParameter:
    def test_holds_there_and_nowhere_else(self) -> None:
        mine = TypeHandler(dt.datetime, year("mine"))

        def years_between(start: Annotated[dt.datetime, mine, Param("from when")], end: dt.datetime) -> int:
            return end.year - start.year

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(years_between)
            start, end = toolkit["years_between"].parameters["properties"].values()
            assert (start["$comment"], start["description"], end["format"]) == ("mine", "from when", "date-time")
            assert toolkit.call_sync("years_between", {"start": "mine:2020", "end": NOON}).data == 4

    def test_of_a_result(self) -> None:
        def last() -> Annotated[dt.datetime, TypeHandler(dt.datetime, year("mine"))]:
            return dt.datetime(2024, 5, 6, tzinfo=dt.UTC)

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(last)
            assert (toolkit["last"].returns or {})["$comment"] == "mine"
            assert toolkit.call_sync("last").data == "mine:2024"

    def test_wins_over_the_program(self) -> None:
        def same(moment: Annotated[dt.datetime, TypeHandler(dt.datetime, year("own"))]) -> int:
            return moment.year

        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(TypeHandler(dt.datetime, year("mine")))
            toolkit.register(same)
            assert toolkit.call_sync("same", {"moment": "own:2024"}).data == 2024

    def test_maps_an_unmapped_class(self) -> None:
        class Opaque:
            def __init__(self, text: str) -> None:
                self.text = text

        plan = shaped({"type": "string"}, Text(Opaque), lambda value: value.text)
        handler = TypeHandler(Opaque, lambda annotation, types: plan)

        def echo(value: Annotated[Opaque, handler], more: list[Annotated[Opaque, handler]]) -> str:
            return value.text + "".join(each.text for each in more)

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(echo)
            assert toolkit.call_sync("echo", {"value": "a", "more": ["b", "c"]}).text == "abc"


class TestWhoWins:
    """Program before plugin before built-in, whatever is more specific."""

    def is_moment(self, annotation: Any) -> bool:
        return annotation is dt.datetime

    @pytest.mark.parametrize("matches", [dt.date, "predicate"])
    def test_a_vague_handler_of_the_program_beats_an_exact_one_of_a_plugin(self, matches: Any) -> None:
        vague = self.is_moment if matches == "predicate" else matches
        exact = plugin("exact", TypeHandler(dt.datetime, year("exact"), priority=9))
        with Toolkit(plugins=[exact]) as toolkit:
            toolkit.register_type(TypeHandler(vague, year("mine")))
            toolkit.register(next_year)
            assert mark_of(toolkit) == "mine"

    @pytest.mark.parametrize("matches", [dt.date, "predicate"])
    def test_a_vague_handler_of_a_plugin_beats_an_exact_built_in_one(self, matches: Any) -> None:
        vague = self.is_moment if matches == "predicate" else matches
        with Toolkit(plugins=[plugin("vague", TypeHandler(vague, year("vague")))]) as toolkit:
            toolkit.register(next_year)
            assert mark_of(toolkit) == "vague"

    def test_handler_for_tells_the_winner_and_what_it_shadows(self, install: Callable[..., None]) -> None:
        install("years", "1.2", priority=1)
        install("ages", "0.9")
        mine = TypeHandler(dt.datetime, year("mine"))
        with Toolkit(plugins=["years", "ages"]) as toolkit:
            toolkit.register_type(mine)
            handler, origin, shadowed = toolkit.types.handler_for(dt.datetime)
            assert (handler, str(origin)) == (mine, "the program")
            assert [str(where) for _, where in shadowed[:3]] == [
                "acme-years 1.2",
                "acme-ages 0.9",
                "pegboard.builtin.types",
            ]

            own = TypeHandler(dt.datetime, year("own"))
            handler, _, shadowed = toolkit.types.handler_for(Annotated[dt.datetime, own])
            assert handler is own
            assert shadowed[0][0] is mine


class TestReach:
    """An override reaches the values inside containers and records, on the way in and on the way out."""

    def test_inside_records_and_containers(self) -> None:
        with Toolkit(plugins=[pegboard_dataclasses]) as toolkit:
            toolkit.register(shift)
            toolkit.register_type(TypeHandler(dt.datetime, year("mine")))
            event = {"at": "mine:2024", "also": ["mine:2025", None]}
            assert toolkit.call_sync("shift", {"events": {"a": event}}).data == [event]
            wrong = toolkit.call_sync("shift", {"events": {"a": {"at": "mine:2024", "also": [NOON]}}})
            assert "events.a.also[0]: " in wrong.text
            assert "write mine:" in wrong.text
            schema = toolkit["shift"].json_schema(refs="inline")
            fields = schema["properties"]["events"]["additionalProperties"]["properties"]
            assert fields["at"]["$comment"] == "mine"
            assert fields["also"]["items"]["anyOf"][0]["$comment"] == "mine"
            returns = toolkit["shift"].json_schema(of="returns", refs="inline")
            assert returns["items"]["properties"]["at"]["$comment"] == "mine"

    def test_defaults_are_written_by_it(self) -> None:
        def since(moment: dt.datetime = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)) -> int:
            return moment.year

        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(TypeHandler(dt.datetime, year("mine")))
            toolkit.register(since)
            assert toolkit["since"].parameters["properties"]["moment"]["default"] == "mine:2020"

    def test_results_without_annotation(self) -> None:
        def several():  # type: ignore[no-untyped-def]
            return {"a": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]}

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(several)
            toolkit.register_type(TypeHandler(dt.datetime, year("mine")))
            assert toolkit.call_sync("several").data == {"a": ["mine:2024"]}

    def test_records_as_a_whole(self) -> None:
        """A program maps a dataclass otherwise than the pack for dataclasses does."""

        def build(annotation: Any, types: Types) -> TypePlan:
            moment = record_member(types, "at", dt.datetime).plan
            return shaped(
                dict(moment.schema),
                Text(lambda text: Event(moment.structure(text), [])),
                lambda event: moment.unstructure(event.at),
            )

        with Toolkit(plugins=[pegboard_dataclasses]) as toolkit:
            toolkit.register(shift)
            toolkit.register_type(TypeHandler(Event, build))
            assert toolkit.call_sync("shift", {"events": {"a": NOON}}).data == ["2024-05-06T12:00:00+00:00"]


class TestAcmeUnits:
    """The example that programs copy, beside the pack that maps dataclasses, one of which it maps itself."""

    @pytest.fixture
    def toolkit(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toolkit]:
        monkeypatch.syspath_prepend(ACME_UNITS)
        import acme_units

        with Toolkit(plugins=[acme_units, pegboard_dataclasses]) as toolkit:
            yield toolkit

    def test_maps_its_own_class(self, toolkit: Toolkit) -> None:
        from acme_units import Quantity

        def double(length: Quantity) -> Quantity:
            return Quantity(length.metres * 2)

        toolkit.register(double)
        assert toolkit["double"].parameters["properties"]["length"]["type"] == "string"
        assert toolkit.call_sync("double", {"length": "3.5 km"}).data == "7000 m"
        assert toolkit.call_sync("double", {"length": "3.5"}).status == "invalid"

    def test_takes_moments_in_utc_alone(self, toolkit: Toolkit) -> None:
        toolkit.register(next_year, shift)
        assert toolkit.call_sync("next_year", {"moment": NOON}).data == "2025-05-06T12:00:00Z"
        assert toolkit.call_sync("next_year", {"moment": "2024-05-06T12:00:00+00:00"}).status == "invalid"
        assert toolkit.call_sync("shift", {"events": {"a": {"at": NOON, "also": []}}}).data[0]["at"] == NOON
