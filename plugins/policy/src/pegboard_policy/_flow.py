"""Flow rules: what may follow once a session has called certain tools, and the words that name kinds of tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import attrs

from pegboard import Tool
from pegboard_policy._records import record_of

__all__ = ["KINDS", "TRIFECTA", "FlowRule", "fits", "flow_rules"]

_HINTS: Final = ("read_only", "destructive", "idempotent", "open_world")


def _is_private(tool: Tool) -> bool:
    reads_here = tool.hints.read_only is True and tool.hints.open_world is False
    return "private-data" in tool.tags or (reads_here and "public-data" not in tool.tags)


def _is_untrusted(tool: Tool) -> bool:
    return "untrusted-content" in tool.tags or tool.hints.open_world is True


def _is_way_out(tool: Tool) -> bool:
    return "way-out" in tool.tags or tool.hints.open_world is True


KINDS: Final[Mapping[str, Callable[[Tool], bool]]] = {
    "private data": _is_private,
    "untrusted content": _is_untrusted,
    "a way out": _is_way_out,
}
"""The three parts of the trifecta, as words of rules."""


def fits(tool: Tool, word: str) -> bool:
    """Whether a word names a tool: a hint, `not` before one, a kind of the trifecta, a tag, or a pattern of names."""
    hint = word.removeprefix("not ")
    if hint in _HINTS:
        return (getattr(tool.hints, hint) is True) is (hint == word)
    if word in KINDS:
        return KINDS[word](tool)
    return word in tool.tags or any(fnmatchcase(name, word) for name in (tool.name, tool.qualified_name))


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def _known(rule: Any, attribute: Any, words: tuple[str, ...]) -> None:
    if not words or not all(words):
        raise ValueError(f"{attribute.name} names kinds of tools, such as 'open_world' or 'send_*'")
    for word in words:
        if word.startswith("not ") and word[4:] not in _HINTS:
            raise ValueError(f"{word!r} is no hint; after 'not' comes one of {', '.join(_HINTS)}")


def _is_then(rule: Any, attribute: Any, given: str) -> None:
    if given not in ("ask", "deny"):
        raise ValueError(f"then is 'ask' or 'deny', not {given!r}")


@attrs.frozen
class FlowRule:
    """Once a session has called a tool of each kind in `after`, calls of `tools` need approval, or are denied.

    Args:
        after: Kind or kinds of tools: hints such as `"open_world"`, tags, patterns of names, as flow rules have them.
        tools: Kind or kinds of tools that are held.
        then: `"ask"` for approval, or `"deny"`.
    """

    after: str | tuple[str, ...] = attrs.field(converter=_words, validator=_known)
    tools: str | tuple[str, ...] = attrs.field(converter=_words, validator=_known)
    then: Literal["ask", "deny"] = attrs.field(default="ask", validator=_is_then)

    def concerns(self, tool: Tool) -> bool:
        """Whether the rule holds a tool back, once it applies."""
        return any(fits(tool, word) for word in self.tools)

    def reason(self, name: str, first: Mapping[str, str]) -> str | None:
        """Why the rule holds a call back, by the first tool of each kind that was called; None if it does not yet."""
        if not all(word in first for word in self.after):
            return None
        named = (first[word] if word == first[word] else f"{first[word]} ({word})" for word in self.after)
        called = " and ".join(dict.fromkeys(named))
        return f"this session has called {called} before {name}"

    def __str__(self) -> str:
        return f"{self.then} after {' and '.join(self.after)}"


TRIFECTA: Final = FlowRule(("private data", "untrusted content"), ("a way out",), "ask")
"""Private data, untrusted content and a way out in one session: the way out needs approval."""


def flow_rules(given: Any) -> Iterator[FlowRule]:
    """Rules as settings or a program write them. Raises `SettingsError` for what is none."""
    form = "a flow rule is 'trifecta', or {'after': 'open_world', 'tools': ['send_*'], 'then': 'ask'}"
    for each in given if isinstance(given, Iterable) and not isinstance(given, str | Mapping) else (given,):
        yield TRIFECTA if each == "trifecta" else record_of(FlowRule, each, form)
