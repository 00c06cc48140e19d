"""The pack: settings, what is offered, what it costs, and what is in no message."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from pegboard import Secret, SettingsError, Toolkit
from pegboard_sql import Database, Databases
from pegboard_testing import assert_conforms
from tests.plugins.sql.desk import ask, board, rows, sqlite_shop


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_shop(tmp_path / "hidden-place.db")


def test_conforms(url: str) -> None:
    databases = {"shop": {"url": url, "tables": ["sale"], "write": True}}
    assert_conforms("sql", settings={"databases": databases})


class TestSettings:
    def test_without_a_database_nothing_is_offered_and_the_reason_is_named(self) -> None:
        with Toolkit(plugins=["sql", "dataclasses"]) as toolkit:
            assert ([tool.name for tool in toolkit.tools], toolkit.problems) == ([], [])
            result = toolkit.call_sync("sql_query", {"query": "SELECT 1"})
            assert (result.status, "no database is configured" in result.text) == ("not_found", True)

    def test_name_databases(self, url: str) -> None:
        databases = {"a": url, "b": {"url": url, "tables": ["sale"], "write": True}}
        with Toolkit(plugins=["sql", "dataclasses"], settings={"sql": {"databases": databases}}) as toolkit:
            assert [tool.name for tool in toolkit.tools] == ["sql_schema", "sql_query", "sql_explain", "sql_execute"]
            assert rows(toolkit, "SELECT count(*) FROM customer", database="a") == [[2]]
            assert ask(toolkit, "SELECT count(*) FROM customer", database="b").status == "error"
            assert ask(toolkit, "SELECT 1").text == "Say which database: send database='a' or 'b'."
            assert ask(toolkit, "SELECT 1", database="c").text == (
                "There is no database of this name: send database='a' or 'b'."
            )

    def test_that_are_none_are_refused_without_the_url(self) -> None:
        for given, message in (
            ({"x": "mysql://hidden-words@host/db"}, "databases.x: the URL of a database is sqlite:////absolute/path"),
            (
                {"x": {"url": "sqlite:///hidden-words.db", "table": ["a"]}},
                "databases.x must be a URL, or a table with url",
            ),
            ({"x": {"url": "sqlite:///hidden-words.db", "tables": "a"}}, "databases.x: tables takes a list of names"),
            ({"x": {"tables": []}}, "databases.x must be a URL"),
            ({"x y": "sqlite:///hidden-words.db"}, "the name of a database is up to 64 letters"),
        ):
            with pytest.raises(SettingsError) as caught:
                Toolkit(plugins=["sql"], settings={"sql": {"databases": given}})
            assert message in str(caught.value)
            assert "hidden-words" not in str(caught.value)


class TestDatabases:
    def test_take_urls_of_three_engines(self) -> None:
        assert repr(Database("sqlite:///shop.db")) == "Database(name='sqlite', tables=None, write=False)"
        assert Database(Secret("postgresql://host/db"), name="crm").name == "crm"
        for url in ("", "shop.db", "sqlite://", "sqlite:///", "duckdb:////", "oracle://host/db"):
            with pytest.raises(ValueError, match="this one is none of them"):
                Database(url)

    def test_have_names_of_their_own(self) -> None:
        with pytest.raises(ValueError, match="two databases are named 'sqlite'"):
            Databases(Database("sqlite:///a.db"), Database("sqlite:///b.db"))
        with pytest.raises(ValueError, match="takes databases"):
            Databases()
        with pytest.raises(ValueError, match="a number of seconds above 0"):
            Databases(Database("sqlite:///a.db"), timeout=0)

    def test_without_their_driver_are_a_problem(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_sql._database.find_spec", lambda name: None)
        databases = Databases(Database(url), Database("duckdb:///x.duckdb"), Database("postgresql://host/x"))
        assert list(databases.problems) == [
            'the database duckdb needs duckdb: pip install "pegboard-sql[duckdb]"',
            'the database postgresql needs psycopg: pip install "pegboard-sql[postgres]"',
        ]
        with Toolkit(plugins=["dataclasses"]) as toolkit:
            toolkit.register(databases)
            assert rows(toolkit, "SELECT 1") == [[1]]
        settings = {"sql": {"databases": {"x": "duckdb:///x.duckdb"}}}
        with Toolkit(plugins=["sql", "dataclasses"], settings=settings) as toolkit:
            result = toolkit.call_sync("sql_query", {"query": "SELECT 1"})
            assert (result.status, "driver" in result.text) == ("not_found", True)

    def test_that_are_read_only_are_not_written(self, url: str) -> None:
        only, other = Database(url, name="only"), Database(url, name="other", write=True)
        with board(only, other, approver=lambda request: True) as toolkit:
            result = toolkit.call_sync("sql_execute", {"statement": "DELETE FROM sale", "database": "only"})
            assert (result.status, result.text) == ("error", "The database only is read-only.")
            assert rows(toolkit, "SELECT count(*) FROM sale", database="only") == [[3]]

    def test_the_definitions_are_short(self, url: str) -> None:
        with board(Database(url, write=True)) as toolkit:
            shown = [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in toolkit.tools
            ]
            assert len(json.dumps(shown)) / 4 < 400  # about four characters make a token


class TestSecrets:
    def test_the_place_is_in_no_message(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        folder = tmp_path / "hidden-words"
        folder.mkdir()
        (folder / "no.db").write_bytes(b"this is no database" * 100)
        for name in ("sqlite", "duckdb"):
            for file in ("no.db", "not-there.db"):
                if name == "duckdb":
                    pytest.importorskip("duckdb")
                with board(Database(f"{name}:///{folder}/{file}")) as toolkit:
                    results: list[Any] = [ask(toolkit, "SELECT * FROM x"), toolkit.call_sync("sql_schema", {})]
                    for result in results:
                        assert result.status == "error"
                        assert "hidden-words" not in f"{result.text}{result.error}{result.error.exception!r}"
        assert "hidden-words" not in caplog.text
