"""The board of the matrix: a tool for every kind of answer. Run as a script, with `stdio` or `HOST:PORT`."""

import base64
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard import (
    AudioBlock,
    DataBlock,
    Emitter,
    FileBlock,
    ImageBlock,
    LinkBlock,
    Suspend,
    TextBlock,
    ToolError,
    Toolkit,
    tool,
)
from pegboard_mcp import McpServer, serve_mcp

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
WAV = base64.b64encode(b"RIFF\x00\x00\x00\x00WAVE").decode()
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ORDER = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"]},
        "number": {"type": "integer", "minimum": 1, "maximum": 9},
        "wrapped": {"type": "boolean", "default": False},
    },
    "required": ["size", "number"],
}


METHOD = "$method"
"""In the arguments of a case that calls no tool: the request that it sends."""
PAGE = "ui://clock/page.html"


def byte(value: int) -> bytes:
    return bytes([value])


def review(code: str, lines: int = 1) -> list[Any]:
    """Review code."""
    return [f"Review {lines} lines of {code}", {"role": "assistant", "content": "Gladly"}]


RESOURCES: dict[str, Any] = {PAGE: "<p>clock</p>", "notes://board": "a note", "numbers://{value}/byte": byte}


@dataclass
class Point:
    """A place on a map."""

    x: int
    label: str | None


@tool
def text() -> str:
    """Plain text."""
    return "plain"


@tool
def unicode() -> str:
    """Text beyond ASCII."""
    return "Grüße, 世界 🎈"


@tool
def empty() -> str:
    """No text at all."""
    return ""


@tool
def integer() -> int:
    """A number."""
    return 7


@tool
def number() -> float:
    """A number with a fraction."""
    return 0.25


@tool
def boolean() -> bool:
    """Yes or no."""
    return False


@tool
def nothing() -> None:
    """Null, always."""


@tool
def maybe_nothing() -> str | None:
    """Text or null: null."""
    return None


@tool
def maybe_text() -> str | None:
    """Text or null: text."""
    return "there"


@tool
def items() -> list[int]:
    """A list of numbers."""
    return [1, 2, 3]


@tool
def record() -> Point:
    """An object."""
    return Point(1, "here")


@tool
def record_with_null() -> Point:
    """An object with a null inside."""
    return Point(1, None)


@tool
def no_record() -> Point | None:
    """An object or null: null."""
    return None


@tool
def a_record() -> Point | None:
    """An object or null: an object."""
    return Point(2, "there")


@tool
def table() -> dict[str, int]:
    """An object with any keys."""
    return {"a": 1, "b": 2}


@tool
def loose_table() -> dict[str, Any]:
    """An object of anything, nulls too."""
    return {"a": None, "b": [None, 1]}


@tool
def anything() -> Any:
    """Promises nothing."""
    return {"free": True}


@tool
def list_of_anything() -> list[Any]:
    """Data where there could be blocks."""
    return [1, "two", None]


@tool
def list_of_blocks() -> list[Any]:
    """Blocks where there could be data."""
    return [TextBlock("look:"), ImageBlock(data=PNG, media_type="image/png")]


@tool
def not_a_number() -> float:
    """What JSON has no word for."""
    return float("nan")


@tool
def broken_promise() -> int:
    """Says a number and gives text."""
    return "seven"  # type: ignore[return-value]  # the mistake that is shown


@tool
def image() -> ImageBlock:
    """A picture."""
    return ImageBlock(data=PNG, media_type="image/png")


@tool
def audio() -> AudioBlock:
    """A sound."""
    return AudioBlock(data=WAV, media_type="audio/wav")


@tool
def file() -> FileBlock:
    """A file of bytes."""
    return FileBlock.from_bytes(b"\x00\x01", "application/octet-stream")


@tool
def link() -> LinkBlock:
    """A reference."""
    return LinkBlock("https://example.com/page", "A page")


@tool
def failure() -> str:
    """Fails."""
    raise ToolError("mind the gap")


@tool
def add(a: int, b: int) -> int:
    """Add; called with what is no number."""
    return a + b


@tool
def progress(emitter: Emitter) -> str:
    """Reports on the way."""
    for done in (1, 2):
        emitter.emit(DataBlock({"progress": done, "total": 2}))
    return "done"


@tool(requires_approval=True)
def approved(amount: int) -> str:
    """Asks a human whether it may run."""
    return f"paid {amount}"


@tool
def asks() -> dict[str, Any]:
    """Asks a human something; the answer is its result."""
    raise Suspend("Who are you?", form=NAME)


@tool
def asks_with_a_form() -> dict[str, Any]:
    """Asks a human to fill in a form of three kinds of members."""
    raise Suspend("What do you order?", form=ORDER)


@tool(meta={"ui": {"resourceUri": PAGE}})
def app() -> str:
    """Has a page that a host shows."""
    return "shown"


@tool
def scoped() -> str:
    """Needs a scope that no caller has."""
    return "reached"


@tool
def large() -> str:
    """More than a megabyte."""
    return "x" * 1_200_000


def png() -> dict[str, Any]:
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def said(text: str, data: Any = None) -> dict[str, Any]:
    """An answer of text; `data` is its structured content, out of its wrapping."""
    return {"error": False, "content": [{"type": "text", "text": text}], "data": data}


def failed(*texts: str) -> dict[str, Any]:
    return {"error": True, "content": [{"type": "text", "text": text} for text in texts], "data": None}


def block(**content: Any) -> dict[str, Any]:
    return {"error": False, "content": [content], "data": None}


def read(uri: str) -> dict[str, Any]:
    return {METHOD: "resources/read", "uri": uri}


def resource(uri: str, media_type: str, **holds: str) -> dict[str, Any]:
    return block(type="resource", resource={"uri": uri, "mimeType": media_type, **holds})


TASKS = {"needs_task": "task", "asks": "task_that_asks"}
"""Tools of a server behind the board, which answers calls of them with tasks."""
BROKEN = "Error: the result of {} does not fit its own output schema: {}"
# What every client must read, with the arguments of the call.
EXPECTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "text": ({}, said("plain", "plain")),
    "unicode": ({}, said("Grüße, 世界 🎈", "Grüße, 世界 🎈")),
    "empty": ({}, said("", "")),
    "integer": ({}, said("7", 7)),
    "number": ({}, said("0.25", 0.25)),
    "boolean": ({}, said("false", False)),
    "nothing": ({}, said("null", None)),
    "maybe_nothing": ({}, said("null", None)),
    "maybe_text": ({}, said("there", "there")),
    "items": ({}, said("[1, 2, 3]", [1, 2, 3])),
    "record": ({}, said('{"x": 1, "label": "here"}', {"x": 1, "label": "here"})),
    "record_with_null": ({}, said('{"x": 1, "label": null}', {"x": 1, "label": None})),
    "no_record": ({}, said("null", None)),
    "a_record": ({}, said('{"x": 2, "label": "there"}', {"x": 2, "label": "there"})),
    "table": ({}, said('{"a": 1, "b": 2}', {"a": 1, "b": 2})),
    "loose_table": ({}, said('{"a": null, "b": [null, 1]}', {"a": None, "b": [None, 1]})),
    "anything": ({}, said('{"free": true}')),
    "list_of_anything": ({}, said('[1, "two", null]')),
    "list_of_blocks": ({}, {"error": False, "content": [{"type": "text", "text": "look:"}, png()], "data": None}),
    "not_a_number": ({}, failed(BROKEN.format("not_a_number", "expected number, got null"), "NaN")),
    "broken_promise": (
        {},
        failed(BROKEN.format("broken_promise", 'expected integer, got string "seven"'), "seven"),
    ),
    "image": ({}, block(**png())),
    "audio": ({}, block(type="audio", data=WAV, mimeType="audio/wav")),
    "file": (
        {},
        block(
            type="resource",
            resource={"uri": "file:///file", "mimeType": "application/octet-stream", "blob": "AAE="},
        ),
    ),
    "link": ({}, block(type="resource_link", uri="https://example.com/page", name="A page", title="A page")),
    "failure": ({}, failed("mind the gap")),
    "add": ({"a": "many", "b": 1}, failed("Error")),
    "progress": ({}, said("done", "done")),
    "approved": ({"amount": 5}, said("paid 5", "paid 5")),
    "asks": ({}, said('{"name": "Ada"}', {"name": "Ada"})),
    "asks_with_a_form": (
        {},
        said('{"size": "small", "number": 2, "wrapped": false}', {"size": "small", "number": 2, "wrapped": False}),
    ),
    "app": ({}, {**said("shown", "shown"), "meta": {"ui": {"resourceUri": PAGE}}}),
    "task": ({"text": "hello"}, said("hello, as a task")),
    "task_that_asks": ({"text": "hello"}, said("[{'name': 'Ada'}]")),
    "scoped": ({}, {"refused": True, "meta": {"pegboard/scopes": ["pay"]}}),
    "page of an app": (read(PAGE), resource(PAGE, "text/html;profile=mcp-app", text="<p>clock</p>")),
    "resource": (read("notes://board"), resource("notes://board", "text/plain", text="a note")),
    "resource of a template": (
        read("numbers://7/byte"),
        resource("numbers://7/byte", "application/octet-stream", blob="Bw=="),
    ),
    "prompt": (
        {METHOD: "prompts/get", "name": "review", "arguments": {"code": "x", "lines": "2"}},
        {
            "error": False,
            "content": [
                {"type": "text", "text": "Review 2 lines of x", "role": "user"},
                {"type": "text", "text": "Gladly", "role": "assistant"},
            ],
            "data": None,
        },
    ),
    "large": ({}, said("x" * 1_200_000, "x" * 1_200_000)),
}


def task_server(store: str) -> McpServer:
    sys.path.insert(0, str(Path(__file__).parents[4]))  # as a script it stands in its own folder
    from tests.plugins.mcp.task_server import TaskServer

    return McpServer.in_process(TaskServer(Path(store)).server)


def main() -> None:
    import pegboard_dataclasses

    with Toolkit(plugins=[pegboard_dataclasses]) as toolkit, tempfile.TemporaryDirectory() as store:
        names = [name for name, (arguments, _) in EXPECTED.items() if METHOD not in arguments]
        toolkit.register(*(globals()[name] for name in names if name not in TASKS.values()))
        toolkit.register(task_server(store), enable=list(TASKS), rename=TASKS)
        http = None if sys.argv[1] == "stdio" else sys.argv[1]
        serve_mcp(toolkit, http=http, all_tools=True, resources=RESOURCES, prompts=[review], scopes={"scoped": "pay"})


if __name__ == "__main__":
    main()
