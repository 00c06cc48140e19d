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
    ConflictError,
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


@pytest.mark.parametrize("entry", BATTERY, ids=str)
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


class TestTies:
    """Two plugins that map a type equally well are an error on the way out as they are on the way in."""

    @pytest.fixture
    def toolkit(self) -> Iterator[Toolkit]:
        with Toolkit(plugins=[bank("acme_a"), bank("acme_b")]) as made:
            yield made

    @pytest.mark.parametrize("annotation", [Money, list[Money], dict[str, Money | None]])
    def test_annotated_they_refuse_the_tool(self, toolkit: Toolkit, annotation: Any) -> None:
        both = r"tool 'give': return annotation: acme_a and acme_b both map .*Money, each for its own tools; choose one"
        with pytest.raises(ConflictError, match=both):
            toolkit.register(giving(annotation, None))
        assert len(toolkit) == 0

    @pytest.mark.parametrize("value", [Money(), [Money()]])
    def test_found_in_a_value_they_end_the_call_with_an_error_that_names_both(
        self, toolkit: Toolkit, value: Any
    ) -> None:
        toolkit.register(giving(Any, value))
        result = toolkit.call_sync("give")
        assert result.status is Status.ERROR
        assert "acme" not in result.text  # a model can do nothing about it
        assert result.error is not None
        assert "acme_a and acme_b both map" in result.error.details["reason"]

    @pytest.mark.parametrize("annotation", [Money, Money | None, Date | Money, Annotated[Money, "of somebody"]])
    def test_converters_of_one_class_refuse_the_tool(self, annotation: Any) -> None:
        """As long as two packs convert it equally well, no call of the tool could end well."""

        class Ant:
            @hookimpl
            def provide_converters(self) -> list[Converter]:
                return [Converter(Money, lambda money: "money")]

        class Bee(Ant):
            @hookimpl
            def provide_converters(self) -> list[Converter]:
                return [Converter(Money, lambda money: "money"), Converter(Date, str)]

        both = (
            "tool 'give': return annotation: two converters claim Money: Ant and Bee; block one, or give one a higher"
        )
        with Toolkit(plugins=[Ant(), Bee()]) as own:
            with pytest.raises(ConflictError, match=both):
                own.register(giving(annotation, Money()))
            assert len(own) == 0
            own.register(tool(converter=lambda money: "mine")(giving(annotation, Money())))
            assert own.call_sync("give").text == "mine"

    def test_a_converter_that_would_be_one_too_many_is_refused(self) -> None:
        with Toolkit(plugins=()) as own:
            own.register_converter(Converter(Money, lambda money: "money"))
            own.register(giving(Money, Money()))
            with pytest.raises(ConflictError, match=r"tool 'give': .*two converters claim Money"):
                own.register_converter(Converter(Money, lambda money: "other"))
            assert own.call_sync("give").text == "money"

    def test_the_program_breaks_them(self, toolkit: Toolkit) -> None:
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
