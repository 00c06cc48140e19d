"""The catalog: what a model reads of all skills before it loads one, and the search where they are many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Final

from attrs import frozen

from pegboard_skills._skill import MAX_DESCRIPTION, Skill

__all__ = ["SkillMatch", "SkillMatches", "catalog", "is_long", "search"]

MAX_CATALOG: Final = 8000
"""Characters of names and descriptions that stand in a tool's description."""
MAX_MATCHES: Final = 10
_NAME_WEIGHT: Final = 3
# Scripts that write without spaces: each character is a word of its own.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[a-z0-9]+|[^\W_a-z0-9]+")


@frozen
class SkillMatch:
    """A skill that a search found."""

    name: str
    description: str


@frozen
class SkillMatches:
    """The skills that a search found, the best ones first; at most ten."""

    matches: list[SkillMatch]

    def written(self) -> str:
        """The text for the model."""
        found = "\n".join(f"- {each.name}: {escape(each.description, quote=False)}" for each in self.matches)
        return found or "No skill has any of these words. Try other words for the same task."


def catalog(skills: Mapping[str, Skill]) -> str:
    """The skills in the order of their names, each with its description; where they are many the names alone."""
    if not is_long(skills):
        return "\n".join(map(_line, skills.values()))
    listed: list[str] = []
    room = MAX_CATALOG
    for name in skills:
        room -= len(name) + 2
        if room < 0:
            break
        listed.append(name)
    more = len(skills) - len(listed)
    return ", ".join(listed) + (f" and {more:,} more" if more else "")


def is_long(skills: Mapping[str, Skill]) -> bool:
    """Whether the skills with their descriptions are too long to be listed, so that a search is needed."""
    return sum(len(_line(skill)) + 1 for skill in skills.values()) > MAX_CATALOG


def _line(skill: Skill) -> str:
    return f"- {skill.name}: {escape(_shortened(skill.description), quote=False)}"


def _shortened(description: str) -> str:
    """A description as long as the specification allows; that it is longer is one of the problems."""
    return description if len(description) <= MAX_DESCRIPTION else f"{description[:MAX_DESCRIPTION]}..."


def search(skills: Mapping[str, Skill], query: str) -> SkillMatches:
    """The skills that share words with a query, best first: words that few skills have count more, and so do names."""
    names = {name: _words(name) for name in skills}
    texts = {name: _words(skill.description) | names[name] for name, skill in skills.items()}
    having = Counter(word for words in texts.values() for word in words)
    scores = {
        name: sum((_NAME_WEIGHT if word in names[name] else 1) / having[word] for word in sorted(_words(query) & words))
        for name, words in texts.items()
    }
    best = sorted((name for name in skills if scores[name]), key=lambda name: (-scores[name], name))[:MAX_MATCHES]
    return SkillMatches([SkillMatch(name, _shortened(skills[name].description)) for name in best])


def _words(text: str) -> set[str]:
    """The words of a text, without the ending of a plural."""
    return {word if len(word) < 4 else word.removesuffix("s") for word in _WORD.findall(text.casefold())}
