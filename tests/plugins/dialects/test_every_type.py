"""Every type of the battery, as each provider takes it."""

from contextlib import suppress
from functools import cache
from itertools import product
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pegboard import RegistrationError, Toolkit
from tests.plugins.dialects.desk import NAMES, definitions, nodes, schema_of, toolkit_of
from tests.support.thinning import one_in
from tests.types.battery import BATTERY, Entry

each_type = pytest.mark.parametrize("entry", one_in(4, BATTERY), ids=str)
some_types = pytest.mark.parametrize("entry", one_in(8, BATTERY), ids=str)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPENAI_STRICT = words(
    "type enum const anyOf $ref $defs properties required additionalProperties items minItems maxItems minimum maximum "
    "exclusiveMinimum exclusiveMaximum multipleOf pattern format description title"
)
ANTHROPIC_STRICT = words(
    "type enum const anyOf allOf $ref $defs properties required additionalProperties items minItems format "
    "description title"
)
GEMINI = words(
    "$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum "
    "anyOf oneOf properties additionalProperties required propertyOrdering"
)


@cache
def board_of(entry: Entry) -> Toolkit:
    """A tool that takes the type, and where that is possible one that may be called without it."""

    def required(x: Any) -> None: ...

    def optional(x: Any, y: Any = None) -> None: ...

    required.__annotations__ = {"x": entry.annotation}
    optional.__annotations__ = {"x": entry.annotation, "y": entry.annotation}
    toolkit = toolkit_of(required)
    with suppress(RegistrationError):  # a default of None fits no constant
        toolkit.register(optional)
    return toolkit


@some_types
def test_what_the_tool_takes_the_provider_may_send(entry: Entry) -> None:
    for name, strict in product(NAMES, (False, True)):
        for definition in definitions(board_of(entry), name, strict):
            schema = schema_of(definition)
            Draft202012Validator.check_schema(schema)
            validator = Draft202012Validator(schema)
            beside = {"y": None} if "y" in schema["required"] else {}
            for sent, _ in entry.good:
                validator.validate({"x": sent, **beside})
                if "y" in schema["properties"] and sent is not None:
                    validator.validate({"x": sent, "y": sent})


@each_type
def test_what_means_left_out_arrives_so(entry: Entry) -> None:
    toolkit = board_of(entry)
    if "optional" not in toolkit:
        return
    chat = toolkit.dialect("anthropic")
    own = Draft202012Validator(toolkit["optional"].parameters)
    for sent, _ in entry.good:
        block = {"type": "tool_use", "id": "a", "name": "optional", "input": {"x": sent, "y": None}}
        (call,) = chat.calls([block])
        assert call.arguments == ({"x": sent, "y": None} if own.is_valid(block["input"]) else {"x": sent})
        result = toolkit.call_many_sync([call])[0]
        assert (result.status, result.notes) == ("success", ())


@some_types
def test_keywords(entry: Entry) -> None:
    for name, keywords in (("openai", OPENAI_STRICT), ("anthropic", ANTHROPIC_STRICT), ("gemini", GEMINI)):
        for definition in definitions(board_of(entry), name, strict=True):
            if name != "gemini" and not definition.get("function", definition).get("strict"):
                continue
            for node in nodes(schema_of(definition)):
                assert node.keys() <= keywords
                assert "$ref" not in node or len(node) == 1


@each_type
def test_strict_of_openai_closes_objects_and_requires_everything(entry: Entry) -> None:
    for definition in definitions(board_of(entry), "openai", True):
        function = definition["function"]
        objects = [node for node in nodes(function["parameters"]) if "properties" in node]
        if function.get("strict"):
            assert all(node["additionalProperties"] is False for node in objects)
            assert all(node["required"] == list(node["properties"]) for node in objects)


@each_type
def test_what_is_not_strict_is_said(entry: Entry) -> None:
    toolkit = board_of(entry)
    for name in ("openai", "anthropic"):
        chat = toolkit.dialect(name)
        without = {
            (each.get("function", each))["name"]
            for each in chat.tools(strict=True)
            if not each.get("function", each).get("strict")
        }
        assert {loss.tool for loss in chat.lint(strict=True) if "sent without" in loss.what} == without
