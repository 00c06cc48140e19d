"""A page of figures with pictures, in one file that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, TypeAlias

from pegboard_journal._journal import ToolFigures

__all__ = ["page"]

WIDTH: Final = 480
"""Of a bar at its longest, in pixels."""
HEIGHT: Final = 18
LABEL: Final = 220
_Bar: TypeAlias = tuple[str, list[tuple[str, float]]]

_STYLE: Final = """
:root { color-scheme: light dark; --text: #1d1d1f; --back: #fff; --line: #d2d2d7; --good: #2e7d5b; --bad: #b3412f;
  --mid: #3d6fb4; --late: #a7bfe0 }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8ea; --back: #1c1c1e; --line: #48484a; --good: #5bbf92;
  --bad: #e07a68; --mid: #7aa7e6; --late: #3c5578 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 2rem auto;
  max-width: 52rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line) }
th { text-align: left } td + td, th + th { text-align: right; font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto } text { fill: currentColor; font: 13px system-ui, sans-serif }
.good { fill: var(--good) } .bad { fill: var(--bad) } .mid { fill: var(--mid) } .late { fill: var(--late) }
"""


def page(figures: Sequence[ToolFigures]) -> str:
    """The page, as HTML."""
    calls: list[_Bar] = [(each.tool, [("good", each.calls - each.errors), ("bad", each.errors)]) for each in figures]
    times: list[_Bar] = [(each.tool, [("mid", each.median), ("late", each.p95 - each.median)]) for each in figures]
    total, errors = sum(each.calls for each in figures), sum(each.errors for each in figures)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Tool calls</title><style>{_STYLE}</style></head>\n<body><h1>Tool calls</h1>"
        f"<p>{total:,} calls of {len(figures)} tools; {errors:,} of them ended as errors.</p>\n"
        f"<h2>Calls</h2>{_bars('Calls by tool, errors at the end of each bar', calls, '{:,.0f}')}\n"
        f"<h2>Seconds</h2>{_bars('Median of seconds by tool, and up to the 95 % quantile', times, '{:.3f}')}\n"
        f"<h2>Figures</h2>{_table(figures)}</body></html>\n"
    )


def _bars(title: str, rows: Sequence[_Bar], form: str) -> str:
    """A picture of a bar for each tool, made of parts."""
    longest = max((sum(size for _, size in parts) for _, parts in rows), default=0.0) or 1.0
    step = HEIGHT + 8
    drawn = []
    for number, (name, parts) in enumerate(rows):
        place, top = float(LABEL), number * step
        shown = name if len(name) <= 30 else f"{name[:29]}…"
        drawn.append(f'<text x="{LABEL - 8}" y="{top + 14}" text-anchor="end">{escape(shown)}</text>')
        for kind, size in parts:
            width = WIDTH * size / longest
            drawn.append(f'<rect class="{kind}" x="{place:.1f}" y="{top}" width="{width:.1f}" height="{HEIGHT}"/>')
            place += width
        whole = form.format(sum(size for _, size in parts))
        drawn.append(f'<text x="{place + 6:.1f}" y="{top + 14}">{whole}</text>')
    box = f'viewBox="0 0 {LABEL + WIDTH + 80} {max(1, len(rows)) * step}"'
    return f'<svg role="img" aria-label="{escape(title)}" {box}><title>{escape(title)}</title>{"".join(drawn)}</svg>'


def _table(figures: Iterable[ToolFigures]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("tool", "calls", "errors", "median, s", "95 %, s", "longest, s"))
    rows = (
        f"<tr><td>{escape(each.tool)}</td><td>{each.calls:,}</td><td>{each.errors:,}</td>"
        f"<td>{each.median:.3f}</td><td>{each.p95:.3f}</td><td>{each.longest:.3f}</td></tr>"
        for each in figures
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
