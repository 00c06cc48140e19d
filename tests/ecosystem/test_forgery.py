"""What the program provides stands in no type that a model fills in, however types are put together."""

# mypy: disable-error-code="arg-type, misc, name-defined, valid-type"
# Types are put together at run time here.

import enum
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
)

import attrs
import msgspec
import pydantic
import pytest
from typing_extensions import TypeAliasType

from pegboard import (
    Agent,
    CancelToken,
    Emitter,
    Inject,
    Injected,
    Injector,
    RegistrationError,
    Session,
    Tool,
    ToolCall,
    Toolkit,
    TypeHandler,
    TypePlan,
    injectable,
    record_member,
)
from pegboard_dataclasses import from_cattrs
from tests.support.thinning import first, one_in

T = TypeVar("T")


@injectable
@dataclass(frozen=True)
class User:
    name: str = "nobody"


@dataclass(frozen=True)
class Admin(User):
    """Injectable, as its base is."""


@injectable
@attrs.frozen
class Account:
    name: str


@injectable
class Row(NamedTuple):
    name: str


@injectable
class Profile(pydantic.BaseModel):
    name: str


@injectable
class Struct(msgspec.Struct, frozen=True):
    name: str


@injectable
class Role(enum.Enum):
    ROOT = "root"


@injectable
class Plain:
    """A class without a mapping."""


@dataclass(frozen=True)
class Robot:
    serial: int


PROVIDED = (User, Admin, Account, Row, Profile, Struct, Role, Plain)
BOARD = Toolkit(plugins=["dataclasses", "pydantic", "msgspec"])
SPECIAL = (Agent, Session, Toolkit, ToolCall, Emitter, CancelToken)


@dataclass(frozen=True)
class Box(Generic[T]):
    item: T


@attrs.frozen
class AttrsBox(Generic[T]):
    item: T


class StructBox(msgspec.Struct, Generic[T], frozen=True):
    item: T


class ArrayBox(msgspec.Struct, Generic[T], frozen=True, array_like=True):
    item: T


class TupleBox(NamedTuple, Generic[T]):
    item: T


class DictBox(TypedDict, Generic[T]):
    item: T


def model(inner: Any) -> Any:
    return pydantic.create_model("Model", item=(inner, ...))


def record(inner: Any) -> Any:
    return dataclass(type("Made", (), {"__annotations__": {"item": inner}, "__module__": __name__}))


# Each puts a type into another one.
FORMS: Mapping[str, Callable[[Any], Any]] = {
    "union": lambda inner: Union[Robot, inner],  # noqa: UP007 - of a variable
    "union of three": lambda inner: Union[inner, Robot, None],  # noqa: UP007
    "list": lambda inner: list[inner],
    "sequence": lambda inner: Sequence[inner],
    "tuple": lambda inner: tuple[inner, ...],
    "fixed tuple": lambda inner: tuple[int, inner],
    "dict": lambda inner: dict[str, inner],
    "mapping": lambda inner: Mapping[str, inner],
    "dataclass": record,
    "generic dataclass": lambda inner: Box[inner],
    "attrs": lambda inner: AttrsBox[inner],
    "made by attrs": lambda inner: attrs.make_class("Made", {"item": attrs.field(type=inner)}),
    "NamedTuple": lambda inner: TupleBox[inner],
    "TypedDict": lambda inner: DictBox[inner],
    "pydantic": model,
    "pydantic dataclass": lambda inner: pydantic.dataclasses.dataclass(record(inner)),
    "msgspec": lambda inner: StructBox[inner],
    "msgspec array": lambda inner: ArrayBox[inner],
    "NewType": lambda inner: NewType("Known", inner),
    "alias": lambda inner: TypeAliasType("Alias", inner),
    "generic alias": lambda inner: TypeAliasType("Alias", list[T], type_params=(T,))[inner],
    "bound": lambda inner: TypeVar("Bound", bound=inner),
    "constraints": lambda inner: TypeVar("Choice", inner, Robot),
    "described": lambda inner: Annotated[list[inner], "some"],
    "final": lambda inner: Final[inner],
}


def refused(annotation: Any) -> str:
    """What registration says of a tool with this parameter; fails where it says nothing."""

    def f(who: Any) -> str:
        raise AssertionError(f"the model filled in {who!r}")

    f.__annotations__["who"] = annotation
    with pytest.raises(RegistrationError) as caught:
        BOARD.register(f)
    assert len(BOARD) == 0
    return str(caught.value)


@pytest.mark.parametrize("form", one_in(4, FORMS))
@pytest.mark.parametrize("provided", [*PROVIDED, *SPECIAL])
def test_refused_in_every_form(form: str, provided: type) -> None:
    if form.startswith("pydantic") and provided not in (User, Profile, Role):
        pytest.skip("pydantic itself refuses it")
    message = refused(FORMS[form](provided))
    assert "tool 'f': parameter 'who'" in message
    assert provided.__name__ in message
    if not form.startswith("made"):
        assert "the program provides it" in message
        assert "a parameter of its own" in message


@pytest.mark.parametrize("seed", first(20, range(150)))
def test_refused_however_deep(seed: int) -> None:
    chance = random.Random(seed)
    annotation: Any = chance.choice([User, Struct, Role, Account])
    name = annotation.__name__
    for _ in range(chance.randint(2, 5)):
        form = chance.choice([form for form in FORMS if not form.startswith(("pydantic", "final", "bound", "constr"))])
        annotation = FORMS[form](annotation)
    assert name in refused(annotation)


@pytest.mark.parametrize("provided", PROVIDED)
def test_by_itself_or_none_it_is_provided(provided: type) -> None:
    def f(a: provided, b: Optional[provided], c: Annotated[provided, "described"] = None, d: int = 1) -> None: ...  # noqa: UP045 - of a variable

    toolkit = Toolkit()
    (tool,) = toolkit.register(f)
    assert list(tool.parameters["properties"]) == ["d"]


def test_a_key_a_literal_and_a_set() -> None:
    for annotation in (dict[Role, int], Literal[Role.ROOT], frozenset[Role], list[Literal[1, Role.ROOT]]):
        assert "Role stands in" in refused(annotation)


def test_a_marker_inside() -> None:
    @dataclass
    class Order:
        robot: Injected[Robot]

    for annotation in (Order, list[Injected[Robot]], dict[str, Annotated[Robot, Inject("main")]], list[Order]):
        assert "Robot stands in" in refused(annotation)


def test_the_message_leads_there() -> None:
    @dataclass
    class Item:
        owner: User

    @dataclass
    class Order:
        items: dict[str, list[Item]]

    message = refused(list[Order])
    assert "parameter 'who': tests.ecosystem.test_forgery.User stands in list[" in message
    assert message.index("Order ->") < message.index("Item;")


def test_the_other_ways_in() -> None:
    class Options(TypedDict):
        users: list[User]

    def spread(**options: Unpack[Options]) -> None: ...

    def many(*users: list[User]) -> None: ...

    def named(**users: list[User]) -> None: ...

    def free(**rest: Any) -> None: ...

    toolkit = Toolkit()
    for function, options in ((spread, {}), (many, {}), (named, {}), (free, {"extended_model": Options})):
        with pytest.raises(RegistrationError, match="User stands in"):
            toolkit.register(function, **options)
    with pytest.raises(RegistrationError, match="User stands in"):
        Tool.from_function(many)


def test_recursive_types() -> None:
    assert "User | None stands in" in refused(Tree)
    assert "User | None stands in" in refused(dict[str, Tree | None])


@dataclass
class Tree:
    children: "list[Tree]"
    leaves: "list[Leaf]"


@dataclass
class Leaf:
    tree: "Tree | None"
    owner: User | None = None


def test_what_it_returns_is_another_matter() -> None:
    def users(count: int) -> list[User]:
        """Some."""
        return [User(str(number)) for number in range(count)]

    toolkit = Toolkit()
    (tool,) = toolkit.register(users)
    assert tool.returns is not None
    assert toolkit.call_sync("users", {"count": 2}).data == [{"name": "0"}, {"name": "1"}]
    # The plan that the return type made is the same as that of a parameter.
    assert "User stands in" in refused(list[User])


def test_fields_that_no_model_sends() -> None:
    @dataclass
    class Order:
        number: int
        owner: User = field(init=False, default_factory=User)

    class Basket(pydantic.BaseModel):
        number: int
        _owner: User = pydantic.PrivateAttr(default_factory=User)

    def f(order: Order, basket: Basket) -> str:
        return f"{order.owner.name} {order.number} {basket.number}"

    toolkit = Toolkit()
    toolkit.register(f)
    assert toolkit.call_sync("f", {"order": {"number": 1}, "basket": {"number": 2}}).text == "nobody 1 2"


def test_a_handler_of_the_programs_own_decides_what_is_inside() -> None:
    @dataclass
    class Order:
        owner: User

    def f(order: Order) -> str:
        return order.owner.name

    by_name = TypeHandler(
        Order, lambda _, types: TypePlan({"type": "string"}, lambda name: Order(User(f"found {name}")))
    )
    toolkit = Toolkit()
    toolkit.register_type(by_name)
    toolkit.register(f)
    assert toolkit.call_sync("f", {"order": "ada"}).text == "found ada"

    def build(annotation: Any, types: Any) -> TypePlan:
        member = record_member(types, "owner", str)
        types.contains(User)
        return TypePlan(member.plan.schema, lambda name: Order(User(name)))

    with pytest.raises(RegistrationError, match="User stands in"):
        toolkit.register_type(TypeHandler(Order, build))
    assert toolkit.call_sync("f", {"order": "ada"}).text == "found ada"


def test_from_cattrs() -> None:
    import cattrs

    @attrs.frozen
    class Order:
        owner: User

    def f(order: Order) -> None: ...

    toolkit = Toolkit()
    toolkit.register_type(from_cattrs(cattrs.Converter(), Order))
    with pytest.raises(RegistrationError, match="User stands in"):
        toolkit.register(f)


class TestDeclaredLater:
    def test_registered_tools_are_read_anew(self) -> None:
        def f(robot: Robot, count: int = 1) -> str:
            return f"{robot.serial} {count}"

        toolkit = Toolkit()
        toolkit.register(f, presets={"count": 3})
        session = toolkit.session(context=Robot(7))
        forged = {"robot": {"serial": 666}}
        assert session.call_sync("f", forged).text == "666 3"
        assert toolkit.injectable(Robot) is Robot
        assert toolkit["f"].parameters["properties"] == {}
        for each in (session, session.session()):
            assert each["f"].parameters["properties"] == {}
            result = each.call_sync("f", forged)
            assert (result.text, [note.kind for note in result.notes]) == ("7 3", ["dropped"])

    def test_refused_where_it_stands_inside(self) -> None:
        def f(robots: list[Robot]) -> str:
            return str(len(robots))

        def g(robot: Robot) -> str:
            return str(robot.serial)

        toolkit = Toolkit()
        toolkit.register(f, g)
        before = toolkit.schemas()
        with pytest.raises(RegistrationError, match=r"tool 'f': parameter 'robots': .*Robot stands in list"):
            toolkit.injectable(Robot)
        assert toolkit.schemas() == before
        assert toolkit.call_sync("f", {"robots": [{"serial": 1}]}).text == "1"
        toolkit.register(g, name="again")
        assert toolkit.call_sync("again", {"robot": {"serial": 1}}).text == "1"

    def test_an_injector(self) -> None:
        def f(robot: Robot) -> str:
            return str(robot.serial)

        def g(robots: list[Robot]) -> str:
            return str(len(robots))

        toolkit = Toolkit()
        toolkit.register(f)
        toolkit.register_injector(Injector(Robot, lambda: Robot(7)))
        assert toolkit.call_sync("f", {"robot": {"serial": 666}}).text == "7"
        with pytest.raises(RegistrationError, match="Robot stands in list"):
            toolkit.register(g)
        other = Toolkit()
        other.register(f, g)
        with pytest.raises(RegistrationError, match="Robot stands in list"):
            other.register_injector(Injector(Robot, lambda: Robot(7)))
        assert other.call_sync("f", {"robot": {"serial": 666}}).text == "666"

    def test_an_injector_that_another_needs(self) -> None:
        class Client:
            def __init__(self, robot: Robot) -> None:
                self.robot = robot

        def client(robot: Robot) -> Client:
            return Client(robot)

        def f(client: Client) -> str:
            return str(client.robot.serial)

        toolkit = Toolkit()
        toolkit.register_injector(Injector(lambda annotation: annotation is Robot, lambda: Robot(1)))
        toolkit.register_injector(Injector(Client, client))
        toolkit.register(f)
        assert toolkit.call_sync("f").text == "1"
        toolkit.register_injector(Injector(Robot, lambda: Robot(2)))
        assert toolkit.call_sync("f").text == "2"

    def test_the_mark_counts_from_then_on(self) -> None:
        class Later:
            """A class that a handler of the program maps."""

        def f(later: Later) -> str:
            return "filled in"

        toolkit = Toolkit()
        toolkit.register_type(TypeHandler(Later, lambda _, types: TypePlan({"type": "string"}, lambda text: Later())))
        toolkit.register(f)
        injectable(Later)
        toolkit.register(f, name="g")
        assert toolkit["g"].parameters["properties"] == {}
        with pytest.raises(RegistrationError, match="Later stands in"):
            toolkit.register(list_of(Later))


def list_of(inner: Any) -> Callable[..., Any]:
    def several(each: Any) -> None: ...

    several.__annotations__["each"] = list[inner]
    return several
