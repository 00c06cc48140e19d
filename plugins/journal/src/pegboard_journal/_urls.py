"""URLs of journals: which kind of store one names."""

from __future__ import annotations

from pegboard_journal._store import JournalError, Store

__all__ = ["opened"]


def opened(url: str) -> Store:
    """The store that a URL names. Raises `JournalError` for one that names none."""
    scheme, colon, rest = url.partition("://")
    if colon and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from pegboard_journal._sqlite import SqliteStore

        return SqliteStore(rest[1:])
    if colon and scheme in ("postgresql", "postgres"):
        from pegboard_journal._postgres import PostgresStore

        return PostgresStore(url)
    remedy = "write sqlite:///calls.db, sqlite:////absolute/calls.db or postgresql://host/database"
    raise JournalError(f"the url of a journal names SQLite or PostgreSQL: {remedy}")
