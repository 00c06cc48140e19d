"""Tables as text for a terminal and as Markdown for a page."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["markdown", "number", "plain"]


def number(value: float) -> str:
    """As many digits as say something."""
    digits = 0 if value >= 100 else 2 if value >= 0.01 or not value else 5
    return f"{value:.{digits}f}"


def plain(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as what they hold."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in (head, *rows))
    return "\n".join(line.rstrip() for line in lines)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "\n".join(_row(row) for row in (head, ["---"] * len(head), *rows))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.strip().replace("|", "\\|") for cell in cells) + " |"
