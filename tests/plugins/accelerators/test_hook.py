"""Accelerators say yes, or nothing: whatever they do, the core decides, and the results stay as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest

from pegboard import Accelerator, Middleware, PluginError, ToolCall, Toolkit, hookimpl, tool
from pegboard_accelerators._agreement import believed


@tool
def echo(**found: Any) -> str:
    """Show what was sent."""
    return repr(found)


class Pack:
    """A plugin with accelerators."""

    def __init__(self, *accelerators: Accelerator) -> None:
        self.accelerators = accelerators

    @hookimpl
    def provide_accelerators(self) -> Iterable[Accelerator]:
        return self.accelerators


@attrs.define
class Library:
    """A library that reads or checks, and remembers what it was given."""

    function: Callable[[Any], Any] = json.loads
    seen: list[Any] = attrs.field(factory=list)
    loads: int = 0

    def load(self) -> Callable[[Any], Any]:
        self.loads += 1
        return self

    def __call__(self, given: Any) -> Any:
        self.seen.append(given)
        return self.function(given)


def decoding(library: Library, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=[Pack(Accelerator("decode", "fast", library.load, **options))])
    toolkit.register(echo)
    return toolkit


def raising(error: BaseException) -> Callable[[Any], Any]:
    def function(given: Any) -> Any:
        raise error

    return function


class TestDecode:
    def test_is_loaded_when_text_is_first_decoded(self) -> None:
        library = Library()
        with decoding(library) as toolkit:
            assert toolkit.call_sync("echo", {"a": 1}).text == "{'a': 1}"
            assert library.loads == 0
            assert [toolkit.call_sync("echo", '{"a": 1}').text for _ in range(3)] == ["{'a': 1}"] * 3
            assert (library.loads, library.seen) == (1, ['{"a": 1}'] * 3)

    @pytest.mark.parametrize("way", ["straight", "prepared", "middleware"])
    def test_is_used_on_every_way_to_a_tool(self, way: str) -> None:
        library = Library(lambda text: {"read": text})

        class Around:
            @hookimpl
            def provide_middleware(self) -> Iterable[Middleware]:
                return [Middleware(lambda call, proceed: proceed())] if way == "middleware" else []

        pack = Pack(Accelerator("decode", "fast", library.load))
        with Toolkit(plugins=[pack, Around()]) as toolkit:
            toolkit.register(echo)
            call: Any = toolkit.prepare("echo", '{"a":1}') if way == "prepared" else "echo"
            result = call.execute_sync() if way == "prepared" else toolkit.call_sync(call, '{"a":1}')
            assert result.text == repr({"read": '{"a":1}'})

    @pytest.mark.parametrize(
        "function",
        [
            raising(ValueError("no")),
            raising(RecursionError()),
            raising(SystemExit(3)),
            raising(KeyboardInterrupt()),
            raising(BaseException("a panic")),
            lambda text: [text],
            lambda text: None,
            lambda text: type("Sub", (dict,), {})(a=2),
        ],
    )
    def test_what_it_does_not_read_the_core_reads(self, function: Callable[[Any], Any]) -> None:
        library = Library(function)
        with decoding(library) as toolkit:
            assert toolkit.call_sync("echo", '{"a": 1}').text == "{'a': 1}"
            assert toolkit.prepare("echo", '{"a": 1}').arguments == {"a": 1}
            assert "not valid JSON" in toolkit.call_sync("echo", '{"a": }').text
            assert len(library.seen) >= 3

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('{"a": 1, "a": 2}', "the key 'a' twice"),
            ('{"a": {"b": 1, "b": ":"}}', "the key 'b' twice"),
            ('{"a": [' + '{"b": 1},' * 200 + '{"b": 1, "b": 1}]}', "the key 'b' twice"),
        ],
    )
    def test_keys_that_come_twice_are_found_by_the_core(self, text: str, said: str) -> None:
        library = Library()
        with decoding(library) as toolkit:
            for result in (toolkit.call_sync("echo", text), toolkit.prepare("echo", text).result):
                assert result is not None
                assert result.status == "invalid"
                assert said in result.text.replace('"', "'")
            assert library.seen

    @pytest.mark.parametrize(
        "text", ['{"a":' * 101 + "1" + "}" * 101, '{"a": ' + "[" * 100 + "]" * 100 + "}", "[" * 200_000]
    )
    def test_text_that_is_too_deep_never_reaches_it(self, text: str) -> None:
        library = Library()
        with decoding(library) as toolkit:
            assert "nested more than 100 levels deep" in toolkit.call_sync("echo", text).text
            assert library.seen == []

    def test_text_that_is_too_large_never_reaches_it(self) -> None:
        library = Library()
        with decoding(library) as toolkit:
            assert "too large" in toolkit.call_sync("echo", '{"a": "' + "x" * 16 * 1024 * 1024 + '"}').text
            assert library.seen == []

    def test_many_brackets_that_are_not_deep_reach_it(self) -> None:
        library = Library()
        with decoding(library) as toolkit:
            assert toolkit.call_sync("echo", '{"a": [' + "[1]," * 200 + "[1]]}").status == "success"
            assert len(library.seen) == 1

    def test_short_text_is_not_for_it(self) -> None:
        library = Library()
        with decoding(library, shortest=20) as toolkit:
            assert toolkit.call_sync("echo", '{"a": 1}').status == "success"
            assert library.seen == []
            assert toolkit.call_sync("echo", '{"a": 1}' + " " * 12).status == "success"
            assert len(library.seen) == 1


class Chosen:
    name = "chosen"
    description = "Give back what was sent."

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.parameters = {"type": "object", **parameters}

    def call(self, call: ToolCall) -> Any:
        return call.arguments


def checking(library: Library, parameters: dict[str, Any]) -> Toolkit:
    def load() -> Callable[[Any], Any]:
        library.loads += 1
        return lambda schema: believed(schema, lambda plain: library)

    toolkit = Toolkit(plugins=[Pack(Accelerator("validator", "quick", load))])
    toolkit.register(Chosen(parameters))
    return toolkit


def yes(value: Any) -> bool:
    return True


PLAIN = {"properties": {"a": {"type": "integer"}}}
AND_FORMAT = {"properties": {"a": {"type": "integer", "format": "int64"}}}


class TestValidator:
    def test_its_yes_is_enough(self) -> None:
        library = Library(yes)
        with checking(library, PLAIN) as toolkit:
            assert library.loads == 0
            assert toolkit.call_sync("chosen", '{"a": "text"}').data == {"a": "text"}
            assert toolkit.call_sync("chosen", {"a": "text"}).data == {"a": "text"}
            assert (library.loads, library.seen) == (1, [{"a": "text"}] * 2)

    @pytest.mark.parametrize("function", [lambda value: False, lambda value: 1, raising(BaseException("a panic"))])
    def test_anything_else_is_for_the_core_to_decide(self, function: Callable[[Any], Any]) -> None:
        library = Library(function)
        with checking(library, PLAIN) as toolkit:
            assert toolkit.call_sync("chosen", {"a": 1}).data == {"a": 1}
            assert 'a: expected integer, got string "x"' in toolkit.call_sync("chosen", {"a": "x"}).text
            assert len(library.seen) >= 2

    def test_it_may_leave_a_schema_to_the_core(self) -> None:
        with Toolkit(plugins=[Pack(Accelerator("validator", "none", lambda: lambda schema: None))]) as toolkit:
            toolkit.register(Chosen(PLAIN))
            assert 'a: expected integer, got string "x"' in toolkit.call_sync("chosen", {"a": "x"}).text

    @pytest.mark.parametrize(
        "part",
        [
            {"pattern": "^a"},
            {"patternProperties": {"^a": True}},
            {"format": "date"},
            {"multipleOf": 2},
            {"maximum": 2**53},
            {"const": 0.5},
            {"enum": [[1]]},
            {"unevaluatedProperties": False},
            {"dependencies": {"a": ["b"]}},
            {"contentEncoding": "base64"},
            {"nullable": True},
            {"$id": "other", "type": "string"},
            {"$anchor": "here"},
            {"$ref": "#"},
            {"$ref": "#/properties/b"},
            {"$dynamicRef": "#/$defs/c"},
            {"anyOf": [{"type": "null"}, {"not": {"pattern": "x"}}]},
            {"items": {"$ref": "#/$defs/c"}},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", None])
    def test_schemas_that_may_be_read_otherwise_are_not_for_it(self, part: dict[str, Any], draft: str | None) -> None:
        library = Library(yes)
        definitions = {"c": {"properties": {"d": {"$ref": "#/$defs/c"}}}}
        schema = {"properties": {"a": part, "b": True}, "$defs": definitions, **({"$schema": draft} if draft else {})}
        with checking(library, schema) as toolkit:
            toolkit.call_sync("chosen", {"a": "x"})
            assert library.seen == []

    def test_nor_are_those_of_draft_4(self) -> None:
        library = Library(yes)
        with checking(library, {**PLAIN, "$schema": "http://json-schema.org/draft-04/schema#"}) as toolkit:
            assert toolkit.call_sync("chosen", {"a": "x"}).status == "invalid"
            assert library.seen == []

    def test_formats_that_nobody_knows_change_nothing(self) -> None:
        library = Library(yes)
        with checking(library, AND_FORMAT) as toolkit:
            toolkit.call_sync("chosen", {"a": 1})
            assert library.seen == [{"a": 1}]

    @pytest.mark.parametrize(
        "value",
        [2**53, -(2**53), 1e300, float("1e16"), (1, 2), {1: 2}, object(), 2**70, type("Text", (str,), {})("x")],
        ids=lambda value: type(value).__name__,
    )
    def test_values_that_are_no_plain_json_are_not_for_it(self, value: Any) -> None:
        library = Library(yes)
        with checking(library, {}) as toolkit:
            toolkit.call_sync("chosen", {"a": [{"b": value}]})
            assert library.seen == []

    def test_large_values_of_schemas_with_many_alternatives_are_not_for_it(self) -> None:
        """Each of its parts may meet each of theirs: that takes long in any language."""
        library = Library(yes)
        alternatives = {"anyOf": [{"allOf": [True]} for _ in range(30)]}
        with checking(library, {"properties": {"a": {"items": alternatives}}}) as toolkit:
            toolkit.call_sync("chosen", {"a": [1] * 100})
            assert len(library.seen) == 1
            toolkit.call_sync("chosen", {"a": [1] * 40_000})
            assert len(library.seen) == 1

    def test_a_schema_that_it_cannot_compile_is_not_for_it(self) -> None:
        def load() -> Callable[[Any], Any]:
            return raising(ValueError("no such keyword"))

        with Toolkit(plugins=[Pack(Accelerator("validator", "quick", load))]) as toolkit:
            toolkit.register(Chosen(PLAIN))
            assert toolkit.call_sync("chosen", {"a": 1}).data == {"a": 1}
            assert toolkit.problems == []

    def test_keys_that_come_twice_are_found_by_the_core(self) -> None:
        with checking(Library(yes), PLAIN) as toolkit:
            assert "twice" in toolkit.call_sync("chosen", '{"a": 1, "a": 2}').text


class TestChoice:
    def test_nothing_is_used_where_nothing_is_offered(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            assert toolkit.accelerators == {}

    def test_the_first_plugin_by_name_provides_it(self) -> None:
        class Another(Pack):
            pass

        packs = [
            Pack(Accelerator("decode", "of Pack", Library().load)),
            Another(Accelerator("decode", "of Another", Library().load), Accelerator("decode", "next", Library().load)),
        ]
        with Toolkit(plugins=packs) as toolkit:
            assert toolkit.accelerators == {"decode": "of Another"}
            assert toolkit.plugins[0].name < toolkit.plugins[1].name

    def test_one_that_cannot_be_loaded_is_a_problem_and_not_used(self) -> None:
        def load() -> Callable[[Any], Any]:
            raise ImportError("the wheel is broken")

        pack = Pack(Accelerator("decode", "fast", load), Accelerator("validator", "quick", load))
        with Toolkit(plugins=[pack]) as toolkit:
            toolkit.register(echo, Chosen(PLAIN))
            assert toolkit.accelerators == {"decode": "fast", "validator": "quick"}
            assert toolkit.problems == []
            assert toolkit.call_sync("echo", '{"a": 1}').text == "{'a': 1}"
            assert toolkit.call_sync("chosen", {"a": "x"}).status == "invalid"
            assert toolkit.accelerators == {}
            assert toolkit.problems == [
                "the accelerator fast cannot be used: the wheel is broken",
                "the accelerator quick cannot be used: the wheel is broken",
            ]

    def test_an_unknown_kind_is_refused(self) -> None:
        kind: Any = "encode"
        with pytest.raises(ValueError, match='"decode" or "validator", got \'encode\''):
            Accelerator(kind, "fast", Library().load)

    def test_settings_reach_the_hook_and_are_asked_for_once(self) -> None:
        asked: list[str] = []

        @attrs.frozen
        class Settings:
            name: str = "fast"

        class Configured:
            @hookimpl
            def settings_type(self) -> type:
                asked.append("type")
                return Settings

            @hookimpl
            def provide_accelerators(self, settings: Settings) -> Iterable[Accelerator]:
                asked.append(settings.name)
                return [Accelerator("decode", settings.name, Library().load)]

        pack = Configured()
        with Toolkit(plugins=[pack]) as toolkit:
            assert toolkit.accelerators == {"decode": "fast"}
        assert asked == ["type", "fast"]

    def test_a_plugin_that_fails_leaves_the_core_alone(self) -> None:
        class Broken:
            @hookimpl
            def provide_accelerators(self) -> Iterable[Accelerator]:
                raise OSError("no")

        with Toolkit(plugins=[Broken()]) as toolkit:
            toolkit.register(echo)
            assert toolkit.call_sync("echo", '{"a": 1}').text == "{'a': 1}"
            assert "OSError in provide_accelerators" in toolkit.problems[0]
        with pytest.raises(PluginError, match="provide_accelerators"):
            Toolkit(plugins=[Broken()], on_plugin_error="raise")
