"""No code of a pack leaves `Toolkit()`, and what fails costs the smallest thing, wherever it was asked."""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from pegboard import (
    Converter,
    Injector,
    Middleware,
    Offer,
    PluginError,
    RegistrationError,
    Toolkit,
    TypeHandler,
    TypePlan,
)
from tests.support.failing import OfClass, boom, pack
from tests.support.thinning import one_in

ERRORS: tuple[type[BaseException], ...] = (
    SystemExit,
    GeneratorExit,
    asyncio.CancelledError,
    KeyboardInterrupt,
    MemoryError,
    RecursionError,
    ValueError,
)


def innocent(name: str) -> Any:
    def offered(x: int, y: str = "", z: float = 1.5) -> str:
        return f"{x} {y} {z}"

    offered.__name__ = f"{name}_tool"
    return pack(name, provide_tools=lambda settings: [offered])


class AskedFor:
    def __getattr__(self, name: str) -> Any:
        boom()


class Unclear:
    @property
    def __class__(self) -> Any:
        boom()

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class Watched:
    name = "watched"
    problems = ()

    def watch(self, refresh: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def tools(self) -> list[Any]:
        return []


class WatchFails(Watched):
    watch = boom


class ToolsFail(Watched):
    tools = boom


class NameFails(Watched):
    name = property(boom)


class ProblemsFail(Watched):
    problems = property(boom)


class Looked:
    def __get__(self, instance: Any, owner: Any) -> Any:
        boom()


class WatchedByDescriptor:
    watch = Looked()


class OnceNamed:
    asked = 0

    @property
    def name(self) -> str:
        self.asked += 1
        return "once" if self.asked < 2 else boom()

    def submit(self, job: Any) -> Any: ...

    def close(self) -> None: ...


def annotated(x: "boom()") -> None: ...  # type: ignore[valid-type]


def by_default(x: int = OnceNamed()) -> None:  # type: ignore[assignment]
    """A default that no schema shows."""


def with_schema(schema: Any) -> Any:
    return TypeHandler(int, lambda annotation, types: TypePlan(schema, int))


GUILTY: dict[str, Callable[[], Any]] = {
    "a tool class": lambda: pack("guilty", provide_tools=lambda settings: [OfClass]),
    "attributes": lambda: pack("guilty", provide_tools=lambda settings: [AskedFor()]),
    "its class": lambda: pack("guilty", provide_tools=lambda settings: [Unclear()]),
    "terms": lambda: pack("guilty", provide_tools=lambda settings: [Offer(by_default, rename=boom)]),
    "watch": lambda: pack("guilty", provide_tools=lambda settings: [WatchFails()]),
    "tools": lambda: pack("guilty", provide_tools=lambda settings: [ToolsFail()]),
    "the name of a source": lambda: pack("guilty", provide_tools=lambda settings: [NameFails()]),
    "a look at a source": lambda: pack("guilty", provide_tools=lambda settings: [WatchedByDescriptor()]),
    "build": lambda: pack("guilty", provide_types=lambda: [TypeHandler(int, boom)]),
    "build of another": lambda: pack("guilty", provide_types=lambda: [TypeHandler(str, boom)]),
    "no plan": lambda: pack("guilty", provide_types=lambda: [TypeHandler(int, lambda *_: None)]),  # type: ignore[arg-type]
    "no schema": lambda: pack("guilty", provide_types=lambda: [with_schema(None)]),
    "the mark of an injector": lambda: pack("guilty", provide_injectors=lambda: [Injector(boom, lambda: 1)]),
    "what an injector needs": lambda: pack("guilty", provide_injectors=lambda: [Injector(int, lambda missing: 1)]),
    "injectors in a circle": lambda: pack("guilty", provide_injectors=lambda: [Injector(int, in_a_circle)]),
    "a priority": lambda: pack("guilty", provide_types=lambda: [TypeHandler(int, boom, priority="x")]),  # type: ignore[arg-type]
    "an order": lambda: pack(
        "guilty",
        provide_middleware=lambda settings: [Middleware(boom, order=place) for place in ("x", 1)],  # type: ignore[arg-type]
    ),
    "a name that changes": lambda: pack("guilty", provide_backends=lambda settings: [OnceNamed()]),
}


def in_a_circle(other: int) -> int:
    return other


@pytest.fixture(autouse=True)
def _system_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boom, "error", SystemExit)


@pytest.fixture(params=ERRORS, ids=lambda error: error.__name__)
def error(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[BaseException]:
    monkeypatch.setattr(boom, "error", request.param)
    return request.param  # type: ignore[no-any-return]


# What the hook itself gave is no contribution: that is the end of the plugin.
FAILED = ("its class", "a priority", "an order")
# It provides every integer, and cannot.
COSTLY = ("what an injector needs", "injectors in a circle")


def check(toolkit: Toolkit, guilty: str = "active") -> None:
    states = {record.name: str(record.state) for record in toolkit.plugins}
    assert states == {"alpha": "active", "guilty": guilty, "zeta": "active"}
    for name in ("alpha_tool", "zeta_tool"):
        assert toolkit.call_sync(name, {"x": 1, "z": 2.5}).text == "1  2.5"


@pytest.mark.parametrize("cause", one_in(2, [cause for cause in GUILTY if cause not in COSTLY]))
def test_costs_no_other(cause: str, error: type[BaseException]) -> None:
    with Toolkit(plugins=[innocent("alpha"), GUILTY[cause](), innocent("zeta")]) as toolkit:
        check(toolkit, "failed" if cause in FAILED else "active")
        assert toolkit.problems
        assert all("guilty" in problem for problem in toolkit.problems)

        def own(x: int) -> int:
            return x

        toolkit.register(own)
        assert toolkit.call_sync("own", {"x": 1}).value == 1


@pytest.mark.parametrize("cause", COSTLY)
def test_an_injector_that_cannot_be_asked_costs_the_tools_that_need_it(cause: str) -> None:
    def plain(y: str) -> str:
        return y

    def needy(x: int) -> int:
        return x

    with Toolkit(plugins=[pack("alpha", provide_tools=lambda settings: [plain, needy]), GUILTY[cause]()]) as toolkit:
        assert [tool.name for tool in toolkit] == ["plain"]
        (problem,) = toolkit.problems
        assert problem.startswith("alpha: tool 'needy': parameter 'x': ")
        with pytest.raises(RegistrationError, match="parameter 'x'"):
            toolkit.register(needy)


def test_an_injector_that_cannot_say_what_it_provides_costs_what_it_might(error: type[BaseException]) -> None:
    """What the program provides must not become the model's to send because a plugin's predicate fails."""
    helper = pack("alpha", provide_types=lambda: [for_rare()], provide_tools=innocent("alpha").provide_tools)
    guilty = pack("guilty", provide_injectors=lambda: [Injector(boom, lambda: 1)])
    with Toolkit(plugins=[helper, guilty, innocent("zeta")]) as toolkit:
        check(toolkit)
        with pytest.raises(RegistrationError, match=r"parameter 'x': the injector .* of guilty cannot say whether"):
            toolkit.register(rare)


CONTRIBUTIONS: dict[str, Callable[[], Any]] = {
    "a tool class": lambda: OfClass,
    "attributes": AskedFor,
    "terms": lambda: Offer(by_default, rename=boom),
    "watch": WatchFails,
    "tools": ToolsFail,
}


@pytest.mark.parametrize("cause", one_in(2, CONTRIBUTIONS))
def test_what_cannot_be_tools_costs_nothing_else_of_its_pack(cause: str, error: type[BaseException]) -> None:
    def fine(x: Rare) -> str:
        return type(x).__name__

    guilty = pack(
        "guilty",
        provide_tools=lambda settings: [CONTRIBUTIONS[cause](), fine],
        provide_types=lambda: [for_rare()],
    )
    with Toolkit(plugins=[innocent("alpha"), guilty, innocent("zeta")]) as toolkit:
        check(toolkit)
        assert (len(toolkit.problems), toolkit.call_sync("fine", {"x": "a"}).text) == (1, "Rare")
        toolkit.register(rare)


def test_an_annotation_costs_the_tool(error: type[BaseException]) -> None:
    def fine(x: int) -> int:
        return x

    guilty = pack("guilty", provide_tools=lambda settings: [annotated, fine])
    with Toolkit(plugins=[innocent("alpha"), guilty, innocent("zeta")]) as toolkit:
        check(toolkit)
        (problem,) = toolkit.problems
        assert problem.startswith("guilty: tool 'annotated': ")
        assert (toolkit.plugin_errors, toolkit.call_sync("fine", {"x": 1}).value) == ([], 1)


@pytest.mark.parametrize("cause", ["a tool class", "watch", "terms", "a priority", "a name that changes"])
def test_raised_where_that_is_asked(cause: str, error: type[BaseException]) -> None:
    with pytest.raises(PluginError, match="guilty"):
        Toolkit(plugins=[innocent("alpha"), GUILTY[cause](), innocent("zeta")], on_plugin_error="raise")


def test_a_predicate_that_fails_is_passed_over_and_told(error: type[BaseException]) -> None:
    guilty = pack(
        "guilty",
        provide_types=lambda: [TypeHandler(boom, boom)],
        provide_converters=lambda: [Converter(boom, str)],
    )
    with Toolkit(plugins=[innocent("alpha"), guilty, innocent("zeta")]) as toolkit:
        check(toolkit)
        told = " ".join(toolkit.problems)
        assert "the type handler of guilty failed for int: " in told
        assert "the converter of guilty failed for str: " in told


def test_a_predicate_for_classes_alone_is_no_problem() -> None:
    guilty = pack("guilty", provide_types=lambda: [TypeHandler(lambda each: issubclass(each, Rare), boom)])
    with Toolkit(plugins=[innocent("alpha"), guilty, innocent("zeta")]) as toolkit:
        toolkit.register(lambda x: None, name="untyped")
        check(toolkit)
        assert toolkit.problems == []


def test_a_source_whose_problems_raise_costs_no_other(error: type[BaseException]) -> None:
    guilty = pack("guilty", provide_tools=lambda settings: [ProblemsFail()])
    with Toolkit(plugins=[innocent("alpha"), guilty, innocent("zeta")]) as toolkit:
        check(toolkit)


class Rare:
    """Nothing of the packs' own is of this class."""


def rare(x: Rare) -> str:
    return type(x).__name__


def for_rare(priority: int = 0) -> TypeHandler:
    return TypeHandler(Rare, lambda *_: TypePlan({"type": "string"}, lambda text: Rare()), priority)


class TestLater:
    """What no tool of a pack needs is asked when the program's own do."""

    def test_a_handler_that_fails_is_passed_over_there_alone(self, error: type[BaseException]) -> None:
        def whole(annotation: Any, types: Any) -> TypePlan:
            return TypePlan({"type": "string"}, int)

        guilty = pack(
            "guilty",
            provide_types=lambda: [TypeHandler(Rare, boom, priority=1), TypeHandler(int, whole)],
            provide_tools=lambda settings: [by_default],
        )
        helper = pack("alpha", provide_types=lambda: [for_rare()], provide_tools=lambda settings: [])
        with Toolkit(plugins=[helper, guilty]) as toolkit:
            toolkit.register(rare)
            assert toolkit.call_sync("rare", {"x": "a"}).text == "Rare"
            (problem,) = toolkit.problems
            assert problem.startswith("the type handler of guilty failed for tests.loading.test_culprits.Rare: ")
            assert toolkit["by_default"].parameters["properties"]["x"]["type"] == "string"

    def test_where_no_other_maps_the_type_the_refusal_names_it(self, error: type[BaseException]) -> None:
        guilty = pack("guilty", provide_types=lambda: [TypeHandler(Rare, boom)])
        with Toolkit(plugins=[innocent("alpha"), guilty, innocent("zeta")]) as toolkit:
            with pytest.raises(RegistrationError, match=r"no type handler maps .*the type handler of guilty failed"):
                toolkit.register(rare)
            check(toolkit)

    def test_the_programs_own_raises(self, error: type[BaseException]) -> None:
        with Toolkit(
            plugins=[innocent("alpha"), pack("guilty", provide_types=lambda: iter(())), innocent("zeta")]
        ) as toolkit:
            for handler in (TypeHandler(int, boom), TypeHandler(boom, boom)):
                with pytest.raises(RegistrationError, match="the type handler of the program failed for int"):
                    toolkit.register_type(handler)
            check(toolkit)

    def test_the_programs_own_inside_of_a_packs_raises(self, error: type[BaseException]) -> None:
        def outer(annotation: Any, types: Any) -> TypePlan:
            return types.plan(bytes)  # type: ignore[no-any-return]

        guilty = pack("guilty", provide_types=lambda: [TypeHandler(Rare, outer)])
        with Toolkit(plugins=[guilty]) as toolkit:
            toolkit.register_type(TypeHandler(bytes, boom))
            with pytest.raises(RegistrationError, match="the type handler of the program failed for bytes"):
                toolkit.register(rare)
            assert toolkit.problems == []

    def test_a_refusal_is_no_failure(self) -> None:
        def refuse(annotation: Any, types: Any) -> NoReturn:
            raise RegistrationError("say which one")

        guilty = pack("guilty", provide_types=lambda: [TypeHandler(Rare, refuse)])
        with Toolkit(plugins=[innocent("alpha"), guilty, innocent("zeta")]) as toolkit:
            with pytest.raises(RegistrationError, match="parameter 'x': say which one"):
                toolkit.register(rare)
            check(toolkit)
            assert toolkit.problems == []


def lazily_read(x: Rare) -> str:
    return ""


def test_a_lazy_tool_is_read_by_the_next_handler() -> None:
    offered = [f"{__name__}:lazily_read", *innocent("alpha").provide_tools(None)]
    lazy = pack("alpha", provide_types=lambda: [for_rare()], provide_tools=lambda settings: offered)
    guilty = pack("guilty", provide_types=lambda: [TypeHandler(Rare, boom, priority=1)])
    with Toolkit(plugins=[lazy, guilty, innocent("zeta")]) as toolkit:
        assert toolkit.call_sync("lazily_read", {"x": "a"}).status == "success"
        check(toolkit)
        assert len(toolkit.problems) == 1
