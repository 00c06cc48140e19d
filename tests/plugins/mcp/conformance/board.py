"""The board that the suite's server scenarios run against: what it asks for by name. Run as a script."""

import base64
import json
import sys
from collections.abc import Callable
from typing import Any

from pegboard import (
    AudioBlock,
    DataBlock,
    Emitter,
    FileBlock,
    ImageBlock,
    Suspend,
    TextBlock,
    ToolCall,
    ToolError,
    Toolkit,
    tool,
)
from pegboard_mcp import Answers, serve_mcp

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
WAV = base64.b64encode(b"RIFF\x00\x00\x00\x00WAVE").decode()
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COLOR = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
CONTEXT = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
ONE, OTHER = {"const": "value1", "title": "One"}, {"const": "value2", "title": "Other"}
CHOICES = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": [ONE, OTHER]},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Other"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": [ONE, OTHER]}},
    },
}
FILE = FileBlock.from_bytes(b"some text", "text/plain")
ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
EVERYTHING = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
MIRRORED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


class ByHand:
    """A tool with the schema that the suite asks for."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.name, self.description, self.parameters = name, f"The suite's {name}.", parameters

    def call(self, call: ToolCall) -> str:
        return "called"


@tool
def test_simple_text() -> str:
    """Text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> ImageBlock:
    """An image."""
    return ImageBlock(data=PNG, media_type="image/png")


@tool
def test_audio_content() -> AudioBlock:
    """Audio."""
    return AudioBlock(data=WAV, media_type="audio/wav")


@tool
def test_embedded_resource() -> FileBlock:
    """A file."""
    return FILE


@tool
def test_multiple_content_types() -> list[Any]:
    """Text, an image and a file."""
    return [TextBlock("Multiple content types test:"), ImageBlock(data=PNG, media_type="image/png"), FILE]


@tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool
def test_tool_with_progress(emitter: Emitter) -> str:
    """Report progress."""
    for done in (0, 50, 100):
        emitter.emit(DataBlock({"progress": done, "total": 100}))
    return "done"


@tool
def test_elicitation(message: str) -> dict[str, Any]:
    """Ask."""
    raise Suspend(message, form=NAME)


@tool
def test_elicitation_sep1034_defaults() -> dict[str, Any]:
    """Ask with a default for every member."""
    raise Suspend("Who are you?", form=DEFAULTS)


@tool
def test_elicitation_sep1330_enums() -> dict[str, Any]:
    """Ask for choices of every kind."""
    raise Suspend("Which ones?", form=CHOICES)


@tool
def test_input_required_result_elicitation() -> dict[str, Any]:
    """Ask for a name."""
    raise Suspend("What is your name?", form=NAME, key="user_name")


@tool
def test_input_required_result_request_state() -> dict[str, Any]:
    """Ask for a confirmation."""
    raise Suspend("Please confirm", form=OK, key="confirm")


@tool
def test_input_required_result_tampered_state() -> dict[str, Any]:
    """Ask for a confirmation."""
    raise Suspend("Please confirm", form=OK, key="confirm")


@tool
def test_input_required_result_multi_round(answers: Answers) -> str:
    """Ask for a name, and then for a color."""
    if "name" not in answers:
        raise Suspend("What is your name?", form=NAME, key="name", again=True)
    if "color" not in answers:
        raise Suspend("What is your favorite color?", form=COLOR, key="color", again=True)
    return f"{answers['name']['name']} likes {answers['color']['color']}"


@tool
def test_missing_capability() -> dict[str, Any]:
    """Ask a client that cannot be asked."""
    raise Suspend("Who are you?", form=NAME)


@tool
def test_streaming_elicitation() -> dict[str, Any]:
    """Ask while a stream is open."""
    raise Suspend("Who are you?", form=NAME)


@tool
def test_logging_tool(call: ToolCall) -> str:
    """Log, for the program alone."""
    call.log("a line")
    return "logged"


def template(id: str) -> str:  # noqa: A002 - the name in the URI that the suite asks for
    """Data of one id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:
    """A prompt with a resource inside."""
    data = base64.b64encode(b"Embedded resource content for testing.").decode()
    return [FileBlock(data=data, media_type="text/plain", name=resourceUri), "Please process the resource above."]


def test_prompt_with_image() -> list[Any]:
    """A prompt with an image inside."""
    return [ImageBlock(data=PNG, media_type="image/png"), "Please analyze the image above."]


def test_input_required_result_prompt(answers: Answers) -> str:
    """A prompt that asks the user."""
    if "user_context" not in answers:
        raise Suspend("What context should the prompt use?", form=CONTEXT, key="user_context", again=True)
    return f"The context is {answers['user_context']['context']}"


PROMPTS: list[Callable[..., Any]] = [
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_input_required_result_prompt,
]
RESOURCES: dict[str, Any] = {
    "test://static-text": "This is the content of the static text resource.",
    "test://static-binary": (base64.b64decode(PNG), "image/png"),
    "test://template/{id}/data": (template, "application/json"),
    "test://watched-resource": "Watched.",
}


def main() -> None:
    with Toolkit(plugins=()) as toolkit:
        added = 0

        @tool
        def test_trigger_tool_change() -> str:
            """Change the tools."""
            nonlocal added
            added += 1
            toolkit.register(lambda: "new", name=f"new_{added}", description="New.")
            return "changed"

        tools = [each for name, each in sorted(globals().items()) if name.startswith("test_") and each not in PROMPTS]
        toolkit.register(*tools, test_trigger_tool_change)
        toolkit.register(ByHand("json_schema_2020_12_tool", EVERYTHING), ByHand("test_x_mcp_header", MIRRORED))
        serve_mcp(toolkit, http=sys.argv[1], all_tools=True, resources=RESOURCES, prompts=PROMPTS)


if __name__ == "__main__":
    main()
