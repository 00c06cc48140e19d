"""Live sources: the registered tools follow what the source offers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pegboard import (
    ConflictError,
    Group,
    LiveSource,
    Offer,
    RegistrationError,
    Secret,
    SourceRecord,
    Status,
    ToolCall,
    Toolkit,
    UnknownNameError,
    hookimpl,
    tool,
)

TEXT = {"type": "object", "properties": {"text": {"type": "string"}, "key": {"type": "string"}}, "required": ["text"]}


class Remote:
    """A tool by hand, under a name that a server gave it."""

    def __init__(self, name: str, parameters: dict[str, Any] = TEXT, description: str = "Remote.") -> None:
        self.name = name
        self.description = description
        self.parameters = parameters
        self.returns = {"type": "object"}
        self.tags = ("remote",)
        self.read_only = True

    def call(self, call: ToolCall) -> dict[str, Any]:
        return {"tool": self.name, **call.arguments}


class Far:
    """A source whose tools a test changes."""

    def __init__(self, *names: str) -> None:
        self.name = "far"
        self.offered = [Remote(name) for name in names]
        self.problems: Sequence[str] = ()
        self.watchers: list[Callable[[], None]] = []

    def tools(self) -> list[Remote]:
        return list(self.offered)

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        self.watchers.append(changed)
        return lambda: self.watchers.remove(changed)

    def offer(self, *offered: Remote | str) -> None:
        self.offered = [Remote(each) if isinstance(each, str) else each for each in offered]
        for changed in list(self.watchers):
            changed()


@pytest.fixture
def toolkit() -> Toolkit:
    return Toolkit(plugins=())


def names(toolkit: Toolkit) -> list[str]:
    return [tool.name for tool in toolkit.tools]


class TestFollowing:
    def test_is_a_live_source(self) -> None:
        assert isinstance(Far(), LiveSource)

    def test_new_tools_come_and_vanished_ones_go(self, toolkit: Toolkit) -> None:
        far = Far("one", "two")
        toolkit.register(far)
        far.offer("two", "three")
        assert names(toolkit) == ["two", "three"]
        assert toolkit.call_sync("one", {"text": "x"}).status is Status.NOT_FOUND

    def test_a_tool_that_is_as_before_stays_the_same(self, toolkit: Toolkit) -> None:
        far = Far("one")
        toolkit.register(far)
        before = toolkit["one"].definition
        far.offer("one", "two")
        assert toolkit["one"].definition is before

    def test_a_tool_that_changed_is_exchanged_in_place(self, toolkit: Toolkit) -> None:
        far = Far("one", "two")
        toolkit.register(far)
        far.offer(Remote("one", description="Newer."), "two")
        assert names(toolkit) == ["one", "two"]
        assert toolkit["one"].description == "Newer."

    def test_registration_holds_for_what_comes_later(self, toolkit: Toolkit) -> None:
        far = Far("one", "bad")
        toolkit.create_group("g")
        toolkit.register(far, disable=["bad"], prefix="far__", group="g", rename={"new": "neu"})
        far.offer("one", "bad", "new")
        assert names(toolkit) == ["far__one", "far__neu"]
        assert toolkit["far__neu"].groups == ("g",)

    def test_presets_stay_and_come(self, toolkit: Toolkit) -> None:
        far = Far("one", "two")
        toolkit.register(far, presets={"one": {"key": Secret("s1")}, "two": {"key": Secret("s2")}})
        far.offer(Remote("one", description="Newer."))
        far.offer("one", "two")
        assert "key" not in toolkit["one"].parameters["properties"]
        assert "key" not in toolkit["two"].parameters["properties"]
        assert toolkit.call_sync("two", {"text": "x"}).value["key"] == "s2"

    def test_a_preset_that_the_tool_no_longer_knows_is_not_sent(self, toolkit: Toolkit) -> None:
        far = Far("one")
        toolkit.register(far, presets={"one": {"key": "k"}})
        far.offer(Remote("one", {"type": "object", "properties": {"text": {"type": "string"}}}))
        assert toolkit.call_sync("one", {"text": "x"}).value == {"tool": "one", "text": "x"}

    def test_a_new_tool_without_the_parameter_of_its_preset_is_refused(self, toolkit: Toolkit) -> None:
        far = Far("one", "two")
        toolkit.register(far, presets={"two": {"key": "k"}})
        far.offer("one")
        far.offer("one", Remote("two", {"type": "object", "properties": {}}))
        assert names(toolkit) == ["one"]
        assert any("'two' is not offered" in problem for problem in toolkit.problems)

    def test_what_the_program_removed_stays_removed(self, toolkit: Toolkit) -> None:
        far = Far("one", "two")
        toolkit.register(far)
        toolkit.unregister("one")
        far.offer("one", "two", "three")
        assert names(toolkit) == ["two", "three"]

    def test_the_programs_own_tool_of_that_name_stays(self, toolkit: Toolkit) -> None:
        far = Far("one")
        toolkit.register(far)
        toolkit.register(lambda: "mine", name="two", description="Mine.")
        far.offer("one", "two")
        assert toolkit.call_sync("two").value == "mine"
        assert toolkit.sources == [
            SourceRecord("far", ("one",), ("'two' is not offered: there is another tool named 'two'",))
        ]

    def test_tools_of_a_removed_group_do_not_come_back_ungrouped(self, toolkit: Toolkit) -> None:
        far = Far("one")
        toolkit.create_group("g")
        toolkit.register(far, group="g")
        toolkit.remove_groups("g")
        far.offer("one", "two")
        assert names(toolkit) == []

    def test_tools_vanish_although_deletion_is_refused(self) -> None:
        toolkit = Toolkit(plugins=(), allow_tool_deletion=False)
        far = Far("one", "two")
        toolkit.register(far)
        far.offer("two")
        assert names(toolkit) == ["two"]

    def test_a_session_sees_the_change(self, toolkit: Toolkit) -> None:
        far = Far("one")
        toolkit.register(far)
        session = toolkit.session()
        assert [tool.name for tool in session.tools] == ["one"]
        far.offer("two")
        assert [tool.name for tool in session.tools] == ["two"]

    def test_closing_ends_it(self, toolkit: Toolkit) -> None:
        far = Far("one")
        toolkit.register(far)
        toolkit.close()
        assert far.watchers == []

    def test_a_failed_registration_follows_nothing(self, toolkit: Toolkit) -> None:
        far = Far("one")
        toolkit.register(lambda: 1, name="one", description="Taken.")
        with pytest.raises(ConflictError):
            toolkit.register(far)
        assert far.watchers == []
        assert toolkit.sources == []

    def test_a_change_during_the_registration_is_not_missed(self, toolkit: Toolkit) -> None:
        class Busy(Far):
            def tools(self) -> list[Remote]:
                found = super().tools()
                if len(found) == 1 and self.watchers:
                    self.offered.append(Remote("two"))
                    self.watchers[0]()
                return found

        toolkit.register(Busy("one"))
        assert names(toolkit) == ["one", "two"]


class TestUnavailable:
    @pytest.fixture
    def unavailable(self) -> Far:
        far = Far()
        far.problems = ("far is unavailable: no answer",)
        return far

    def test_registers_nothing_and_says_why(self, toolkit: Toolkit, unavailable: Far) -> None:
        assert toolkit.register(unavailable, enable=["one"], presets={"one": {"key": "k"}}) == []
        assert "far is unavailable: no answer" in toolkit.problems
        assert "far is unavailable: no answer" in toolkit.call_sync("one", {}).text

    def test_comes_back_as_it_was_registered(self, toolkit: Toolkit, unavailable: Far) -> None:
        toolkit.register(unavailable, enable=["one"], presets={"one": {"key": "k"}})
        unavailable.problems = ()
        unavailable.offer("one", "two")
        assert names(toolkit) == ["one"]
        assert toolkit.call_sync("one", {"text": "x"}).value["key"] == "k"

    def test_unknown_names_are_errors_while_it_is_there(self, toolkit: Toolkit) -> None:
        with pytest.raises(UnknownNameError, match=r"no tool .ona..*one"):
            toolkit.register(Far("one"), enable=["ona"])
        with pytest.raises(RegistrationError, match="nothing is called 'ona'"):
            toolkit.register(Far("one"), presets={"ona": {"key": 1}})


class TestNames:
    def test_any_name_becomes_legal(self, toolkit: Toolkit) -> None:
        long = "x" * 100
        toolkit.register(Far("a.b", "a_b", "1/2", "ünicode", long))
        assert names(toolkit)[1:4] == ["a_b", "_1_2", "_nicode"]
        assert names(toolkit)[0].startswith("a_b_")
        assert len(names(toolkit)[4]) == 64
        assert toolkit.call_sync(names(toolkit)[4], {"text": "x"}).value["tool"] == long

    def test_lists_and_presets_go_by_the_sources_names(self, toolkit: Toolkit) -> None:
        toolkit.register(Far("a.b", "c.d"), enable=["a.b"], presets={"a.b": {"key": "k"}}, rename={"a.b": "x.y"})
        assert names(toolkit) == ["x_y"]
        assert toolkit.call_sync("x_y", {"text": "t"}).value == {"tool": "a.b", "text": "t", "key": "k"}

    def test_a_prefix_makes_no_name_too_long(self, toolkit: Toolkit) -> None:
        toolkit.register(Far("x" * 60, "x" * 59 + "y"), prefix="server__")
        assert [len(name) for name in names(toolkit)] == [64, 64]
        assert len(set(names(toolkit))) == 2


class TestToolsByHand:
    def test_say_what_they_return_and_their_tags(self, toolkit: Toolkit) -> None:
        toolkit.register(Remote("one"))
        assert toolkit["one"].returns == {"type": "object"}
        assert toolkit["one"].tags == ("remote",)

    def test_report_progress_and_know_their_session(self, toolkit: Toolkit) -> None:
        class Talking(Remote):
            def call(self, call: ToolCall) -> Any:
                call.emitter.emit("soon")
                return str(call.session.agent)

        chunks: list[str] = []
        toolkit.register(Talking("one"))
        session = toolkit.session(agent="ada")
        result = session.call_sync("one", {"text": "x"}, on_chunk=lambda chunk: chunks.append(chunk.text))
        assert (result.value, chunks) == ("ada", ["soon"])

    def test_a_call_of_another_caller_has_a_mute_emitter(self) -> None:
        call = ToolCall()
        call.emitter.emit("unheard")
        assert call.session is None

    def test_the_output_policy_holds_for_results_made_by_hand(self) -> None:
        from pegboard import TextBlock, ToolResult

        class Long(Remote):
            def call(self, call: ToolCall) -> Any:
                return ToolResult("", "", Status.SUCCESS, (TextBlock("x" * 1000),), None)

        toolkit = Toolkit(plugins=(), max_output=100)
        toolkit.register(Long("one"))
        assert len(toolkit.call_sync("one", {"text": "x"}).text) < 300


class Grouped(Far):
    """A source that brings groups; the first is for a tool of its own."""

    groups = (Group("far", active=False, managed_by="program"), Group("guests", "For others.", active=False))

    def tools(self) -> list[Any]:
        @tool(group="far")
        def near() -> str:
            return "near"

        return [near, *super().tools()]


class TestGroupsOfASource:
    def test_are_there_once_it_is_registered(self, toolkit: Toolkit) -> None:
        toolkit.register(Grouped("one"))
        assert [(group.name, group.active) for group in toolkit.groups] == [("far", False), ("guests", False)]
        toolkit.register(Remote("guest"), group="guests")
        assert names(toolkit) == ["one"]
        toolkit.update_groups(["far", "guests"], True)
        assert sorted(names(toolkit)) == ["guest", "near", "one"]

    def test_one_that_is_there_stays_as_it_is(self, toolkit: Toolkit) -> None:
        toolkit.create_group("far", "Mine.", active=True)
        toolkit.register(Grouped())
        assert [(group.name, group.description) for group in toolkit.groups] == [
            ("far", "Mine."),
            ("guests", "For others."),
        ]
        assert names(toolkit) == ["near"]

    def test_a_registration_that_fails_brings_none(self, toolkit: Toolkit) -> None:
        toolkit.register(Remote("one"))
        with pytest.raises(ConflictError):
            toolkit.register(Grouped("one"))
        assert toolkit.groups == ()

    def test_come_with_a_pack_whatever_the_order_of_packs(self) -> None:
        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [Offer(Remote("guest"), group="guests"), Grouped("one")]

        toolkit = Toolkit(plugins=[Pack()])
        assert names(toolkit) == ["one"]
        toolkit.update_groups("guests", True)
        assert sorted(names(toolkit)) == ["guest", "one"]
        assert toolkit.problems == []

    def test_stay_when_it_is_removed(self, toolkit: Toolkit) -> None:
        far = Grouped("one")
        toolkit.register(far)
        toolkit.register(Remote("guest"), group="guests")
        toolkit.unregister(far)
        toolkit.update_groups("guests", True)
        assert names(toolkit) == ["guest"]
