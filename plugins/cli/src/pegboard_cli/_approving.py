"""Approval at a terminal: shows what a tool is about to do, and waits for an answer."""

from __future__ import annotations

import sys
from typing import Final, final

import click
from attrs import define

from pegboard import Approval, ApprovalRequest
from pegboard_cli._json import dumps, loads
from pegboard_cli._live import Live
from pegboard_cli._output import console, json_lines, safe_json, text

__all__ = ["Approver"]

UNATTENDED: Final = "there is no terminal to ask at; approve it beforehand with --yes, or run the command at a terminal"


@final
@define
class Approver:
    """Answers requests for approval: by what was said beforehand, else by asking, else with no."""

    live: Live
    approved: bool = False

    def __call__(self, request: ApprovalRequest) -> Approval:
        """Ask, if there is a terminal to ask at."""
        if self.approved:
            return Approval.approve()
        # A spinner takes the place of standard error, and need not say that there is a terminal behind it.
        with self.live.paused():
            if sys.stdin.isatty() and sys.stderr.isatty():
                return self._ask(request)
        return Approval.deny(UNATTENDED)

    def _ask(self, request: ApprovalRequest) -> Approval:
        out = console(err=True)
        out.print(text(f"{request.tool.name} asks for approval", "bold yellow"))
        if request.reason:
            out.print(text(request.reason))
        out.print(json_lines(dict(request.arguments)), soft_wrap=True)
        choices = click.Choice(["y", "n", "e"])
        answer = click.prompt("Run it? (y)es, (n)o, (e)dit", type=choices, default="n", show_choices=False, err=True)
        if answer == "e":
            return _edited(request)
        return Approval.approve() if answer == "y" else Approval.deny("the user said no")


def _edited(request: ApprovalRequest) -> Approval:
    """The arguments as they come back from an editor; no answer and no JSON object mean no."""
    before = safe_json(dumps(dict(request.arguments), ensure_ascii=False, indent=2, default=str))
    after = click.edit(before, extension=".json")
    if after is None:
        return Approval.deny("the user left the editor without saving")
    try:
        arguments = loads(after)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return Approval.deny("what the user wrote instead is no JSON object")
    return Approval.edit(arguments)
