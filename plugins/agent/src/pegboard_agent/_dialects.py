"""Dialects: those of the toolkit, and where it loads no plugins those of the library."""

from __future__ import annotations

from pegboard import BoundDialect, Session, UnknownNameError

__all__ = ["dialect_of"]


def dialect_of(session: Session, name: str) -> BoundDialect:
    """The dialect of that name over what a session offers. Raises `UnknownNameError` if there is none."""
    try:
        return session.dialect(name)
    except UnknownNameError:
        from pegboard_dialects import provide_dialects

        library = {each.name: each for each in provide_dialects()}
        if name not in library:
            raise
        return BoundDialect(library[name], session)
