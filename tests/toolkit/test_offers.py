"""What packs offer: sources whose tools change, and the terms of their registration."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from pegboard import LiveSource, Locked, Offer, Secret, Status, Toolkit, hookimpl, tool
from tests.support.plugin_site import Site
from tests.toolkit.test_live_sources import Far, Remote

LIVE = """
from tests.toolkit.test_live_sources import Far

class Mine(Far):
    pass

far = Mine("one")

@hookimpl
def provide_tools():
    return [far]
"""


def pack(name: str, *offered: Any) -> ModuleType:
    """A plugin that offers these objects."""
    module = ModuleType(name)

    @hookimpl
    def provide_tools() -> tuple[Any, ...]:
        return offered

    module.provide_tools = provide_tools  # type: ignore[attr-defined]
    return module


def names(toolkit: Toolkit) -> list[str]:
    return [each.name for each in toolkit.tools]


@tool
def near(text: str, key: str = "") -> str:
    """Near."""
    return f"{text} {key}"


class Refusing:
    """A source that breaks in one of its methods."""

    name = "refusing"
    problems = ()

    def __init__(self, where: str) -> None:
        self._where = where

    def tools(self) -> list[Remote]:
        if self._where == "tools":
            raise OSError("no disk")
        return []

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        if self._where == "watch":
            raise OSError("no disk")
        return lambda: None


class TestLiveSources:
    def test_are_registered_and_followed(self) -> None:
        far = Far("one", "two")
        with Toolkit(plugins=[pack("acme", near, far)]) as toolkit:
            assert names(toolkit) == ["near", "one", "two"]
            assert toolkit.sources[0].tools == ("one", "two")
            far.offer("two", "three")
            assert names(toolkit) == ["near", "two", "three"]
            assert toolkit.call_sync("three", {"text": "x"}).data == {"tool": "three", "text": "x"}
            assert toolkit["acme__three"].origin.plugin == "acme"
        assert far.watchers == []
        toolkit.close()  # a second time does nothing

    def test_explain_themselves(self) -> None:
        far = Far()
        far.problems = ["the far end is unavailable"]
        with Toolkit(plugins=[pack("acme", far)]) as toolkit:
            assert toolkit.problems == ["the far end is unavailable"]
            assert "the far end is unavailable" in toolkit.call_sync("one").text
            far.problems = ()
            far.offer("one")
            assert names(toolkit) == ["one"]

    @pytest.mark.parametrize("where", ["watch", "tools"])
    def test_that_break_cost_their_own_tools_alone(self, where: str) -> None:
        other = Far("one")
        packs = [pack("acme", near, Refusing(where)), pack("other", other)]
        with Toolkit(plugins=packs) as toolkit:
            assert names(toolkit) == ["near", "one"]
            assert "no disk" in toolkit.problems[0]
            assert [each.name for each in toolkit.sources] == ["far"]

    def test_of_the_program_displace_no_pack(self, site: Site) -> None:
        site.add("ant", LIVE)
        with Toolkit(plugins=["ant"]) as toolkit:
            toolkit.register(import_module("site_ant").Mine("two"))
            assert names(toolkit) == ["one", "two"]

    def test_the_programs_own_tool_wins(self) -> None:
        far = Far("near")
        with Toolkit(plugins=[pack("acme", far)]) as toolkit:
            toolkit.register(near)
            far.offer("near", "two")
            assert toolkit.call_sync("near", {"text": "x", "key": "k"}).text == "x k"
            assert toolkit.call_sync("acme__near", {"text": "x"}).data == {"tool": "near", "text": "x"}
            far.offer("two")
            assert toolkit.call_sync("near", {"text": "x", "key": "k"}).text == "x k"
            assert "acme__near" not in toolkit

    def test_two_packs_clash_as_ever(self) -> None:
        one, other = Far("same"), Far("same")
        with Toolkit(plugins=[pack("acme", one), pack("other", other)]) as toolkit:
            assert names(toolkit) == ["acme__same", "other__same"]
            other.offer("else")
            assert names(toolkit) == ["same", "else"]

    def test_a_name_that_the_pack_has_already_is_left_out(self) -> None:
        with Toolkit(plugins=[pack("acme", near, Far("near", "one"))]) as toolkit:
            assert names(toolkit) == ["near", "one"]
            assert toolkit.problems == ["'near' is not offered: there is another tool named 'near'"]

    def test_what_was_removed_stays_removed(self) -> None:
        far = Far("one", "two")
        with Toolkit(plugins=[pack("acme", far)]) as toolkit:
            toolkit.unregister("one")
            far.offer("one", "two", "three")
            assert names(toolkit) == ["two", "three"]


class TestTerms:
    def test_are_those_of_a_registration(self) -> None:
        offer = Offer(
            Far("get", "set", "del"),
            enable=["get", "set"],
            disable=["set"],
            prefix="far__",
            presets={"get": {"key": Locked("k")}},
        )
        with Toolkit(plugins=[pack("acme", offer)]) as toolkit:
            assert names(toolkit) == ["far__get"]
            assert list(toolkit["far__get"].parameters["properties"]) == ["text"]
            result = toolkit.call_sync("far__get", {"text": "x", "key": "forged"})
            assert result.data == {"tool": "get", "text": "x", "key": "k"}
            assert toolkit.problems == []

    def test_hold_for_tools_that_come_later(self) -> None:
        far = Far("get")
        offer = Offer(
            far, rename=lambda name: {"late": "early"}.get(name, name), presets={"late": {"key": Secret("hunter2")}}
        )
        with Toolkit(plugins=[pack("acme", offer)]) as toolkit:
            far.offer("get", "late")
            assert names(toolkit) == ["get", "early"]
            assert "key" not in toolkit["early"].parameters["properties"]

    @pytest.mark.parametrize(
        "terms",
        [{"enable": ["gte"]}, {"disable": ["gte"]}, {"rename": {"gte": "got"}}, {"presets": {"gte": {"key": "k"}}}],
    )
    def test_a_name_that_the_source_does_not_know_is_a_problem(self, terms: Mapping[str, Any]) -> None:
        with Toolkit(plugins=[pack("acme", Offer(Far("get"), **terms))]) as toolkit:
            (problem,) = toolkit.problems
            assert "'far'" in problem
            assert "'gte'" in problem
            assert "'get'" in problem

    def test_a_preset_that_does_not_fit_keeps_its_tool_out(self) -> None:
        with Toolkit(plugins=[pack("acme", Offer(Far("get"), presets={"get": {"kye": "k"}}))]) as toolkit:
            assert names(toolkit) == []
            assert "'get' is not offered" in toolkit.problems[0]

    def test_a_group_is_the_programs_to_create(self) -> None:
        with Toolkit(plugins=[pack("acme", Offer(Far("get"), group="office"))]) as toolkit:
            assert (names(toolkit), toolkit["get"].groups) == ([], ("office",))
            assert toolkit.call_sync("get", {"text": "x"}).status is Status.INACTIVE
            toolkit.create_group("office")
            assert names(toolkit) == ["get"]

    def test_fit_any_tools(self) -> None:
        offer = Offer(near, prefix="acme_", presets={"near": {"key": Locked("k")}})
        with Toolkit(plugins=[pack("acme", offer)]) as toolkit:
            assert toolkit.call_sync("acme_near", {"text": "x"}).text == "x k"

    def test_name_and_describe_the_one_tool(self) -> None:
        offer = Offer(near, name="here", description="Close by.", extended_model={"properties": {"why": {}}})
        with Toolkit(plugins=[pack("acme", offer)]) as toolkit:
            shown = toolkit["here"]
            assert (shown.description, list(shown.parameters["properties"])) == ("Close by.", ["text", "key", "why"])

    def test_show_no_secret(self) -> None:
        assert "hunter2" not in repr(Offer(near, presets={"near": {"key": "hunter2"}}))


def test_the_fake_is_a_live_source() -> None:
    assert isinstance(Far(), LiveSource)
