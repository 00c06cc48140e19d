"""Statements that change something, read what is not in a table, or make a transaction more than a query."""

from collections.abc import Sequence

__all__ = ["duckdb_statements", "postgres_statements", "sqlite_statements"]


def sqlite_statements(other: str) -> Sequence[str]:
    """62 statements; files that they would make are in the folder `other`."""
    return (
        *(
            "INSERT INTO sale VALUES (9, 1, 1.0)",
            "UPDATE sale SET amount = 0",
            "DELETE FROM sale",
            "REPLACE INTO sale VALUES (1, 1, 0)",
        ),
        *("INSERT INTO sale(amount) SELECT amount FROM sale", "INSERT INTO sale DEFAULT VALUES RETURNING id"),
        *("WITH x AS (SELECT 1 a) INSERT INTO sale(amount) SELECT a FROM x", "WITH x AS (SELECT 1) DELETE FROM sale"),
        *(
            "WITH x AS (SELECT 1) UPDATE sale SET amount = 1",
            "INSERT INTO sale VALUES (1,1,1) ON CONFLICT DO UPDATE SET amount = 0",
        ),
        *(
            "CREATE TABLE t(a)",
            "CREATE TABLE t AS SELECT 1",
            "CREATE TEMP TABLE t(a)",
            "CREATE TEMP VIEW t AS SELECT 1",
        ),
        *("CREATE VIEW w AS SELECT 1", "CREATE INDEX i ON sale(amount)", "CREATE VIRTUAL TABLE ft USING fts5(a)"),
        *(
            "CREATE TRIGGER tr AFTER INSERT ON sale BEGIN DELETE FROM sale; END",
            "DROP TABLE sale",
            "DROP VIEW v",
            "DROP INDEX ix",
        ),
        *("ALTER TABLE sale RENAME TO gone", "ALTER TABLE sale ADD COLUMN x", "ALTER TABLE sale DROP COLUMN amount"),
        *("REINDEX", "ANALYZE", "VACUUM", f"VACUUM INTO '{other}/copy.db'", f"VACUUM main INTO '{other}/copy.db'"),
        *(
            f"ATTACH '{other}/new.db' AS n",
            f"ATTACH DATABASE 'file:{other}/new.db?mode=rwc' AS n",
            "ATTACH ':memory:' AS n",
        ),
        *("DETACH main", "BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "SAVEPOINT s", "RELEASE s", "END"),
        *(
            "PRAGMA journal_mode = wal",
            "PRAGMA journal_mode(wal)",
            "PRAGMA main.journal_mode = delete",
            "PRAGMA query_only = off",
        ),
        *(
            "PRAGMA writable_schema = on",
            "PRAGMA user_version = 7",
            "PRAGMA application_id = 7",
            "PRAGMA auto_vacuum = full",
        ),
        *("PRAGMA wal_checkpoint", "PRAGMA optimize", "PRAGMA incremental_vacuum", "PRAGMA foreign_keys = off"),
        *(f"PRAGMA temp_store_directory = '{other}'", "SELECT * FROM pragma_journal_mode('wal')"),
        *("SELECT load_extension('/tmp/x.so')", "SELECT fts3_tokenizer('simple', x'00')", "SELECT writefile('x', 'y')"),
        *("SELECT 1; DELETE FROM sale", "SELECT 1; ; DELETE FROM sale", "COMMIT; INSERT INTO sale(amount) VALUES (1)"),
        *(
            "/* SELECT */ DELETE FROM sale",
            "-- SELECT\nDELETE FROM sale",
            "\ufeffDELETE FROM sale",
            "EXPLAIN DELETE FROM sale",
        ),
        *(
            "INSERT INTO sqlite_schema VALUES (1,2,3,4,5)",
            "DELETE FROM sqlite_master",
            "UPDATE sqlite_sequence SET seq = 9",
        ),
    )


def duckdb_statements(path: str, other: str) -> Sequence[str]:
    """Statements against the database in the file `path`; files that they would make are in the folder `other`."""
    out = (f"{path}", f"{path}.wal", f"{other}/x")
    copies = [
        f"{verb}COPY {what} TO '{file}' ({options})"
        for verb in ("", "EXPLAIN ANALYZE ")
        for what in ("sale", "(SELECT 'zzz')")
        for file in out
        for options in ("FORMAT csv, USE_TMP_FILE false", "FORMAT parquet", "FORMAT json")
    ]
    files = [
        f"SELECT * FROM {function}('{file}')"
        for function in (
            "read_csv",
            "read_csv_auto",
            "read_json",
            "read_ndjson",
            "read_parquet",
            "read_text",
            "read_blob",
            "glob",
            "sniff_csv",
        )
        for file in ("/etc/passwd", f"{other}/*", "https://127.0.0.1:9/x")
    ]
    return (
        *copies,
        *files,
        *("INSERT INTO sale VALUES (9, 1, 1.0)", "UPDATE sale SET amount = 0", "DELETE FROM sale", "TRUNCATE sale"),
        *(
            "INSERT INTO sale SELECT * FROM sale",
            "INSERT OR REPLACE INTO customer VALUES (1, 'x')",
            "FROM sale INSERT INTO sale",
        ),
        *("WITH x AS (SELECT 1) DELETE FROM sale", "WITH x AS (SELECT 9 a) INSERT INTO sale SELECT a, 1, 1 FROM x"),
        *(
            "INSERT INTO customer VALUES (3, 'x') RETURNING id",
            "MERGE INTO sale USING customer ON true WHEN MATCHED THEN DELETE",
        ),
        *(
            "CREATE TABLE t(a int)",
            "CREATE TABLE t AS SELECT 1",
            "CREATE TEMP TABLE sale AS SELECT 1",
            "CREATE VIEW w AS SELECT 1",
        ),
        *(
            "CREATE OR REPLACE TABLE sale AS SELECT 1",
            "CREATE MACRO m() AS 1",
            "CREATE SEQUENCE q",
            "CREATE SCHEMA s",
            "CREATE TYPE e AS ENUM ('a')",
        ),
        *(
            "CREATE INDEX i ON sale(amount)",
            "CREATE SECRET (TYPE s3)",
            "CREATE PERSISTENT SECRET (TYPE s3)",
            "DROP TABLE sale",
            "DROP VIEW v",
        ),
        *(
            "ALTER TABLE sale RENAME TO gone",
            "ALTER TABLE sale ADD COLUMN x int",
            "ALTER TABLE sale DROP amount",
            "COMMENT ON TABLE sale IS 'x'",
        ),
        *(
            "BEGIN",
            "COMMIT",
            "ROLLBACK",
            "ABORT",
            "CHECKPOINT",
            "FORCE CHECKPOINT",
            "VACUUM",
            "VACUUM ANALYZE",
            "ANALYZE",
        ),
        *(
            f"ATTACH '{other}/n.db' AS n",
            f"ATTACH '{path}' AS n (READ_ONLY)",
            "ATTACH ':memory:' AS n",
            "DETACH main",
            "USE main",
        ),
        *(
            f"EXPORT DATABASE '{other}/e'",
            f"IMPORT DATABASE '{other}/e'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "LOAD '/tmp/x.so'",
        ),
        *(
            f"COPY sale FROM '{other}/x'",
            "COPY FROM DATABASE main TO main",
            f"COPY sale TO '{path}'",
            "UPDATE EXTENSIONS",
        ),
        *(
            "SET enable_external_access = true",
            "SET lock_configuration = false",
            "RESET memory_limit",
            "SET VARIABLE x = 1",
        ),
        *(
            f"SET log_query_path = '{other}/log'",
            f"PRAGMA profiling_output = '{other}/p'",
            "PRAGMA enable_profiling",
            "PRAGMA version",
        ),
        *(
            f"SET temp_directory = '{other}'",
            "SET memory_limit = '9GB'",
            "PRAGMA database_size",
            "PRAGMA import_database('x')",
        ),
        *(
            "CALL pragma_version()",
            "CALL enable_logging()",
            "CALL checkpoint()",
            "PREPARE p AS DELETE FROM sale",
            "EXECUTE p",
            "DEALLOCATE p",
        ),
        *(
            "EXPLAIN DELETE FROM sale",
            "EXPLAIN ANALYZE DELETE FROM sale",
            "EXPLAIN ANALYZE SELECT 1",
            "EXPLAIN COPY sale TO '/tmp/x'",
        ),
        *(
            "SELECT nextval('counter')",
            "SELECT 1; DELETE FROM sale",
            "SELECT 1;; DELETE FROM sale",
            "COMMIT; DELETE FROM sale",
        ),
        *(
            "/* SELECT */ DELETE FROM sale",
            "-- SELECT\nDELETE FROM sale",
            "SELECT * FROM frame",
            "SELECT * FROM query('DELETE FROM sale')",
        ),
        *(
            "SELECT * FROM checkpoint()",
            "SELECT * FROM force_checkpoint()",
            "SELECT write_log('x')",
            "SELECT getenv('HOME')",
        ),
        *("PIVOT sale ON amount USING count(*); DELETE FROM sale", "SELECT * FROM '/etc/passwd'", "FROM 'x.csv'"),
    )


def postgres_statements(other: str) -> Sequence[str]:
    """108 statements; files that they would make are in the folder `other`."""
    stacked = [
        f"{first}; {second}"
        for first in (
            "SELECT 1",
            "COMMIT",
            "ROLLBACK",
            "SET TRANSACTION READ WRITE",
            "END",
            "CLOSE ALL",
            "RESET ALL",
            "ABORT",
        )
        for second in ("INSERT INTO sale VALUES (9, 1, 1)", "DELETE FROM sale", "DROP TABLE sale")
    ]
    return (
        *stacked,
        *(
            "INSERT INTO sale VALUES (9, 1, 1)",
            "UPDATE sale SET amount = 0",
            "DELETE FROM sale",
            "TRUNCATE sale",
            "MERGE INTO sale USING customer ON true WHEN MATCHED THEN DELETE",
        ),
        *(
            "WITH x AS (DELETE FROM sale RETURNING id) SELECT * FROM x",
            "WITH x AS (INSERT INTO sale VALUES (9,1,1) RETURNING id) SELECT * FROM x",
        ),
        *(
            "WITH x AS (UPDATE sale SET amount = 0 RETURNING id) SELECT * FROM x",
            "SELECT * INTO t FROM sale",
            "SELECT * FROM sale FOR UPDATE",
        ),
        *(
            "CREATE TABLE t(a int)",
            "CREATE TEMP TABLE t(a int)",
            "CREATE TABLE t AS SELECT 1",
            "CREATE VIEW w AS SELECT 1",
            "CREATE INDEX ON sale(amount)",
        ),
        *(
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE ROLE r",
            "CREATE DATABASE d",
            "CREATE EXTENSION dblink",
            "CREATE SCHEMA s",
        ),
        *(
            "DROP TABLE sale",
            "DROP ROLE plain",
            "ALTER TABLE sale ADD x int",
            "ALTER ROLE plain SUPERUSER",
            "ALTER SYSTEM SET work_mem = '1GB'",
        ),
        *(
            "ALTER ROLE plain SET statement_timeout = 0",
            "GRANT ALL ON sale TO PUBLIC",
            "REVOKE ALL ON sale FROM plain",
            "COMMENT ON TABLE sale IS 'x'",
        ),
        *(
            "BEGIN",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT s",
            "SET TRANSACTION READ WRITE",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        ),
        *(
            "SET transaction_read_only = off",
            "SET ROLE owner",
            "SET SESSION AUTHORIZATION owner",
            "RESET ALL",
            "DISCARD ALL",
            "SET statement_timeout = 0",
        ),
        *(
            f"COPY sale TO '{other}/x'",
            "COPY sale TO STDOUT",
            "COPY (SELECT 1) TO PROGRAM 'touch x'",
            f"COPY sale FROM '{other}/x'",
            "COPY sale FROM STDIN",
            "COPY sale FROM PROGRAM 'id'",
        ),
        *(
            "EXPLAIN ANALYZE DELETE FROM sale",
            "EXPLAIN (ANALYZE) INSERT INTO sale VALUES (9,1,1)",
            "EXPLAIN ANALYZE SELECT 1",
            "EXPLAIN DELETE FROM sale",
        ),
        *(
            "DO $$ BEGIN DELETE FROM sale; END $$",
            "CALL p()",
            "PREPARE p AS DELETE FROM sale",
            "EXECUTE p",
            "DECLARE c CURSOR FOR SELECT 1",
            "FETCH ALL FROM pegboard",
        ),
        *(
            "VACUUM",
            "ANALYZE",
            "REINDEX TABLE sale",
            "CLUSTER",
            "CHECKPOINT",
            "REFRESH MATERIALIZED VIEW v",
            "LOCK TABLE sale",
            "LOAD 'x'",
        ),
        *(
            "NOTIFY ch, 'x'",
            "LISTEN ch",
            "SELECT pg_notify('ch', 'x')",
            "SELECT nextval('sale_id_seq')",
            "SELECT setval('sale_id_seq', 99)",
            "SHOW ALL",
        ),
        *(
            "SELECT pg_read_file('/etc/passwd')",
            "SELECT pg_read_binary_file('/etc/passwd')",
            "SELECT pg_ls_dir('.')",
            "SELECT pg_stat_file('/etc/passwd')",
        ),
        *(
            "SELECT lo_import('/etc/passwd')",
            "SELECT lo_export(1, '/tmp/x')",
            "SELECT lo_create(77)",
            "SELECT lo_from_bytea(78, 'x')",
            "SELECT lo_put(77, 0, 'x')",
        ),
        *(
            "SELECT set_config('transaction_read_only', 'off', false)",
            "SELECT set_config('role', 'owner', false)",
            "SELECT pg_reload_conf()",
        ),
        *(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
            "SELECT pg_switch_wal()",
            "SELECT pg_stat_reset()",
            "SELECT pg_create_restore_point('x')",
        ),
        *(
            "SELECT query_to_xml('DELETE FROM sale', true, true, '')",
            "SELECT remove()",
            "SELECT pg_advisory_lock(1)",
            "SELECT 1) q(c0); DELETE FROM sale; --",
        ),
        *(
            "SELECT pg_logical_emit_message(true, 'a', 'b')",
            "/* SELECT */ DELETE FROM sale",
            "-- SELECT\nDELETE FROM sale",
            "TABLE sale; DELETE FROM sale",
        ),
    )
