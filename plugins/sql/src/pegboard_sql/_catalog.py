"""Queries of the catalog of PostgreSQL: what a role is, which relations belong to tables, and what these are."""

from typing import Final

__all__ = ["ALLOWED", "COLUMNS", "POWERS", "READ", "TABLES", "TYPES"]

# The roles that a connection is, or can become, and that may do more than read and write tables.
POWERS: Final = """
SELECT DISTINCT CASE WHEN rolsuper THEN 'superuser' ELSE rolname END FROM pg_catalog.pg_roles
WHERE (rolsuper OR rolname IN
    ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend'))
AND (pg_catalog.pg_has_role(session_user, oid, 'MEMBER') OR pg_catalog.pg_has_role(current_user, oid, 'MEMBER'))"""

# The relations of some tables: themselves, their partitions and children, indexes, long values and sequences.
ALLOWED: Final = """
WITH RECURSIVE tables AS (
    SELECT coalesce(pg_catalog.to_regclass(pg_catalog.quote_ident(t)), pg_catalog.to_regclass(t))::oid AS oid
    FROM pg_catalog.unnest(%s::text[]) t
    UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tables t ON i.inhparent = t.oid
), stores AS (
    SELECT oid FROM tables WHERE oid IS NOT NULL
    UNION SELECT c.reltoastrelid FROM pg_catalog.pg_class c JOIN tables t ON c.oid = t.oid WHERE c.reltoastrelid <> 0
)
SELECT oid FROM stores
UNION SELECT i.indexrelid FROM pg_catalog.pg_index i JOIN stores s ON i.indrelid = s.oid
UNION SELECT d.objid FROM pg_catalog.pg_depend d JOIN tables t ON d.refobjid = t.oid
    JOIN pg_catalog.pg_class c ON c.oid = d.objid AND c.relkind = 'S'
    WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype IN ('a', 'i')"""

# Whether this transaction has locked a relation that is not among some. It locks none itself.
READ: Final = """
SELECT FROM pg_catalog.pg_lock_status() l
WHERE l.locktype = 'relation' AND l.pid = pg_catalog.pg_backend_pid() AND l.relation <> ALL (%s::oid[]) LIMIT 1"""

TYPES: Final = """
SELECT pg_catalog.format_type(t, m) FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY u(t, m, n) ORDER BY n"""

# The tables that the role may read, of some or of all.
TABLES: Final = """
SELECT c.oid, c.oid::pg_catalog.regclass::text, CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%%'
AND c.oid = ANY (coalesce(%s::oid[], ARRAY[c.oid])) AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')"""

# The columns of some tables; and what they refer to in some tables, or in all.
COLUMNS: Final = """
SELECT a.attrelid::pg_catalog.regclass::text, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
    NOT a.attnotnull, EXISTS (SELECT FROM pg_catalog.pg_index i
        WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)),
    (SELECT k.confrelid::pg_catalog.regclass::text || '(' || f.attname || ')'
     FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_attribute f
        ON f.attrelid = k.confrelid AND f.attnum = k.confkey[pg_catalog.array_position(k.conkey, a.attnum)]
     WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND a.attnum = ANY (k.conkey)
        AND k.confrelid = ANY (coalesce(%s::oid[], ARRAY[k.confrelid])) ORDER BY k.oid LIMIT 1)
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = ANY (%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"""
