"""Docstrings: what they say of a function and of its parameters.

Google, NumPy and Sphinx styles are told apart section by section, so a docstring may mix them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple


class Docstring(NamedTuple):
    """A docstring taken apart: its prose, and the text of each parameter."""

    description: str = ""
    params: Mapping[str, str] = MappingProxyType({})


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart; never raises.

    Sections about parameters, return value, yields and exceptions leave the description; everything else (notes,
    examples, headings that nobody knows) is prose and stays. Types, stars and line breaks leave the texts of
    parameters. A parameter that is described twice keeps its first text.
    """
    if not text:
        return Docstring()
    # Without common margin and trailing blanks; the first line stands at the quotes and has no margin.
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    first, *rest = [line.rstrip() for line in unified.expandtabs().split("\n")]
    margin = min([len(line) - len(line.lstrip()) for line in rest if line], default=0)
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

_PARAMS, _DROPPED = "params", "dropped"
_KINDS = {
    _PARAMS: "args arguments parameters params attributes 参数 参数说明 属性 关键字参数",
    _DROPPED: "returns return raises raise yields yield warns receives 返回 返回值 异常 抛出 抛出异常",
}
_SECTIONS = {
    "keyword args": _PARAMS,
    "keyword arguments": _PARAMS,
    "other parameters": _PARAMS,
    **{heading: kind for kind, headings in _KINDS.items() for heading in headings.split()},
}
_FIELD_KINDS = {
    _PARAMS: "param parameter arg argument key keyword var ivar cvar",
    _DROPPED: "return returns type vartype rtype raise raises except exception yield yields ytype",
}
_FIELDS = {name: kind for kind, names in _FIELD_KINDS.items() for name in names.split()}


def _section(lines: list[str], at: int) -> _Section | None:
    """The section that begins at a line; None if that line is prose."""
    line = lines[at]
    if not line or line[0].isspace():
        return None
    if line[0] == ":":
        return _sphinx_field(lines, at)
    if line[-1] in _COLONS:
        return _google_section(lines, at)
    return _numpy_section(lines, at) if _is_underlined(lines, at) else None


def _google_section(lines: list[str], at: int) -> _Section | None:
    kind = _SECTIONS.get(lines[at][:-1].rstrip().lower())
    end = _end_of_indented(lines, at + 1)
    body = lines[at + 1 : end]
    return _of_kind(kind, end, body, _google_items) if kind and any(body) else None


def _numpy_section(lines: list[str], at: int) -> _Section | None:
    kind = _SECTIONS.get(lines[at].lower())
    if kind is None:
        return None
    end = at + 2
    while end < len(lines) and not _ends_numpy_section(lines, end):
        end += 1
    return _of_kind(kind, end, lines[at + 2 : end], _numpy_items)


def _sphinx_field(lines: list[str], at: int) -> _Section | None:
    found = _SPHINX_FIELD.match(lines[at])
    kind = _FIELDS.get(found[1].lower()) if found else None
    if found is None or kind is None:
        return None
    end = _end_of_indented(lines, at + 1)
    if kind == _DROPPED:
        return _Section(end)
    text = _joined([found[3], *lines[at + 1 : end]])
    # The name is the last word, behind the type: ":param dict[str, int] days: text".
    return _Section(end, [(_bare(name), text) for name in (found[2] or "").split()[-1:]])


def _of_kind(
    kind: str, end: int, body: list[str], items: Callable[[list[str]], Iterable[tuple[str, list[str]]]]
) -> _Section | None:
    if kind == _DROPPED:
        return _Section(end)
    params = [(name, _joined(texts)) for name, texts in items(body)]
    # A heading over something else than parameters is prose, which must not get lost.
    return _Section(end, params) if params else None


def _google_items(body: list[str]) -> list[tuple[str, list[str]]]:
    depth = 0
    found: list[tuple[str, list[str]]] = []
    for line in body:
        text = line.lstrip()
        indent = len(line) - len(text)
        depth = depth or indent  # of the first line that is not blank
        item = _GOOGLE_ITEM.match(text) if indent <= depth else None
        if item:
            found.append((item[1], [item[2]]))
        elif found:
            found[-1][1].append(line)
    return found


def _numpy_items(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    names: list[str] = []
    texts: list[str] = []
    for line in body:
        if line and not line[0].isspace():
            yield from ((name, texts) for name in names)
            names, texts = _numpy_names(line), []
        else:
            texts.append(line)
    yield from ((name, texts) for name in names)


def _numpy_names(line: str) -> list[str]:
    """The names of "a, b : int"; none if the line is no such item."""
    names = [_bare(name) for name in line.partition(":")[0].split(",")]
    return names if all(name.isidentifier() for name in names) else []


def _ends_numpy_section(lines: list[str], at: int) -> bool:
    line = lines[at]
    if not line or line[0].isspace():
        return False
    # Items may stand apart, so only an unindented paragraph that is no item is prose again.
    return _is_underlined(lines, at) or (not lines[at - 1] and not _numpy_names(line))


def _is_underlined(lines: list[str], at: int) -> bool:
    rule = lines[at + 1] if at + 1 < len(lines) else ""
    return len(rule) > 2 and not rule.strip("-=")


def _end_of_indented(lines: list[str], at: int) -> int:
    """The next line that is neither blank nor indented."""
    while at < len(lines) and (not lines[at] or lines[at][0].isspace()):
        at += 1
    return at


def _bare(name: str) -> str:
    """The name without blanks, stars, escapes and code quotes around it."""
    return name.strip(" *\\`")


def _joined(texts: list[str]) -> str:
    return " ".join([stripped for text in texts if (stripped := text.strip())])
