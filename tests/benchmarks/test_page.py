"""The page: written between its markers, complete, and otherwise left alone."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.benchmarks import figures, page
from tests.benchmarks.__main__ import main
from tests.benchmarks.imports import Imported
from tests.benchmarks.measuring import Figure, Pace
from tests.benchmarks.packs import Pack
from tests.benchmarks.peers.environments import PEERS
from tests.benchmarks.peers.harness import Answer, Row
from tests.workspace.project import CORE, PACKS, Member, each_pack

PAGE = "# Title\n\n<!-- begin: figures -->\n<!-- end: figures -->\n\nBy hand.\n"
FIGURE = Figure("B1", "call", 1.25, 1.2, 1.3, 2.0, 1.5)


def section(name: str, path: Path = page.PAGE) -> str:
    found = re.search(f"<!-- begin: {name} -->(.*?)<!-- end: {name} -->", path.read_text("utf-8"), re.DOTALL)
    assert found
    return found[1]


class TestSections:
    def test_one_is_replaced_and_the_rest_stays(self) -> None:
        once = page.replaced(PAGE, "figures", r"a \1 | table")
        again = page.replaced(once, "figures", "another")
        assert once == PAGE.replace("-->\n<!-- end", "-->\n\na \\1 | table\n\n<!-- end")
        assert again == once.replace(r"a \1 | table", "another")

    def test_that_the_page_lacks(self) -> None:
        with pytest.raises(ValueError, match="lacks the lines '<!-- begin: peers -->' and"):
            page.replaced(PAGE, "peers", "table")

    def test_figures(self) -> None:
        text = page.figures_section([FIGURE], quick=False)
        assert text.splitlines()[-1] == "| B1 | call | 1.25 x | 1.20 - 1.30 | 2 x | 1.5 x | aim |"
        assert re.match(r"Measured on \d{4}-\d\d-\d\d with Pegboard \d\S+, \w+ 3\.\S+, .* cores\.\n", text)

    def test_few_rounds_are_told(self) -> None:
        assert "few rounds (`--quick`)" in page.imports_section(
            [Imported("pegboard", "pegboard", 0.1, 0.2)], quick=True
        )

    def test_peers_with_what_is_missing(self) -> None:
        rows = [Row("B1", "narrow", 5.0, 4.5, 5.5), Row("B2", "narrow", reason="it is not async")]
        text = page.peers_section(
            [Answer("acme", "1.2", {"narrow": "run"}, {"narrow": False}, 2e-6, rows)], quick=False
        )
        assert "F1 took 2.0 to 2.0 us" in text
        assert "| acme 1.2 | narrow | run | 5.00 (4.50-5.50) | - | - | - | VALIDATES NOTHING |" in text
        assert text.endswith("- acme: it is not async (B2 narrow)")

    def test_packs_after_the_core(self) -> None:
        core = Pack("pegboard", ("attrs>=25.4",), 5.04, 0.3, 60.0)
        lines = page.packs_section([core, Pack("acme", ("a>=1,<2", "b>=3"), 0.26, 41.5, 1.5)], quick=False).splitlines()
        assert "`pegboard` itself has 5.0 MB with its dependencies; it takes 0.3 ms to import and 60.0 ms" in lines[0]
        assert lines[-1] == "| `acme` | `a>=1,<2`, `b>=3` | 0.26 | 41.5 | 1.5 |"

    def test_write_puts_them_into_the_page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def measure(names: Sequence[str], pace: Pace) -> Iterator[Figure]:
            yield FIGURE

        monkeypatch.setattr(figures, "measure", measure)
        monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
        page.PAGE.write_text(PAGE, encoding="utf-8")
        assert main(["--write", "--quick"]) == 0
        assert "| B1 | call |" in page.PAGE.read_text("utf-8")
        assert page.PAGE.read_text("utf-8").endswith("By hand.\n")


class TestPublished:
    def test_every_benchmark_is_there(self) -> None:
        assert set(re.findall(r"^\| (B\d+N?) \|", section("figures"), re.MULTILINE)) == set(figures.NAMES)

    def test_every_peer_is_there(self) -> None:
        assert set(re.findall(r"^\| ([\w-]+)[^|]* \| (?:narrow|agent| )", section("peers"), re.MULTILINE)) == {
            "pegboard",
            *PEERS,
        }

    def test_every_origin_of_imports_is_summed(self) -> None:
        sums = re.findall(r"^\| (.*) together \|", section("imports"), re.MULTILINE)
        assert sums == ["pegboard", "libraries", "standard library"]


class TestPacks:
    """The table of `docs/packs.md`."""

    def rows(self) -> dict[str, list[str]]:
        lines = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", section("packs", page.PACKS), re.MULTILINE)
        return {name: cells.split(" | ") for name, cells in lines}

    def test_every_pack_is_there_once(self) -> None:
        names = re.findall(r"^\| `([\w-]+)` \|", section("packs", page.PACKS), re.MULTILINE)
        assert names == [pack.name for pack in PACKS]

    def test_what_every_pack_brings_is_there_once(self) -> None:
        overview = page.PACKS.read_text(encoding="utf-8").partition("## What is loaded")[0]
        assert re.findall(r"^\| `([\w-]+)` \|", overview, re.MULTILINE) == [pack.name for pack in PACKS]

    @each_pack
    def test_dependencies_are_those_that_it_declares(self, pack: Member) -> None:
        written = re.findall("`([^`]+)`", self.rows()[pack.name][0])
        declared = [text for text in pack.project["dependencies"] if Requirement(text).name != CORE.name]
        assert written == declared

    @each_pack
    def test_size_and_times_are_numbers(self, pack: Member) -> None:
        megabytes, imported, after_toolkit = map(float, self.rows()[pack.name][1:])
        assert megabytes > 0
        assert imported >= after_toolkit > 0
