"""Two other libraries describe the same types: their schemas say the same, but for the differences listed here."""

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NotRequired, TypeAlias

import pytest
from jsonschema import Draft202012Validator
from typing_extensions import TypedDict

import pegboard_dataclasses
from pegboard._model.tool import Origin
from pegboard._schema.nodes import render
from tests.types.battery import BATTERY, Entry
from tests.types.table import schema, type_table

# The lists below are those of current releases; older ones differ in more.
pytest.importorskip("msgspec", minversion="0.20")
pytest.importorskip("pydantic", minversion="2.12")

from tests.types.oracles import msgspec_schema, normal, pydantic_schema

Make: TypeAlias = Callable[[Any], dict[str, Any]]
Reasons: TypeAlias = dict[str, str]
BY_NAME = {str(entry): entry for entry in BATTERY}

CANONICAL = "no pattern says which text is the type's, so text passes that cannot arrive"
NAIVE = "moments without an offset are allowed, which RFC 3339 has not, so there is no format"
KEYS = "the keys of an object are not described"
HIDDEN = "`Param` is not known inside a NewType"
HASHABLE = "lists and objects pass, which no set can hold"
FORMAT_OF_ITS_OWN = "`format: path` is not in the standard and asserts nothing"
ONE_OF_A_KIND = "a union may hold one type that is written as text, and one array"
PEP_695 = "aliases made by TypeAliasType are not known"
OTHER_LIBRARY = "not a type of that library"
ENUM_VALUES = "an enum holds either text or integers alone"
UNIONS = "a bound around a union has to fit all of it"

PYDANTIC_REFUSES: Reasons = {"collections.abc.Collection[int]": OTHER_LIBRARY}
PYDANTIC_TAKES_MORE: Reasons = {
    "<class 'bytes'>": CANONICAL,
    "<class 'datetime.timedelta'>": "years and months pass, which have no fixed length",
    "<class 'decimal.Decimal'>": "JSON numbers pass, which have been floats by then; " + CANONICAL,
    "<class 'set'>": HASHABLE,
    "dict[int, str]": KEYS,
    "Annotated[Slug, MaxLen(max_length=3)]": HIDDEN,
    "Annotated[int | str, Ge(ge=1)]": "the bound becomes a keyword `ge`, which is none",
    "<class 'pathlib.Path'>": FORMAT_OF_ITS_OWN,
    "<class 'pathlib.PurePosixPath'>": FORMAT_OF_ITS_OWN,
    "Annotated[pathlib.Path, MinLen(min_length=1)]": FORMAT_OF_ITS_OWN,
}
PYDANTIC_TAKES_OTHERS: Reasons = {
    "<enum 'Corner'>": "members whose value is no JSON scalar are sent as Python wrote them, not by name",
    "dict[Size, int]": "the keys are integers, so that no key fits: keys are text",
}
MSGSPEC_REFUSES: Reasons = {
    "<class 'object'>": OTHER_LIBRARY,
    "<class 'pathlib.Path'>": OTHER_LIBRARY,
    "<class 'pathlib.PurePosixPath'>": OTHER_LIBRARY,
    "Annotated[pathlib.Path, MinLen(min_length=1)]": OTHER_LIBRARY,
    "<class 're.Pattern'>": OTHER_LIBRARY,
    "re.Pattern[str]": OTHER_LIBRARY,
    "<class 'ipaddress.IPv4Address'>": OTHER_LIBRARY,
    "<class 'ipaddress.IPv6Address'>": OTHER_LIBRARY,
    "collections.abc.Iterable[int]": OTHER_LIBRARY,
    "collections.deque[int]": OTHER_LIBRARY,
    "~Picked": OTHER_LIBRARY,
    "Literal[<Color.RED: 'red'>, 'x']": ENUM_VALUES,
    "<enum 'Corner'>": ENUM_VALUES,
    "<enum 'Answer'>": ENUM_VALUES,
    "datetime.datetime | str": ONE_OF_A_KIND,
    "datetime.datetime | datetime.date": ONE_OF_A_KIND,
    "list[int] | list[str]": ONE_OF_A_KIND,
    "list[str] | list[int]": ONE_OF_A_KIND,
    "Names": PEP_695,
    "Pair[int]": PEP_695,
    "Json": PEP_695,
    "Tree": PEP_695,
    "Annotated[int | None, Ge(ge=1)]": UNIONS,
    "Annotated[int | str, Ge(ge=1)]": UNIONS,
}
MSGSPEC_TAKES_MORE: Reasons = {
    "<class 'bytes'>": CANONICAL,
    "<class 'datetime.datetime'>": NAIVE,
    "<class 'datetime.time'>": NAIVE,
    "<class 'datetime.timedelta'>": "years and months pass, which have no fixed length",
    "<class 'decimal.Decimal'>": CANONICAL,
    "<class 'set'>": HASHABLE,
    "dict[int, str]": KEYS,
    "dict[Color, int]": KEYS,
    "dict[Size, int]": KEYS,
    "dict[Literal['a', 'b'], int]": KEYS,
    "dict[datetime.date, int]": KEYS,
    "Annotated[Slug, MaxLen(max_length=3)]": HIDDEN,
}


def verdicts(found: dict[str, Any], entry: Entry) -> list[bool]:
    """What a schema says to all hand-picked values of a type, the good and the bad."""
    oracle = Draft202012Validator(found, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return [oracle.is_valid(value) for value in (*(sent for sent, _ in entry.good), *entry.bad)]


class Comparison:
    """The tests; a subclass names the library."""

    refuses: ClassVar[Reasons]
    takes_more: ClassVar[Reasons]
    takes_others: ClassVar[Reasons] = {}

    def make(self, annotation: Any) -> dict[str, Any]:
        raise NotImplementedError

    def schemas(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        annotation = BY_NAME[name].annotation
        return schema(annotation), self.make(annotation)

    def verdicts(self, name: str) -> list[tuple[bool, bool]]:
        ours, theirs = (verdicts(found, BY_NAME[name]) for found in self.schemas(name))
        return list(zip(ours, theirs, strict=True))

    def test_refuses_what_is_listed(self) -> None:
        for name in self.refuses:
            with pytest.raises((TypeError, RuntimeError)):
                self.make(BY_NAME[name].annotation)

    def test_takes_more_where_it_is_listed(self) -> None:
        for name in self.takes_more:
            ours, theirs = map(normal, self.schemas(name))
            assert ours != theirs, f"{name} need not be listed"
            assert all(fits for promised, fits in self.verdicts(name) if promised), f"{name} takes less"

    def test_takes_others_where_it_is_listed(self) -> None:
        for name in self.takes_others:
            assert not all(fits for promised, fits in self.verdicts(name) if promised), f"{name} takes no less"

    def test_list_is_short(self) -> None:
        """Most types are compared, and nothing is listed twice or does not exist."""
        listed = [*self.refuses, *self.takes_more, *self.takes_others]
        assert len(listed) == len(set(listed)) == len(BY_NAME.keys() & listed)
        assert len(BY_NAME) - len(listed) >= 70


def says_the_same(*listed: Reasons) -> pytest.MarkDecorator:
    """For every type that no list names."""
    return pytest.mark.parametrize("name", sorted(BY_NAME.keys() - set().union(*listed)))


class TestPydantic(Comparison):
    refuses = PYDANTIC_REFUSES
    takes_more = PYDANTIC_TAKES_MORE
    takes_others = PYDANTIC_TAKES_OTHERS

    def make(self, annotation: Any) -> dict[str, Any]:
        return pydantic_schema(annotation)

    @says_the_same(refuses, takes_more, takes_others)
    def test_says_the_same(self, name: str) -> None:
        ours, theirs = map(normal, self.schemas(name))
        assert ours == theirs
        assert all(promised == fits for promised, fits in self.verdicts(name))


class TestMsgspec(Comparison):
    refuses = MSGSPEC_REFUSES
    takes_more = MSGSPEC_TAKES_MORE

    def make(self, annotation: Any) -> dict[str, Any]:
        return msgspec_schema(annotation)

    @says_the_same(refuses, takes_more)
    def test_says_the_same(self, name: str) -> None:
        ours, theirs = map(normal, self.schemas(name))
        assert ours == theirs
        assert all(promised == fits for promised, fits in self.verdicts(name))


@dataclasses.dataclass
class Stop:
    """A stop."""

    city: str
    day: dt.date
    minutes: int = 0


@dataclasses.dataclass
class Trip:
    """A trip."""

    name: str
    stops: list[Stop]
    home: Stop
    tags: set[str] = dataclasses.field(default_factory=set)
    next: "Trip | None" = None


class Ticket(TypedDict):
    """A ticket."""

    seat: NotRequired[str]
    price: float
    way: Literal["out", "back"]


class TestRecords:
    """Records say the same, but that theirs are open, and that they show null as a default of what may be left out."""

    @pytest.fixture
    def ours(self) -> Callable[[Any], Any]:
        table = type_table()
        for handler in pegboard_dataclasses.provide_types():
            table.add(handler, Origin("dataclasses", "pegboard-dataclasses", "1.0"), "plugin")
        return lambda annotation: normal(render(table.plan(annotation).schema))

    @pytest.mark.parametrize("make", [pydantic_schema, msgspec_schema])
    @pytest.mark.parametrize("annotation", [Stop, Ticket, list[Stop], dict[str, Ticket]])
    def test_same_but_closed(self, make: Make, annotation: Any, ours: Callable[[Any], Any]) -> None:
        assert ours(annotation) == closed(normal(make(annotation)))

    @pytest.mark.parametrize("make", [pydantic_schema, msgspec_schema])
    def test_what_may_be_left_out_need_not_be_null(self, make: Make, ours: Callable[[Any], Any]) -> None:
        mine, theirs = ours(Trip), closed(normal(make(Trip)))
        again = {"$ref": 0}
        assert mine["properties"].pop("next") == again
        assert theirs["properties"].pop("next") == {"anyOf": [again, {"type": "null"}], "default": None}
        assert mine["properties"]["tags"].pop("default") == []
        theirs["properties"]["tags"].pop("default", None)  # pydantic shows no default that a factory makes
        assert mine == theirs


def closed(schema: Any) -> Any:
    """A schema whose records take no surplus members."""
    if isinstance(schema, list):
        return list(map(closed, schema))
    if not isinstance(schema, dict):
        return schema
    found = {keyword: closed(inner) for keyword, inner in schema.items()}
    return {**found, "additionalProperties": False} if "properties" in found else found


class TestNormalForm:
    """Without these, anything might be equal to anything."""

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ({"const": 1, "type": "integer"}, {"enum": [1], "title": "One"}),
            ({"anyOf": [{"type": "null"}, {}]}, {"anyOf": [{}, {"type": "null"}]}),
            ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}, {"type": "string", "description": "text"}),
            ({"type": "array", "items": {}}, {"type": "array", "minItems": 0}),
            (
                {"properties": {"b": {}, "a": {}}, "required": ["b", "a"]},
                {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]},
            ),
        ],
    )
    def test_same(self, left: dict[str, Any], right: dict[str, Any]) -> None:
        assert normal(left) == normal(right)

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ({"enum": [1, 2]}, {"enum": [1]}),
            ({"type": "string"}, {"type": "integer"}),
            ({"type": "string"}, {"type": "string", "format": "date"}),
            ({"minimum": 1}, {"exclusiveMinimum": 1}),
            ({"additionalProperties": False}, {}),
            ({"prefixItems": [{"type": "string"}, {}]}, {"prefixItems": [{}, {"type": "string"}]}),
            ({"items": {"minimum": 1}}, {"items": {"minimum": 2}}),
            ({"minItems": 1}, {"minItems": 0}),
            ({"propertyNames": {"pattern": "a"}}, {"propertyNames": {"pattern": "b"}}),
        ],
    )
    def test_different(self, left: dict[str, Any], right: dict[str, Any]) -> None:
        assert normal(left) != normal(right)
