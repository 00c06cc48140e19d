"""How long the pages are and how hard to read: `python -m tests.docs.words`.

Counted are the README and the pages of users: all but those of maintainers (docs/internals, and CONTRIBUTING, which is
where forges look for it), the reference, which is made from docstrings and from the tests' table of types, and the
READMEs of examples. Code blocks are not words, cells of tables are.
The grade is that of Flesch and Kincaid (1975): years of school that a reader needs.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
USERS = [
    ROOT / "README.md",
    *(
        page
        for folder in ("", "packs", "cookbook")
        for page in sorted(DOCS.glob(f"{folder}/*.md" if folder else "*.md"))
        if page.name != "CONTRIBUTING.md"
    ),
]
FIRST = [ROOT / "README.md", *(DOCS / f"{name}.md" for name in ("index", "why", "installation", "quickstart"))]


def prose(page: Path) -> str:
    """What a page says, without its code blocks and pictures; a link is its text."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]*>", "", text))


def words(page: Path) -> int:
    return len(re.findall(r"[^\s|]*\w[^\s|]*", prose(page)))


def sentences(page: Path) -> Iterator[list[str]]:
    """The sentences of running text. Tables and headings have none; a name in code is one word of one syllable."""
    plain = re.sub(r"`[^`]+`", "it", re.sub(r"^(#|\s*\|).*$", "\n", prose(page), flags=re.MULTILINE))
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*>]|\d+\.) ", plain):
        for sentence in re.split(r"(?<=[.!?:;])\s", paragraph):
            if found := re.findall(r"[A-Za-z][A-Za-z'-]*", sentence):
                yield found


def syllables(word: str) -> int:
    """Groups of vowels, without a silent e at the end."""
    return max(1, len(re.findall("[aeiouy]+", re.sub(r"(?<=[^l])e[ds]?$", "", word.lower()))))


def grade(page: Path) -> float:
    read = list(sentences(page))
    count = sum(map(len, read))
    return 0.39 * count / len(read) + 11.8 * sum(syllables(word) for each in read for word in each) / count - 15.59


def main() -> None:
    for page in USERS:
        print(f"{words(page):7,d} words  grade {grade(page):4.1f}  {page.relative_to(ROOT)}")
    print(f"{sum(map(words, USERS)):7,d} words on {len(USERS)} pages")


if __name__ == "__main__":
    main()
