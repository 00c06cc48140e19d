"""SQLite: queries, what is refused, bombs, and writing."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit, ToolResult
from pegboard_sql import Database
from tests.plugins.sql.desk import ask, board, files, rows, sqlite_shop, timed
from tests.plugins.sql.statements import sqlite_statements

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
FULL_TEXT = "CREATE VIRTUAL TABLE note USING fts5(body); INSERT INTO note VALUES ('hello world');"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "shop #1?.db"
    sqlite_shop(path, FULL_TEXT)
    return path


@pytest.fixture(scope="module")
def toolkit(shop: Path) -> Iterator[Toolkit]:
    with board(Database(f"sqlite:///{shop}"), timeout=1.0) as toolkit:
        yield toolkit


@pytest.fixture(scope="module")
def narrow(shop: Path) -> Iterator[Toolkit]:
    with board(Database(f"sqlite:///{shop}", tables=["customer", "Sale", "v", "note"])) as toolkit:
        yield toolkit


class TestQueries:
    def test_rows_as_data_and_as_a_table(self, toolkit: Toolkit) -> None:
        result = ask(toolkit, "SELECT id, amount, 'a|b' AS t, x'0aff' AS b FROM sale ORDER BY id", max_rows=2)
        assert result.data == {
            "columns": ["id", "amount", "t", "b"],
            "types": ["INTEGER", "REAL", "TEXT", "BLOB"],
            "rows": [[1, 2.5, "a|b", "0x0aff"], [2, None, "a|b", "0x0aff"]],
            "truncated": True,
            "clipped": 0,
        }
        assert result.text == (
            "| id | amount | t | b |\n| --- | --- | --- | --- |\n"
            "| 1 | 2.5 | a\\|b | 0x0aff |\n| 2 | NULL | a\\|b | 0x0aff |\n\n"
            "2 rows of more. Go on with ORDER BY ... OFFSET 2, or ask for less."
        )

    def test_long_values_are_shortened_and_counted(self, toolkit: Toolkit) -> None:
        result = ask(toolkit, "SELECT printf('%.*c', 5000, 'x'), zeroblob(3000), 'short', 1e999")
        text, blob, *others = result.data["rows"][0]
        assert (text, blob, others) == ("x" * 2000, "0x" + "00" * 1000, ["short", "inf"])
        assert result.data["clipped"] == 2
        assert "2 values are shortened to 2,000 characters: go on with substr(column, 2001, 2000)." in result.text

    def test_the_text_says_how_to_go_on_where_the_data_has_more(self, toolkit: Toolkit) -> None:
        numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000)"
        result = ask(toolkit, f"{numbers} SELECT n, 'some words' FROM r", max_rows=10_000)
        assert len(result.data["rows"]) == 10_000
        shown = result.text.count("| some words |")
        assert len(result.text) < 51_000
        assert f"{shown:,} rows of more. Go on with ORDER BY ... OFFSET {shown}, or ask for less." in result.text

    def test_a_row_of_many_long_values_is_cut_too(self, toolkit: Toolkit) -> None:
        columns = ", ".join(f"printf('%.*c', 5000, 'x') AS c{number}" for number in range(100))
        result = ask(toolkit, f"SELECT {columns}")
        assert result.data["clipped"] == 100
        assert len(result.text) < 100_200
        assert "100 values are shortened" in result.text
        assert "characters more: select fewer columns]" in result.text

    def test_full_text_and_json(self, toolkit: Toolkit) -> None:
        assert rows(toolkit, "SELECT body FROM note WHERE note MATCH 'hello'") == [["hello world"]]
        assert rows(toolkit, "SELECT value FROM json_each('[1,2]')") == [[1], [2]]

    def test_a_plan(self, toolkit: Toolkit) -> None:
        plan = toolkit.call_sync("sql_explain", {"query": "SELECT * FROM sale WHERE customer = 1"}).text
        assert plan == "SEARCH sale USING INDEX ix (customer=?)"

    def test_the_schema(self, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("sql_schema", {})
        assert result.text.splitlines() == [
            "sqlite (SQLite)",
            "big [view] (name TEXT)",
            "customer (id INTEGER primary key, name TEXT not null)",
            "note (body)",
            "sale (id INTEGER primary key, customer INTEGER -> customer(id), amount DOUBLE PRECISION)",
            "secret (k TEXT)",
            "v [view] (k TEXT)",
        ]
        (table,) = toolkit.call_sync("sql_schema", {"table": "SALE"}).data["tables"]
        assert (table["name"], [column["name"] for column in table["columns"]]) == (
            "sale",
            ["id", "customer", "amount"],
        )
        assert toolkit.call_sync("sql_schema", {"table": "sales"}).text == (
            "There is no table sales here. Did you mean sale?"
        )

    def test_what_goes_wrong_is_said(self, toolkit: Toolkit) -> None:
        for query, message in (
            ("SELECT * FROM nope", "SQLite: no such table: nope. sql_schema shows the tables and columns."),
            ("DELETE FROM sale", "Only queries can be run: send one SELECT, WITH or VALUES."),
            ("SELECT 1; SELECT 2", "Only one statement can be sent at a time."),
            ("-- nothing", "There is no statement: send one SELECT."),
            ("SELECT '\0'", "The statement is empty, or has a null character (U+0000): send one without."),
            ("SELECT 1" + " " * 50_000, "The statement has 50,008 characters; at most 50,000 can be sent."),
            (
                "SELECT zeroblob(50000000)",
                "A value is larger than 16 MiB. Leave its column out, or shorten what is built.",
            ),
        ):
            result = ask(toolkit, query)
            assert (result.status, result.text) == ("error", message)

    def test_a_system_that_cannot_fork_has_the_limits_of_the_engine(
        self, shop: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(os, "fork")
        with board(Database(f"sqlite:///{shop}"), timeout=0.2) as toolkit:
            assert rows(toolkit, "SELECT count(*) FROM sale") == [[3]]
            result, seconds = timed(
                toolkit, "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT sum(n) FROM r"
            )
            assert ("longer than 0.2 s" in result.text, seconds < 1) == (True, True)


def test_statements_change_nothing(shop: Path, toolkit: Toolkit, tmp_path: Path) -> None:
    before = files(shop.parent, tmp_path)
    statements = sqlite_statements(str(tmp_path))
    assert len(statements) >= 62
    for statement in statements:
        result = ask(toolkit, statement)
        assert (result.status, statement) == ("error", statement)
        assert files(shop.parent, tmp_path) == before, statement


BOMBS = (
    # Expanded before it runs, where no limit of SQLite counts.
    "WITH c0(x) AS (SELECT 1)"
    + "".join(f", c{n}(x) AS (SELECT a.x FROM c{n - 1} a, c{n - 1} b)" for n in range(1, 24))
    + " SELECT count(*) FROM c23",
    # Each is one instruction.
    "SELECT trim(hex(zeroblob(500000)), printf('%.*c', 500000, 'y') || '0')",
    "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || 'y')",
    ENDLESS,
    "WITH RECURSIVE r(n) AS (SELECT randomblob(99999) UNION SELECT randomblob(99999) FROM r) SELECT count(n) FROM r",
)


@pytest.mark.parametrize("bombs", [BOMBS[:1], pytest.param(BOMBS[1:], marks=pytest.mark.slow)], ids=["one", "others"])
def test_a_bomb_ends_and_the_next_query_works(toolkit: Toolkit, bombs: tuple[str, ...]) -> None:
    for bomb in bombs:
        result, seconds = timed(toolkit, bomb)
        assert (result.status, "was stopped" in result.text) == ("error", True)
        assert seconds < 2.5  # a second more than the timeout, and what a busy machine takes for a new process
        assert rows(toolkit, "SELECT count(*) FROM sale") == [[3]]


def test_a_cancelled_call_ends_at_once(shop: Path) -> None:
    with board(Database(f"sqlite:///{shop}"), timeout=30.0) as toolkit:
        call = toolkit.prepare("sql_query", {"query": ENDLESS})
        timer = threading.Timer(0.3, call.stop)
        start = time.monotonic()
        timer.start()
        result = call.execute_sync()
        timer.join()
        assert time.monotonic() - start < 2
        assert result.status in ("cancelled", "error")
        assert rows(toolkit, "SELECT count(*) FROM sale") == [[3]]


HIDDEN = (
    *("SELECT * FROM secret", "SELECT count(*) FROM secret", "SELECT 1 FROM secret WHERE 0", "SELECT * FROM v"),
    *("WITH customer AS (SELECT * FROM secret) SELECT * FROM customer", "SELECT (SELECT k FROM secret)"),
    *("WITH v AS (SELECT k FROM secret) SELECT count(*) FROM v", "SELECT * FROM sqlite_schema", "SELECT * FROM big"),
    *("SELECT * FROM sqlite_master", "SELECT * FROM pragma_table_info('secret')", "PRAGMA table_info(secret)"),
    *("SELECT * FROM main.secret", 'SELECT * FROM "SECRET"', "SELECT * FROM pragma_table_list", "TABLE secret"),
    *("SELECT * FROM sale UNION SELECT k, 1, 1 FROM secret", "SELECT count(*) FROM sqlite_master"),
)


class TestTables:
    def test_nothing_else_is_read(self, narrow: Toolkit) -> None:
        for query in HIDDEN:
            for name in ("sql_query", "sql_explain"):
                result = narrow.call_sync(name, {"query": query})
                assert (result.status, query) == ("error", query)
                assert "hidden-words" not in result.text

    def test_they_are_read(self, narrow: Toolkit) -> None:
        assert rows(narrow, "SELECT count(*) FROM sale s JOIN customer c ON c.id = s.customer") == [[3]]
        assert rows(narrow, "WITH c AS (SELECT 1) SELECT count(*) FROM c") == [[1]]
        assert rows(narrow, "SELECT count(*) FROM note WHERE note MATCH 'world'") == [[1]]

    def test_the_schema_has_them_alone(self, narrow: Toolkit) -> None:
        text = narrow.call_sync("sql_schema", {}).text
        assert [line.split(" ")[0] for line in text.splitlines()[1:]] == ["customer", "note", "sale", "v"]
        assert narrow.call_sync("sql_schema", {"table": "secret"}).status == "error"


class TestWriting:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        sqlite_shop(
            tmp_path / "shop.db",
            "CREATE TRIGGER tr AFTER INSERT ON customer BEGIN INSERT INTO secret VALUES ('t'); END;",
        )
        return tmp_path / "shop.db"

    def run(self, path: Path, *statements: str, **options: Any) -> list[ToolResult]:
        with board(Database(f"sqlite:///{path}", write=True, **options), approver=lambda request: True) as toolkit:
            return [toolkit.call_sync("sql_execute", {"statement": statement}) for statement in statements]

    def content(self, path: Path) -> list[str]:
        connection = sqlite3.connect(path)
        lines = list(connection.iterdump())
        connection.close()
        return lines

    def test_asks_for_approval(self, path: Path) -> None:
        with board(Database(f"sqlite:///{path}", write=True)) as toolkit:
            assert toolkit.call_sync("sql_execute", {"statement": "DELETE FROM sale"}).status == "denied"
            assert rows(toolkit, "SELECT count(*) FROM sale") == [[3]]

    def test_says_the_number_of_rows(self, path: Path) -> None:
        changed, defined = self.run(path, "UPDATE sale SET amount = 1 WHERE id < 3 RETURNING id", "CREATE TABLE t(a)")
        assert (changed.text, changed.data, defined.text) == ("2 rows changed.", {"rows": 2}, "Done.")
        assert 'INSERT INTO "sale" VALUES(1,1,1.0);' in self.content(path)

    def test_keeps_nothing_of_what_fails_or_is_refused(self, path: Path) -> None:
        before = self.content(path)
        statements = (
            *(
                "INSERT INTO sale VALUES (4, 1, 1), (1, 1, 1)",
                "INSERT INTO sale VALUES (4, 99, 1)",
                "SELECT 1",
                "COMMIT",
            ),
            *(
                "BEGIN",
                "ROLLBACK",
                "DELETE FROM sale; SELECT 1",
                "PRAGMA user_version = 3",
                "VACUUM",
                "ATTACH 'x.db' AS x",
            ),
            *(
                "UPDATE OR ROLLBACK sale SET id = 1",
                "SAVEPOINT s",
                "UPDATE sale SET id = 1",
                "DELETE FROM sqlite_master",
            ),
        )
        assert {result.status for result in self.run(path, *statements)} == {"error"}
        assert (self.content(path), sorted(each.name for each in path.parent.iterdir())) == (before, ["shop.db"])

    def test_tables_bind_it(self, path: Path) -> None:
        before, tables = self.content(path), ["sale", "customer"]
        statements = (
            *("DELETE FROM secret", "INSERT INTO sale(amount) SELECT length(k) FROM secret", "CREATE TABLE t(a)"),
            *("DROP TABLE sale", "UPDATE sale SET amount = (SELECT count(*) FROM secret)"),
            "INSERT INTO customer VALUES (3, 'x')",  # its trigger reaches another table
        )
        assert {result.status for result in self.run(path, *statements, tables=tables)} == {"error"}
        assert self.content(path) == before
        (result,) = self.run(path, "UPDATE sale SET amount = 7 WHERE id = 1", tables=tables)
        assert result.text == "1 row changed."

    @pytest.mark.slow
    def test_a_writer_that_is_ended_leaves_nothing(self, path: Path) -> None:
        numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100000)"
        slow = "trim(hex(zeroblob(500000)), printf('%.*c', 500000, 'y') || '0')"
        before = self.content(path)
        with board(Database(f"sqlite:///{path}", write=True), timeout=1.0, approver=lambda request: True) as toolkit:
            value = f"CASE WHEN n < 90000 THEN hex(randomblob(99)) ELSE {slow} END"
            statement = f"{numbers} INSERT INTO secret SELECT {value} FROM r"
            assert "was stopped" in toolkit.call_sync("sql_execute", {"statement": statement}).text
            assert rows(toolkit, "SELECT count(*) FROM secret") == [[1]]
        assert (self.content(path), [each.name for each in path.parent.iterdir()]) == (before, ["shop.db"])
