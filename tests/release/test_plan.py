"""What a release is made of, and what keeps one from being made."""

import subprocess
from pathlib import Path

import pytest

from tests.release.plan import Member, Section, chosen, disagreements, members, sections, unnamed, unready
from tests.workspace.project import MEMBERS, ROOT

KNOWN = {"pegboard": Member("core", "0.1.1"), "pegboard-files": Member("plugins/files", "0.2.0")}
CHANGELOG = """# Changelog

## 2027-01-02

### Fixed

- `pegboard` 0.1.1: a fault. `pegboard-files` 0.1.0 is older.
- A note.

## 2026-12-01

### Added

- `pegboard` 0.1.0: the core.
- `pegboard-files` 0.2.0: tools for files,
  and more.
"""


def test_sections_are_read_newest_first() -> None:
    assert sections(CHANGELOG) == [
        Section("2027-01-02", {"pegboard": frozenset({"0.1.1"})}, ("A note.",)),
        Section("2026-12-01", {"pegboard": frozenset({"0.1.0"}), "pegboard-files": frozenset({"0.2.0"})}),
    ]


def test_an_entry_may_be_about_several_of_one_version() -> None:
    (section,) = sections(
        "## 2027-01-02\n- `pegboard`, `pegboard-files` and `pegboard-net` 1.0: more.\n- `pegboard`: less.\n"
    )
    assert section.versions == dict.fromkeys(("pegboard", "pegboard-files", "pegboard-net"), frozenset({"1.0"}))
    assert section.unnumbered == ("`pegboard`: less.",)


def test_what_the_newest_section_names_is_released() -> None:
    written = sections(CHANGELOG)
    assert chosen(written[0], KNOWN) == ["core"]
    assert chosen(written[1], KNOWN) == ["core", "plugins/files"]
    assert list(disagreements(written, KNOWN)) == []


def test_changelog_and_versions_of_this_checkout_agree() -> None:
    known = members()
    assert {(name, member.folder) for name, member in known.items()} == {(each.name, each.folder) for each in MEMBERS}
    assert list(disagreements(sections((ROOT / "CHANGELOG.md").read_text("utf-8")), known)) == []


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("`pegboard` 0.1.1", "`pegboard` 0.1.2", "2027-01-02 names pegboard 0.1.2, and its pyproject.toml 0.1.1"),
        ("`pegboard` 0.1.1", "`pegboard-ufo` 1.0", "names pegboard-ufo, which is no distribution of this workspace"),
        ("`pegboard` 0.1.0", "`pegboard` 0.1.1", "pegboard 0.1.1 was released (2026-12-01): raise its version"),
        ("`pegboard-files` 0.2.0", "`pegboard-files` 0.1.0", "has no entry for pegboard-files 0.2.0"),
    ],
)
def test_a_disagreement_is_named(old: str, new: str, reason: str) -> None:
    assert reason in "\n".join(disagreements(sections(CHANGELOG.replace(old, new)), KNOWN))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit."""
    (tmp_path / "core" / "src").mkdir(parents=True)
    (tmp_path / "core" / "src" / "a.py").write_text("a = 1\n", "utf-8")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Change")


def test_a_clean_checkout_with_its_tag_is_ready(checkout: Path) -> None:
    newest, *_ = sections(CHANGELOG.replace("- A note.\n", ""))
    assert list(unready(newest, checkout)) == []
    git(checkout, "tag", "release-2027-01-02")
    assert list(unready(newest, checkout)) == []


def test_what_is_not_ready_is_named(checkout: Path) -> None:
    (checkout / "b.py").write_text("", "utf-8")
    git(checkout, "tag", "release-2027-01-02")
    told = list(unready(Section("Unreleased", {}, ("Files: faster.",)), checkout))
    assert told[0].startswith("CHANGELOG.md: the newest section is called 'Unreleased'")
    assert told[1].endswith("a distribution and its version: 1, first 'Files: faster.'")
    assert [line.partition(":")[0] for line in told[2:]] == [
        "there are changes that are not committed",
        "the commit has the tag release-2027-01-02, and the newest section of CHANGELOG.md is called Unreleased",
    ]


def test_a_change_since_the_last_release_needs_an_entry(checkout: Path) -> None:
    git(checkout, "tag", "release-2026-12-01")
    written = [Section("2027-01-02", {}), *sections(CHANGELOG)[1:]]
    assert list(unnamed(written, KNOWN, checkout)) == []
    (checkout / "core" / "src" / "a.py").write_text("a = 2\n", "utf-8")
    commit(checkout)
    (told,) = unnamed(written, KNOWN, checkout)
    assert told.startswith("pegboard has changed since release-2026-12-01")
    assert list(unnamed(sections(CHANGELOG), KNOWN, checkout)) == []
