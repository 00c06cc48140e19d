"""HTML as Markdown. It runs in a process with limits: small pages can make a parser take minutes or gigabytes."""

from __future__ import annotations

import re
from typing import Any, Final

from pegboard import ToolError

__all__ = ["TooMuchError", "read"]

MOST_CHARACTERS: Final = 2_000_000
MOST_MARKS: Final = 100_000
"""`<` in a page, or `&`; of a thousand public pages the largest has 20,000."""
MOST_ATTRIBUTES: Final = 2_000
_NO_TEXT: Final = "script, style, noscript, template, iframe, svg, object, embed, [aria-hidden=true], a.headerlink"
_AROUND: Final = "nav, footer, aside, form, [role=navigation], [role=search], [role=contentinfo], [role=banner]"
_CROSS_REFERENCES: Final = "pre a[href*='#']"
"""Links that would be written into code; those without a fragment stay, for lists of files stand in `<pre>` too."""
_MAIN: Final = ("main", "[role=main]", "article")
_SHARE: Final = 0.2
"""Of the text of a page: what a main element has at least, to be taken for the page."""
_BLANK: Final = re.compile(r"\n{3,}")


class TooMuchError(ToolError):
    """A page is too large or too odd to be parsed."""


def read(given: dict[str, Any]) -> dict[str, str]:
    """The `title` and the `text` of `html`, as Markdown with the links of `url`; with `article` the article alone.

    Raises `TooMuchError`.
    """
    html = given["html"]
    _check(html)
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    found = tree.css_first("head > title") or tree.css_first("title") or tree.css_first("h1")
    title = " ".join((found.text() if found is not None else "").split())
    text = _article(html, given["url"]) if given["article"] else _page(tree, given["url"])
    return {"title": title[:500], "text": text.strip()}


def _check(html: str) -> None:
    if len(html) > MOST_CHARACTERS:
        raise TooMuchError(f"it has {len(html):,} characters of HTML, and at most {MOST_CHARACTERS:,} are read")
    for mark in "<&":
        if (count := html.count(mark)) > MOST_MARKS:
            raise TooMuchError(f"it has {count:,} times {mark!r}, and at most {MOST_MARKS:,} are read")
    if any(tag.partition(">")[0].count("=") > MOST_ATTRIBUTES for tag in html.split("<")):
        raise TooMuchError(f"it has a tag with more than {MOST_ATTRIBUTES:,} attributes")


def _page(tree: Any, url: str) -> str:
    """The main part of the page, else all of it without what stands around it."""
    for node in tree.css(_NO_TEXT):
        node.decompose()
    for node in tree.css(_CROSS_REFERENCES):
        node.unwrap()
    body = tree.body
    if body is None:
        return ""
    whole = len(body.text())
    for selector in _MAIN:
        found = tree.css(selector)
        if len(found) == 1 and len(found[0].text()) >= _SHARE * whole:
            return _markdown(found[0].html or "", url)
    for node in body.css(_AROUND):
        if len(node.text()) < _SHARE * whole:  # a page may stand in a form
            node.decompose()
    return _markdown(body.html or "", url)


def _markdown(html: str, url: str) -> str:
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        base_url=url,
        compact_tables=True,
        extract_metadata=False,
        preprocessing=PreprocessingOptions(remove_forms=False, remove_navigation=False),  # it was decided here
    )
    return str(convert(html, options).content)


def _article(html: str, url: str) -> str:
    """The article, by trafilatura: best on news and blogs, where documentation loses code and headings."""
    from trafilatura import extract

    text = extract(
        html, url=url, output_format="markdown", include_links=True, include_tables=True, include_comments=False
    )
    return _BLANK.sub("\n\n", text or "")
