"""Writes what language models read into the built site: `llms.txt`, `llms-full.txt` and the pages as Markdown.

`nox -s docs` runs it after the site is built. The format of `llms.txt` is that of https://llmstxt.org: a title, a
summary, and for each group of the navigation a list of links with one sentence each.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parents[2] / "docs"
# Made from the source when the site is built: their Markdown holds names alone.
GENERATED = "reference/"
LONGEST = 200  # characters of a summary, where its first sentence is not longer


class _Settings(yaml.SafeLoader):
    """Reads `docs/mkdocs.yml`. What comes from the environment has the default that stands there."""


def _default(loader: yaml.SafeLoader, node: yaml.nodes.SequenceNode) -> Any:
    return loader.construct_sequence(node)[-1]


_Settings.add_constructor("!ENV", _default)


def settings(docs: Path) -> Any:
    """Settings of the site."""
    return yaml.load((docs / "mkdocs.yml").read_text(encoding="utf-8"), _Settings)


def navigation(docs: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Groups of the navigation, each with its titles and pages."""
    for group in settings(docs)["nav"]:
        for name, pages in group.items():
            yield name, [(title, path) for page in pages for title, path in page.items()]


def summary(page: str) -> str:
    """First sentences of a page's first paragraph, as plain text."""
    paragraphs = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL).split("\n\n")
    first = next((each for each in paragraphs if re.match(r"[\w`*\[]", each.strip())), "")
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", " ".join(first.split()))
    sentences = re.split(r"(?<=[.!?])\s", text)
    kept = [sentence for number, sentence in enumerate(sentences) if len(" ".join(sentences[: number + 1])) <= LONGEST]
    return " ".join(kept or sentences[:1]).rstrip(":")


def llms(docs: Path = DOCS) -> str:
    """Contents of `llms.txt`."""
    site = settings(docs)
    lines = [f"# {site['site_name']}", "", f"> {site['site_description']}", ""]
    lines += ["All pages in one file: [llms-full.txt](llms-full.txt)", ""]
    for group, pages in navigation(docs):
        lines += [f"## {group}", ""]
        for title, path in pages:
            target = path.removesuffix(".md") + "/" if path.startswith(GENERATED) else path
            says = summary((docs / path).read_text(encoding="utf-8"))
            lines.append(f"- [{title}]({target})" + (f": {says}" if says else ""))
        lines.append("")
    return "\n".join(lines)


def llms_full(docs: Path = DOCS) -> str:
    """Contents of `llms-full.txt`: every written page, in the order of the navigation."""
    pages = [
        f"<!-- {path} -->\n\n" + (docs / path).read_text(encoding="utf-8").strip()
        for _, group in navigation(docs)
        for _, path in group
        if not path.startswith(GENERATED)
    ]
    return "\n\n".join(pages) + "\n"


def write(site: Path, docs: Path = DOCS) -> None:
    """Put both files into a built site, and each written page beside its HTML."""
    (site / "llms.txt").write_text(llms(docs), encoding="utf-8")
    (site / "llms-full.txt").write_text(llms_full(docs), encoding="utf-8")
    for _, pages in navigation(docs):
        for _, path in pages:
            if not path.startswith(GENERATED):
                (site / path).parent.mkdir(parents=True, exist_ok=True)
                (site / path).write_bytes((docs / path).read_bytes())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
