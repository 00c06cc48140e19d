"""A journal that cannot be written: what has an effect is refused, the rest runs, and `problems` says so."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit
from pegboard_journal import Journal, JournalError
from pegboard_journal import _sqlite as sqlite
from tests.plugins.journal.desk import Tools, entries, journaled

REFUSED = "Error: {} was not run: what it does could not be recorded"


def calls(toolkit: Toolkit) -> dict[str, str]:
    """A call of each kind of tool, from plain code and awaited: the texts by tool."""

    async def awaited() -> list[Any]:
        return [await toolkit.call("send", {"text": "x"}), await toolkit.call("slow", {"city": "Bern"})]

    plain = [toolkit.call_sync("pay", {"amount": 1}), toolkit.call_sync("weather", {"city": "Bern"})]
    plain.append(toolkit.call_sync("put", {"value": 1}))
    return {result.name: result.text for result in (*plain, *asyncio.run(awaited()))}


class Trouble:
    """Ways in which a file cannot be written."""

    @staticmethod
    def removed_folder(folder: Path, patch: pytest.MonkeyPatch) -> None:
        shutil.rmtree(folder)

    @staticmethod
    def no_database(folder: Path, patch: pytest.MonkeyPatch) -> None:
        folder.joinpath("calls.db").write_bytes(b"this is no database" * 100)

    @staticmethod
    def another_table(folder: Path, patch: pytest.MonkeyPatch) -> None:
        with closing(sqlite3.connect(folder / "calls.db")) as connection, connection:
            connection.execute("CREATE TABLE pegboard_journal_intents (a)")

    @staticmethod
    def locked(folder: Path, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(sqlite, "PATIENCE", 0.05)
        holder = sqlite3.connect(folder / "calls.db", isolation_level=None, check_same_thread=False)
        holder.execute("PRAGMA locking_mode=EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        patch.setattr(Trouble, "holder", holder, raising=False)


@pytest.fixture(params=["removed_folder", "no_database", "another_table", "locked"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder in which no journal can be written."""
    folder = tmp_path / "journal"
    folder.mkdir()
    getattr(Trouble, request.param)(folder, monkeypatch)
    yield folder
    if request.param == "locked":
        Trouble.holder.close()  # type: ignore[attr-defined]


def test_what_has_an_effect_is_refused(folder: Path) -> None:
    tools = Tools()
    with journaled(folder, tools) as toolkit:
        assert toolkit.problems == []
        texts = calls(toolkit)
        (problem,) = toolkit.problems
    assert (texts["pay"], texts["send"]) == (REFUSED.format("pay"), REFUSED.format("send"))
    assert (texts["put"], texts["slow"]) == ("put 1", "BERN")
    assert sorted(tools.ran) == ["put 1", "slow Bern", "weather Bern 1"]
    assert problem.startswith("7 rows are missing in the journal, for they could not be written: journal ")


def test_or_runs_where_the_settings_say_so(folder: Path) -> None:
    tools = Tools()
    with journaled(folder, tools, on_failure="run") as toolkit:
        calls(toolkit)
        assert len(tools.ran) == 5
        assert len(toolkit.problems) == 1


def test_but_never_twice(folder: Path) -> None:
    tools = Tools()
    with journaled(
        folder, tools, on_failure="run", once=["pay"], options={"approver": lambda request: True}
    ) as toolkit:
        result = toolkit.call_sync("pay", {"amount": 1}, call_id="k1")
        assert result.is_error
        assert str(folder) not in result.text
        assert tools.ran == []


def test_reading_raises(folder: Path) -> None:
    with journaled(folder) as toolkit, pytest.raises(JournalError, match="journal /"):
        entries(toolkit)


def test_it_goes_on_when_the_trouble_is_over(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    with journaled(folder) as toolkit:
        assert toolkit.call_sync("pay", {"amount": 1}).is_error
        folder.mkdir()
        assert not toolkit.call_sync("pay", {"amount": 1}).is_error
        assert len(entries(toolkit)) == 1
        assert Journal.of(toolkit).verify() == []
        assert len(toolkit.problems) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a file's size is Linux's")
def test_a_full_disk(tmp_path: Path) -> None:
    """In a process of its own, whose files may grow to 96 kB."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            import resource
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (96 * 1024, 96 * 1024))
            tools = Tools()
            with journaled(tmp_path, tools) as toolkit:
                results = [toolkit.call_sync("pay", {"amount": each}) for each in range(120)]
                refused = [result.text for result in results if result.is_error]
                right = set(refused) == {REFUSED.format("pay")} and len(tools.ran) == 120 - len(refused)
                status = 0 if right and toolkit.problems else 4
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with journaled(tmp_path) as toolkit:
        found = entries(toolkit)
        assert len(found) > 30
        assert Journal.of(toolkit).verify() == []
        assert not toolkit.call_sync("pay", {"amount": 1}).is_error
