"""What commands print: JSON for programs, tables for people, without control characters of a pack's text."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from json import dumps, loads  # as they are at the start: a plugin that replaces them must not garble what says so
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "Column",
    "clean",
    "console",
    "dumps",
    "flow",
    "joined",
    "json_lines",
    "loads",
    "names",
    "note",
    "paged",
    "pairs",
    "plain",
    "print_json",
    "print_table",
    "print_traceback",
    "safe_json",
    "text",
]

_LISTED: Final = re.compile(r"^(\s|[-*+>|]|\d+[.)])", re.MULTILINE)
_WIDTH_OF_FILES: Final = 160
_AROUND: Final = 4  # lines of a table that are no rows

Column: TypeAlias = str | tuple[str, dict[str, Any]]
"""A heading, or that and how `rich` lays out the column at a terminal."""


def clean(value: str) -> str:
    """Text of a pack, a tool or a model, fit for a terminal: control characters are spelled out."""
    if value.isascii() and value.isprintable():  # as nearly always
        return value
    from pegboard.inspection import spelled_out  # which loads what `pegboard --version` needs nothing of

    return spelled_out(value)


def print_json(value: Any) -> None:
    """One JSON document on standard output; non-ASCII as it is where the output can carry it, and a person read it."""
    text_ = safe_json(dumps(value, ensure_ascii=False, indent=2, default=str))
    try:
        text_.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        text_ = dumps(value, indent=2, default=str)
    click.echo(text_)


def safe_json(document: str) -> str:
    """The same JSON with escapes for what `clean` would spell out."""
    if clean(document) == document:
        return document
    return "".join(letter if clean(letter) == letter else dumps(letter)[1:-1] for letter in document)


def print_traceback(error: BaseException) -> None:
    """A traceback on standard error; its messages come from other libraries."""
    click.echo(clean("".join(traceback.format_exception(error))), err=True, nl=False)


def note(message: str) -> None:
    """A remark on standard error, on one line."""
    click.echo(f"pegboard: {' '.join(clean(message).split())}", err=True)


def console(*, err: bool = False) -> Console:
    """A console on standard output or error. Files and pipes get lines long enough not to be folded."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # instead of an exit with 1

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _WIDTH_OF_FILES
    return Plain(file=stream, width=width, highlight=False, markup=False, emoji=False)


def text(value: str, style: str = "") -> Text:
    """Text that is shown as it is, markup and all."""
    from rich.text import Text

    return Text(clean(value), style=style)


def joined(*parts: tuple[str, str]) -> Text:
    """Several texts, each with its style, on one line."""
    made = text("")
    for value, style in parts:
        made.append(clean(value), style=style)
    return made


def print_table(
    out: Console, columns: Sequence[Column], lines: Iterable[Sequence[str | Text]], *, expand: bool = False
) -> None:
    """A table that fits a terminal; in a file or pipe one line for each row, to be searched or sorted."""
    headed = [(column, {}) if isinstance(column, str) else column for column in columns]
    if not (out.is_terminal or os.environ.get("COLUMNS")):
        plainly = [[clean(cell) if isinstance(cell, str) else cell.plain for cell in line] for line in lines]
        _print_lines([heading for heading, _ in headed], plainly)
        return
    cells = [[text(cell) if isinstance(cell, str) else cell for cell in line] for line in lines]
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, expand=expand)
    for heading, settings in headed:
        layout: dict[str, Any] = {"overflow": "fold"} | settings
        made.add_column(heading, **layout)
    for line in cells:
        made.add_row(*line)
    out.print(made)


def _print_lines(headings: list[str], lines: list[list[str]]) -> None:
    lines = [[" ".join(cell.split()) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    for line in (headings, ["-" * width for width in widths], *lines):
        click.echo("   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


@contextmanager
def paged(out: Console, lines: int) -> Iterator[None]:
    """Through the reader's pager, where a list is longer than the terminal."""
    if not out.is_terminal or lines + _AROUND <= out.height:
        yield
        return
    os.environ.setdefault("LESS", "-FRX")  # with colours, and without a screen of its own
    with out.pager(styles=True):
        yield


def pairs(lines: Iterable[tuple[str, str]]) -> Table:
    """Labels and values, one pair a line."""
    from rich.table import Table

    grid = Table.grid("label", "value", padding=(0, 2, 0, 0))
    grid.columns[0].no_wrap = True
    grid.columns[1].overflow = "fold"
    for label, value in lines:
        grid.add_row(text(label, "dim"), text(value))
    return grid


def flow(value: str) -> str:
    """Prose without the line breaks of its source, so that it wraps where the terminal ends; lists stay lists."""
    return "\n\n".join(
        paragraph if _LISTED.search(paragraph) else " ".join(paragraph.split())
        for paragraph in value.strip().split("\n\n")
    )


def names(values: Iterable[str]) -> str:
    """Several names on one line."""
    return ", ".join(values)


def plain(count: int, noun: str, plural: str = "") -> str:
    """`1 tool`, `2 tools`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def json_lines(value: Any) -> Text:
    """JSON for people: indented, and in colours where there are colours."""
    from rich.highlighter import JSONHighlighter

    return JSONHighlighter()(text(safe_json(dumps(value, ensure_ascii=False, indent=2, default=str))))
