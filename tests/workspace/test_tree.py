"""What lies in the tree, and what must never be written into it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workspace.project import ROOT, tracked

TOP = {"CHANGELOG.md", "LICENSE", "README.md", "core", "docs", "noxfile.py", "plugins", "pyproject.toml", "tests"}

# Joined from pieces, or this file would be the first to be found.
HOSTS = "|".join(
    re.escape(".".join(parts))
    for parts in [("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("debian", "org")]
)
FOLDERS = "|".join(["wo" + "rk", "fa" + "rm", "ro" + "ot", "ho" + "me", "Us" + "ers"])
FORBIDDEN = {
    "a registry's address": re.compile(rf"\b(?:{HOSTS})\b"),
    "a path on one machine": re.compile(rf"(?<![\w.\-*}}\])])/(?:{FOLDERS})/\w"),
}


def texts() -> Iterator[tuple[Path, str]]:
    """Yield tracked text files; what is no UTF-8 is no text."""
    for path in tracked():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_top_level_holds_only_what_is_agreed() -> None:
    top = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert sorted(name for name in top - TOP if not name.startswith(".")) == []


def test_no_lock_file_is_tracked() -> None:
    assert ROOT / "uv.lock" not in tracked(), "uv.lock names the index that resolved it"


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_names(what: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for path, text in texts()
        for match in FORBIDDEN[what].finditer(text)
    ]
    assert found == [], f"{what} does not belong in the repository"


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a registry's address", "https://files." + "pythonhosted" + ".org/packages"),
        ("a path on one machine", "see /" + "home/ada/pegboard"),
    ],
)
def test_guards_find_what_they_look_for(what: str, text: str) -> None:
    assert FORBIDDEN[what].search(text)


def test_every_test_folder_is_a_package() -> None:
    """Pytest and mypy tell equal file names apart only in packages."""
    folders = {path.parent for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")}
    assert sorted(str(f.relative_to(ROOT)) for f in folders if not (f / "__init__.py").is_file()) == []
