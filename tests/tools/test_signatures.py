"""Signatures: every kind of parameter is bound to the right value, or refused with a remedy."""

import enum
import json
import re
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NewType,
    NotRequired,
    Optional,
    Protocol,
    Required,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
)

import pytest

from pegboard import Emitter, Injected, Param, RegistrationError, Tool, ToolCall, Toolkit, TypeHandler, TypePlan, Types
from tests.support.thinning import first, one_in
from tests.tools import local_annotations as strings

T = TypeVar("T")
UserId = NewType("UserId", int)
NOW = date(2026, 1, 2)

# Half of these tools take records, which the core alone does not map.
pegboard_dataclasses = pytest.importorskip("pegboard_dataclasses")


def board(function: Callable[..., Any], **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=[pegboard_dataclasses])
    toolkit.register(function, **options)
    return toolkit


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Filters(TypedDict, total=False):
    site: Required[str]
    limit: int


Headers = TypedDict("Headers", {"content-type": str, "class": NotRequired[int], "max age": NotRequired[int]})


class Db:
    name = "db"


def _plain(a: int, b: str) -> Any:
    return a, b


def _defaults(a: int = 1, b: str = "x") -> Any:
    return a, b


def _none_default(a: str | None = None) -> Any:
    return a


def _optional(a: Optional[int]) -> Any:  # noqa: UP045 - the old spelling is the case
    return a


def _positional_only(a: int, b: int = 2, /) -> Any:
    return a, b


def _positional_only_beside_kwargs(a: int, /, **more: int) -> Any:
    return a, more


def _keyword_only(*, a: int, b: int = 2) -> Any:
    return a, b


def _mixed(a: int, /, b: int, *, c: int) -> Any:
    return a, b, c


def _star(*numbers: int) -> Any:
    return numbers


def _star_between(a: int, *numbers: int, b: int = 0) -> Any:
    return a, numbers, b


def _star_after_default(a: int = 1, *numbers: int) -> Any:
    return a, numbers


def _stars(a: int, **more: str) -> Any:
    return a, more


def _stars_records(**points: Point) -> Any:
    return points


def _untyped_stars(*args, **kwargs):  # type: ignore[no-untyped-def]
    return args, kwargs


def _unpack(q: str, **filters: Unpack[Filters]) -> Any:
    return q, filters


def _unpack_strange(**headers: Unpack[Headers]) -> Any:
    return headers


def _untyped(a, b=2):  # type: ignore[no-untyped-def]
    return a, b


def _date_default(day: date = NOW) -> Any:
    return day


def _path_default(path: Path = Path("a/b")) -> Any:
    return path


def _object_default(lock: Any = threading.Lock) -> Any:
    return lock


def _enum(colour: Colour = Colour.BLUE) -> Any:
    return colour


def _literal(mode: Literal["a", "b", 3]) -> Any:
    return mode


def _record(point: Point) -> Any:
    return point


def _record_default(point: Point = Point(1, 2)) -> Any:  # noqa: B008 - the case
    return point


def _containers(a: list[Point], b: dict[str, date], c: tuple[int, str], d: set[int], e: frozenset[str]) -> Any:
    return a, b, c, d, e


def _abstract(a: Sequence[int], b: Mapping[str, int]) -> Any:
    return list(a), dict(b)


def _union(a: int | str, b: Point | None) -> Any:
    return a, b


def _new_type(user: UserId) -> Any:
    return user


def _decimal(amount: Annotated[Decimal, "Price"]) -> Any:
    return amount


def _bytes(data: bytes) -> Any:
    return data


def _final(a: Final[int] = 3) -> Any:  # type: ignore[valid-type]
    return a


def _anything(a: Any, b: object = None) -> Any:
    return a, b


def _renamed(from_: Annotated[str, Param(name="from")], to: str = "x") -> Any:
    return from_, to


def _swapped(a: Annotated[int, Param(name="b")], b: Annotated[int, Param(name="a")]) -> Any:
    return a, b


def _injected_anywhere(db: Injected[Db], a: int, emitter: Emitter, *numbers: int, call: ToolCall, b: int = 5) -> Any:
    return db.name, a, type(emitter).__name__, numbers, call.name, b


def _no_parameters() -> Any:
    return "nothing"


_BOUND: list[tuple[Callable[..., Any], dict[str, Any], Any]] = [
    (_plain, {"b": "y", "a": 1}, (1, "y")),
    (_defaults, {}, (1, "x")),
    (_defaults, {"b": "z"}, (1, "z")),
    (_none_default, {}, None),
    (_none_default, {"a": "v"}, "v"),
    (_optional, {"a": None}, None),
    (_optional, {"a": 3}, 3),
    (_positional_only, {"a": 1}, (1, 2)),
    (_positional_only, {"b": 5, "a": 1}, (1, 5)),
    (_positional_only_beside_kwargs, {"a": 1, "z": 2}, (1, {"z": 2})),
    (_keyword_only, {"a": 1}, (1, 2)),
    (_mixed, {"c": 3, "a": 1, "b": 2}, (1, 2, 3)),
    (_star, {}, ()),
    (_star, {"numbers": [1, 2]}, (1, 2)),
    (_star_between, {"a": 1, "numbers": [2, 3], "b": 4}, (1, (2, 3), 4)),
    (_star_between, {"a": 1}, (1, (), 0)),
    (_star_after_default, {"numbers": [7]}, (1, (7,))),
    (_stars, {"a": 1, "x": "y", "more": "z"}, (1, {"x": "y", "more": "z"})),
    (_stars_records, {"home": {"x": 1}, "away": {"x": 2, "y": 3}}, {"home": Point(1), "away": Point(2, 3)}),
    (_untyped_stars, {"args": [1, "b"], "k": None}, ((1, "b"), {"k": None})),
    (_unpack, {"q": "a", "site": "s"}, ("a", {"site": "s"})),
    (_unpack, {"q": "a", "site": "s", "limit": 3}, ("a", {"site": "s", "limit": 3})),
    (_unpack_strange, {"content-type": "t", "class": 1}, {"content-type": "t", "class": 1}),
    (_unpack_strange, {"content-type": "t", "max age": 2}, {"content-type": "t", "max age": 2}),
    (_untyped, {"a": [1, {}]}, ([1, {}], 2)),
    (_date_default, {}, NOW),
    (_date_default, {"day": "2026-03-04"}, date(2026, 3, 4)),
    (_path_default, {}, Path("a/b")),
    (_object_default, {}, threading.Lock),
    (_enum, {}, Colour.BLUE),
    (_enum, {"colour": "red"}, Colour.RED),
    (_literal, {"mode": 3}, 3),
    (_record, {"point": {"x": 1}}, Point(1, 0)),
    (_record_default, {}, Point(1, 2)),
    (
        _containers,
        {"a": [{"x": 1}], "b": {"k": "2026-01-02"}, "c": [1, "x"], "d": [1, 2], "e": ["q"]},
        ([Point(1)], {"k": NOW}, (1, "x"), {1, 2}, frozenset("q")),
    ),
    (_abstract, {"a": [1], "b": {"k": 2}}, ([1], {"k": 2})),
    (_union, {"a": "x", "b": None}, ("x", None)),
    (_union, {"a": 1, "b": {"x": 1}}, (1, Point(1))),
    (_new_type, {"user": 7}, 7),
    (_decimal, {"amount": "1.50"}, Decimal("1.50")),
    (_bytes, {"data": "aGk="}, b"hi"),
    (_final, {}, 3),
    (_anything, {"a": {"k": [1]}}, ({"k": [1]}, None)),
    (_renamed, {"from": "here"}, ("here", "x")),
    (_swapped, {"a": 1, "b": 2}, (2, 1)),
    (_injected_anywhere, {"a": 1, "numbers": [2]}, ("db", 1, "Emitter", (2,), "_injected_anywhere", 5)),
    (_no_parameters, {}, "nothing"),
]


@pytest.mark.parametrize(("function", "arguments", "expected"), _BOUND)
@pytest.mark.parametrize("form", first(1, ["mapping", "text"]))
def test_bound(function: Callable[..., Any], arguments: dict[str, Any], expected: Any, form: str) -> None:
    received: list[Any] = []
    toolkit = board(_recording(function, received), name=function.__name__)
    for _ in range(2):  # the first call compiles, the second takes the shortest way
        sent = arguments if form == "mapping" else json.dumps(arguments)
        result = toolkit.call_sync(function.__name__, sent, context=Db())
        assert result.status == "success", result.text
    assert received == [expected, expected]
    assert list(map(type, _flat(received[1]))) == list(map(type, _flat(expected)))


def _recording(function: Callable[..., Any], received: list[Any]) -> Callable[..., str]:
    import functools

    @functools.wraps(function)
    def record(*args: Any, **kwargs: Any) -> str:
        received.append(function(*args, **kwargs))
        return "done"

    return record


def _flat(value: Any) -> list[Any]:
    return [value, *(value if isinstance(value, tuple) else ())]


class TestSchemaOfKinds:
    def test_star_is_an_optional_array(self) -> None:
        schema = board(_star_between)["_star_between"].parameters
        assert schema["properties"]["numbers"] == {"type": "array", "items": {"type": "integer"}}
        assert schema["required"] == ["a"]

    def test_stars_allow_more_of_their_type(self) -> None:
        assert board(_stars)["_stars"].parameters["additionalProperties"] == {"type": "string"}
        assert board(_untyped_stars)["_untyped_stars"].parameters["additionalProperties"] is True
        assert board(_plain)["_plain"].parameters["additionalProperties"] is False

    def test_unpacked_keys_are_parameters(self) -> None:
        schema = board(_unpack)["_unpack"].parameters
        assert list(schema["properties"]) == ["q", "site", "limit"]
        assert schema["required"] == ["q", "site"]
        assert schema["additionalProperties"] is False

    def test_defaults_that_are_not_json_are_left_out(self) -> None:
        assert "default" not in board(_object_default)["_object_default"].parameters["properties"]["lock"]
        assert board(_date_default)["_date_default"].parameters["properties"]["day"]["default"] == "2026-01-02"
        assert board(_enum)["_enum"].parameters["properties"]["colour"]["default"] == "blue"
        assert board(_record_default)["_record_default"].parameters["properties"]["point"]["default"] == {
            "x": 1,
            "y": 2,
        }

    def test_null_default_is_no_noise(self) -> None:
        assert board(_none_default)["_none_default"].parameters["properties"] == {"a": {"type": "string"}}

    def test_surplus_keyword_of_the_wrong_type(self) -> None:
        result = board(_stars).call_sync("_stars", {"a": 1, "x": 3.5})
        assert result.status == "invalid"
        assert "x: expected string" in result.text

    def test_kwargs_never_reach_another_parameter(self) -> None:
        def f(a: Annotated[int, Param(name="first")], db: Injected[Db], **more: Any) -> str:
            return f"{a} {db.name} {more}"

        toolkit = board(f)
        for sent in ({"first": 1, "a": 9, "db": 9, "ok": 1}, '{"first": 1, "a": 9, "db": 9, "ok": 1}'):
            result = toolkit.call_sync("f", sent, context=Db())
            assert result.text == "1 db {'ok': 1}"

    def test_kwargs_never_reach_self(self) -> None:
        class Bag:
            def put(self, **more: int) -> str:
                return str(more)

        result = board(Bag().put).call_sync("put", {"self": 1, "x": 2})
        assert result.text == "{'x': 2}"


def _names() -> list[str]:
    """Names that the generated code, the library's own signatures or the language use."""
    generated = "arguments members size keys text values invocation presets accept invoke known key item result value"
    internals = "self cls name context agent call call_id on_chunk policy types settings tool function schema MISSING"
    builtins = "type len list dict tuple set frozenset id input str int float bool Exception print exec format sum"
    constants = (
        "Mismatch exact_keys count_members to_text to_integer default_a provide_a hidden fetch structure _1 args"
    )
    return f"{generated} {internals} {builtins} {constants} kwargs match case é".split()


class TestNames:
    @pytest.mark.parametrize("name", one_in(4, _names()))
    def test_any_name_is_a_fine_parameter(self, name: str) -> None:
        scope: dict[str, Any] = {}
        source = (
            f"def f({name}: str, a: int, *, b: 'list[str]' = []) -> str: return f'{{{name}}} {{a}} {{b}}'\n"
            f"def g(a: int, *{name}: int, b: int = 1) -> str: return f'{{a}} {{{name}}} {{b}}'\n"
            f"def h(a: int, **{name}: str) -> str: return f'{{a}} {{{name}}}'\n"
            f"def k(a: int, *, {name}: str = 'd') -> str: return f'{{a}} {{{name}}}'\n"
        )
        exec(source, scope)
        toolkit = board(scope["f"])
        toolkit.register(scope["g"], scope["h"], scope["k"])
        for _ in range(2):
            assert toolkit.call_sync("f", json.dumps({name: "v", "a": 1, "b": ["w"]})).text == "v 1 ['w']"
            assert toolkit.call_sync("g", {"a": 1, name: [2, 3]}).text == "1 (2, 3) 1"
            assert (
                toolkit.call_sync("h", json.dumps({"a": 1, name: "v", "z": "w"})).text
                == f"1 {{'{name}': 'v', 'z': 'w'}}"
            )
            assert toolkit.call_sync("k", {"a": 1}).text == "1 d"
            assert toolkit.call_sync("k", {"a": 1, name: "v"}).text == "1 v"

    @pytest.mark.parametrize("name", one_in(4, _names()))
    def test_any_name_is_a_fine_preset_and_injected_parameter(self, name: str) -> None:
        scope: dict[str, Any] = {"Db": Db, "Injected": Injected}
        exec(f"def f(a: int, {name}: str, b: int = 0) -> str: return f'{{a}} {{{name}}} {{b}}'", scope)
        exec(f"def g(a: int, {name}: Injected[Db]) -> str: return f'{{a}} {{{name}.name}}'", scope)
        toolkit = board(scope["f"], presets={"f": {name: "p"}})
        toolkit.register(scope["g"])
        assert toolkit.call_sync("f", {"a": 1}).text == "1 p 0"
        assert toolkit.call_sync("g", {"a": 1}, context=Db()).text == "1 db"

    @pytest.mark.parametrize("name", ["values", "invoke", "accept", "invocation", "arguments", "f_"])
    def test_any_name_is_a_fine_tool(self, name: str) -> None:
        def plain(a: int) -> int:
            return a

        assert board(plain, name=name).call_sync(name, {"a": 1}).value == 1


class TestStringAnnotations:
    def test_module_level(self) -> None:
        toolkit = board(strings.at)
        assert toolkit.call_sync("at", {"point": {"x": 1, "y": 2}}).text == "p: 3"

    def test_forward(self) -> None:
        assert board(strings.later).call_sync("later", {"value": {"text": "t"}}).text == "t"

    def test_local_class(self) -> None:
        assert board(strings.local_function()).call_sync("paint", {"colour": "red", "times": 2}).text == "REDRED"

    def test_local_classes_around_a_class(self) -> None:
        toolkit = board(strings.local_method())
        assert toolkit.call_sync("buy", {"size": {"width": 2}, "kind": "big"}).text == "2 BIG"
        assert toolkit.call_sync("sell", {"sizes": [{"width": 2}, {"width": 3}]}).value == 5

    def test_closure(self) -> None:
        assert board(strings.local_closure()).call_sync("paint", {"colour": "red"}).text == "RED"

    def test_local_context(self) -> None:
        ask, db = strings.local_context()
        assert board(ask).call_sync("ask", {"question": "q"}, context=db).text == "db q"

    def test_local_class_that_is_out_of_reach(self) -> None:
        with pytest.raises(RegistrationError) as caught:
            board(strings.local_unseen())
        message = str(caught.value)
        assert "'Colour' of parameter 'colour' cannot be resolved" in message
        assert "@tool" in message or "module level" in message

    def test_type_checking_import(self) -> None:
        with pytest.raises(RegistrationError) as caught:
            board(strings.unresolved)
        message = str(caught.value)
        assert "'Decimal' of parameter 'amount' cannot be resolved" in message
        assert "not only under TYPE_CHECKING" in message

    def test_type_checking_import_of_the_result(self) -> None:
        with pytest.raises(RegistrationError, match="'Decimal' of the return value cannot be resolved"):
            board(strings.unresolved_result)

    def test_misspelled(self) -> None:
        with pytest.raises(RegistrationError, match="'floot' of parameter 'amount' cannot be resolved"):
            board(strings.misspelled)


class Plain:
    def __init__(self, x: int) -> None:
        self.x = x


class Store(Protocol):
    def get(self) -> str: ...


class Box(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item


def _unknown_class(db: Plain) -> None: ...
def _unknown_in_list(items: list[Plain]) -> None: ...
def _unknown_in_optional(plain: Plain | None = None) -> None: ...
def _unknown_in_kwargs(**more: Plain) -> None: ...
def _unknown_in_args(*plains: Plain) -> None: ...
def _protocol(store: Store) -> None: ...
def _callable(hook: Callable[[int], int]) -> None: ...
def _generic(box: Box[int]) -> None: ...
def _module(m: types) -> None: ...  # type: ignore[valid-type]
def _type(kind: type[int]) -> None: ...
def _complex(number: complex) -> None: ...
def _iterator(items: Iterator[int]) -> None: ...
def _self(me: Self) -> None: ...  # type: ignore[misc]
def _lock(lock: threading.Thread) -> None: ...
def _value(five: 5) -> None: ...  # type: ignore[valid-type]
def _bad_bound(a: Annotated[int, Param(min_length=3)]) -> None: ...
def _never(a: str | date) -> None: ...


_REFUSED: list[tuple[Callable[..., Any], str, str, str]] = [
    (_unknown_class, "db", "Plain", "make it a dataclass|TypeHandler|Injected"),
    (_unknown_in_list, "items", "Plain", "make it a dataclass"),
    (_unknown_in_optional, "plain", "Plain", "make it a dataclass"),
    (_unknown_in_kwargs, "more", "Plain", "make it a dataclass"),
    (_unknown_in_args, "plains", "Plain", "make it a dataclass"),
    (_protocol, "store", "Store", "protocol.*Injected"),
    (_callable, "hook", "Callable", "cannot be sent as JSON.*Injected"),
    (_generic, "box", "Box", "TypeHandler"),
    (_module, "m", "module", "did you mean a class in it"),
    (_type, "kind", "type", "TypeHandler"),
    (_complex, "number", "complex", "TypeHandler"),
    (_iterator, "items", "Iterator", "TypeHandler"),
    (_self, "me", "Self", "name the class instead"),
    (_lock, "lock", "Thread", "TypeHandler"),
    (_value, "five", "5", "not a class"),
    (_bad_bound, "a", "int", "min_length|minLength"),
    (_never, "a", "date", "order|Annotated|discriminator"),
]


@pytest.mark.parametrize(("function", "parameter", "annotation", "remedy"), _REFUSED)
def test_refused(function: Callable[..., Any], parameter: str, annotation: str, remedy: str) -> None:
    toolkit = Toolkit()
    before = [each.name for each in toolkit]
    with pytest.raises(RegistrationError) as caught:
        toolkit.register(function)
    message = str(caught.value)
    assert message.startswith(f"tool {function.__name__!r}: parameter {parameter!r}: ")
    assert annotation in message
    assert re.search(remedy, message), message
    assert "\n" not in message
    assert [each.name for each in toolkit] == before


class TestRefusals:
    def test_all_parameters_are_read_at_registration(self) -> None:
        def f(a: int, b: list[dict[str, Plain]]) -> None: ...

        with pytest.raises(RegistrationError, match="parameter 'b'"):
            Tool.from_function(f)

    def test_record_without_its_pack(self, monkeypatch: pytest.MonkeyPatch) -> None:
        toolkit = Toolkit(plugins=())
        with pytest.raises(RegistrationError, match="pegboard-dataclasses is installed, but not selected"):
            toolkit.register(_record)
        monkeypatch.setattr("pegboard._base.known_packs.find_spec", lambda name: None)
        with pytest.raises(RegistrationError, match="pip install pegboard-dataclasses"):
            toolkit.register(_record)

    def test_two_parameters_of_one_schema_name(self) -> None:
        def f(a: Annotated[int, Param(name="x")], x: int) -> None: ...

        with pytest.raises(RegistrationError, match=r"'a' and 'x' are both called 'x'.*Param\(name="):
            board(f)

    def test_unpack_of_something_else(self) -> None:
        def f(**more: Unpack[int]) -> None: ...  # type: ignore[misc]

        with pytest.raises(RegistrationError, match="takes a TypedDict"):
            board(f)

    def test_injected_into_kwargs(self) -> None:
        def f(*dbs: Injected[Db]) -> None: ...

        with pytest.raises(RegistrationError, match=r"parameter 'dbs'.*a parameter of its own"):
            board(f)

    def test_unknown_return_types_are_no_obstacle(self) -> None:
        def f(x: int) -> Plain:
            return Plain(x)

        toolkit = board(f)
        assert toolkit["f"].returns is None
        assert toolkit.call_sync("f", {"x": 3}).value.x == 3


class TestMarkersAsDefaults:
    """What other frameworks write behind `=` means what their readers expect."""

    def test_param_describes_a_parameter_that_is_required(self) -> None:
        def wait(seconds: int = Param("How long", ge=1)) -> int:  # type: ignore[assignment]
            """Wait."""
            return seconds

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(wait)
            assert toolkit["wait"].parameters["properties"]["seconds"] == {
                "type": "integer",
                "minimum": 1,
                "description": "How long",
            }
            assert toolkit["wait"].parameters["required"] == ["seconds"]
            assert toolkit.call_sync("wait", {"seconds": 2}).value == 2
            assert toolkit.call_sync("wait", {"seconds": 0}).status == "invalid"
            assert toolkit.call_sync("wait", {}).status == "invalid"

    def test_field_of_pydantic_has_the_default_and_the_bounds(self) -> None:
        pydantic = pytest.importorskip("pydantic")

        def wait(
            least: int = pydantic.Field(ge=0),
            seconds: int = pydantic.Field(3, ge=1, description="How long"),
            names: list[str] = pydantic.Field(default_factory=list),  # noqa: B008 - the case under test
            text: str = pydantic.Field(..., max_length=3),
            inside: Annotated[int, pydantic.Field(default=7)] = pydantic.Field(default=8),
            alone: Annotated[int | None, pydantic.Field(default=None)] = None,
        ) -> list[Any]:
            """Wait."""
            names.append("seen")
            return [least, seconds, names, text, inside, alone]

        def late(count: Annotated[int, pydantic.Field(default=7, le=9)]) -> int:
            """Wait."""
            return count

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(wait, late)
            schema = toolkit["wait"].parameters
            assert schema["required"] == ["least", "text"]
            assert schema["properties"]["seconds"] == {
                "type": "integer",
                "minimum": 1,
                "description": "How long",
                "default": 3,
            }
            for _ in range(2):  # a list of its own for each call
                result = toolkit.call_sync("wait", {"least": 1, "text": "abc"})
                assert result.value == [1, 3, ["seen"], "abc", 8, None]
            assert toolkit.call_sync("wait", {"least": 1, "text": "abcd"}).status == "invalid"
            assert toolkit.call_sync("wait", {"least": -1, "text": "abc"}).status == "invalid"
            assert toolkit.call_sync("wait", {"least": 1, "text": "a", "seconds": 0}).status == "invalid"
            assert toolkit.call_sync("late", {}).value == 7
            assert toolkit.call_sync("late", {"count": 10}).status == "invalid"


def test_a_local_class_is_found_where_the_tool_is_registered() -> None:
    with Toolkit(plugins=["dataclasses"]) as toolkit:
        assert strings.registered_where_its_class_is_local(toolkit) == ["tea", "1"]


class TestDescriptions:
    """What a parameter says of itself, and behind it what its type says."""

    def test_both_are_shown(self) -> None:
        def plan(annotation: Any, types: Types) -> TypePlan:
            return TypePlan({"type": "integer", "description": "Unix time, seconds"}, int)

        moment = Annotated[datetime, TypeHandler(datetime, plan)]

        def written(start: Annotated[moment, "When it begins"], end: moment) -> None:
            """Book.

            Args:
                end: When it ends
            """

        properties = Tool.from_function(written).parameters["properties"]
        assert properties["start"]["description"] == "When it begins (Unix time, seconds)"
        assert properties["end"]["description"] == "When it ends (Unix time, seconds)"

    def test_one_that_says_the_other_stands_alone(self) -> None:
        def plan(annotation: Any, types: Types) -> TypePlan:
            return TypePlan({"type": "integer", "description": "Unix time"}, int)

        moment = Annotated[datetime, TypeHandler(datetime, plan)]

        def written(start: Annotated[moment, "Begin as Unix time"]) -> None:
            """Book."""

        assert Tool.from_function(written).parameters["properties"]["start"]["description"] == "Begin as Unix time"
