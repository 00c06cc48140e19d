"""Declaring tools: every target and every option of `@tool`, and what may be registered without it."""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, assert_type

import pytest

from pegboard import (
    Chunk,
    ExecutionPolicy,
    Injected,
    Param,
    RegistrationError,
    TextBlock,
    Tool,
    ToolCall,
    Toolkit,
    tool,
    toolset,
)


def board(*sources: Any, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(*sources, **options)
    return toolkit


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@tool(name="multiply")
def times(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


class TestFunctions:
    def test_the_function_stays_a_function(self) -> None:
        assert add(1) == 3
        assert assert_type(add(1, b=4), int) == 5
        assert assert_type(times(3, 4), int) == 12
        assert inspect.isfunction(add)

    def test_a_function_and_options_at_once(self) -> None:
        def double(n: int) -> int:
            return 2 * n

        declared: Any = tool
        (made,) = Toolkit(plugins=()).register(declared(double, name="twice", read_only=True))
        assert (made.name, made.hints.read_only) == ("twice", True)

    def test_bare(self) -> None:
        toolkit = board(add)
        assert (toolkit["add"].name, toolkit["add"].description) == ("add", "Add two numbers.")
        assert toolkit["add"].function is add
        assert toolkit.call_sync("add", {"a": 1}).value == 3

    def test_named(self) -> None:
        toolkit = board(times)
        assert [each.name for each in toolkit] == ["multiply"]
        assert toolkit.call_sync("multiply", {"a": 3, "b": 4}).data == 12

    def test_several_at_once_in_order(self) -> None:
        assert [each.name for each in board(times, add)] == ["multiply", "add"]

    def test_register_returns_the_tools(self) -> None:
        first, second = Toolkit(plugins=()).register(add, times)
        assert isinstance(first, Tool)
        assert (first.name, second.name) == ("add", "multiply")

    def test_undecorated(self) -> None:
        def plain(x: int) -> int:
            return -x

        assert board(plain).call_sync("plain", {"x": 3}).value == -3

    def test_async(self) -> None:
        @tool
        async def later(x: int) -> int:
            await asyncio.sleep(0)
            return x + 1

        toolkit = board(later)
        assert inspect.iscoroutinefunction(later)
        assert toolkit.call_sync("later", {"x": 1}).value == 2
        assert asyncio.run(toolkit.call("later", {"x": 1})).value == 2

    def test_generators(self) -> None:
        @tool
        def count(n: int) -> Iterator[str]:
            for i in range(n):
                yield f"{i}"

        @tool
        async def count_later(n: int) -> AsyncIterator[str]:
            for i in range(n):
                yield f"{i}"

        toolkit = board(count, count_later)
        for name in ("count", "count_later"):
            seen: list[Chunk] = []
            result = toolkit.call_sync(name, {"n": 3}, on_chunk=seen.append)
            assert [chunk.text for chunk in seen] == ["0", "1", "2"]
            assert result.text == "012"

    def test_wrapped_function_shows_the_inner_signature(self) -> None:
        def loud(function: Callable[..., str]) -> Callable[..., str]:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> str:
                return function(*args, **kwargs).upper()

            return wrapper

        @tool
        @loud
        def greet(name: str) -> str:
            """Greet."""
            return f"hi {name}"

        toolkit = board(greet)
        assert list(toolkit["greet"].parameters["properties"]) == ["name"]
        assert toolkit["greet"].description == "Greet."
        assert toolkit.call_sync("greet", {"name": "bo"}).text == "HI BO"

    def test_async_wrapper_around_a_sync_function(self) -> None:
        def plain(x: int) -> int:
            return x

        @functools.wraps(plain)
        async def wrapper(x: int) -> int:
            return plain(x) * 10

        assert asyncio.run(board(wrapper).call("plain", {"x": 2})).value == 20


class Calculator:
    """Sums.

    And products.
    """

    factor = 3
    started = False

    def __init__(self, start: int = 0) -> None:
        self.start = start

    @property
    def dangerous(self) -> int:
        raise AssertionError("properties must not be read to find tools")

    @tool
    def plus(self, x: int) -> int:
        """Add."""
        return self.start + x

    @tool
    @classmethod
    def scaled(cls, x: int) -> int:
        return cls.factor * x

    @classmethod
    @tool
    def scaled_too(cls, x: int) -> int:
        return cls.factor * x

    @tool
    @staticmethod
    def negated(x: int) -> int:
        return -x

    @staticmethod
    @tool
    def negated_too(x: int) -> int:
        return -x

    @tool(name="later")
    async def plus_later(self, x: int) -> int:
        return self.start + x

    def not_a_tool(self, x: int) -> int:
        return x


class Scientific(Calculator):
    factor = 5

    @tool
    def power(self, x: int) -> int:
        return x**2

    @tool(description="Add, loudly.")
    def plus(self, x: int) -> int:
        return 1000 + self.start + x


class TestMethods:
    def test_all_kinds(self) -> None:
        toolkit = board(Calculator(10))
        assert [each.name for each in toolkit] == ["plus", "scaled", "scaled_too", "negated", "negated_too", "later"]
        results = {each.name: toolkit.call_sync(each.name, {"x": 2}).value for each in toolkit}
        expected = {"plus": 12, "scaled": 6, "scaled_too": 6, "negated": -2, "negated_too": -2, "later": 12}
        assert results == expected

    def test_static_signatures_are_kept(self) -> None:
        assert assert_type(Calculator(1).plus(2), int) == 3
        assert assert_type(Calculator.scaled(2), int) == 6
        assert assert_type(Calculator.negated(2), int) == -2
        assert Calculator.scaled_too(1) == 3
        assert Calculator.negated_too(1) == -1

    def test_self_and_cls_are_no_parameters(self) -> None:
        for each in board(Calculator()):
            assert list(each.parameters["properties"]) == ["x"]

    def test_class_is_instantiated_once(self) -> None:
        toolkit = board(Calculator)
        assert toolkit.call_sync("plus", {"x": 2}).value == 2

    def test_class_that_needs_arguments(self) -> None:
        class Needy:
            def __init__(self, key: str) -> None:
                self.key = key

            @tool
            def ask(self) -> str:
                return self.key

        with pytest.raises(
            RegistrationError, match=r"Needy cannot be made without arguments.*register\(Needy\(\.\.\.\)"
        ):
            board(Needy)
        assert board(Needy("k")).call_sync("ask").text == "k"

    def test_inherited_and_overridden(self) -> None:
        toolkit = board(Scientific(1))
        names = ["plus", "scaled", "scaled_too", "negated", "negated_too", "later", "power"]
        assert [each.name for each in toolkit] == names
        assert toolkit.call_sync("scaled", {"x": 2}).value == 10
        assert toolkit.call_sync("plus", {"x": 2}).value == 1003
        assert toolkit["plus"].description == "Add, loudly."

    def test_an_override_without_the_mark_is_no_tool(self) -> None:
        class Silent(Calculator):
            def plus(self, x: int) -> int:
                return x

        assert "plus" not in board(Silent())
        assert "negated" in board(Silent())

    def test_bound_method_alone(self) -> None:
        toolkit = board(Calculator(4).plus)
        assert toolkit.call_sync("plus", {"x": 1}).value == 5
        toolkit.register(Calculator(4).not_a_tool, description="Plain.")
        assert toolkit["not_a_tool"].description == "Plain."
        assert toolkit.call_sync("not_a_tool", {"x": 1}).value == 1

    def test_object_without_tools(self) -> None:
        with pytest.raises(RegistrationError, match=r"object has no tools.*@tool methods"):
            board(object())

    @pytest.mark.parametrize("source", [3, None, {"name": "x"}, [add]])
    def test_things_that_are_no_tools(self, source: Any) -> None:
        with pytest.raises(RegistrationError, match="has no tools"):
            board(source)

    def test_nothing_to_register(self) -> None:
        with pytest.raises(RegistrationError, match="needs something to register"):
            board()


class TestToolset:
    def test_prefix_name_and_description(self) -> None:
        @toolset(name="Math", description="Numbers.", prefix="math_")
        class Numbers(Calculator):
            pass

        toolkit = board(Numbers(1))
        (found,) = toolkit.toolsets
        assert (found.name, found.description) == ("Math", "Numbers.")
        assert [each.name for each in found.tools] == [each.name for each in toolkit]
        assert toolkit.call_sync("math_plus", {"x": 1}).value == 2
        assert "math_later" in toolkit
        assert "plus" not in toolkit

    def test_bare_takes_the_class(self) -> None:
        @toolset
        class Weather:
            """Forecasts.

            More.
            """

            @tool
            def rain(self) -> bool:
                return False

        (found,) = board(Weather()).toolsets
        assert (found.name, found.description) == ("Weather", "Forecasts.")

    def test_without_decorator(self) -> None:
        (found,) = board(Calculator()).toolsets
        assert (found.name, found.description) == ("Calculator", "Sums.")

    def test_follows_the_board(self) -> None:
        toolkit = board(Calculator())
        toolkit.unregister("plus", "scaled")
        toolkit.register(Calculator(), enable=["plus"], rename={"plus": "sum"})
        first, second = toolkit.toolsets
        assert [each.name for each in first.tools] == ["scaled_too", "negated", "negated_too", "later"]
        assert [each.name for each in second.tools] == ["sum"]
        toolkit.unregister("sum")
        assert len(toolkit.toolsets) == 1

    def test_shows_what_the_model_sees(self) -> None:
        toolkit = board(Calculator(), presets={"plus": {"x": 1}})
        plus = toolkit.toolsets[0].tools[0]
        assert plus.parameters["properties"] == {}

    def test_only_on_classes(self) -> None:
        with pytest.raises(RegistrationError, match="@toolset goes on a class"):
            toolset(add)  # type: ignore[call-overload]
        with pytest.raises(RegistrationError, match="use @toolset for classes"):
            tool(Calculator)
        with pytest.raises(RegistrationError, match="put @tool on a function or method"):
            tool(3)  # type: ignore[call-overload]


class TestCallables:
    def test_callable_object(self) -> None:
        class Doubler:
            """Doubles."""

            def __call__(self, x: int) -> int:
                """Double a number."""
                return 2 * x

        with pytest.raises(RegistrationError, match=r"has no name of its own.*name="):
            board(Doubler())
        toolkit = board(Doubler(), name="double")
        assert toolkit["double"].description == "Double a number."
        assert toolkit.call_sync("double", {"x": 2}).value == 4

    def test_callable_object_that_is_async(self) -> None:
        class Doubler:
            async def __call__(self, x: int) -> int:
                return 2 * x

        assert asyncio.run(board(Doubler(), name="double").call("double", {"x": 2})).value == 4

    def test_lambda_needs_a_name(self) -> None:
        with pytest.raises(RegistrationError, match="has no name of its own"):
            board(lambda x: x)
        toolkit = board(lambda x, y=2: [x, y], name="pair", description="Two values.")
        assert toolkit["pair"].description == "Two values."
        assert toolkit.call_sync("pair", {"x": 1}).data == [1, 2]

    def test_partial_hides_what_it_binds(self) -> None:
        def search(query: str, limit: int = 10, *, site: str) -> str:
            """Search a site."""
            return f"{query} {limit} {site}"

        toolkit = board(functools.partial(search, site="docs"))
        assert toolkit["search"].description == "Search a site."
        assert list(toolkit["search"].parameters["properties"]) == ["query", "limit"]
        assert toolkit.call_sync("search", {"query": "q"}).text == "q 10 docs"
        denied = toolkit.call_sync("search", {"query": "q", "site": "elsewhere"})
        assert denied.status == "invalid"

    def test_partial_of_positional_arguments_and_of_partials(self) -> None:
        def join(a: int, b: int, c: int = 0, d: int = 9) -> list[int]:
            return [a, b, c, d]

        inner = functools.partial(join, 1)
        toolkit = board(functools.partial(inner, c=3), name="bound")
        assert list(toolkit["bound"].parameters["properties"]) == ["b", "d"]
        assert toolkit.call_sync("bound", {"b": 2}).data == [1, 2, 3, 9]

    @pytest.mark.parametrize("name", ["site", "extra", "query"])
    def test_partial_cannot_be_overridden_through_kwargs(self, name: str) -> None:
        def search(query: str, site: str = "any", **more: str) -> str:
            return f"{query} {site} {more}"

        bound = functools.partial(search, "fixed", site="docs", extra="yes")
        toolkit = board(bound, name="search")
        result = toolkit.call_sync("search", {name: "model", "free": "x"})
        assert result.text == "fixed docs {'extra': 'yes', 'free': 'x'}"
        assert [note.kind for note in result.notes] == ["dropped"]

    def test_builtin_without_a_signature(self) -> None:
        with pytest.raises(RegistrationError, match="no readable signature; wrap it"):
            board(max)

    def test_name_for_several_sources(self) -> None:
        with pytest.raises(RegistrationError, match="name= fits one source, got 2"):
            board(add, times, name="x")
        with pytest.raises(RegistrationError, match="Calculator has 6 tools; name= fits only one"):
            board(Calculator(), name="x")

    @pytest.mark.parametrize("name", ["a b", "1st", "a.b", "", "x" * 65, "ä"])
    def test_names_that_providers_refuse(self, name: str) -> None:
        def named() -> None: ...

        named.__name__ = name
        with pytest.raises(RegistrationError, match=r"cannot be a tool name|no name of its own"):
            board(named)
        assert "good-name_2" in board(named, name="good-name_2")


class TestOptions:
    def test_description_wins_over_the_docstring(self) -> None:
        @tool(description="Short.")
        def f() -> None:
            """Long."""

        assert board(f)["f"].description == "Short."
        assert board(f, description="Shorter.")["f"].description == "Shorter."

    def test_an_empty_description_is_allowed(self) -> None:
        def f() -> None: ...

        assert board(f)["f"].description == ""

    def test_hints_and_tags(self) -> None:
        @tool(tags=["a", "b"], read_only=True, destructive=False, idempotent=True, open_world=False)
        def f() -> None: ...

        found = board(f)["f"]
        assert found.tags == ("a", "b")
        hints = found.hints
        assert (hints.read_only, hints.destructive, hints.idempotent, hints.open_world) == (True, False, True, False)
        assert board(add)["add"].hints.read_only is None

    def test_a_text_is_one_tag(self) -> None:
        @tool(tags="web", locks="db")
        def f() -> None: ...

        found = board(f)["f"]
        assert (found.tags, found.options.locks) == (("web",), ("db",))

    def test_group_option(self) -> None:
        @tool(group="admin")
        def f() -> None: ...

        @tool(group=["admin", "basic"])
        def g() -> None: ...

        toolkit = Toolkit(plugins=())
        toolkit.create_group("admin", active=False)
        toolkit.create_group("basic")
        toolkit.register(f, g)
        assert toolkit["g"].groups == ("admin", "basic")
        assert [each.name for each in toolkit.tools] == ["g"]
        assert toolkit.call_sync("f").status == "inactive"

    def test_approval(self) -> None:
        @tool(requires_approval=True)
        def wipe() -> str:
            return "gone"

        @tool(requires_approval=lambda arguments: arguments["n"] > 10)
        def take(n: int) -> int:
            return n

        toolkit = board(wipe, take)
        assert toolkit["wipe"].permission == "prompt"
        assert toolkit.call_sync("wipe").status == "denied"
        assert toolkit.call_sync("take", {"n": 1}).value == 1
        assert toolkit.call_sync("take", {"n": 11}).status == "denied"

    def test_timeout(self) -> None:
        @tool(timeout=0.05)
        async def slow() -> str:
            await asyncio.sleep(5)
            return "late"

        assert board(slow).call_sync("slow").status == "timeout"

    def test_policy(self) -> None:
        runs: list[int] = []

        @tool(policy=ExecutionPolicy(max_attempts=3, initial_backoff=0.001))
        def flaky() -> int:
            runs.append(1)
            if len(runs) < 3:
                raise OSError("again")
            return len(runs)

        result = board(flaky).call_sync("flaky")
        assert (result.value, result.attempts) == (3, 3)

    def test_converter(self) -> None:
        @tool(converter=lambda value: TextBlock(f"<{value}>"))
        def f() -> int:
            return 3

        assert board(f).call_sync("f").text == "<3>"

    def test_examples_and_strict_travel_with_the_schema(self) -> None:
        @tool(examples=[{"a": 1}], strict=True, defer=True, max_output=1000, replaces="acme__x")
        def f(a: int) -> int:
            return a

        toolkit = board(f)
        (schema,) = toolkit.schemas()
        assert (schema.examples, schema.strict) == (({"a": 1},), True)
        options = toolkit["f"].options
        assert (options.defer, options.max_output, options.replaces) == (True, 1000, "acme__x")

    def test_backend(self) -> None:
        import threading

        @tool(backend="inline")
        def here() -> int:
            return threading.get_ident()

        @tool(backend="thrad")
        def nowhere() -> None: ...

        toolkit = board(here)
        assert asyncio.run(toolkit.call("here")).value == threading.get_ident()
        with pytest.raises(RegistrationError, match=r"tool 'nowhere': there is no backend 'thrad'.*'thread'"):
            board(nowhere)

    def test_exclusive(self) -> None:
        running: list[int] = []
        most: list[int] = []

        @tool(exclusive=True)
        async def alone() -> None:
            running.append(1)
            most.append(len(running))
            await asyncio.sleep(0.005)
            running.pop()

        board(alone).call_many_sync([("alone", {})] * 4)
        assert most == [1, 1, 1, 1]

    def test_unknown_option(self) -> None:
        with pytest.raises(TypeError, match="tieout"):
            tool(tieout=3)  # type: ignore[call-overload]

    def test_every_option_of_the_design(self) -> None:
        from attrs import fields

        from pegboard._model.tool import ToolOptions

        asked = (
            "name description group tags requires_approval read_only destructive idempotent open_world timeout policy "
            "exclusive locks backend strict converter examples extended_model defer"
        )
        assert set(asked.split()) <= {field.name for field in fields(ToolOptions)}


class TestParam:
    def test_description_beside_docstring_and_annotation(self) -> None:
        def f(
            a: Annotated[int, "From text"],
            b: Annotated[int, Param("From Param", name="bee", examples=[7], ge=1)],
            c: int,
        ) -> str:
            """Do.

            Args:
                a: Not this
                c: From docstring
            """
            return f"{a} {b} {c}"

        toolkit = board(f)
        assert toolkit["f"].parameters["properties"] == {
            "a": {"type": "integer", "description": "From text"},
            "bee": {"type": "integer", "description": "From Param", "examples": [7], "minimum": 1},
            "c": {"type": "integer", "description": "From docstring"},
        }
        assert toolkit.call_sync("f", {"a": 1, "bee": 2, "c": 3}).text == "1 2 3"
        assert toolkit.call_sync("f", {"a": 1, "bee": 0, "c": 3}).status == "invalid"
        assert toolkit.call_sync("f", {"a": 1, "b": 2, "c": 3}).status == "invalid"

    def test_params_of_the_tool(self) -> None:
        class Db: ...

        def f(a: Annotated[int, "A number"], call: ToolCall, db: Injected[Db], b: str = "x") -> None: ...

        shown = [(each.name, each.description, each.required, each.source) for each in board(f)["f"].params]
        assert shown == [
            ("a", "A number", True, "model"),
            ("call", "", True, "injected"),
            ("db", "", True, "context"),
            ("b", "", False, "model"),
        ]
        assert board(f)["f"].params[3].default == "x"


class TestToolRecord:
    def test_from_function(self) -> None:
        made = Tool.from_function(add, name="plus", description="Sum.")
        assert (made.name, made.description) == ("plus", "Sum.")
        assert made.parameters["required"] == ["a"]
        assert made.returns == {"type": "integer"}
        toolkit = board(made)
        assert toolkit.call_sync("plus", {"a": 1}).value == 3

    def test_options_of_the_function_are_kept(self) -> None:
        @tool(read_only=True, tags=["t"])
        def f() -> None: ...

        toolkit = board(Tool.from_function(f), name="g")
        assert toolkit["g"].hints.read_only is True
        assert toolkit["g"].tags == ("t",)

    def test_is_frozen_and_says_who_it_is(self) -> None:
        found = board(add)["add"]
        with pytest.raises(AttributeError):
            found.name = "other"  # type: ignore[misc]
        assert repr(found) == "Tool('add', from the program)"
        assert str(found.origin) == "the program"

    def test_a_tool_of_one_board_is_registered_on_another(self) -> None:
        first = board(Calculator(7))
        second = board(first["plus"], first["later"])
        assert second.call_sync("plus", {"x": 1}).value == 8
        assert second.call_sync("later", {"x": 1}).value == 8
