"""Packs that map one type, and registrations that map it for themselves: which tool reads it how."""

from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

from pegboard import RegistrationError, Text, Toolkit, TypeHandler, TypePlan, Types, hookimpl, shaped, tool


def marked(name: str) -> Any:
    """Maps anything as `name:1`."""

    def build(annotation: Any, types: Types) -> TypePlan:
        def read(text: str) -> Any:
            mark, _, number = text.partition(":")
            if mark != name:
                raise ValueError(f"write {name}:")
            return annotation(int(number)) if annotation is Fraction else annotation(int(number), 1, 1)

        return shaped({"type": "string", "pattern": f"^{name}:[0-9]+$"}, Text(read), lambda value: f"{name}:{value}")

    return build


def pack(name: str, *maps: Any, **options: Any) -> ModuleType:
    """A pack with a tool for each type, which hands back what it got, and one that needs none of them."""

    def of_fraction(part: Fraction) -> Fraction:
        return part

    def of_datetime(moment: list[datetime]) -> list[datetime]:
        return moment

    def plain(n: int) -> int:
        return n

    def offered(settings: Any) -> list[Any]:
        for function in (of_fraction, of_datetime, plain):
            function.__name__ = f"{name}_{function.__name__.removeprefix(f'{name}_')}"
        return [of_fraction, of_datetime, plain]

    module = ModuleType(name)
    handlers = [TypeHandler(each, marked(name), **options) for each in maps]
    vars(module)["provide_types"] = hookimpl(lambda: handlers)
    vars(module)["provide_tools"] = hookimpl(offered)
    return module


@tool
def when(moment: datetime) -> datetime:
    """Hand a moment back."""
    return moment


@tool
def half(part: Fraction) -> str:
    """Halve."""
    return str(part / 2)


class TestTwoPacks:
    @pytest.fixture
    def toolkit(self) -> Iterator[Toolkit]:
        packs = [pack("suns", Fraction, datetime), pack("moons", datetime, Fraction), pack("victim")]
        with Toolkit(plugins=packs) as made:
            yield made

    def test_every_tool_works_and_reads_the_same(self, toolkit: Toolkit) -> None:
        toolkit.register(half, when)
        assert {str(record.state) for record in toolkit.plugins} == {"active"}
        for name in ("suns_of_fraction", "moons_of_fraction", "victim_of_fraction"):
            assert toolkit.call_sync(name, {"part": "moons:3"}).data == "moons:3"
            assert toolkit.call_sync(name, {"part": "suns:3"}).status == "invalid"
        assert toolkit.call_sync("half", {"part": "moons:3"}).text == "3/2"
        assert toolkit.call_sync("when", {"moment": "moons:2024"}).data == "moons:2024-01-01 00:00:00"

    def test_problems_name_both_the_winner_and_the_two_ways_to_choose(self, toolkit: Toolkit) -> None:
        assert toolkit.problems == [
            f"moons and suns both map {name}; moons counts; choose with "
            f'settings={{"pegboard": {{"types": {{"{name}": "suns"}}}}}}, or map it in the program with '
            "register_type(...)"
            for name in ("datetime.datetime", "fractions.Fraction")
        ]

    def test_the_program_chooses(self, toolkit: Toolkit) -> None:
        toolkit.register_type(TypeHandler(Fraction, marked("mine")))
        toolkit.register(half)
        for name in ("suns_of_fraction", "moons_of_fraction", "victim_of_fraction"):
            assert toolkit.call_sync(name, {"part": "mine:3"}).data == "mine:3"
        assert toolkit.call_sync("half", {"part": "mine:3"}).text == "3/2"

    def test_a_setting_chooses(self) -> None:
        packs = [pack("suns", Fraction), pack("moons", Fraction), pack("victim")]
        chosen = {"pegboard": {"types": {"fractions.Fraction": "suns"}}}
        with Toolkit(plugins=packs, settings=chosen) as other:
            other.register(half)
            assert (other.problems, other.call_sync("half", {"part": "suns:3"}).text) == ([], "3/2")
            assert other.call_sync("victim_of_fraction", {"part": "suns:3"}).data == "suns:3"

    def test_the_higher_priority_wins_without_a_word(self) -> None:
        packs = [pack("moons", Fraction), pack("suns", Fraction, priority=1)]
        with Toolkit(plugins=packs) as toolkit:
            toolkit.register(half)
            assert (toolkit.problems, toolkit.call_sync("half", {"part": "suns:3"}).text) == ([], "3/2")

    def test_else_pluggys_order(self) -> None:
        first = pack("suns", Fraction)
        vars(first)["provide_types"] = hookimpl(tryfirst=True)(vars(first)["provide_types"])
        with Toolkit(plugins=[pack("moons", Fraction), first]) as toolkit:
            toolkit.register(half)
            assert toolkit.call_sync("half", {"part": "suns:3"}).text == "3/2"
            assert "suns counts" in toolkit.problems[0]


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"fractions.Fraction": "sun"}, "no active pack of that name maps types. Did you mean 'suns'?"),
        ({"fractions.Fracton": "suns"}, "is the name of no type. Did you mean 'fractions.Fraction'?"),
        ({"no_such_module.Thing": "suns"}, "'no_such_module.Thing' is the name of no type."),
        ({"fractions.Fraction": "clocks"}, "is to be mapped by 'clocks', which does not map it"),
    ],
)
def test_a_setting_that_chooses_nothing_is_a_problem(chosen: dict[str, str], problem: str) -> None:
    packs = [pack("suns", Fraction), pack("clocks", datetime)]
    with Toolkit(plugins=packs, settings={"pegboard": {"types": chosen}}) as toolkit:
        (told,) = toolkit.problems
        assert told.startswith(f"the setting types of pegboard: {next(iter(chosen))!r} ")
        assert problem in told


class TestOneRegistration:
    """`register(..., types=)` maps for its tools alone."""

    def test_maps_for_its_own_tools(self) -> None:
        with Toolkit(plugins=[pack("suns", datetime, Fraction)]) as toolkit:
            toolkit.register(when, types={datetime: TypeHandler(datetime, marked("mine"))})
            toolkit.register(when, name="other")
            assert toolkit.call_sync("when", {"moment": "mine:2024"}).data == "mine:2024-01-01 00:00:00"
            assert toolkit.call_sync("other", {"moment": "suns:2024"}).data == "suns:2024-01-01 00:00:00"
            assert toolkit.problems == []

    def test_inside_other_types_and_when_tools_are_read_again(self) -> None:
        def listed(moments: list[datetime]) -> int:
            return len(moments)

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(listed, types={datetime: TypeHandler(datetime, marked("mine"))})
            toolkit.register_type(TypeHandler(Fraction, marked("late")))
            toolkit.register_type(TypeHandler(datetime, marked("late")))
            assert toolkit.call_sync("listed", {"moments": ["mine:2024", "mine:2025"]}).data == 2

    def test_stands_for_no_subclass(self) -> None:
        class Moment(datetime): ...

        def later(moment: Moment) -> str:
            return str(moment)

        with Toolkit(plugins=()) as toolkit, pytest.raises(RegistrationError):
            toolkit.register(later, types={datetime: TypeHandler(datetime, marked("mine"))})

    def test_what_is_no_handler_is_refused(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            with pytest.raises(RegistrationError, match=r"types= maps datetime.datetime with a TypeHandler, not "):
                toolkit.register(when, types={datetime: marked("mine")})
            assert len(toolkit) == 0
