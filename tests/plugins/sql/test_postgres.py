"""PostgreSQL: a real server, where there is one."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard import Toolkit
from pegboard_sql import Database
from tests.plugins.sql.desk import SHOP, ask, board, files, rows, timed
from tests.plugins.sql.statements import postgres_statements
from tests.support.postgres import PostgresServer

MORE = (
    "CREATE FUNCTION peek() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT k FROM secret'",
    "CREATE FUNCTION remove() RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM sale; RETURN 1; END'",
    "CREATE PROCEDURE p() LANGUAGE sql AS 'DELETE FROM sale'",
    "CREATE SEQUENCE counter",
    "CREATE TABLE entry(id serial PRIMARY KEY, body text) PARTITION BY RANGE (id)",
    "CREATE TABLE entry_1 PARTITION OF entry FOR VALUES FROM (0) TO (1000)",
    "INSERT INTO entry(body) SELECT string_agg(md5(n::text), '') FROM generate_series(1, 9999) n",
    "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM secret; RETURN NULL; END'",
    "CREATE CONSTRAINT TRIGGER later AFTER INSERT ON customer INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION noted()",
    'CREATE TABLE "Odd Name"(x int)',
    "CREATE SCHEMA more",
    "CREATE TABLE more.customer(x int)",
    "GRANT USAGE ON SCHEMA more TO PUBLIC",
    "GRANT SELECT ON more.customer TO PUBLIC",
    "CREATE ROLE plain LOGIN PASSWORD 'pass-words'",
    "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain",
    "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO plain",
    "CREATE ROLE boss SUPERUSER",
    "CREATE ROLE between IN ROLE boss",
    "CREATE ROLE member LOGIN NOINHERIT IN ROLE between",
    "CREATE ROLE reader LOGIN IN ROLE pg_read_server_files",
    "CREATE ROLE signaller LOGIN IN ROLE pg_signal_backend",
)


@pytest.fixture(scope="module")
def shop(server: PostgresServer) -> PostgresServer:
    for statement in (*SHOP.strip().splitlines(), *MORE):
        server.execute(statement)
    return server


@pytest.fixture(scope="module")
def toolkit(shop: PostgresServer) -> Iterator[Toolkit]:
    with board(Database(shop.url("plain")), timeout=2.0) as toolkit:
        yield toolkit


@pytest.fixture(scope="module")
def narrow(shop: PostgresServer) -> Iterator[Toolkit]:
    names = ["customer", "sale", "v", "entry", "Odd Name"]
    database = Database(shop.url("plain"), tables=names, write=True)
    with board(database, approver=lambda request: True) as toolkit:
        yield toolkit


def state(server: PostgresServer) -> list[object]:
    """What a statement could change."""
    return [
        server.execute(query)
        for query in (
            *("SELECT * FROM customer ORDER BY 1", "SELECT * FROM sale ORDER BY 1", "SELECT * FROM secret ORDER BY 1"),
            *(
                "SELECT relname, reltuples < 0, relacl::text FROM pg_class ORDER BY 1",
                "SELECT rolname, rolsuper FROM pg_roles ORDER BY 1",
            ),
            *(
                "SELECT proname FROM pg_proc ORDER BY oid",
                "SELECT datname FROM pg_database",
                "SELECT oid FROM pg_largeobject_metadata",
            ),
            *(
                "SELECT setconfig FROM pg_db_role_setting",
                "SELECT last_value FROM counter",
                "SELECT description FROM pg_description WHERE objoid > 16000",
            ),
            *("SELECT attname FROM pg_attribute WHERE attrelid > 16000 ORDER BY 1", "SELECT extname FROM pg_extension"),
        )
    ]


def test_rows(toolkit: Toolkit) -> None:
    query = "SELECT id, amount, id > 1, 1.50::numeric(9,2), '{\"a\": 1}'::jsonb, ARRAY[1,2], date '2026-01-02'"
    result = ask(
        toolkit, f"{query}, 'nan'::float8, repeat('x', 5000), amount FROM sale ORDER BY id DESC;  ", max_rows=1
    )
    assert result.data["types"] == [
        *("integer", "double precision", "boolean", "numeric(9,2)", "jsonb", "integer[]", "date", "double precision"),
        *("text", "double precision"),
    ]
    long = "x" * 2000
    assert result.data["rows"] == [[3, 4.0, True, "1.50", '{"a": 1}', "{1,2}", "2026-01-02", "nan", long, 4.0]]
    assert (result.data["truncated"], result.data["clipped"]) == (True, 1)
    assert len(rows(toolkit, "SELECT * FROM generate_series(1, 5000)", max_rows=10_000)) == 5000
    assert "Seq Scan on sale" in toolkit.call_sync("sql_explain", {"query": "SELECT * FROM sale"}).text


def test_the_schema(toolkit: Toolkit) -> None:
    assert toolkit.call_sync("sql_schema", {}).text.splitlines() == [
        "postgresql (PostgreSQL)",
        '"Odd Name" (x integer)',
        "big [view] (name text)",
        "customer (id integer primary key, name text not null)",
        "entry (id integer primary key, body text)",
        "more.customer (x integer)",
        "sale (id integer primary key, customer integer -> customer(id), amount double precision)",
        "secret (k text)",
        "v [view] (k text)",
    ]


def test_statements_change_nothing(shop: PostgresServer, toolkit: Toolkit, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    before = state(shop)
    statements = postgres_statements(str(tmp_path))
    assert len(statements) >= 108
    ran = [statement for statement in statements if ask(toolkit, statement).status == "success"]
    assert all(statement.startswith("SELECT ") and ";" not in statement for statement in ran), ran
    assert (state(shop), files(tmp_path)) == (before, {})


def test_superusers_and_their_likes_are_refused(shop: PostgresServer) -> None:
    roles = {
        "owner": "a superuser",
        "member": "a superuser",
        "reader": "a member of pg_read_server_files",
        "signaller": "a member of pg_signal_backend",
    }
    names = {role: Database(shop.url(role), name=role) for role in roles}
    with board(*names.values()) as toolkit:
        for role, what in roles.items():
            for name, arguments in (("sql_query", {"query": "SELECT 1"}), ("sql_schema", {})):
                result = toolkit.call_sync(name, {**arguments, "database": role})
                assert (result.status, f"reaches the database as {what};" in result.text) == ("error", True)


BOMBS = (
    # What is set counts for the next statement, which has its own time again.
    "SELECT set_config('statement_timeout', '0', false), pg_sleep(n / 3000 * 60) FROM generate_series(1, 9000) n",
    "SELECT set_config('statement_timeout', '0', false), count(*) FROM generate_series(1, 10000000000)",
    "SELECT repeat('x', 200000000 + n) FROM generate_series(1, 1000) n",
)


@pytest.mark.parametrize("bombs", [BOMBS[:1], pytest.param(BOMBS[1:], marks=pytest.mark.slow)], ids=["one", "others"])
def test_a_bomb_ends_and_the_next_query_works(toolkit: Toolkit, bombs: tuple[str, ...]) -> None:
    for bomb in bombs:
        result, seconds = timed(toolkit, bomb, max_rows=10_000)
        assert (result.status, "longer than 2 s" in result.text) == ("error", True)
        assert seconds < 3
        assert rows(toolkit, "SELECT count(*) FROM sale") == [[3]]


def test_a_cancelled_call_ends_on_the_server_too(shop: PostgresServer) -> None:
    running = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'plain' AND state = 'active'"
    with board(Database(shop.url("plain")), timeout=60.0) as toolkit:
        call = toolkit.prepare("sql_query", {"query": "SELECT pg_sleep(60)"})
        timer = threading.Timer(0.5, call.stop)
        start = time.monotonic()
        timer.start()
        call.execute_sync()
        timer.join()
        assert time.monotonic() - start < 3
    assert shop.execute(running) == [(0,)]


class TestTables:
    def test_nothing_else_is_read(self, narrow: Toolkit) -> None:
        for query in (
            *(
                "SELECT * FROM secret",
                "SELECT count(*) FROM secret",
                "SELECT * FROM v",
                "SELECT 1 FROM secret WHERE false",
            ),
            *(
                "WITH customer AS (SELECT * FROM secret) SELECT * FROM customer",
                "SELECT (SELECT k FROM secret)",
                "TABLE secret",
            ),
            *(
                "SELECT peek()",
                "SELECT query_to_xml('SELECT * FROM secret', true, true, '')",
                "SELECT * FROM big",
                "TABLE more.customer",
            ),
            *(
                "SELECT * FROM pg_class",
                "SELECT * FROM pg_locks",
                "SELECT * FROM pg_stats",
                "SELECT table_to_xml('secret', true, true, '')",
            ),
            *(
                "SELECT * FROM information_schema.tables",
                "SELECT * FROM public.secret",
                "SELECT n, CASE n WHEN 1 THEN peek() END FROM generate_series(0, 1) n",
            ),
        ):
            result = ask(narrow, query)
            assert (result.status, query) == ("error", query)
            assert "hidden-words" not in result.text
        assert narrow.call_sync("sql_explain", {"query": "SELECT * FROM secret"}).status == "error"

    def test_they_are_read(self, narrow: Toolkit) -> None:
        join = "SELECT count(*) FROM sale s JOIN customer c ON c.id = s.customer WHERE c.id = 1"
        assert rows(narrow, join) == [[2]]
        assert rows(narrow, 'SELECT * FROM "Odd Name"') == []
        assert rows(narrow, "SELECT length(body) FROM entry") == [[32 * 9999]]
        assert "Seq Scan" in narrow.call_sync("sql_explain", {"query": "SELECT * FROM customer"}).text

    def test_the_schema_has_them_alone(self, narrow: Toolkit) -> None:
        lines = narrow.call_sync("sql_schema", {}).text.splitlines()
        assert [line.split(" ")[0] for line in lines[1:]] == ['"Odd', "customer", "entry", "sale", "v"]

    def test_writing_is_bound(self, shop: PostgresServer, narrow: Toolkit) -> None:
        before = state(shop)
        for statement in (
            *(
                "DELETE FROM secret",
                "INSERT INTO sale SELECT 9, 1, length(k) FROM secret",
                "CREATE TEMP TABLE t(a int)",
            ),
            *("DO $$ BEGIN DELETE FROM sale; END $$", "TRUNCATE sale", "SELECT 1 INTO TEMP t"),
            "INSERT INTO customer VALUES (9, 'x')",  # its trigger, at the end of the transaction, reaches another table
        ):
            assert (narrow.call_sync("sql_execute", {"statement": statement}).status, statement) == ("error", statement)
        assert state(shop) == before
        result = narrow.call_sync("sql_execute", {"statement": "INSERT INTO entry(body) VALUES ('a'), ('b')"})
        assert (result.text, result.data) == ("2 rows changed.", {"rows": 2})


def test_writing_keeps_nothing_of_what_fails_or_is_refused(shop: PostgresServer) -> None:
    before = state(shop)
    with board(Database(shop.url("plain"), write=True), approver=lambda request: True) as toolkit:
        for statement in (
            *(
                "INSERT INTO sale VALUES (9, 1, 1), (1, 1, 1)",
                "INSERT INTO sale VALUES (9, 99, 1)",
                "COMMIT",
                "BEGIN",
                "ROLLBACK",
            ),
            *(
                "DELETE FROM sale; COMMIT",
                "DELETE FROM sale; SELECT 1",
                "DELETE FROM sale RETURNING id",
                "SELECT 1",
                "VACUUM",
            ),
            *(
                "SET statement_timeout = 0",
                "COPY sale TO STDOUT",
                "COPY sale FROM STDIN",
                "LISTEN x",
                "SAVEPOINT s",
                "PREPARE TRANSACTION 'x'",
            ),
            *(
                "DO $$ BEGIN DELETE FROM sale; COMMIT; END $$",
                "EXPLAIN ANALYZE DELETE FROM sale",
                "ALTER ROLE plain SUPERUSER",
            ),
        ):
            assert (toolkit.call_sync("sql_execute", {"statement": statement}).status, statement) == (
                "error",
                statement,
            )
        assert state(shop) == before
        result = toolkit.call_sync("sql_execute", {"statement": "UPDATE sale SET amount = 2 WHERE id = 2"})
        assert result.text == "1 row changed."


def test_nothing_of_the_url_is_in_a_message(shop: PostgresServer) -> None:
    url = shop.url("plain", "pass-words")
    for database in (
        Database(url.replace("plain:", "nobody-here:")),
        Database(f"{url}-not-there"),
        Database("postgresql://user-name:pass-words@127.0.0.1:1/data-base"),
        Database("postgresql://user-name:pass-words@host-name:port/x"),
    ):
        with board(database, timeout=2.0) as toolkit:
            result = ask(toolkit, "SELECT 1")
            assert "cannot be reached" in result.text
            for part in (
                "pass-words",
                "user-name",
                "nobody-here",
                "data-base",
                "host-name",
                "127.0.0.1",
                "pegboard-pg",
            ):
                assert part not in f"{result.text}{result.error}{database!r}"
