"""Docstrings: what they say of a function and of its parameters.

Google, NumPy and Sphinx styles are told apart section by section, so a docstring may mix them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias


class Docstring(NamedTuple):
    """A docstring taken apart: its prose, and the text of each parameter.

    Args:
        description: The prose.
        params: Text of each parameter, by its name.
    """

    description: str = ""
    params: Mapping[str, str] = MappingProxyType({})


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart; never raises.

    Sections about parameters, return value, yields and exceptions leave the description; everything else (notes,
    examples, unknown headings) is prose and stays. Types, stars and line breaks leave the texts of
    parameters. A parameter that is described twice keeps its first text.

    Args:
        text: The docstring, in Google, NumPy or Sphinx style. None for none.
    """
    if not text:
        return Docstring()
    # Without common margin and trailing blanks; the first line stands at the quotes and has no margin.
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    first, *rest = [line.rstrip() for line in unified.expandtabs().split("\n")]
    margin = min([_indent(line) for line in rest if line], default=0)
    lines = [first.lstrip(), *[line[margin:] for line in rest]]
    prose: list[str] = []
    params: dict[str, str] = {}
    at = 0
    while at < len(lines):
        section = _section(lines, at)
        if section is None:
            prose.append(lines[at])
            at += 1
            continue
        for name, description in section.params:
            params.setdefault(name, description)
        at = section.end
        while prose and not prose[-1]:
            prose.pop()
        prose.append("")  # one blank line where the section stood
    return Docstring("\n".join(prose).strip(), params)


class _Section(NamedTuple):
    end: int  # the line behind the section
    params: Sequence[tuple[str, str]] = ()


# Colons and brackets as Chinese writes them (U+FF1A, U+FF08, U+FF09) count like the others.
_COLONS = ":\uff1a"
_GOOGLE_ITEM = re.compile(r"[-*`\\ ]*(\w++)`?\s*+(?:[(\uff08].*?[)\uff09]\s*+)?[:\uff1a]\s*+(.*)")
_SPHINX_FIELD = re.compile(r":(\w++)(?:\s++([^:]*+))?:\s*+(.*)")

_PARAM_HEADING = re.compile(
    "args|arguments|parameters|params|attributes|keyword args|keyword arguments|other parameters|"
    "参数|参数说明|属性|关键字参数"
)
_DROPPED_HEADING = re.compile("returns?|raises?|yields?|warns|receives|返回|返回值|异常|抛出|抛出异常")
_PARAM_FIELD = re.compile("param|parameter|arg|argument|key|keyword|var|ivar|cvar")
_DROPPED_FIELD = re.compile("returns?|type|vartype|rtype|ytype|raises?|except|exception|yields?")


def _section(lines: list[str], at: int) -> _Section | None:
    """The section that begins at a line; None if that line is prose."""
    line = lines[at]
    if not line or line[0].isspace():
        return None
    if line[0] == ":":
        return _sphinx_field(lines, at)
    is_google = line[-1] in _COLONS
    heading = (line[:-1].rstrip() if is_google else line).lower()
    is_dropped = _DROPPED_HEADING.fullmatch(heading)
    if not (is_dropped or _PARAM_HEADING.fullmatch(heading)) or not (is_google or _is_underlined(lines, at)):
        return None
    begin, ends = (at + 1, _is_flush) if is_google else (at + 2, _ends_numpy_section)
    end = next((each for each in range(begin, len(lines)) if ends(lines, each)), len(lines))
    body = lines[begin:end]
    if is_dropped:
        return _Section(end) if any(body) or not is_google else None
    params = _items(body, _google_reader(body) if is_google else _numpy_item)
    # A heading over something else than parameters is prose, which must not get lost.
    return _Section(end, params) if params else None


def _sphinx_field(lines: list[str], at: int) -> _Section | None:
    found = _SPHINX_FIELD.match(lines[at])
    is_param = found and _PARAM_FIELD.fullmatch(found[1].lower())
    if found is None or not (is_param or _DROPPED_FIELD.fullmatch(found[1].lower())):
        return None
    end = next((each for each in range(at + 1, len(lines)) if _is_flush(lines, each)), len(lines))
    # The name is the last word, behind the type: ":param dict[str, int] days: text".
    names = (found[2] or "").split()[-1:] if is_param else []
    return _Section(end, [(_bare(name), _joined([found[3], *lines[at + 1 : end]])) for name in names])


# The names that a line of a section describes, and what it says of them; None if it goes on with the line before.
_Item: TypeAlias = tuple[list[str], list[str]]


def _items(body: list[str], read: Callable[[str], _Item | None]) -> list[tuple[str, str]]:
    """The parameters that the lines of a section describe, each with its text."""
    found: list[_Item] = []
    for line in body:
        item = read(line)
        if item:
            found.append(item)
        elif found:
            found[-1][1].append(line)
    return [(name, _joined(texts)) for names, texts in found for name in names]


def _google_reader(body: list[str]) -> Callable[[str], _Item | None]:
    depth = next((_indent(line) for line in body if line), 0)

    def read(line: str) -> _Item | None:
        item = _GOOGLE_ITEM.match(line.lstrip()) if _indent(line) <= depth else None
        return ([item[1]], [item[2]]) if item else None

    return read


def _numpy_item(line: str) -> _Item | None:
    return (_numpy_names(line), []) if line and not line[0].isspace() else None


def _numpy_names(line: str) -> list[str]:
    """The names of "a, b : int"; none if the line is no such item."""
    names = [_bare(name) for name in line.partition(":")[0].split(",")]
    return names if all(name.isidentifier() for name in names) else []


def _is_flush(lines: list[str], at: int) -> bool:
    """Whether a line is neither blank nor indented."""
    return bool(lines[at]) and not lines[at][0].isspace()


def _ends_numpy_section(lines: list[str], at: int) -> bool:
    # Items may stand apart, so only an unindented paragraph that is no item is prose again.
    if not _is_flush(lines, at):
        return False
    return _is_underlined(lines, at) or (not lines[at - 1] and not _numpy_names(lines[at]))


def _is_underlined(lines: list[str], at: int) -> bool:
    rule = lines[at + 1] if at + 1 < len(lines) else ""
    return len(rule) > 2 and not rule.strip("-=")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _bare(name: str) -> str:
    """The name without blanks, stars, escapes and code quotes around it."""
    return name.strip(" *\\`")


def _joined(texts: list[str]) -> str:
    return " ".join([stripped for text in texts if (stripped := text.strip())])
