"""What the schema of a result promises, `data` keeps; where it could not, no schema is promised."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass
from types import ModuleType
from typing import Annotated, Any

import attrs
import pytest
from jsonschema import Draft202012Validator

import pegboard_dataclasses
from pegboard import (
    Converter,
    ImageBlock,
    PegboardError,
    Status,
    Text,
    TextBlock,
    Tool,
    Toolkit,
    ToolOutput,
    TypeHandler,
    TypePlan,
    Types,
    hookimpl,
    shaped,
    tool,
)
from tests.support.thinning import one_in
from tests.types.battery import BATTERY, Entry

PIXEL = b"\x89PNG\r\n\x1a\n"
IMAGE = ImageBlock.from_bytes(PIXEL, "image/png")


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=[pegboard_dataclasses]) as made:
        yield made


def giving(annotation: Any, value: Any) -> Callable[[], Any]:
    def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    return give


def promises(made: Tool) -> bool:
    try:
        return made.json_schema(of="returns") is not None
    except PegboardError:
        return False


@pytest.mark.parametrize("entry", one_in(3, BATTERY), ids=str)
def test_data_fits_the_schema(entry: Entry) -> None:
    with Toolkit(plugins=()) as toolkit:
        for _, value in entry.good:
            toolkit.register(giving(entry.annotation, value), on_conflict="replace")
            result = toolkit.call_sync("give")
            assert result.status is Status.SUCCESS
            if promises(toolkit["give"]):
                Draft202012Validator(toolkit["give"].json_schema(of="returns")).validate(result.data)
            else:
                assert entry.annotation in (Any, bytes)


class TestContent:
    """Blocks and outputs are records to `pegboard-dataclasses`, but a result is made of them."""

    @pytest.mark.parametrize(
        ("annotation", "value", "content"),
        [
            (ImageBlock, IMAGE, (IMAGE,)),
            (list[ImageBlock], [IMAGE, IMAGE], (IMAGE, IMAGE)),
            (list[TextBlock | ImageBlock], [TextBlock("a"), IMAGE], (TextBlock("a"), IMAGE)),
            (tuple[str, ImageBlock], ("a", IMAGE), (TextBlock("a"), IMAGE)),
            (ImageBlock | None, IMAGE, (IMAGE,)),
            (ToolOutput, ToolOutput("a"), (TextBlock("a"),)),
        ],
    )
    def test_stays_content_whatever_is_annotated(
        self, toolkit: Toolkit, annotation: Any, value: Any, content: Any
    ) -> None:
        toolkit.register(giving(annotation, value))
        assert toolkit.call_sync("give").content == content
        assert not promises(toolkit["give"])


class TestConverted:
    """A converter decides what becomes of its values, so their annotation promises nothing."""

    @pytest.mark.parametrize("annotation", [bytes, bytes | None])
    def test_by_a_plugin(self, toolkit: Toolkit, annotation: Any) -> None:
        toolkit.register(giving(annotation, PIXEL))
        assert isinstance(toolkit.call_sync("give").content[0], ImageBlock)
        assert not promises(toolkit["give"])

    def test_by_the_tool_itself(self, toolkit: Toolkit) -> None:
        @tool(converter=str)
        def count() -> int:
            return 3

        toolkit.register(count)
        assert toolkit.call_sync("count").data == "3"
        assert not promises(toolkit["count"])

    def test_by_the_program(self) -> None:
        @hookimpl
        def provide_converters() -> list[Converter]:
            return [Converter(dt.date, lambda date: {"year": date.year})]

        module = ModuleType("years")
        vars(module)["provide_converters"] = provide_converters
        with Toolkit(plugins=[module]) as toolkit:
            toolkit.register(giving(dt.date, dt.date(2024, 5, 6)))
            assert toolkit.call_sync("give").data == {"year": 2024}
            assert not promises(toolkit["give"])


class TestOneWay:
    """Records that are written otherwise than they are read."""

    def test_init_only_fields_that_have_to_be_sent(self, toolkit: Toolkit) -> None:
        @dataclass
        class Seeded:
            size: int
            seed: InitVar[int]

        toolkit.register(giving(list[Seeded], [Seeded(3, 4)]))
        assert toolkit.call_sync("give").data == [{"size": 3}]
        assert not promises(toolkit["give"])

    def test_init_only_fields_with_a_default_may_be_missing(self, toolkit: Toolkit) -> None:
        @dataclass
        class Seeded:
            size: int
            seed: InitVar[int] = 0

        toolkit.register(giving(Seeded, Seeded(3, 4)))
        assert promises(toolkit["give"])

    def test_fields_that_a_converter_makes(self, toolkit: Toolkit) -> None:
        def length(text: str) -> int:
            return len(text)

        @attrs.frozen
        class Measured:
            size: int = attrs.field(converter=length)

        @dataclass
        class Holder:
            inner: dict[str, Measured | None]

        toolkit.register(giving(Holder, Holder({"a": Measured("abc")})))
        assert toolkit.call_sync("give").data == {"inner": {"a": {"size": 3}}}
        assert not promises(toolkit["give"])

    def test_converters_that_keep_the_type(self, toolkit: Toolkit) -> None:
        def upper(text: str) -> str:
            return text.upper()

        @attrs.frozen
        class Named:
            name: str = attrs.field(converter=upper)

        toolkit.register(giving(Named, Named("abc")))
        assert promises(toolkit["give"])


class Money:
    """A class that two plugins map."""


class Date:
    """A class that one of them converts."""


def bank(name: str) -> ModuleType:
    def money(annotation: Any, types: Types) -> TypePlan:
        return shaped({"type": "string"}, Text(lambda text: Money()), lambda value: name)

    @hookimpl
    def provide_types() -> list[TypeHandler]:
        return [TypeHandler(Money, money)]

    module = ModuleType(name)
    vars(module)["provide_types"] = provide_types
    return module


class TestOverlaps:
    """Of two plugins that map or convert a type equally well the first counts, on the way out as on the way in."""

    @pytest.fixture
    def toolkit(self) -> Iterator[Toolkit]:
        with Toolkit(plugins=[bank("acme_a"), bank("acme_b")]) as made:
            yield made

    @pytest.mark.parametrize(
        ("annotation", "value", "data"),
        [
            (Money, Money(), "acme_a"),
            (list[Money], [Money()], ["acme_a"]),
            (dict[str, Money | None], {"a": Money()}, {"a": "acme_a"}),
            (Any, Money(), "acme_a"),
            (Any, [Money()], ["acme_a"]),
        ],
    )
    def test_of_types(self, toolkit: Toolkit, annotation: Any, value: Any, data: Any) -> None:
        toolkit.register(giving(annotation, value))
        assert toolkit.call_sync("give").data == data
        assert "acme_a and acme_b both map" in toolkit.problems[0]

    @pytest.mark.parametrize("annotation", [Money, Money | None, Date | Money, Annotated[Money, "of a bank"]])
    def test_of_converters(self, annotation: Any) -> None:
        class Ant:
            @hookimpl
            def provide_converters(self) -> list[Converter]:
                return [Converter(Money, lambda money: "ant")]

        class Bee(Ant):
            @hookimpl
            def provide_converters(self) -> list[Converter]:
                return [Converter(Money, lambda money: "bee"), Converter(Date, str)]

        with Toolkit(plugins=[Ant(), Bee()]) as own:
            own.register(giving(annotation, Money()))
            assert own.call_sync("give").text == "ant"
            (problem,) = own.problems
            assert problem.startswith("Ant and Bee both convert tests.types.test_results.Money; Ant counts; ")

    def test_of_the_program_the_last_counts(self) -> None:
        with Toolkit(plugins=()) as own:
            own.register_converter(Converter(Money, lambda money: "money"))
            own.register(giving(Money, Money()))
            own.register_converter(Converter(Money, lambda money: "other"))
            assert (own.call_sync("give").text, own.problems) == ("other", [])

    def test_the_program_decides(self, toolkit: Toolkit) -> None:
        toolkit.register_type(TypeHandler(Money, lambda annotation, types: shaped({}, Text(str), lambda value: "mine")))
        toolkit.register(giving(Money, Money()))
        assert toolkit.call_sync("give").data == "mine"


def test_a_type_without_a_shape_keeps_its_promise(toolkit: Toolkit) -> None:
    class Opaque:
        def __str__(self) -> str:
            return "opaque"

    def build(annotation: Any, types: Types) -> TypePlan:
        return TypePlan({"type": "string"}, lambda value: Opaque(), str)

    toolkit.register_type(TypeHandler(Opaque, build))
    toolkit.register(giving(list[Opaque], [Opaque()]), name="give", description="Give.")
    assert toolkit["give"].returns == {"type": "array", "items": {"type": "string"}}
    assert toolkit.call_sync("give").data == ["opaque"]
