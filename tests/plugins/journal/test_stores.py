"""Stores: several programs write one journal, and its rows are chained."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pegboard import SettingsError, Toolkit
from pegboard_journal import Journal, JournalError
from tests.plugins.journal.desk import entries, journaled, laborer, url_of
from tests.support.postgres import PostgresServer


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty journal is."""
    if request.param == "sqlite":
        return url_of(tmp_path)
    running: PostgresServer = request.getfixturevalue("server")
    running.empty()
    return running.url()


def every(toolkit: Toolkit, number: int) -> None:
    for each in range(number):
        toolkit.call_sync(*(("pay", {"amount": each}) if each % 2 else ("weather", {"city": str(each)})))


class TestWriters:
    @pytest.mark.parametrize(("processes", "calls"), [(3, 60), pytest.param(8, 2_500, marks=pytest.mark.slow)])
    def test_processes(self, url: str, processes: int, calls: int) -> None:
        writing = laborer("together", "calls", processes, url, calls)
        writing.communicate(timeout=500)
        assert writing.returncode == 0
        with Journal(url) as journal:
            found = Counter(entry.tool for entry in journal.calls())
            assert found == {"pay": processes * calls // 10, "weather": processes * calls * 9 // 10}
            assert journal.verify(journal.head) == []
            assert journal.unfinished() == []

    def test_threads(self, url: str) -> None:
        with journaled(url) as toolkit:
            threads = [threading.Thread(target=every, args=(toolkit, 20)) for _ in range(6)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert len(entries(toolkit)) == 120
            assert Journal.of(toolkit).verify() == []
            assert toolkit.problems == []

    def test_a_toolkit_after_another(self, url: str) -> None:
        for number in range(1, 4):
            with journaled(url) as toolkit:
                every(toolkit, 4)
                assert len(entries(toolkit)) == 4 * number
                assert Journal.of(toolkit).verify() == []

    def test_two_journals_of_one_program(self, url: str) -> None:
        with journaled(url) as one, journaled(url) as other:
            for _ in range(5):
                every(one, 2)
                every(other, 2)
            assert len(entries(one)) == 20
            assert Journal.of(other).verify() == []

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    def test_after_a_fork(self, url: str) -> None:
        with journaled(url) as toolkit:
            every(toolkit, 4)
            child = os.fork()
            if child == 0:
                try:
                    every(toolkit, 6)
                    os._exit(0 if not toolkit.problems else 1)
                finally:
                    os._exit(2)
            every(toolkit, 8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            every(toolkit, 2)
            assert len(entries(toolkit)) == 20
            assert Journal.of(toolkit).verify() == []
            assert Journal.of(toolkit).unfinished() == []


class TestUnfinished:
    def test_a_call_in_a_process_that_lives_and_then_is_killed(self, url: str) -> None:
        hanging = laborer("hang", url, {}, "c1")
        assert hanging.stdout is not None
        assert "running" in hanging.stdout.readline()
        with Journal(url) as journal:
            assert [entry.status for entry in journal.calls()] == ["running"]
            assert journal.unfinished() == []
            hanging.kill()
            hanging.communicate()
            deadline = time.monotonic() + 20  # a server may take a moment to see it
            while not journal.unfinished() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert [(entry.call_id, entry.tool) for entry in journal.unfinished()] == [("c1", "charge")]
            assert journal.verify() == []

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    def test_a_child_does_not_stand_for_its_parent(self, tmp_path: Path) -> None:
        """The child of a process that was killed lives on: the call of the parent is unfinished all the same."""
        with journaled(tmp_path) as toolkit:
            read, write = os.pipe()
            parent = os.fork()
            if parent == 0:
                try:

                    @toolkit.tool
                    def split() -> None:
                        """Fork, and end the parent."""
                        if os.fork() == 0:
                            os.write(write, b"child")
                            time.sleep(3)
                        os._exit(0)

                    toolkit.call_sync("split", {}, call_id="c1")
                finally:
                    os._exit(1)
            assert os.read(read, 5) == b"child"
            os.waitpid(parent, 0)
            assert [entry.call_id for entry in Journal.of(toolkit).unfinished()] == ["c1"]
            os.close(read)
            os.close(write)


Tamper = Callable[[sqlite3.Connection, random.Random, int], int]
"""Changes something, and gives the row that has to be named."""


def changed(journal: sqlite3.Connection, chance: random.Random, rows: int) -> int:
    seq = chance.randint(1, rows)
    column = chance.choice(["tool", "status", "arguments", "started", "attempts", "call_id", "duration", "id", "hash"])
    value = 7.5 if column in ("started", "duration") else 77 if column == "attempts" else "forged"
    journal.execute(f"UPDATE pegboard_journal SET {column} = ? WHERE seq = ?", (value, seq))
    return seq


def removed(journal: sqlite3.Connection, chance: random.Random, rows: int) -> int:
    seq = chance.randint(1, rows)
    journal.execute("DELETE FROM pegboard_journal WHERE seq = ?", (seq,))
    return seq if seq < rows else rows - 1  # the last one is missed at the end


def inserted(journal: sqlite3.Connection, chance: random.Random, rows: int) -> int:
    seq = chance.randint(1, rows + 1)
    for each in range(rows, seq - 1, -1):
        journal.execute("UPDATE pegboard_journal SET seq = seq + 1 WHERE seq = ?", (each,))
    names = [row[1] for row in journal.execute("PRAGMA table_info(pegboard_journal)") if row[1] != "seq"]
    other = chance.choice([each for each in range(1, rows + 2) if each not in (seq, seq + 1)])
    columns = ", ".join(names)
    journal.execute(
        f"INSERT INTO pegboard_journal (seq, {columns}) SELECT ?, {columns} FROM pegboard_journal WHERE seq = ?",
        (seq, other),
    )
    return seq


def swapped(journal: sqlite3.Connection, chance: random.Random, rows: int) -> int:
    one, other = sorted(chance.sample(range(1, rows + 1), 2))
    for before, after in ((one, -1), (other, one), (-1, other)):
        journal.execute("UPDATE pegboard_journal SET seq = ? WHERE seq = ?", (after, before))
    return one


class TestChain:
    @pytest.mark.parametrize("number", [60, pytest.param(1_000, marks=pytest.mark.slow)])
    def test_whatever_is_tampered_with_is_named(self, tmp_path: Path, number: int) -> None:
        with journaled(tmp_path) as toolkit:
            every(toolkit, 24)
            head, rows = Journal.of(toolkit).head, 36
        chance = random.Random(26)
        with closing(sqlite3.connect(tmp_path / "calls.db")) as connection, Journal(url_of(tmp_path)) as journal:
            connection.execute("CREATE TABLE whole AS SELECT * FROM pegboard_journal")
            for each in range(number):
                tamper: Tamper = (changed, removed, inserted, swapped)[each % 4]
                with connection:
                    seq = tamper(connection, chance, rows)
                flaws = journal.verify(head)
                assert flaws, (tamper, seq)
                assert flaws[0].seq == seq, (tamper, seq, flaws)
                with connection:
                    connection.execute("DELETE FROM pegboard_journal")
                    connection.execute("INSERT INTO pegboard_journal SELECT * FROM whole")
            assert journal.verify(head) == []

    def test_a_cut_end_needs_a_head(self, tmp_path: Path) -> None:
        with journaled(tmp_path) as toolkit:
            every(toolkit, 10)
            journal = Journal.of(toolkit)
            head = journal.head
            every(toolkit, 10)
            assert journal.verify(head) == []  # an earlier one is in there
            late = journal.head
            with closing(sqlite3.connect(tmp_path / "calls.db")) as connection, connection:
                connection.execute("DELETE FROM pegboard_journal WHERE seq > 20")
            assert journal.verify() == journal.verify(head) == []
            (flaw,) = journal.verify(late)
            assert (flaw.kind, flaw.seq) == ("head", 20)

    def test_all_rows_are_gone(self, tmp_path: Path) -> None:
        with journaled(tmp_path) as toolkit:
            every(toolkit, 4)
            head = Journal.of(toolkit).head
            with closing(sqlite3.connect(tmp_path / "calls.db")) as connection, connection:
                connection.execute("DELETE FROM pegboard_journal")
            assert [flaw.kind for flaw in Journal.of(toolkit).verify(head)] == ["head"]


class TestPruning:
    def test_what_is_left_can_be_verified(self, url: str) -> None:
        with journaled(url) as toolkit:
            journal = Journal.of(toolkit)
            every(toolkit, 10)
            before = journal.head
            time.sleep(0.02)
            moment = time.time()
            every(toolkit, 4)
            assert journal.prune(datetime.fromtimestamp(moment, UTC)) == 15
            assert len(entries(toolkit)) == 4
            assert journal.verify() == journal.verify(before) == journal.verify(journal.head) == []
            every(toolkit, 4)
            assert journal.prune(datetime.fromtimestamp(time.time() + 60, UTC)) > 0
            assert entries(toolkit) == []
            every(toolkit, 2)
            assert journal.verify(journal.head) == []

    def test_a_first_row_that_is_missing_is_no_pruning(self, tmp_path: Path) -> None:
        with journaled(tmp_path) as toolkit:
            every(toolkit, 6)
            assert Journal.of(toolkit).prune("1d") == 0
            with closing(sqlite3.connect(tmp_path / "calls.db")) as connection, connection:
                connection.execute("DELETE FROM pegboard_journal WHERE seq <= 2")
            (flaw,) = Journal.of(toolkit).verify()
            assert (flaw.kind, flaw.message) == ("missing", "rows 1 to 2 are missing")

    def test_retain(self, tmp_path: Path) -> None:
        with journaled(tmp_path) as toolkit:
            every(toolkit, 4)
        with closing(sqlite3.connect(tmp_path / "calls.db")) as connection, connection:
            connection.execute("UPDATE pegboard_journal SET started = started - 7200")
        with journaled(tmp_path, retain="1h") as toolkit:
            every(toolkit, 2)
            assert len(entries(toolkit)) == 2


class TestSqlite:
    @pytest.mark.skipif(os.name == "nt", reason="Windows has other modes")
    def test_only_the_owner_may_read_it(self, tmp_path: Path) -> None:
        with journaled(tmp_path) as toolkit:
            every(toolkit, 2)
            for each in tmp_path.iterdir():
                assert stat.S_IMODE(each.stat().st_mode) == 0o600, each

    def test_a_relative_path_stays_where_it_was(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path)
        with journaled("sqlite:///calls.db") as toolkit:
            monkeypatch.chdir("other")
            every(toolkit, 2)
        assert (tmp_path / "calls.db").exists()

    @pytest.mark.parametrize("url", ["calls.db", "sqlite://calls.db", "sqlite:///", "mysql://user:secret@host/db", ""])
    def test_a_url_that_names_no_store(self, url: str) -> None:
        with pytest.raises(JournalError, match=r"write sqlite:///calls\.db") as caught:
            Journal(url)
        assert "secret" not in str(caught.value)

    def test_in_settings(self) -> None:
        """A toolkit that was given a journal does not go on without it."""
        with pytest.raises(SettingsError, match=r"write sqlite:///calls\.db"):
            Toolkit(plugins=["journal"], settings={"journal": {"url": "mysql://secret@host"}})

    def test_closing_leaves_no_log(self, tmp_path: Path) -> None:
        with journaled(tmp_path) as toolkit:
            every(toolkit, 4)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["calls.db", "calls.db-live"]


@pytest.mark.slow
class TestPostgres:
    @pytest.fixture
    def server(self, server: PostgresServer) -> PostgresServer:
        server.empty()
        return server

    def test_a_role_that_may_insert_and_select(self, server: PostgresServer) -> None:
        with journaled(server.url()) as toolkit:
            every(toolkit, 2)
        server.execute("DROP ROLE IF EXISTS writer")
        server.execute("CREATE ROLE writer LOGIN; GRANT SELECT, INSERT ON pegboard_journal TO writer")
        with journaled(server.url("writer"), once=["pay"]) as toolkit:
            every(toolkit, 10)
            journal = Journal.of(toolkit)
            assert toolkit.problems == []
            assert len(entries(toolkit)) == 12
            assert journal.verify(journal.head) == []
            with pytest.raises(JournalError, match="InsufficientPrivilege"):
                journal.prune("0d")
        with journaled(server.url("writer"), retain="0h") as toolkit:
            every(toolkit, 2)
            (problem,) = toolkit.problems
            assert problem.startswith("old rows could not be removed from the journal: journal in PostgreSQL: Insuff")
            assert len(entries(toolkit)) == 14

    def test_a_server_that_is_gone_and_comes_back(self, server: PostgresServer) -> None:
        with journaled(server.url("owner", "hunter2"), options={"expose_errors": "traceback"}) as toolkit:
            every(toolkit, 2)
            server.stop()
            try:
                assert toolkit.call_sync("weather", {"city": "Bern"}).status == "success"
                refusal = toolkit.call_sync("pay", {"amount": 1})
                assert refusal.text == "Error: pay was not run: what it does could not be recorded"
                (problem,) = toolkit.problems
                assert problem.startswith("3 rows are missing in the journal")
                assert "hunter2" not in problem
            finally:
                server.start()
            every(toolkit, 2)
            assert len(entries(toolkit)) == 4
            assert Journal.of(toolkit).verify() == []

    def test_texts_that_json_columns_refuse(self, server: PostgresServer) -> None:
        with journaled(server.url(), content="redacted") as toolkit:
            arguments: dict[str, Any] = {"city": 'a\0\ud800"\\'}
            toolkit.call_sync("weather", arguments)
            (entry,) = entries(toolkit)
            assert entry.arguments == '{"city":"a\\u0000\\ufffd\\"\\\\","days":1}' or "\\u0000" in str(entry.arguments)
            assert Journal.of(toolkit).verify() == []
