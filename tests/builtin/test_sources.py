"""How things become tools: the core's own plugin is asked last, and a pack may know better."""

from collections.abc import Callable, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pegboard import RegistrationError, Tool, Toolkit, Toolset, builtin, hookimpl, tool, toolset
from pegboard.builtin import sources


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@toolset(prefix="door_")
class Door:
    """A door."""

    @tool
    def open(self) -> str:
        return "open"

    @tool
    def shut(self) -> str:
        return "shut"


def by_hand() -> SimpleNamespace:
    return SimpleNamespace(name="ping", description="", parameters={"type": "object"}, call=lambda call: "pong")


class Listing:
    def tools(self) -> list[Any]:
        return [add, by_hand()]


def answering(answer: Callable[[Any], Iterable[Any] | None], name: str = "acme") -> ModuleType:
    """A plugin that knows sources."""

    @hookimpl
    def tools_from(source: Any) -> Iterable[Any] | None:
        return answer(source)

    module = ModuleType(name)
    module.tools_from = tools_from  # type: ignore[attr-defined]
    return module


def names(toolkit: Toolkit) -> list[str]:
    return [each.name for each in toolkit]


def test_is_a_plugin_like_others() -> None:
    assert sources in builtin.plugins()
    assert sources.tools_from(add) == [add]
    assert sources.tools_from(object()) is None


class TestTakenOver:
    """Each kind that the core's own plugin knows."""

    @pytest.mark.parametrize(
        ("source", "wanted"),
        [(add, add), (Door(), Door), (Door, type), (by_hand(), SimpleNamespace), (Listing(), Listing)],
        ids=["function", "object", "class", "by hand", "source"],
    )
    def test_by_a_pack(self, source: Any, wanted: Any) -> None:
        def mine(found: Any) -> Iterable[Any] | None:
            fits = found is wanted or type(found) is wanted
            return [Tool.from_function(add, name="mine")] if fits else None

        with Toolkit(plugins=[answering(mine)]) as toolkit:
            toolkit.register(source)
            assert names(toolkit) == ["mine"]
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(source)
            assert "mine" not in names(toolkit)

    def test_only_what_it_wants(self) -> None:
        with Toolkit(plugins=[answering(lambda found: None)]) as toolkit:
            toolkit.register(add, Door, by_hand())
            assert names(toolkit) == ["add", "door_open", "door_shut", "ping"]
            assert [(each.name, len(each.tools)) for each in toolkit.toolsets] == [("Door", 2)]

    def test_by_the_first_of_two(self) -> None:
        def named(name: str) -> ModuleType:
            return answering(lambda found: [Tool.from_function(add, name=name)], name)

        with Toolkit(plugins=[named("bee"), named("ant")]) as toolkit:
            toolkit.register(add)
            assert names(toolkit) == ["ant"]

    def test_terms_hold_for_what_a_pack_makes_of_it(self) -> None:
        with Toolkit(plugins=[answering(lambda found: [found.shut] if isinstance(found, Door) else None)]) as toolkit:
            toolkit.register(Door(), prefix="my_")
            assert names(toolkit) == ["my_shut"]

    def test_a_plugin_that_fails_is_passed_over(self) -> None:
        with Toolkit(plugins=[answering(lambda found: 1 // 0)]) as toolkit:  # type: ignore[arg-type, return-value]
            toolkit.register(add)
            assert names(toolkit) == ["add"]
            assert [str(record.state) for record in toolkit.plugins] == ["failed"]


class TestAnswers:
    def test_are_not_asked_of_who_gave_them(self) -> None:
        asked: list[Any] = []

        def wrapped(found: Any) -> Iterable[Any]:
            asked.append(found)

            def logged(a: int) -> int:
                return int(found(a)) * 10

            return [logged]

        with Toolkit(plugins=[answering(wrapped)]) as toolkit:
            toolkit.register(add)
            assert asked == [add]
            assert toolkit.call_sync("logged", {"a": 1}).value == 20

    def test_are_asked_of_others(self) -> None:
        doors = answering(lambda found: [Door()] if found == "key" or found is add else None, "ant")
        shut = answering(lambda found: [found.shut] if isinstance(found, Door) else None, "bee")
        with Toolkit(plugins=[doors, shut]) as toolkit:
            toolkit.register(add)
            assert names(toolkit) == ["shut"]

    def test_object_itself_is_read_as_a_function(self) -> None:
        @toolset
        class Caller:
            def __call__(self, a: int) -> int:
                return a

            @tool
            def other(self) -> None: ...

        caller = Caller()
        with Toolkit(plugins=[answering(lambda found: [caller] if found is caller else None)]) as toolkit:
            toolkit.register(caller, name="called")
            assert toolkit.call_sync("called", {"a": 3}).value == 3

    def test_toolset_stays_one(self) -> None:
        both = Toolset("Both", "Two.", (Tool.from_function(add), Tool.from_function(add, name="plus")))
        with Toolkit(plugins=[answering(lambda found: [both])]) as toolkit:
            toolkit.register(object(), disable=["plus"], prefix="x_")
            (shown,) = toolkit.toolsets
            assert (shown.name, [each.name for each in shown.tools]) == ("Both", ["x_add"])

    def test_several_fit_no_name(self) -> None:
        with Toolkit(plugins=()) as toolkit, pytest.raises(RegistrationError, match="Door has 2 tools; name= fits"):
            toolkit.register(Door, name="one")
