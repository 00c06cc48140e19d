"""Tools and results that the tests of all dialects share."""

import base64
import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pegboard import (
    AudioBlock,
    Block,
    BoundDialect,
    FileBlock,
    ImageBlock,
    LinkBlock,
    TextBlock,
    Toolkit,
    ToolResult,
    tool,
)

NAMES = ("openai", "openai-responses", "anthropic", "gemini", "dashscope", "mcp")

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
SOUND = base64.b64encode(b"RIFF....WAVE").decode()
PAPER = base64.b64encode(b"%PDF-1.7").decode()

IMAGE = ImageBlock(data=PIXEL, media_type="image/png")
BLOCKS: dict[str, Block] = {
    "text": TextBlock("Hello"),
    "image": IMAGE,
    "image at a URL": ImageBlock(url="https://example.com/a.png"),
    "SVG image": ImageBlock(data=base64.b64encode(b"<svg/>").decode(), media_type="image/svg+xml"),
    "audio": AudioBlock(data=SOUND, media_type="audio/wav"),
    "PDF": FileBlock(data=PAPER, media_type="application/pdf", name="a.pdf"),
    "text file": FileBlock(data=base64.b64encode(b"a,b").decode(), media_type="text/csv", name="a.csv"),
    "other file": FileBlock(data=base64.b64encode(b"PK").decode(), media_type="application/zip", name="a.zip"),
    "link": LinkBlock("https://example.com", "Example", "An example"),
}


@tool
def get_forecast(
    city: str, days: int = 3, unit: Literal["c", "f"] = "c", when: dt.date | None = None, note: str | None = "none"
) -> str:
    """Weather forecast.

    Args:
        city: City name
        days: Forecast days
    """
    return f"{city} {days} {unit} {when} {note}"


@tool
def chart() -> list[Any]:
    """Draw a chart."""
    return ["Sales", IMAGE]


@tool
def fail() -> None:
    """Fail."""
    raise ValueError("no luck")


def toolkit_of(*tools: Any) -> Toolkit:
    """A toolkit with our dialects and these tools."""
    toolkit = Toolkit(plugins=["dialects"])
    if tools:
        toolkit.register(*tools)
    return toolkit


def bound(name: str, *tools: Any) -> BoundDialect:
    """A dialect over these tools, or over those above."""
    return toolkit_of(*(tools or (get_forecast, chart, fail))).dialect(name)


def result(*content: Block | str, call_id: str = "call_1", name: str = "chart", **more: Any) -> ToolResult:
    """A result with these blocks."""
    blocks = tuple(TextBlock(each) if isinstance(each, str) else each for each in content)
    return ToolResult(call_id, name, content=blocks, **more)


def schema_of(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters in a definition of any provider's."""
    function = definition.get("function", definition)
    names = ("parameters", "input_schema", "parameters_json_schema", "inputSchema")
    found: dict[str, Any] = next(function[name] for name in names if name in function)
    return found


def definitions(toolkit: Toolkit, name: str, strict: bool = False) -> list[dict[str, Any]]:
    found = toolkit.dialect(name).tools(strict)
    return found[0]["function_declarations"] if name == "gemini" else found


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all inside."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in ("properties", "$defs"):
        for inner in schema.get(keyword, {}).values():
            yield from nodes(inner)
    for keyword in ("anyOf", "allOf", "prefixItems"):
        for inner in schema.get(keyword, ()):
            yield from nodes(inner)
    for keyword in ("items", "additionalProperties"):
        yield from nodes(schema.get(keyword))
