"""Front matter: the YAML between two lines of `---` at the top of a `SKILL.md`, read with bounds.

The loader builds texts, lists and mappings alone. What lets YAML grow, or makes other objects of it, is refused while
the events of the parser come in, before anything is built: anchors, aliases and tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import yaml

__all__ = ["FrontMatterError", "SkillText", "read_front_matter", "split_text"]

MAX_BYTES: Final = 16 * 1024
MAX_NESTING: Final = 8
_ABSENT: Final = "it has no front matter: name and description between two lines of --- at its top"

# The closing line is the first line of three hyphens after the opening one.
_TEXT: Final = re.compile(r"\ufeff?---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
# A value that stands unquoted behind its key, in the first column.
_PLAIN: Final = re.compile(r"^(?P<key>[A-Za-z][\w-]*):[ \t]+(?P<value>[^\s\"'|>\[\]{}&*!%@`#,?-].*)$", re.MULTILINE)


class FrontMatterError(ValueError):
    """The front matter cannot be read; the message says why, and is for the author of the skill."""


class SkillText(NamedTuple):
    """The two parts of a `SKILL.md`; the body begins at the character `start`."""

    front: str
    start: int


def split_text(text: str) -> SkillText:
    """Find the front matter. Raises `FrontMatterError` where there is none, and for more than 16 kB of it."""
    # A search for the closing line goes no further than any front matter may.
    found = _TEXT.match(text, 0, MAX_BYTES + 100)
    if found is None:
        is_long = len(text) > MAX_BYTES and text.lstrip("\ufeff").startswith("---")
        raise FrontMatterError("its front matter has more than 16 kB, or does not end" if is_long else _ABSENT)
    front = found["front"]
    if len(front.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise FrontMatterError("its front matter has more than 16 kB")
    return SkillText(front, found.end())


def read_front_matter(front: str) -> Mapping[str, Any]:
    """Read front matter: texts, lists and mappings of them. Raises `FrontMatterError`.

    Values with colons that are not quoted are no YAML, but other clients take them: they are quoted for a second try.
    """
    try:
        return _loaded(front)
    except FrontMatterError as error:
        quoted = _PLAIN.sub(_as_block, front)
        if quoted == front:
            raise
        try:
            return _loaded(quoted)
        except FrontMatterError:
            raise error from None


def _as_block(line: re.Match[str]) -> str:
    """A value with a colon as a folded block, in which every character stands for itself."""
    value = line["value"].rstrip()
    return f"{line['key']}: >-\n  {value}" if ": " in value or value.endswith(":") else line[0]


def _loaded(front: str) -> Mapping[str, Any]:
    import yaml

    try:
        value = _document(yaml.parse(front, Loader=yaml.BaseLoader))
    except FrontMatterError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # these for a number that is out of range
        raise FrontMatterError(f"its front matter is no YAML: {_reason(error)}") from error
    if not isinstance(value, dict):
        raise FrontMatterError("its front matter is no mapping: write name: and description:")
    return value


def _document(events: Iterator[yaml.Event]) -> Any:
    """The value of the only document; an empty mapping if there is none."""
    import yaml

    marks = (yaml.StreamStartEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent, yaml.StreamEndEvent)
    values = [_value(events, event, 0) for event in events if not isinstance(event, marks)]
    if len(values) > 1:
        raise FrontMatterError("its front matter has several documents")
    return values[0] if values else {}


def _value(events: Iterator[yaml.Event], event: yaml.Event, depth: int) -> Any:
    """The value that an event begins; what follows of it is taken from `events`."""
    import yaml

    place = _place(event.start_mark)
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise FrontMatterError(f"its front matter has an anchor or an alias ({place}): write the value out")
    if getattr(event, "tag", None) is not None:
        raise FrontMatterError(f"its front matter has a tag ({place}): remove it")
    if isinstance(event, yaml.ScalarEvent):
        return event.value
    if depth == MAX_NESTING:
        raise FrontMatterError(f"its front matter is nested more than {MAX_NESTING} levels deep ({place})")
    inside = takewhile(lambda each: not isinstance(each, yaml.CollectionEndEvent), events)
    values = [_value(events, each, depth + 1) for each in inside]
    if isinstance(event, yaml.SequenceStartEvent):
        return values
    if not all(isinstance(key, str) for key in values[::2]):
        raise FrontMatterError(f"its front matter has a key that is no text ({place})")
    return dict(zip(values[::2], values[1::2], strict=True))


def _reason(error: Exception) -> str:
    """What the parser says, on one line, and where."""
    import yaml

    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem} ({_place(error.problem_mark)})"
    return str(error).partition("\n")[0]


def _place(mark: Any) -> str:
    return f"line {mark.line + 2}"  # of the file, where the first line is that of the hyphens
