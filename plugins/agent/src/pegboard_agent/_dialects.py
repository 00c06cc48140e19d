"""Dialects: those of the toolkit, and where it loads no plugins those of the library."""

from __future__ import annotations

from typing import Any

from pegboard import BoundDialect, Session, UnknownNameError

__all__ = ["dialect_named", "dialect_of"]


def dialect_of(session: Session, name: str) -> BoundDialect:
    """The dialect of that name over what a session offers. Raises `UnknownNameError` if there is none."""
    try:
        return session.dialect(name)
    except UnknownNameError:
        found = dialect_named(name)
        if found is None:
            raise
        return BoundDialect(found, session)


def dialect_named(name: str) -> Any:
    """The library's own dialect of that name; None if it has none."""
    from pegboard_dialects import provide_dialects

    return next((each for each in provide_dialects() if each.name == name), None)
