"""How much of documentation `web_fetch` keeps: `python -m tests.plugins.web.quality FOLDER`.

All pages of HTML below a folder are converted as `web_fetch` does in the mode "page". A code block is a `<pre>` with a
text; it is kept if a code block of the Markdown has the same lines. A heading is kept if the Markdown has one with the
same words; those of menus, in `<nav>` or with `role="navigation"`, are not counted: menus are left out.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from pegboard import ToolError
from pegboard_net import Fetched
from pegboard_web import _html, _reading

__all__ = ["Kept", "kept_below", "kept_of", "main"]

_FENCE = re.compile(r"^([ >]*)(`{3,}|~{3,})[^\n]*\n(.*?)^[ >]*\2", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^[ >]*#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"""\[([^\]]*)\]\((?:[^()"]|"[^"]*"|\([^()]*\))*\)""")
_NOT_COUNTED = "a.headerlink, nav, [role=navigation]"


class Kept(NamedTuple):
    """How many pages there are, how many `web_fetch` refuses, and what the others keep of code blocks and headings."""

    pages: int = 0
    refused: int = 0
    code: int = 0
    all_code: int = 0
    headings: int = 0
    all_headings: int = 0

    def __str__(self) -> str:
        shares = ((self.code, self.all_code, "code blocks"), (self.headings, self.all_headings, "headings"))
        kept = (f"{part} of {whole} {what} ({part / (whole or 1):.1%})" for part, whole, what in shares)
        return f"{self.pages} pages, {self.refused} refused: {', '.join(kept)}"


def kept_of(content: bytes) -> Kept:
    """What a page keeps."""
    html = _reading._decoded(Fetched(content, "https://example.com/", content_type="text/html"), is_html=True)[0]
    try:
        text = _html.read({"html": html, "url": "https://example.com/", "article": False})["text"]
    except ToolError:
        return Kept(1, refused=1)
    tree = LexborHTMLParser(html)
    for node in tree.css(_NOT_COUNTED):
        node.decompose()
    code = _texts(tree, "pre", _lines)
    headings = _texts(tree, "h1, h2, h3, h4, h5, h6", _words)
    found = Counter(_lines(_unquoted(block, mark)) for mark, _, block in _FENCE.findall(text))
    titles = Counter(_words(_plain(title)) for title in _HEADING.findall(_FENCE.sub("", text)))
    return Kept(1, 0, (code & found).total(), code.total(), (headings & titles).total(), headings.total())


def kept_below(folder: Path) -> Kept:
    """The sum of all pages below a folder."""
    pages = (kept_of(path.read_bytes()) for path in sorted(folder.rglob("*.html")))
    return _sum(pages)


def main(arguments: Sequence[str]) -> int:
    """Print what the pages below a folder keep."""
    (folder,) = arguments
    print(kept_below(Path(folder)))
    return 0


def _sum(each: Iterable[Kept]) -> Kept:
    return Kept(*map(sum, zip(Kept(), *each, strict=True)))


def _texts(tree: Any, selector: str, form: Any) -> Counter[str]:
    texts = (form(node.text()) for node in tree.css(selector))
    return Counter(text for text in texts if text)


def _lines(text: str) -> str:
    """Code without what no one sees: spaces at the ends of lines, blank lines around it, and a common indentation."""
    lines = [line.rstrip() for line in text.replace("\xa0", " ").splitlines()]
    return dedent("\n".join(lines).strip("\n")).strip("\n")


def _unquoted(block: str, mark: str) -> str:
    """Code whose lines begin with the mark of a quotation or the indentation of a list, as its fence does, without."""
    return re.sub(rf"^[ >]{{0,{len(mark)}}}", "", block, flags=re.MULTILINE)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))


def _plain(title: str) -> str:
    """A heading of Markdown without its marks: links as their texts, and no backslashes."""
    return _LINK.sub(r"\1", title).replace("\\", "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
