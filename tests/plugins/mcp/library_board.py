"""A board with pages, resources and prompts of its own. As a script it is served over stdio."""

from __future__ import annotations

import base64
import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pegboard import FileBlock, ImageBlock, Injected, Suspend, ToolError, Toolkit, tool
from pegboard_mcp import Answers, Caller, Resources, serve_mcp

PAGE = "<!doctype html><title>Clock</title>"
CLOCK = "ui://clock/page.html"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CSP = {"ui": {"csp": {"connectDomains": ["https://example.com"]}}}


class Style(enum.Enum):
    SHORT = "short"
    LONG = "long"


@tool(read_only=True, meta={"ui": {"resourceUri": CLOCK}, "example/kept": [1, None, {"a": "b"}]})
def now() -> str:
    """The time."""
    return "12:00"


@tool(read_only=True, meta={"ui": {"resourceUri": CLOCK, "visibility": ["app"]}})
def refresh() -> str:
    """The time, for the page."""
    return "12:01"


def note(name: str) -> str | None:
    """A note by its name."""
    return {"today": "buy milk", "with space": "found"}.get(name)


async def number(value: int) -> tuple[bytes, str]:
    return bytes([value]), "application/x-number"


def whose(caller: Injected[Caller]) -> str:
    return f"of {caller.subject}"


def broken() -> str:
    raise ToolError("the shelf is empty")


def review(code: str, style: Style = Style.SHORT, strict: bool = False, lines: int = 3) -> str:
    """Review code.

    Args:
        code: What to review
    """
    return f"Review {code!r} ({style.value}, {strict}, {lines})"


def talk(mood: Literal["glad", "grave"], picture: bool = True) -> list[Any]:
    """A conversation."""
    file = FileBlock(data="YSBub3Rl", media_type="text/plain", name="notes://today")
    image = [ImageBlock(data=PNG, media_type="image/png")] if picture else []
    return ["Hello", {"role": "assistant", "content": f"I am {mood}"}, *image, file]


async def named(answers: Answers) -> str:
    """Ask who it is."""
    if "name" not in answers:
        raise Suspend("Who are you?", form=NAME, key="name", again=True)
    return f"I am {answers['name']['name']}"


def sources(folder: Path) -> dict[str, Any]:
    (folder / "plain").write_text("a file: ä", encoding="utf-8")
    (folder / "picture.png").write_bytes(base64.b64decode(PNG))
    return {
        CLOCK: (PAGE, None, CSP),
        "notes://{name}": note,
        "numbers://{value}/byte": number,
        "file://plain": folder / "plain",
        "file://picture": folder / "picture.png",
        "file://missing": folder / "missing",
        "x://bytes": (b"\0\1", "application/x-bytes"),
        "x://whose": whose,
        "x://broken": broken,
    }


def board() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(now, refresh)
    return toolkit


PROMPTS: list[Callable[..., Any]] = [review, talk, named]

if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place, board() as served:
        pages = Resources(sources(Path(place)))

        @served.tool(read_only=True)
        def change() -> str:
            """Say that the note has changed."""
            pages.changed("notes://today")
            return "changed"

        serve_mcp(served, resources=pages, prompts=PROMPTS)
