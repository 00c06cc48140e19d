"""`pegboard journal`: reads, checks and prunes a journal."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs

from pegboard import PegboardError
from pegboard.inspection import spelled_out
from pegboard_journal._entry import Entry
from pegboard_journal._journal import Journal

__all__ = ["run"]

_FILTERS: Final = ("tool", "status", "session", "subject", "agent")


def run(url: str | None, arguments: list[str]) -> int:
    """Run a command on the journal that `--url` or the settings name; 0, 1 for flaws, 2 where it cannot be read."""
    options = _parser().parse_args(arguments)
    url = options.url or url
    if url is None:
        return _fail("no journal is named: write --url sqlite:///calls.db, or the setting url of the section journal")
    try:
        with Journal(url) as journal:
            code: int = options.command(journal, options)
            return code
    except (PegboardError, ValueError, OSError) as error:
        return _fail(str(error))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="pegboard journal", description="Read, check and prune the journal of calls.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, text: str, function: Callable[[Journal, Namespace], int]) -> ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("--url", help="where the journal is, if not where the settings say")
        made.add_argument("--json", action="store_true", help="as data")
        made.set_defaults(command=function)
        return made

    for name, text, function in (
        ("list", "List calls, the last ones at the end.", _list),
        ("export", "Write calls as JSON, one a line; with --json as one array.", _export),
    ):
        listing = command(name, text, function)
        for each in _FILTERS:
            listing.add_argument(f"--{each}", help=f"of this {each} only")
        listing.add_argument("--since", help="a moment in ISO 8601, or how long ago, such as 2d or 12h")
        if name == "list":
            listing.add_argument("--limit", type=int, default=50, help="at most so many, the last ones; 50 by default")
            listing.add_argument("--unfinished", action="store_true", help="those of which the outcome is unknown")
    command("show", "Show a call.", _show).add_argument("id", help="the id of the entry, or of the call")
    stats = command("stats", "Show figures of each tool.", _stats)
    stats.add_argument("--since", help="a moment in ISO 8601, or how long ago, such as 2d or 12h")
    stats.add_argument("--html", type=Path, metavar="FILE", help="write a page with pictures")
    verify = command("verify", "Find what was changed, removed or inserted; exit 1 if anything was.", _verify)
    verify.add_argument("--head", help="the hash of a last row that was kept elsewhere, to find a cut end")
    prune = command("prune", "Remove old rows; what is left can still be verified.", _prune)
    prune.add_argument("--older-than", required=True, help="a moment in ISO 8601, or an age such as 90d or 12h")
    return parser


def _calls(journal: Journal, options: Namespace) -> Iterable[Entry]:
    filters = {name: getattr(options, name) for name in _FILTERS}
    return journal.calls(**filters, since=options.since)


def _list(journal: Journal, options: Namespace) -> int:
    found = journal.unfinished() if options.unfinished else list(_calls(journal, options))
    shown = found[-options.limit :] if options.limit > 0 else []
    if options.json:
        return _data([entry.to_dict() for entry in shown])
    rows = [("STARTED", "TOOL", "STATUS", "SECONDS", "CALL"), *map(_line, shown)]
    return _table(rows)


def _line(entry: Entry) -> tuple[str, ...]:
    seconds = "" if entry.duration is None else f"{entry.duration:.3f}"
    started = entry.started.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return started, entry.tool, entry.status, seconds, entry.call_id


def _export(journal: Journal, options: Namespace) -> int:
    entries = (entry.to_dict() for entry in _calls(journal, options))
    if options.json:
        return _data(list(entries))
    for entry in entries:
        _write(json.dumps(entry, sort_keys=True))
    return 0


def _show(journal: Journal, options: Namespace) -> int:
    wanted = (entry for entry in journal.calls() if options.id in (entry.id, entry.call_id))
    found = [entry.to_dict() for entry in islice(wanted, 100)]
    if not found:
        return _fail(f"the journal has no entry and no call {options.id!r}; `pegboard journal list` shows their ids")
    if options.json:
        return _data(found)
    for entry in found:
        _write("\n".join(f"{name}: {'' if value is None else value}" for name, value in entry.items()) + "\n")
    return 0


def _stats(journal: Journal, options: Namespace) -> int:
    figures = journal.stats(options.since)
    if options.html is not None:
        from pegboard_journal._page import page

        options.html.write_text(page(figures), "utf-8")
    if options.json:
        return _data([attrs.asdict(each) for each in figures])
    head = ("TOOL", "CALLS", "ERRORS", "MEDIAN, S", "95 %, S", "LONGEST, S")
    times = ((each.median, each.p95, each.longest) for each in figures)
    rows = [
        (each.tool, str(each.calls), str(each.errors), *(f"{seconds:.3f}" for seconds in found))
        for each, found in zip(figures, times, strict=True)
    ]
    return _table([head, *rows])


def _verify(journal: Journal, options: Namespace) -> int:
    flaws, head = journal.verify(options.head), journal.head
    if options.json:
        _data({"flaws": [attrs.asdict(each) for each in flaws], "head": head})
    elif flaws:
        for each in flaws:
            _write(f"{each.kind}: {each.message}")
    else:
        _write(f"the journal is whole; its head is {head or 'empty'}")
    return 1 if flaws else 0


def _prune(journal: Journal, options: Namespace) -> int:
    removed = journal.prune(options.older_than)
    return _data({"removed": removed}) if options.json else _write(f"{removed} rows were removed")


def _table(rows: Sequence[Sequence[str]]) -> int:
    widths = [max(len(spelled_out(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (spelled_out(cell).ljust(width) for cell, width in zip(row, widths, strict=True))
        _write("  ".join(cells).rstrip())
    return 0


def _data(data: Any) -> int:
    return _write(json.dumps(data, indent=2))


def _write(text: str) -> int:
    sys.stdout.write("\n".join(map(spelled_out, text.split("\n"))) + "\n")
    return 0


def _fail(message: str) -> int:
    sys.stderr.write(f"{spelled_out(message)}\n")
    return 2
