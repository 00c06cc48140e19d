"""Pages: how the next part of a long answer is requested, by what a document says of parameters and answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from pegboard_openapi._document import Document, DocumentError

__all__ = ["answer_fields", "pages_text"]

# Names without regard to case and to what is neither a letter nor a digit.
_CURSORS: Final = frozenset({
    "continuationtoken", "continue", "cursor", "marker", "nextcursor", "nextpagetoken", "nexttoken", "pagetoken",
    "startingafter",
})  # fmt: skip
# These are cursors where the size of a page is a parameter too; else they may be dates.
_MAY_BE_CURSORS: Final = frozenset({"after", "startafter"})
_OFFSETS: Final = frozenset({"offset", "skip", "startindex"})
_PAGES: Final = frozenset({"page", "pageindex", "pageno", "pagenum", "pagenumber"})
_SIZES: Final = frozenset({"limit", "maxresults", "pagelimit", "pagesize", "perpage", "take", "top"})
_NEXT: Final[Mapping[str, frozenset[str]]] = {
    "cursor": frozenset({
        "continuationtoken", "continue", "endcursor", "nextcursor", "nextmarker", "nextpagetoken", "nexttoken",
    }),
    "offset": frozenset({"nextoffset", "nextskip"}),
    "page": frozenset({"nextpage", "nextpagenumber"}),
}  # fmt: skip
_MORE: Final = frozenset({"hasmore", "hasnext", "hasnextpage"})
_NESTED: Final = frozenset({"meta", "metadata", "pageinfo", "pagination", "paging", "responsemetadata"})
_MOST_PARTS: Final = 50
"""Schemas of one answer that are looked into."""


def pages_text(parameters: Mapping[str, tuple[str, Any]], fields: Iterable[str], *, has_link: bool) -> str:
    """What a description says of pages; an empty text where the document says nothing.

    `parameters` are those of the query by argument, with their names and schemas there; `fields` are those of the
    answer, as paths. `has_link` says that the answer has a `Link` header.
    """
    kinds: dict[str, str] = {}
    for argument, (name, schema) in parameters.items():
        kinds.setdefault(_kind(name, schema), argument)
    if "size" in kinds and "maybe" in kinds:
        kinds.setdefault("cursor", kinds["maybe"])
    way = next((each for each in ("cursor", "offset", "page") if each in kinds), None)
    if way is None:
        return "The Link header of the answer names the next page." if has_link else ""
    named = {_plain(path.rpartition(".")[2]): path for path in reversed([*fields])}
    words = {"cursor": f"`{kinds[way]}`", "offset": f"a higher `{kinds[way]}`", "page": f"the next `{kinds[way]}`"}
    text = f"For the next page send {words[way]}"
    if source := _first(_NEXT[way], named):
        text += f", which is `{source}` of the answer"
    elif has_link:
        text += ", which the Link header of the answer names"
    if more := _first(_MORE, named):
        text += f"; `{more}` of the answer says whether there is one"
    return text + (f"; `{kinds['size']}` is the size of a page." if "size" in kinds else ".")


def _first(names: frozenset[str], fields: Mapping[str, str]) -> str | None:
    return next((fields[each] for each in sorted(names & fields.keys())), None)


def _kind(name: str, schema: Any) -> str:
    """Of which kind a parameter is, an empty text for one that is about no pages."""
    plain, types = _plain(name), _types(schema)
    if "integer" in types or "number" in types:
        known = (("offset", _OFFSETS), ("page", _PAGES), ("size", _SIZES))
        return next((kind for kind, names in known if plain in names), "")
    if "string" in types:
        return "cursor" if plain in _CURSORS else "maybe" if plain in _MAY_BE_CURSORS else ""
    return ""


def _types(schema: Any) -> frozenset[str]:
    """The types that a schema names, in its alternatives too."""
    if not isinstance(schema, Mapping):
        return frozenset()
    own = schema.get("type", ())
    inner = [each for key in ("allOf", "anyOf") for each in schema.get(key, ())]
    return frozenset((own,) if isinstance(own, str) else own).union(*map(_types, inner))


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def answer_fields(document: Document, responses: Any) -> Iterator[str]:
    """The members of the first successful answer, and those of what stands around its items, as paths."""
    success = [each for each in responses if str(each).startswith("2")] if isinstance(responses, Mapping) else []
    with suppress(DocumentError):
        content = document.follow(responses[success[0]]).get("content") if success else None
        if isinstance(content, Mapping) and content:
            media = content[min(content, key=lambda each: "json" not in each)]
            yield from _members(document, media.get("schema") if isinstance(media, Mapping) else None)


def _members(document: Document, schema: Any) -> Iterator[str]:
    waiting = [(schema, "")]
    for _ in range(_MOST_PARTS):  # which may refer to each other
        if not waiting:
            return
        part, path = waiting.pop(0)
        with suppress(DocumentError):
            described = document.follow(part)
            properties, branches = described.get("properties"), described.get("allOf")
            waiting += [(each, path) for each in branches] if isinstance(branches, list) else []
            for name, each in properties.items() if isinstance(properties, Mapping) else ():
                yield f"{path}{name}"
                waiting += [(each, f"{name}.")] if not path and _plain(name) in _NESTED else []
