"""Discovery finds what is installed, whatever lies beside it, and imports nothing."""

import gc
import importlib.metadata
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest

from pegboard._base.names import normalise, pack_name
from pegboard._plugins.discovery import Discovery, FoundPlugin, discover
from pegboard_testing import fake_distribution
from tests.support.measuring import least
from tests.support.plugin_site import Site
from tests.support.thinning import first


def names(discovery: Discovery) -> list[str]:
    return [found.name for found in discovery.found]


def test_nothing_installed(site: Site) -> None:
    assert discover() == Discovery()


def test_facts_of_an_entry_point(site: Site) -> None:
    site.add("dice", distribution="Acme.Dice", version="1.2", requires=["pegboard>=0.1", "attrs"])
    expected = FoundPlugin("dice", "site_dice", "Acme.Dice", "1.2", ("pegboard>=0.1", "attrs"))
    assert discover() == Discovery((expected,))


def test_imports_nothing(site: Site) -> None:
    site.add("dice", "raise SystemExit")
    assert names(discover()) == ["dice"]
    assert "site_dice" not in sys.modules


def test_sorted_by_name_then_distribution(site: Site) -> None:
    site.add("b", distribution="acme-1")
    site.add("a", distribution="acme-3")
    site.add("a", distribution="acme-2")
    assert [(found.name, found.distribution) for found in discover().found] == [
        ("a", "acme-2"),
        ("a", "acme-3"),
        ("b", "acme-1"),
    ]


def test_several_entry_points_of_one_distribution(site: Site) -> None:
    site.add("x", entry_points={"two": "m2", "one": "m1:attr [extra]", "x": {"console": "m:main"}})
    assert [(found.name, found.entry_point) for found in discover().found] == [
        ("one", "m1:attr [extra]"),
        ("two", "m2"),
    ]


def test_files_that_did_not_change_are_not_read_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("dice")
    before = discover()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("read again"))
    assert discover() == before
    assert names(before) == ["dice"]


@pytest.mark.parametrize(("file", "old", "new"), [("METADATA", "1.2", "1.30"), ("entry_points.txt", "dice", "cards")])
def test_files_that_changed_are_read_again(site: Site, file: str, old: str, new: str) -> None:
    site.add("dice", version="1.2")
    before = discover()
    (path,) = site.path.glob(f"*.dist-info/{file}")
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    (found,) = discover().found
    assert new in (found.name, found.version)
    assert discover() != before


class TestThirdParties:
    """Broken third-party distributions must not matter."""

    @pytest.fixture(autouse=True)
    def good(self, site: Site) -> None:
        site.add("good")

    def test_malformed_entry_points_of_another_group(self, site: Site) -> None:
        fake_distribution(site.path, "unrelated", entry_points="[console_scripts]\nno equals sign\n[unclosed\n= =\n")
        assert names(discover()) == ["good"]

    def test_a_word_that_is_no_group(self, site: Site) -> None:
        fake_distribution(site.path, "unrelated", entry_points={"console_scripts": {"pegboard": "cli:main"}})
        assert names(discover()) == ["good"]

    def test_entry_points_that_are_no_text(self, site: Site) -> None:
        info = fake_distribution(site.path, "unrelated", entry_points="x")
        (info / "entry_points.txt").write_bytes(b"\xff\xfe\x00[pegboard]")
        discovery = discover()
        assert names(discovery) == ["good"]
        (sentence,) = discovery.unreadable
        assert "unrelated-1.0.dist-info" in sentence
        assert "entry points cannot be read" in sentence

    def test_entry_points_that_are_a_directory(self, site: Site) -> None:
        info = fake_distribution(site.path, "unrelated")
        (info / "entry_points.txt").mkdir()
        assert names(discover()) == ["good"]

    def test_an_import_hook_that_cannot_list(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        class Broken(MetaPathFinder):
            def find_spec(self, *_: Any) -> None:
                return None

            def find_distributions(self, *_: Any) -> Any:
                raise RuntimeError("no listing today")

        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Broken()])
        discovery = discover()
        assert names(discovery) == ["good"]
        assert discovery.unreadable == (
            "the import hook Broken stopped listing its distributions early: no listing today",
        )

    def test_stale_empty_directory_hides_nothing(self, site: Site) -> None:
        (site.path / "acme_good-0.9.dist-info").mkdir()
        (found,) = discover().found
        assert (found.version, found.hidden) == ("1.0", "")


class TestOurOwnBroken:
    def test_line_without_value(self, site: Site) -> None:
        site.add("x", entry_points="[pegboard]\n# comment\nbroken\ngood = site_x\n")
        found = {entry.name: entry.problem for entry in discover().found}
        assert found["good"] == ""
        assert 'has the line "broken"' in found["broken"]
        assert "reinstall acme-x" in found["broken"]

    @pytest.mark.parametrize("value", ["not a module", "a-b", "module:", "a:b:c"])
    def test_value_that_is_no_reference(self, site: Site, value: str) -> None:
        site.add("x", entry_points={"x": value})
        assert f'"x = {value}"' in discover().found[0].problem

    def test_name_without_letters(self, site: Site) -> None:
        site.add("x", entry_points={"!!": "module"})
        assert "no letter" in discover().found[0].problem

    @pytest.mark.parametrize("metadata", [b"", b"garbage\n", b"\xff\xfe", b"Name\n\nName: late\n"])
    def test_malformed_metadata(self, site: Site, metadata: bytes) -> None:
        info = site.add("x")
        (info / "METADATA").write_bytes(metadata)
        site.add("good")
        broken = {found.name: found for found in discover().found}
        assert broken["good"].problem == ""
        assert broken["x"].distribution is None
        assert "acme_x-1.0.dist-info" in broken["x"].problem


class TestDuplicates:
    @pytest.fixture
    def later(self, site: Site, tmp_path: Path) -> Site:
        sys.path.append(str(tmp_path / "later"))
        return Site(tmp_path / "later")

    def test_first_on_the_path_counts(self, site: Site, later: Site) -> None:
        site.add("dice", version="1.0")
        later.add("dice", version="2.0")
        first, second = sorted(discover().found, key=lambda found: found.version or "")
        assert first.hidden == ""
        assert "comes first on the path" in second.hidden
        assert str(site.path) in second.hidden

    def test_first_counts_even_without_entry_points(self, site: Site, later: Site) -> None:
        fake_distribution(site.path, "acme-dice", "0.1")
        later.add("dice")
        (found,) = discover().found
        assert "comes first on the path" in found.hidden

    def test_same_directory_under_other_names(
        self, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        site.add("dice")
        (tmp_path / "link").symlink_to(site.path)
        monkeypatch.chdir(site.path)
        sys.path.extend(["", ".", f"{site.path}/", str(tmp_path / "link")])
        assert [found.hidden for found in discover().found] == [""]

    def test_newest_of_one_directory_counts(self, site: Site) -> None:
        for version in ("0.9", "0.10", "0.10rc1", "0.2"):
            site.add("dice", version=version)
        assert [found.version for found in discover().found if not found.hidden] == ["0.10"]

    def test_same_directory_twice_on_the_path(self, site: Site) -> None:
        site.add("dice")
        sys.path.append(str(site.path))
        assert [found.hidden for found in discover().found] == [""]


class TestElsewhere:
    """What lies in no plain folder counts like the rest."""

    @pytest.fixture(autouse=True)
    def closed(self) -> Iterator[None]:
        """The library keeps archives open, and leaves it to the order of the garbage whether they are closed."""
        yield
        for found in gc.get_objects():
            # By its type: objects of other tests answer `isinstance` as they like.
            if issubclass(type(found), zipfile.ZipFile):
                found.close()

    def test_archive(self, site: Site, tmp_path: Path) -> None:
        other = tmp_path / "other"
        fake_distribution(other, "acme-zipped", "3", entry_points={"zipped": "m"}, requires=["pegboard>=7"])
        archive = shutil.make_archive(str(tmp_path / "packs"), "zip", other)
        sys.path.append(archive)
        assert discover().found == (FoundPlugin("zipped", "m", "acme-zipped", "3", ("pegboard>=7",)),)

    def test_egg(self, site: Site, tmp_path: Path) -> None:
        info = tmp_path / "acme_egg-1.0-py3.11.egg" / "EGG-INFO"
        info.mkdir(parents=True)
        (info / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: acme-egg\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text("[pegboard]\negg = m\n", encoding="utf-8")
        sys.path.append(str(info.parent))
        assert discover().found == (FoundPlugin("egg", "m", "acme-egg", "1.0"),)

    def test_another_finder(self, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        info = fake_distribution(tmp_path / "hidden", "acme-found", entry_points={"found": "m"})

        class Finder(MetaPathFinder):
            def find_spec(self, *_: Any) -> None:
                return None

            def find_distributions(self, context: Any) -> Any:
                assert context.name is None
                yield importlib.metadata.PathDistribution(info)

        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
        site.add("good")
        assert names(discover()) == ["found", "good"]

    def test_a_copy_in_an_archive_is_hidden_like_any_other(self, site: Site, tmp_path: Path) -> None:
        site.add("dice", version="1.0")
        fake_distribution(tmp_path / "other", "acme-dice", "2.0", entry_points={"dice": "m"})
        sys.path.append(shutil.make_archive(str(tmp_path / "packs"), "zip", tmp_path / "other"))
        hidden = {found.version: found.hidden for found in discover().found}
        assert hidden["1.0"] == ""
        assert str(site.path) in hidden["2.0"]

    @pytest.mark.parametrize("entry", first(2, ["no such folder", "file.txt", "\0", b"bytes", None, 7]))
    def test_entries_that_lead_nowhere(self, site: Site, entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        (site.path / "file.txt").parent.mkdir(parents=True)
        (site.path / "file.txt").touch()
        site.add("good")
        monkeypatch.chdir(site.path)
        sys.path.append(entry)
        assert discover() == Discovery((FoundPlugin("good", "site_good", "acme-good", "1.0"),))

    def test_large_entry_points(self, site: Site) -> None:
        lines = "".join(f"tool{number} = module:function\n" for number in range(20_000))
        site.add("late", entry_points=f"[console_scripts]\n{lines}[pegboard]\nlate = m\n")
        assert names(discover()) == ["late"]


def test_egg_info_requirements(site: Site) -> None:
    info = site.path / "acme_old.egg-info"
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: acme-old\nVersion: 3\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[pegboard]\nold = acme_old\n", encoding="utf-8")
    (info / "requires.txt").write_text("pegboard>=7\n", encoding="utf-8")
    assert discover().found == (FoundPlugin("old", "acme_old", "acme-old", "3", ("pegboard>=7",)),)


def test_core_version(site: Site) -> None:
    assert discover().core is None
    fake_distribution(site.path, "pegboard", "0.4")
    assert discover().core == "0.4"


@pytest.mark.parametrize(
    ("name", "installer", "pack"),
    [("files", "files", "files"), ("My.Pack__x", "my-pack-x", "my_pack_x"), ("-Ünder-", "-ünder-", "nder")],
)
def test_names(name: str, installer: str, pack: str) -> None:
    assert normalise(name) == installer
    assert pack_name(name) == pack


def test_scan_stays_cheap(site: Site) -> None:
    for number in range(300):
        entry_points = {"console_scripts": {"x": "y:z"}} if number % 3 else ""
        fake_distribution(site.path, f"unrelated-{number}", entry_points=entry_points)
    site.add("dice")
    discover()
    # Reading the same files by hand is the floor; a scan that parses metadata or calls stat again is far above it.
    assert least(lambda: _timed(discover) / _timed(lambda: _read_all(site.path)), enough=6, tries=20) < 6


def _timed(action: Any) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _read_all(path: Path) -> None:
    for name in os.listdir(path):  # noqa: PTH208 - the floor is the plainest way
        if name.endswith(".dist-info") and os.path.exists(file := f"{path}/{name}/entry_points.txt"):  # noqa: PTH110
            with open(file, encoding="utf-8") as opened:  # noqa: PTH123
                opened.read()
