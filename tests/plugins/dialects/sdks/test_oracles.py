"""Every definition and every result, as the SDKs' own types and helpers see them."""

from copy import deepcopy
from typing import Any

import pytest
from anthropic import transform_schema
from openai.lib._pydantic import _ensure_strict_json_schema

from tests.plugins.dialects.desk import BLOCKS, NAMES, bound, result
from tests.plugins.dialects.sdks.board import everything
from tests.plugins.dialects.sdks.oracles import check_choice, check_definition, check_message

each_dialect = pytest.mark.parametrize("name", NAMES)
strictly = pytest.mark.parametrize("strict", [False, True], ids=["plain", "strict"])


class TestDefinitions:
    @each_dialect
    @strictly
    def test_of_every_tool_and_type(self, name: str, strict: bool) -> None:
        definitions = everything().dialect(name).tools(strict)
        assert definitions
        for definition in definitions:
            check_definition(name, definition)

    def test_strict_ones_are_unchanged_by_openai(self) -> None:
        functions = [each["function"] for each in everything().dialect("openai").tools(strict=True)]
        strict = [each["parameters"] for each in functions if each.get("strict")]
        assert len(strict) > len(functions) / 2
        for schema in strict:
            root = deepcopy(schema)
            assert _ensure_strict_json_schema(deepcopy(schema), path=(), root=root) == schema

    def test_strict_ones_are_unchanged_by_anthropic(self) -> None:
        definitions = everything().dialect("anthropic").tools(strict=True)
        strict = [each["input_schema"] for each in definitions if each.get("strict")]
        assert len(strict) > len(definitions) / 2
        for schema in strict:
            assert transform_schema(deepcopy(schema)) == schema


class TestResults:
    @each_dialect
    @pytest.mark.parametrize("block", BLOCKS)
    def test_of_every_block(self, name: str, block: str) -> None:
        for message in bound(name).messages([result(BLOCKS[block]), result("text", BLOCKS[block])]):
            check_message(name, message)

    @each_dialect
    def test_of_every_status(self, name: str) -> None:
        for status in ("success", "error", "invalid", "denied", "suspended"):
            for message in bound(name).messages([result("text", status=status), result(status=status)]):
                check_message(name, message)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mcp"])
def test_tool_choices(name: str) -> None:
    chat = bound(name)
    for choice in ("auto", "required", "none", "chart"):
        check_choice(name, chat.tool_choice(choice))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mcp"])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("parallel", [None, False])
def test_requests(name: str, keep: bool, parallel: bool | None) -> None:
    session = everything().session()
    chat = session.dialect(name)
    chat.request()
    session.update_groups("figures", False)
    some = () if name in ("anthropic", "dashscope") else (["plant", "takes_0"],)
    for choice in ("auto", "required", "none", "plant", [], *some):
        request = chat.request(choice, keep=keep, parallel=parallel)
        assert request.pop("parallel_tool_calls", False) is False
        request = request.get("config", request)
        definitions = request["tools"]
        for definition in definitions:
            check_definition(name, definition)
        chosen = {key: value for key, value in request.items() if key != "tools"}
        for choice_sent in chosen.values():
            check_choice(name, choice_sent)
        assert list(chosen) in ([], ["tool_config" if name == "gemini" else "tool_choice"])


class TestTheOracles:
    """They would notice."""

    @each_dialect
    def test_definitions(self, name: str) -> None:
        (definition, *_) = bound(name).tools()
        holder = definition["function_declarations"][0] if name == "gemini" else definition
        for wrong in ({**holder, "nonsense": 1}, {**holder, "name": 1}):
            if name == "mcp" and "nonsense" in wrong:
                continue  # a protocol that is made to be extended
            with pytest.raises((ValueError, AssertionError)):
                check_definition(name, {"function_declarations": [wrong]} if name == "gemini" else _with_name(wrong))

    @each_dialect
    def test_messages(self, name: str) -> None:
        (message,) = bound(name).messages([result("text")])
        with pytest.raises((ValueError, AssertionError, TypeError)):
            check_message(name, {**message, "role": 1, "content": 1, "parts": 1, "output": 1})


def _with_name(definition: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's chat completions hold the name one level deeper."""
    if definition.get("name") == 1 and "function" in definition:
        return {**definition, "function": {**definition["function"], "name": 1}}
    return definition
