"""DuckDB: queries, what is refused, bombs, and writing."""

import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from pegboard import Toolkit
from pegboard_sql import Database
from tests.plugins.sql.desk import ask, board, duckdb_shop, files, rows, timed
from tests.plugins.sql.statements import duckdb_statements

pytestmark = pytest.mark.skipif(find_spec("duckdb") is None, reason="needs the extra pegboard-sql[duckdb]")

MORE = """
CREATE MACRO peek() AS TABLE SELECT k FROM secret;
CREATE MACRO sin(x) AS (SELECT k FROM secret);
CREATE SEQUENCE counter;
CREATE SCHEMA other;
CREATE TABLE other.sale(id INTEGER);
CREATE TABLE "odd ""name"("a b" INTEGER, kind ENUM('x', 'y'));
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("duckdb") / "shop.duckdb"
    duckdb_shop(path, MORE)
    return path


@pytest.fixture(scope="module")
def toolkit(shop: Path) -> Iterator[Toolkit]:
    with board(Database(f"duckdb:///{shop}"), timeout=2.0) as toolkit:
        yield toolkit


NAMED = ["customer", "sale", "v", "big", '"odd ""name"']


@pytest.fixture(scope="module")
def narrow(shop: Path) -> Iterator[Toolkit]:
    with board(Database(f"duckdb:///{shop}", tables=NAMED), timeout=20.0) as toolkit:
        yield toolkit


def test_rows(toolkit: Toolkit) -> None:
    query = "SELECT id, amount, id > 1 AS b, 1.50::DECIMAL(9,2) AS d, [1, 2] AS l, {'x': 1} AS s, 'nan'::DOUBLE AS n"
    more = f"TIMESTAMPTZ '2026-01-02 03:04:05+00' AS t, {10**30}::HUGEINT AS h, repeat('x', 5000), '\\xAA'::BLOB"
    result = ask(toolkit, f"{query}, {more} FROM sale ORDER BY id DESC;", max_rows=1)
    assert result.status == "success", result.text
    (row,) = result.data["rows"]
    assert row[:7] == [3, 4.0, True, "1.50", "[1, 2]", "{'x': 1}", "nan"]
    assert row[7].startswith("2026-01-02 03:04:05")
    assert row[8:] == [10**30, "x" * 2000, "\\xAA"]
    assert result.data["types"][:4] == ["INTEGER", "DOUBLE", "BOOLEAN", "DECIMAL(9,2)"]
    assert (result.data["truncated"], result.data["clipped"]) == (True, 1)
    assert rows(toolkit, "SHOW TABLES")[0] == ["big"]
    assert "SEQ_SCAN" in toolkit.call_sync("sql_explain", {"query": "SELECT * FROM sale"}).text.upper().replace(
        " ", "_"
    )


def test_the_place_of_the_file_is_in_no_answer(shop: Path, toolkit: Toolkit) -> None:
    for query in (
        "SELECT path FROM duckdb_databases()",
        "SHOW DATABASES",
        f"SELECT '{shop}'",
        f"SELECT x FROM '{shop}'",
    ):
        assert str(shop.parent) not in ask(toolkit, query).text
    assert rows(toolkit, "SELECT path FROM duckdb_databases() WHERE NOT internal") == [["***"]]


def test_the_schema(toolkit: Toolkit) -> None:
    assert toolkit.call_sync("sql_schema", {}).text.splitlines() == [
        "duckdb (DuckDB)",
        "big [view] (name VARCHAR)",
        "customer (id INTEGER primary key, name VARCHAR not null)",
        "odd \"name (a b INTEGER, kind ENUM('x', 'y'))",
        "other.sale (id INTEGER)",
        "sale (id INTEGER primary key, customer INTEGER -> customer(id), amount DOUBLE)",
        "secret (k VARCHAR)",
        "v [view] (k VARCHAR)",
    ]


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_statements_change_nothing(shop: Path, toolkit: Toolkit, tmp_path: Path, every: int) -> None:
    before = files(shop.parent, tmp_path)
    statements = duckdb_statements(str(shop), str(tmp_path))
    assert len(statements) >= 139
    ran = [statement for statement in statements[::every] if ask(toolkit, statement).status == "success"]
    assert all(statement.startswith("SELECT ") and ";" not in statement for statement in ran), ran
    assert files(shop.parent, tmp_path) == before


ENDLESS = "SELECT count(*) FROM range(100000000000::BIGINT) a, range(10) b WHERE a.range % 7 = b.range"
BOMBS = (
    "SELECT length(repeat('x', 4000000000))",
    ENDLESS,
    "SELECT lpad('x', 2000000000, 'y')",
    "SELECT length(range(1000000000::BIGINT)::VARCHAR)",
    "SELECT * FROM range(100000000) a, range(100) b ORDER BY a.range DESC, b.range",
)


@pytest.mark.parametrize("bombs", [BOMBS[:1], pytest.param(BOMBS[1:], marks=pytest.mark.slow)], ids=["one", "others"])
def test_a_bomb_ends_and_the_next_query_works(toolkit: Toolkit, bombs: tuple[str, ...]) -> None:
    for bomb in bombs:
        result, seconds = timed(toolkit, bomb)
        assert result.status == "error", bomb
        assert seconds < 4  # two of the timeout, one more, and what a busy machine takes for a new process
        assert rows(toolkit, "SELECT count(*) FROM sale") == [[3]]


def test_a_cancelled_call_ends_at_once(shop: Path) -> None:
    with board(Database(f"duckdb:///{shop}"), timeout=60.0) as toolkit:
        assert rows(toolkit, "SELECT 1") == [[1]]
        call = toolkit.prepare("sql_query", {"query": ENDLESS})
        timer = threading.Timer(0.2, call.stop)
        start = time.monotonic()
        timer.start()
        call.execute_sync()
        timer.join()
        assert time.monotonic() - start < 3


HIDDEN = (
    *("SELECT count(*) FROM secret", "SELECT k FROM secret WHERE false", "SELECT * FROM v", "DESCRIBE secret"),
    *("WITH sale AS (SELECT * FROM secret) SELECT * FROM sale", "SELECT * FROM peek()", "SUMMARIZE secret"),
    *("SELECT sin(1)", "SELECT * FROM query('SELECT * FROM secret')", "FROM query_table('secret')", "SHOW secret"),
    *("FROM duckdb_tables()", "SHOW ALL TABLES", "FROM information_schema.tables", "FROM sqlite_master"),
    *("FROM pragma_table_info('secret')", "FROM other.sale", "FROM sale WHERE id IN (SELECT length(k) FROM secret)"),
)


class TestTables:
    @pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
    def test_nothing_else_is_read(self, narrow: Toolkit, every: int) -> None:
        for query in HIDDEN[::every]:
            result = ask(narrow, query)
            assert (result.status, query) == ("error", query)
            assert "hidden-words" not in result.text
        assert narrow.call_sync("sql_explain", {"query": "SELECT * FROM secret"}).status == "error"

    def test_nor_is_the_file(self, shop: Path, narrow: Toolkit) -> None:
        result = ask(narrow, f"SELECT * FROM read_blob('{shop}')")
        assert (result.status, str(shop) in result.text) == ("error", False)

    def test_they_are_read(self, narrow: Toolkit) -> None:
        assert rows(narrow, "SELECT count(*) FROM sale s JOIN customer c ON c.id = s.customer") == [[3]]
        assert rows(narrow, "SELECT name FROM big ORDER BY 1") == [["Ada"], ["Bo"]]
        assert rows(narrow, "SELECT a.id, u FROM sale a, unnest([a.id]) t(u) WHERE a.id = 1") == [[1, 1]]
        assert rows(narrow, 'SELECT count(*) FROM "odd ""name" WHERE kind = \'x\'') == [[0]]

    def test_the_schema_has_them_alone(self, narrow: Toolkit) -> None:
        lines = narrow.call_sync("sql_schema", {}).text.splitlines()
        assert [line.split(" ")[0] for line in lines[1:]] == ["big", "customer", "odd", "sale", "v"]


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_writing(tmp_path: Path, every: int) -> None:
    path = tmp_path / "shop.duckdb"
    url = duckdb_shop(path, MORE)
    wide, bound = Database(url, name="wide", write=True), Database(url, name="bound", tables=NAMED, write=True)
    with board(wide, bound, timeout=20.0, approver=lambda request: True) as toolkit:

        def run(statement: str, database: str) -> str:
            return toolkit.call_sync("sql_execute", {"statement": statement, "database": database}).text

        assert run("UPDATE sale SET amount = 1 WHERE id < 3", "bound") == "2 rows changed."
        assert run("INSERT INTO sale VALUES (7, 1, 1), (8, 1, 1) RETURNING id", "bound") == "2 rows changed."
        assert run("INSERT INTO customer VALUES (1, 'Eve') ON CONFLICT DO UPDATE SET name = 'Eve'", "bound") == (
            "1 row changed."
        )
        assert run("CREATE TABLE t(a int)", "wide") == "Done."
        before = rows(toolkit, "FROM sale ORDER BY id", database="wide")
        refused = {
            "wide": (
                *("INSERT INTO sale VALUES (9, 1, 1), (1, 1, 1)", "COMMIT", f"COPY sale TO '{tmp_path}/x'", "SELECT 1"),
                *("DELETE FROM sale; SELECT 1", f"ATTACH '{tmp_path}/y' AS y", "CHECKPOINT", "PRAGMA version"),
            ),
            "bound": (
                *(
                    "INSERT INTO secret VALUES ('x')",
                    "DELETE FROM secret WHERE false",
                    "DROP TABLE sale",
                    "TRUNCATE secret",
                ),
                *("INSERT INTO sale SELECT 9, 1, length(k) FROM secret", "CREATE TABLE t2(a int)"),
                "DELETE FROM sale WHERE id > (SELECT count(*) FROM secret)",
            ),
        }
        for database, statements in refused.items():
            for statement in statements[::every]:
                result = toolkit.call_sync("sql_execute", {"statement": statement, "database": database})
                assert (result.status, statement) == ("error", statement)
        assert rows(toolkit, "FROM sale ORDER BY id", database="wide") == before
        assert rows(toolkit, "FROM secret", database="wide") == [["hidden-words"]]
    assert {each.name for each in tmp_path.iterdir()} <= {"shop.duckdb", "shop.duckdb.wal"}
