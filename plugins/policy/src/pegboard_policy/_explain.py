"""What holds for each tool, and why: as data, and as `pegboard policy check`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs

from pegboard import Session, Toolkit
from pegboard.inspection import spelled_out, verdicts_of

if TYPE_CHECKING:
    from argparse import ArgumentParser

__all__ = ["Explanation", "explain", "run"]


@attrs.frozen
class Explanation:
    """What holds for a tool of a session: whether it is offered, its permission, and what decides."""

    tool: str
    offered: bool
    permission: str
    reason: str


def explain(session: Session | Toolkit) -> list[Explanation]:
    """What holds for every tool of a session, by name."""
    offered = {tool.name for tool in session.tools}
    permissions = sorted(session.permissions.items())
    return [
        Explanation(name, name in offered, permission.value, _reason(session, name, permission.value))
        for name, permission in permissions
    ]


def _reason(session: Session | Toolkit, name: str, permission: str) -> str:
    """The guards that decide; else the program or the tool itself does."""
    verdicts = verdicts_of(session, name)
    kept_back = [each for each in verdicts if not each[1].offered]
    deciding = kept_back or [each for each in verdicts if each[1].permission == permission]
    reasons = [f"{label}: {verdict.reason}" if verdict.reason else label for label, verdict in deciding]
    return "; ".join(reasons) or "no guard: the program and the tool decide"


def run(arguments: list[str]) -> int:
    """`pegboard policy check`; returns 0, or 1 if the toolkit cannot be made."""
    options = _parser().parse_args(arguments)
    with Toolkit() as toolkit:
        found = explain(toolkit)
    if options.json:
        print(json.dumps([attrs.asdict(each) for each in found], indent=2, ensure_ascii=False))  # noqa: T201
        return 0
    for each in found:
        state = each.permission if each.offered else "not offered"
        print(spelled_out(f"{each.tool}: {state} ({each.reason})"))  # noqa: T201
    return 0


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="pegboard policy", description="What tools are held to.")
    check = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "check", help="say for each tool what holds, and why", description="Say for each tool what holds, and why."
    )
    check.add_argument("--json", action="store_true", help="as data")
    return parser
