"""The code blocks of all pages and READMEs, by language."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.workspace.project import ROOT, tracked

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w+-]*).*$")


class Block(NamedTuple):
    """A fenced block: the page, the line that it begins in, its language and its text."""

    path: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}"


def blocks_of(path: Path, text: str) -> Iterator[Block]:
    """Find the blocks of a page; one that is not closed goes to the end."""
    opened, kept, begun = None, list[str](), 0
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None:
            if fence:
                opened, kept, begun = fence, [], number
        elif fence and not fence["language"] and fence["ticks"].startswith(opened["ticks"]):
            yield Block(path, begun, opened["language"], "".join(kept))
            opened = None
        else:
            kept.append(line.removeprefix(opened["indent"]) + "\n")
    if opened is not None:
        yield Block(path, begun, opened["language"], "".join(kept))


@functools.cache
def pages() -> tuple[Path, ...]:
    """Every page of the documentation and every README, but for those of tests."""
    return tuple(path for path in tracked() if path.suffix == ".md" and "tests" not in path.relative_to(ROOT).parts)


@functools.cache
def _all() -> tuple[Block, ...]:
    return tuple(block for path in pages() for block in blocks_of(path, path.read_text("utf-8")))


def blocks(*languages: str) -> list[Block]:
    """The blocks of all pages in these languages, or in all."""
    return [block for block in _all() if block.language in languages or not languages]
