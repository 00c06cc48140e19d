"""The search over deferred tools: what `session.search()` and the tool `search_tools` do.

Tools of a session enter; the best ones for a query leave, by the words of their names, descriptions and parameters.
Texts are ranked with BM25 (Robertson and Zaragoza, 2009).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from heapq import nsmallest
from typing import Any, Final

from pegboard._base.errors import PegboardError
from pegboard._model.subschemas import subschemas
from pegboard._model.tool import Tool

# How fast further occurrences of a word stop counting; the customary k1.
SATURATION: Final = 1.2

# How far long texts are held against their length, 0 to 1; the customary b.
LENGTH_SHARE: Final = 0.75

# Scripts that write without spaces: each character is a word of its own.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SHORTEST_STEM: Final = 3


def words(text: str) -> Iterator[str]:
    """The words of a text or of an identifier, folded and stemmed: `getUserFiles` gives `get`, `user`, `fil`.

    What is written in humps is a word as a whole too: GitHub is found as "github" and as "git hub".
    """
    for word in _WORD.findall(text):
        parts = _HUMP.split(word)
        for part in parts if len(parts) == 1 else (*parts, word):
            yield _stem(part.casefold())


def _stem(word: str) -> str:
    """Without the ending of a plural or a verb, in English; other words lose little by it."""
    if not word.isascii() or len(word) <= _SHORTEST_STEM:
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _SHORTEST_STEM:
            word = stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
            break
    return word.removesuffix("e") if len(word) > _SHORTEST_STEM else word


def counted(texts: Iterable[tuple[str, int]]) -> Counter[str]:
    """How often each word occurs in some texts, each text with its weight."""
    counts: Counter[str] = Counter()
    for text, weight in texts:
        for word in words(text):
            counts[word] += weight
    return counts


class Index:
    """Some documents by name, each as the counts of its words; never changes."""

    def __init__(self, documents: Mapping[str, Mapping[str, int]]) -> None:
        self._lengths = {name: sum(counts.values()) for name, counts in documents.items()}
        self._mean = sum(self._lengths.values()) / len(documents) if documents else 0.0
        self._places: dict[str, dict[str, int]] = {}
        for name, counts in documents.items():
            for word, count in counts.items():
                self._places.setdefault(word, {})[name] = count

    def scores(self, query: str) -> dict[str, float]:
        """The score of every document that shares a word with the query; all are above 0."""
        scores: dict[str, float] = {}
        # Sorted, because sums of floats depend on their order and a set's order on the process.
        for word in sorted(set(words(query))):
            places = self._places.get(word, {})
            # With the 1 inside, a word that most documents have still counts a little, and never against them.
            weight = math.log(1 + (len(self._lengths) - len(places) + 0.5) / (len(places) + 0.5))
            for name, count in places.items():
                length = 1 - LENGTH_SHARE + LENGTH_SHARE * self._lengths[name] / self._mean
                gain = count * (SATURATION + 1) / (count + SATURATION * length)
                scores[name] = scores.get(name, 0.0) + weight * gain
        return scores

    def search(self, query: str, limit: int) -> list[str]:
        """The names of the best documents, best first, at most `limit`; of equal ones in the order of their names.

        A document whose name is the query comes first.
        """
        exact = query.strip()
        ranked = ((name != exact, -score, name) for name, score in self.scores(query).items())
        return [name for *_, name in nsmallest(limit, ranked)]


# What a word in a name counts for, against one in a description.
NAME_WEIGHT: Final = 3


def tool_index(tools: Iterable[Tool]) -> Index:
    """The deferred tools of one session, by their names there.

    Args:
        tools: The tools of the session.
    """
    # Counted once for each tool, whichever sessions search it.
    return Index({tool.name: tool._remember("words", partial(_words, tool)) for tool in tools})


def _words(tool: Tool) -> Counter[str]:
    name = (tool.name, NAME_WEIGHT)
    try:
        return counted([name, (tool.description, 1), *_said(tool.parameters)])
    except PegboardError:  # its pack turns out to be broken on first use
        return counted([name])


def _said(schema: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """The names and descriptions of the parameters, those inside records included."""
    for name in schema.get("properties", ()):
        yield str(name), 1
    for _, _, inner in subschemas(schema):
        if isinstance(inner, Mapping):
            if isinstance(inner.get("description"), str):
                yield inner["description"], 1
            yield from _said(inner)
