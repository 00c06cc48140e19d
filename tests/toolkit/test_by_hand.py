"""What comes in through the program's own hand is taken as it says, or refused with a clear answer."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from pegboard import Emitter, Injected, Injector, RegistrationError, Tool, Toolkit, hookimpl, tool


class Written:
    """A tool by hand."""

    name = "written"
    description = ""

    def __init__(self, parameters: Any) -> None:
        self.parameters = parameters

    def call(self, call: Any) -> Any:
        return dict(call.arguments)


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        yield made


def schema() -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize("make", [Written, lambda given: Tool.external("written", "", given)])
def test_a_schema_by_hand_is_copied(make: Any, toolkit: Toolkit) -> None:
    given = schema()
    toolkit.register(make(given))
    given["properties"]["a"]["type"] = "string"
    assert toolkit["written"].parameters == schema()
    assert toolkit.call_sync("written", {"a": "x"}).status == "invalid"
    assert toolkit.call_sync("written", {"a": 1}).status in ("success", "suspended")


def test_an_empty_schema_takes_any_object_and_none_takes_nothing(toolkit: Toolkit) -> None:
    toolkit.register(Written({}))
    assert toolkit["written"].parameters == {"type": "object"}
    assert toolkit.call_sync("written", {"a": [1]}).value == {"a": [1]}
    toolkit.register(Tool.external("nothing", ""), Tool.external("anything", "", {}))
    assert toolkit.call_sync("nothing", {"a": 1}).status == "invalid"
    assert toolkit.call_sync("nothing", {}).status == "suspended"
    assert toolkit.call_sync("anything", {"a": 1}).status == "suspended"


@pytest.mark.parametrize("given", [None, "a", 3, ["a"], ("a", int)])
def test_parameters_that_are_no_schema_are_refused_with_what_they_may_be(given: Any, toolkit: Toolkit) -> None:
    wanted = 'must be the schema of an object, as a mapping such as {"type": "object", "properties": {...}} or {} for'
    with pytest.raises(RegistrationError) as refused:
        toolkit.register(Written(given))
    assert str(refused.value).startswith(f"tool 'written': parameters {wanted}")
    assert str(refused.value).endswith(f"got {given!r}")


class TestExtendedModel:
    MODEL: ClassVar = {
        "type": "object",
        "properties": {"z": {"type": "string"}, "y": {"type": "integer"}},
        "required": ["z"],
    }

    def test_of_a_tool_by_hand(self, toolkit: Toolkit) -> None:
        toolkit.register(Written(schema()), extended_model=self.MODEL)
        parameters = toolkit["written"].parameters
        assert list(parameters["properties"]) == ["a", "z", "y"]
        assert parameters["required"] == ["a", "z"]
        assert toolkit.call_sync("written", {"a": 1, "z": "x"}).value == {"a": 1, "z": "x"}
        assert toolkit.call_sync("written", {"a": 1}).status == "invalid"
        assert toolkit.call_sync("written", {"a": 1, "z": "x", "y": "?"}).status == "invalid"

    def test_of_an_external_tool(self, toolkit: Toolkit) -> None:
        toolkit.register(Tool.external("written", "", schema()), extended_model=self.MODEL)
        assert toolkit["written"].parameters["required"] == ["a", "z"]
        assert toolkit.call_sync("written", {"a": 1, "z": "x"}).status == "suspended"

    def test_that_has_what_the_tool_has(self, toolkit: Toolkit) -> None:
        with pytest.raises(RegistrationError, match="both have 'a'"):
            toolkit.register(Written(schema()), extended_model=schema())


class Db:
    """What a pack provides."""


class Pack:
    @hookimpl
    def provide_injectors(self) -> list[Injector]:
        return [Injector(Db, Db)]


class AsyncPack:
    def __init__(self) -> None:
        self.closed = 0

    @hookimpl
    def provide_injectors(self) -> list[Injector]:
        async def connect() -> Any:
            yield Db()
            self.closed += 1

        return [Injector(Db, connect)]


@pytest.mark.parametrize("pack", [Pack, AsyncPack])
def test_injected_asks_the_context_and_then_the_packs(pack: Any) -> None:
    def ask(db: Injected[Db]) -> Db:
        return db

    made, mine = pack(), Db()
    with Toolkit(plugins=[made]) as toolkit:
        toolkit.register(ask)
        assert isinstance(toolkit.call_sync("ask", {}).value, Db)
        assert toolkit.call_sync("ask", {}, context=mine).value is mine
        assert getattr(made, "closed", 2) == 2
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(ask)
        assert toolkit.call_sync("ask", {}).status == "invalid"


@pytest.mark.parametrize("parameters", [3, False, 0, "", [], (), set()])
def test_parameters_that_are_no_schema_are_refused(parameters: Any) -> None:
    wanted = r"tool 'x': parameters must be the schema of an object, as a mapping such as \{.*\} for any object; got "
    with pytest.raises(RegistrationError, match=wanted):
        Tool.external("x", "d", parameters)
    assert Tool.external("x", "d", {}).parameters == {"type": "object"}


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(RegistrationError, match="None cannot be a tool name"):
        Tool.external(None, "d")  # type: ignore[arg-type]
    with Toolkit(plugins=()) as toolkit:

        def add(a: int) -> int:
            return a

        for make in (
            lambda: toolkit.register(add, name=""),
            lambda: toolkit.register(tool(name="")(add)),
            lambda: Tool.from_function(add, name=""),
        ):
            with pytest.raises(RegistrationError, match="'' cannot be a tool name"):
                make()
        assert len(toolkit) == 0
    with pytest.raises(RegistrationError, match="' ' cannot be a tool name"):
        Tool.external(" ", "d")


def test_emitting_nothing_is_an_error_that_says_so(toolkit: Toolkit) -> None:
    def work(emitter: Emitter) -> None:
        emitter.emit(None)  # type: ignore[arg-type]

    toolkit.register(work)
    assert "emit text or a block" in toolkit.call_sync("work", {}).text
