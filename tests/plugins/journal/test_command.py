"""`pegboard journal`."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pegboard import Toolkit
from pegboard.inspection import plugins_of
from pegboard_journal import Journal
from pegboard_journal._command import run
from pegboard_journal._journal import ToolFigures
from pegboard_journal._page import page
from tests.plugins.journal.desk import journaled, laborer, url_of


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A journal of four calls."""
    with journaled(tmp_path) as toolkit:
        toolkit.session(id="s1", subject="ann").call_sync("weather", {"city": "Bern"}, call_id="c1")
        toolkit.call_sync("weather", {"town": "Bern"}, call_id="c2")
        toolkit.call_sync("pay", {"amount": 3}, call_id="c3")
        toolkit.call_sync("flaky", {}, call_id="c4")
    return url_of(tmp_path)


@pytest.fixture
def printed(url: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command, and gives what it prints; data with `--json`."""

    def work(*arguments: str, code: int = 0) -> Any:
        assert run(url, list(arguments)) == code
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in arguments else out

    return work


def test_list(printed: Callable[..., Any]) -> None:
    lines = printed("list").splitlines()
    assert lines[0].split() == ["STARTED", "TOOL", "STATUS", "SECONDS", "CALL"]
    assert [line.split()[-1] for line in lines[1:]] == ["c1", "c2", "c3", "c4"]
    assert [each["call_id"] for each in printed("list", "--json")] == ["c1", "c2", "c3", "c4"]
    assert [each["call_id"] for each in printed("list", "--json", "--limit", "2")] == ["c3", "c4"]
    assert [each["call_id"] for each in printed("list", "--json", "--tool", "weather", "--status", "invalid")] == ["c2"]
    assert [each["call_id"] for each in printed("list", "--json", "--session", "s1", "--subject", "ann")] == ["c1"]
    assert len(printed("list", "--json", "--since", "1h")) == 4
    assert printed("list", "--json", "--since", "2999-01-01") == []


def test_unfinished(printed: Callable[..., Any], url: str) -> None:
    hanging = laborer("hang", url, {}, "c9")
    assert hanging.stdout is not None
    hanging.stdout.readline()
    assert printed("list", "--unfinished", "--json") == []
    hanging.kill()
    hanging.communicate()
    assert [each["call_id"] for each in printed("list", "--unfinished", "--json")] == ["c9"]


def test_show(printed: Callable[..., Any], url: str, capsys: pytest.CaptureFixture[str]) -> None:
    (entry,) = printed("show", "c1", "--json")
    assert (entry["session"], entry["status"]) == ("s1", "success")
    assert printed("show", entry["id"], "--json") == [entry]
    assert "subject: ann\n" in printed("show", "c1")
    assert run(url, ["show", "c77"]) == 2
    assert "no call 'c77'; `pegboard journal list` shows their ids" in capsys.readouterr().err


def test_export(printed: Callable[..., Any]) -> None:
    lines = [json.loads(line) for line in printed("export").splitlines()]
    assert lines == printed("export", "--json")
    assert [line["tool"] for line in lines] == ["weather", "weather", "pay", "flaky"]
    assert len(printed("export", "--tool", "pay", "--json")) == 1


def test_stats(printed: Callable[..., Any]) -> None:
    assert [line.split()[:3] for line in printed("stats").splitlines()[1:]] == [
        ["flaky", "1", "1"],
        ["pay", "1", "0"],
        ["weather", "2", "1"],
    ]
    assert [each["statuses"] for each in printed("stats", "--json")] == [
        {"error": 1},
        {"success": 1},
        {"invalid": 1, "success": 1},
    ]


def test_verify(printed: Callable[..., Any], url: str, tmp_path: Path) -> None:
    with Journal(url) as journal:
        head = journal.head
    assert printed("verify") == printed("verify", "--head", head) == f"the journal is whole; its head is {head}\n"
    assert printed("verify", "--json") == {"flaws": [], "head": head}
    assert printed("verify", "--head", "0" * 64, code=1).startswith("head: the head is not in the journal")
    with closing(sqlite3.connect(tmp_path / "calls.db")) as connection, connection:
        connection.execute("UPDATE pegboard_journal SET status = 'success' WHERE seq = 2")
    assert printed("verify", code=1) == "changed: row 2 was changed or inserted: the success call c2 of weather\n"
    assert [each["seq"] for each in printed("verify", "--json", code=1)["flaws"]] == [2]


def test_prune(printed: Callable[..., Any]) -> None:
    assert printed("prune", "--older-than", "1d", "--json") == {"removed": 0}
    assert printed("prune", "--older-than", "0h") == "5 rows were removed\n"
    assert printed("list", "--json") == []
    assert printed("verify", code=0)


@pytest.mark.parametrize(
    ("url", "arguments", "message"),
    [
        (None, ["list"], "no journal is named: write --url sqlite:///calls.db"),
        ("nowhere", ["list"], "write sqlite:///calls.db"),
        ("sqlite:////no/such/folder/calls.db", ["stats"], "journal /no/such/folder/calls.db: the file cannot be made"),
        ("sqlite:///:memory:", ["list", "--since", "yesterday"], "yesterday"),
    ],
)
def test_what_cannot_be_read(
    url: str | None,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(url, arguments) == 2
    assert message in capsys.readouterr().err


def test_url_beats_the_settings(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sqlite:////nowhere/calls.db", ["list", "--url", url, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_it_is_a_command_of_the_pack(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Toolkit(plugins=["journal"], settings={"journal": {"url": url}}) as toolkit:
        (command,) = (each.value for each in plugins_of(toolkit).contributions("provide_commands") if each.pack)
        assert command.name == "journal"
        assert command.run(["list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


class TestPage:
    def test_it_stands_alone(self, printed: Callable[..., Any], tmp_path: Path) -> None:
        printed("stats", "--html", str(tmp_path / "page.html"))
        text = (tmp_path / "page.html").read_text("utf-8")
        assert "4 calls of 3 tools; 2 of them ended as errors." in text
        assert not re.findall(r"""(?:src|href)=|url\(|@import|<script|https?:""", text)
        pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
        assert len(pictures) == 2
        for each in pictures:
            root = ET.fromstring(each)
            assert root.get("role") == "img"
            widths = [float(bar.get("width", "nan")) for bar in root.iter("rect")]
            assert max(widths) <= 480
            assert min(widths) >= 0

    def test_bars_are_as_long_as_their_numbers(self) -> None:
        figures = [ToolFigures("a", 10, 5, {}, 0.1, 0.4, 0.5), ToolFigures("b", 5, 0, {}, 0.0, 0.0, 0.0)]
        calls = ET.fromstring(re.findall(r"<svg.*?</svg>", page(figures), re.DOTALL)[0])
        assert [bar.get("width") for bar in calls.iter("rect")] == ["240.0", "240.0", "240.0", "0.0"]

    def test_names_are_text(self) -> None:
        text = page([ToolFigures("<script>alert(1)</script>&", 1, 0, {}, 0.1, 0.1, 0.1)])
        assert "<script" not in text
        assert page([]).count("<svg") == 2
