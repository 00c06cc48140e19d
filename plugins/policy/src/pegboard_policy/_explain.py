"""What holds for each tool, and why: as data, and as `pegboard policy check`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import attrs

from pegboard import PegboardError, Session, Tool, Toolkit
from pegboard.inspection import plugins_of, program_toolkit, spelled_out, verdicts_of
from pegboard_policy._flow import KINDS, fits
from pegboard_policy._watch import Watch

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator

__all__ = ["Explanation", "explain", "run"]


@attrs.frozen
class Explanation:
    """What holds for a tool of a session, and what decides.

    Args:
        tool: Name of the tool.
        offered: Whether it is offered.
        permission: Its permission.
        reason: What decides.
        limits: Limits that its calls count for.
        flow: Flow rules that hold it.
        begins: Kinds of tools by which it makes flow rules apply to others.
    """

    tool: str
    offered: bool
    permission: str
    reason: str
    limits: tuple[str, ...] = ()
    flow: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()


def explain(session: Session | Toolkit) -> list[Explanation]:
    """What holds for every tool of a session, by name."""
    offered, watches = {tool.name for tool in session.tools}, _watches(session)
    return [
        Explanation(
            name,
            name in offered,
            permission.value,
            _reason(session, name, permission.value),
            *_watched(watches, session[name]),
        )
        for name, permission in sorted(session.permissions.items())
    ]


def _watches(session: Session | Toolkit) -> list[Watch]:
    guards = plugins_of(session.toolkit).contributions("provide_guards")
    owners = (getattr(each.value.check, "__self__", None) for each in guards)
    return [owner for owner in owners if isinstance(owner, Watch)]


def _watched(watches: list[Watch], tool: Tool) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    concerns = [concern for watch in watches for concern in watch.concerning(tool)]
    limits = tuple(dict.fromkeys(str(each) for concern in concerns for each in concern.limits))
    flow = tuple(dict.fromkeys(str(rule) for concern in concerns for rule in concern.rules))
    return limits, flow, tuple(dict.fromkeys(kind for concern in concerns for kind in concern.kinds))


def _unused(session: Session | Toolkit) -> Iterator[str]:
    """The words of limits and rules that fit no tool, such as misspelled ones."""
    tools = session.all_tools
    for watch in _watches(session):
        words = [each.pattern for each in watch.limits]
        words += [word for rule in watch.rules for word in (*rule.after, *rule.tools)]
        missing = (word for word in dict.fromkeys(words) if not any(fits(tool, word) for tool in tools))
        yield from (word for word in missing if word not in KINDS)  # a toolkit need not have all three


def _reason(session: Session | Toolkit, name: str, permission: str) -> str:
    """The guards that decide; else the program or the tool itself does."""
    verdicts = verdicts_of(session, name)
    kept_back = [each for each in verdicts if not each[1].offered]
    deciding = kept_back or [each for each in verdicts if each[1].permission == permission]
    reasons = [f"{label}: {verdict.reason}" if verdict.reason else label for label, verdict in deciding]
    return "; ".join(reasons) or "no guard: the program and the tool decide"


def run(arguments: list[str]) -> int:
    """`pegboard policy check`: 0; 1 if a limit or a rule fits no tool; 2 if the toolkit cannot be made."""
    options = _parser().parse_args(arguments)
    try:
        with program_toolkit(options.toolkit) if options.toolkit else Toolkit() as toolkit:
            found, unused = explain(toolkit), list(_unused(toolkit))
    except PegboardError as error:
        _tell(f"Error: {error}")
        return 2
    if options.json:
        print(json.dumps([attrs.asdict(each) for each in found], indent=2, ensure_ascii=False))  # noqa: T201
    else:
        for line in _table(found):
            print(line)  # noqa: T201
    for word in unused:
        _tell(f"{word!r} fits no tool: a limit or a rule names it in vain")
    return 1 if unused else 0


def _tell(message: str) -> None:
    print(spelled_out(message), file=sys.stderr)  # noqa: T201


def _table(found: list[Explanation]) -> Iterator[str]:
    """One line for each tool, in columns; further ones for its limits and rules."""
    rows = [("tool", "permission", "why")]
    for each in found:
        state = each.permission if each.offered else "not offered"
        rows.append((spelled_out(each.tool), state, spelled_out(each.reason)))
        rows += [("", "", spelled_out(f"at most {limit}")) for limit in each.limits]
        rows += [("", "", spelled_out(rule)) for rule in each.flow]
        rows += [("", "", spelled_out(f"counts as {kind}")) for kind in each.begins]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return (f"{name:{widths[0]}}  {state:{widths[1]}}  {why}" for name, state, why in rows)


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="pegboard policy", description="What tools are held to.")
    check = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "check",
        help="say for each tool what holds, and why",
        description="Say for each tool what holds, and why.",
        epilog="Exit code: 0; 1 if a limit or a rule fits no tool; 2 if there is no toolkit or the options are wrong.",
    )
    check.add_argument("--json", action="store_true", help="as data")
    check.add_argument("--toolkit", metavar="MODULE:NAME", help="the toolkit of a program, or FILE.py:NAME")
    return parser
