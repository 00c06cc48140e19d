"""What the core ships for the tests of packs."""

import sys
from pathlib import Path

import importlib_metadata
import pytest

from pegboard.testing import fake_distribution


def test_distribution_is_found_as_an_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    info = fake_distribution(
        tmp_path,
        "Acme.Fake-Dice",
        "1.2",
        entry_points={"dice": "acme_fake_dice:pack", "console_scripts": {"dice": "acme_fake_dice:main"}},
        requires=["pegboard>=0.1", "attrs; extra == 'x'"],
        modules={"acme_fake_dice": "from acme_fake_dice.sub.faces import pack", "acme_fake_dice.sub.faces": "pack = 6"},
    )
    assert info == tmp_path / "acme_fake_dice-1.2.dist-info"
    found = importlib_metadata.distribution("acme-fake-dice")
    assert (found.metadata["Name"], found.version) == ("Acme.Fake-Dice", "1.2")
    assert found.requires == ["pegboard>=0.1", "attrs; extra == 'x'"]
    assert {(entry.group, entry.name) for entry in found.entry_points} == {
        ("pegboard", "dice"),
        ("console_scripts", "dice"),
    }
    assert found.entry_points.select(group="pegboard")["dice"].load() == 6
    for name in ("acme_fake_dice", "acme_fake_dice.sub", "acme_fake_dice.sub.faces"):
        del sys.modules[name]


def test_record_lists_every_file_with_its_hash(tmp_path: Path) -> None:
    info = fake_distribution(tmp_path, "acme", entry_points={"a": "b"}, modules={"b": "x = 'ü'"})
    files = importlib_metadata.Distribution.at(info).files or []
    assert sorted(map(str, files)) == sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    )
    sizes = {str(file): file.size for file in files}
    assert sizes["b.py"] == len("x = 'ü'".encode())


def test_malformed_entry_points_are_written_as_they_are(tmp_path: Path) -> None:
    info = fake_distribution(tmp_path, "acme", entry_points="[pegboard]\nbroken")
    assert (info / "entry_points.txt").read_text(encoding="utf-8") == "[pegboard]\nbroken"


def test_writing_again_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    fake_distribution(tmp_path, "acme-twice", entry_points={"a": "b"})
    assert len(importlib_metadata.distribution("acme-twice").entry_points) == 1
    fake_distribution(tmp_path, "acme-twice", requires=["x"])
    again = importlib_metadata.distribution("acme-twice")
    assert (again.requires, len(again.entry_points)) == (["x"], 0)
