"""Two packs that map one type, and packs that map it for themselves: whose tools read it how."""

from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

from pegboard import ConflictError, Text, Toolkit, TypeHandler, TypePlan, Types, hookimpl, shaped, tool


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

    def test_nobody_fails(self, toolkit: Toolkit) -> None:
        assert {record.name: str(record.state) for record in toolkit.plugins} == {
            "moons": "active",
            "suns": "active",
            "victim": "active",
        }
        assert [each.name for each in toolkit if each.origin.plugin == "victim"] == [
            "victim_of_datetime",
            "victim_plain",
        ]

    @pytest.mark.parametrize("name", ["suns", "moons"])
    def test_their_own_tools_keep_their_own(self, toolkit: Toolkit, name: str) -> None:
        assert toolkit.call_sync(f"{name}_of_fraction", {"part": f"{name}:3"}).data == f"{name}:3"
        other = {"suns": "moons", "moons": "suns"}[name]
        assert toolkit.call_sync(f"{name}_of_fraction", {"part": f"{other}:3"}).status == "invalid"
        inner = toolkit[f"{name}_of_datetime"].parameters["properties"]["moment"]["items"]
        assert inner["pattern"] == f"^{name}:[0-9]+$"

    def test_everybody_else_has_the_built_in(self, toolkit: Toolkit) -> None:
        toolkit.register(when)
        for name, sent in (("when", "2024-01-01T00:00:00Z"), ("victim_of_datetime", ["2024-01-01T00:00:00Z"])):
            assert toolkit.call_sync(name, {"moment": sent}).status == "success"

    def test_where_there_is_none_only_they_are_refused(self, toolkit: Toolkit) -> None:
        with pytest.raises(ConflictError, match="tool 'half': parameter 'part': moons and suns both map fractions"):
            toolkit.register(half)
        result = toolkit.call_sync("victim_of_fraction", {"part": "1"})
        assert result.status == "not_found"
        assert result.text.endswith("The plugin victim does not offer it: it cannot be used here.")
        assert result.error is not None
        assert "moons and suns both map fractions.Fraction" in result.error.details["remedy"]
        (own,) = [each for each in toolkit.problems if each.startswith("victim: tool 'victim_of_fraction': ")]
        assert "moons and suns both map fractions.Fraction, each for its own tools; choose one for all with" in own

    def test_the_ways_out(self, toolkit: Toolkit) -> None:
        ties = [each for each in toolkit.problems if each.startswith("moons and suns both map ")]
        assert [each.partition(",")[0].removeprefix("moons and suns both map ") for each in ties] == [
            "datetime.datetime",
            "fractions.Fraction",
        ]
        toolkit.register_type(TypeHandler(Fraction, marked("mine")))
        toolkit.register(half)
        for name in ("suns_of_fraction", "moons_of_fraction", "victim_of_fraction"):
            assert toolkit.call_sync(name, {"part": "mine:3"}).data == "mine:3"
        assert toolkit.call_sync("half", {"part": "mine:3"}).text == "3/2"
        packs = [pack("suns", Fraction), pack("moons", Fraction), pack("victim")]
        chosen = {"pegboard": {"types": {"fractions.Fraction": "suns"}}}
        with Toolkit(plugins=packs, settings=chosen) as other:
            other.register(half)
            assert (other.problems, other.call_sync("half", {"part": "suns:3"}).text) == ([], "3/2")
            assert other.call_sync("victim_of_fraction", {"part": "suns:3"}).data == "suns:3"

    def test_a_pack_that_goes_leaves_the_other(self, toolkit: Toolkit) -> None:
        with Toolkit(plugins=[pack("suns", Fraction), pack("victim")]) as other:
            other.register(half)
            assert (other.problems, other.call_sync("half", {"part": "suns:3"}).text) == ([], "3/2")


class TestScope:
    def test_of_a_pack_nobody_else_is_concerned(self) -> None:
        packs = [pack("suns", Fraction, datetime, scope="pack"), pack("moons", datetime), pack("victim")]
        with Toolkit(plugins=packs) as toolkit:
            toolkit.register(when)
            assert [each.partition(": parameter")[0] for each in toolkit.problems] == [
                "moons: tool 'moons_of_fraction'",
                "victim: tool 'victim_of_fraction'",
            ]
            assert toolkit.call_sync("suns_of_fraction", {"part": "suns:3"}).data == "suns:3"
            for name, mark in (("suns", "suns"), ("moons", "moons"), ("victim", "moons")):
                inner = toolkit[f"{name}_of_datetime"].parameters["properties"]["moment"]["items"]
                assert inner["pattern"] == f"^{mark}:[0-9]+$"
            assert toolkit["when"].parameters["properties"]["moment"]["pattern"] == "^moons:[0-9]+$"

    def test_one_for_the_board_speaks_for_all(self) -> None:
        with Toolkit(plugins=[pack("suns", Fraction), pack("victim")]) as toolkit:
            assert toolkit.call_sync("victim_of_fraction", {"part": "suns:3"}).data == "suns:3"
