"""Pages: long texts in parts of which each says how to go on, and what the tools return."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from html import escape
from typing import Final, NamedTuple, ParamSpec, Protocol

import attrs
from attrs import frozen

from pegboard import ToolError, ToolResult

__all__ = ["LoadedSkill", "Page", "SkillPage", "as_written"]

PAGE: Final = 20_000
"""Characters that one call shows of a text."""

P = ParamSpec("P")


class Page(NamedTuple):
    """A part of a text: from the character `start` on, and where the next part begins."""

    text: str
    start: int
    total_chars: int
    next_start: int | None

    @classmethod
    def of(cls, text: str, start: int) -> Page:
        """The part from `start` on; it ends at the end of a line where there is one. Raises `ToolError`."""
        if start and start >= len(text):
            raise ToolError(f"start={start} is beyond the end: there are {len(text):,} characters, counted from 0.")
        end = start + PAGE
        if end < len(text):
            end = text.rfind("\n", start + PAGE // 2, end) + 1 or end
        return cls(text[start:end], start, len(text), end if end < len(text) else None)


class Record(attrs.AttrsInstance, Protocol):
    """What a tool returns: a record of attrs, and how a model reads it."""

    def written(self) -> str:
        """The text for the model."""


def as_written(function: Callable[P, Record]) -> Callable[P, ToolResult]:
    """Let a tool show the model its record as `written`; the record is the data, which the annotation promises."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> ToolResult:
        record = function(*args, **kwargs)
        return ToolResult(content=record.written(), data=attrs.asdict(record), value=record)

    return run


@frozen
class SkillPage:
    """A part of a file of a skill; `start` and `next_start` count its characters, `next_start` is null at the end."""

    name: str
    path: str
    text: str
    start: int
    total_chars: int
    next_start: int | None

    def written(self) -> str:
        """The text, and how to go on."""
        return self.text + self.how_to_go_on()

    def how_to_go_on(self) -> str:
        """What follows a text that is longer; empty at its end."""
        if self.next_start is None:
            return ""
        call = f'read_skill_file(name="{self.name}", path="{self.path}", start={self.next_start})'
        return f"\n[characters {self.start:,} to {self.next_start:,} of {self.total_chars:,}; the rest: {call}]"


@frozen
class LoadedSkill:
    """A skill: the first part of its instructions, its files, and the tools that it makes available."""

    name: str
    compatibility: str
    text: str
    total_chars: int
    next_start: int | None
    files: list[str]
    has_more_files: bool
    tools: list[str]

    def written(self) -> str:
        """The text as the guide for clients has it: instructions and files in tags that tell them from other text."""
        body = SkillPage(self.name, "SKILL.md", self.text, 0, self.total_chars, self.next_start).written()
        lines = [f'<skill_content name="{self.name}">', _unclosed(body)]
        if self.compatibility:
            lines += ["", f"Compatibility: {_unclosed(self.compatibility)}"]
        if self.tools:
            lines += ["", f"Tools for this skill, available from now on: {', '.join(self.tools)}"]
        if self.files:
            lines += ["", "Files of this skill, for read_skill_file:", "<skill_resources>"]
            lines += [f"<file>{escape(path, quote=False)}</file>" for path in self.files]
            lines += ["</skill_resources>"]
        if self.has_more_files:
            lines += [f"[only the first {len(self.files)} files are listed; others can be read too]"]
        return "\n".join([*lines, "</skill_content>"])


def _unclosed(text: str) -> str:
    """A text that cannot end, or begin, the tags around it."""
    return re.sub(r"<(?=\s*/?\s*skill_(content|resources)\b)", "&lt;", text, flags=re.IGNORECASE)
