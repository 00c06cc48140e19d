"""Selections: which operations of a document become tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, final

from attrs import field, fields, frozen

from pegboard_openapi._document import METHODS
from pegboard_openapi._operation import operation_id

__all__ = ["Selection", "excluded", "several"]


def several(given: Iterable[str]) -> tuple[str, ...]:
    """One text or many, as a tuple."""
    return (given,) if isinstance(given, str) else tuple(given)


def _known(methods: Iterable[str]) -> tuple[str, ...]:
    found = tuple(method.lower() for method in several(methods))
    unknown = sorted(set(found) - set(METHODS))
    if unknown:
        raise ValueError(f"methods: there is no {unknown[0]!r}; there are {', '.join(METHODS)}")
    return found


@final
@frozen
class Selection:
    """Tags, methods, and patterns of paths and operationIds. Raises ValueError for an unknown method."""

    tags: tuple[str, ...] = field(default=(), converter=several)
    methods: tuple[str, ...] = field(default=(), converter=_known)
    paths: tuple[str, ...] = field(default=(), converter=several)
    operations: tuple[str, ...] = field(default=(), converter=several)

    def fits_all(self, method: str, path: str, described: Mapping[str, Any]) -> bool:
        """Whether an operation fits each of these that is given, by any of its values."""
        return all(self._fits(method, path, described))

    def fits_any(self, method: str, path: str, described: Mapping[str, Any]) -> bool:
        """Whether an operation fits one of these."""
        return any(self._fits(method, path, described))

    def _fits(self, method: str, path: str, described: Mapping[str, Any]) -> Iterator[bool]:
        tags, own = described.get("tags"), operation_id(method, path, described)
        if self.tags:
            yield isinstance(tags, list) and any(each in self.tags for each in tags)
        if self.methods:
            yield method in self.methods
        if self.paths:
            yield any(fnmatchcase(path, each) for each in self.paths)
        if self.operations:
            yield any(fnmatchcase(own, each) for each in self.operations)


def excluded(given: Any) -> Selection:
    """What `exclude=` says: the four by name, or patterns, of paths if they begin with a slash, else of operationIds.

    Raises ValueError for what is neither.
    """
    if not isinstance(given, Mapping):
        patterns = several(given)
        paths = [each for each in patterns if each.startswith("/")]
        return Selection(paths=paths, operations=[each for each in patterns if not each.startswith("/")])
    known = [each.name for each in fields(Selection)]
    unknown = sorted(given.keys() - {*known})
    if unknown:
        raise ValueError(f"exclude: there is no {unknown[0]!r}; there are {', '.join(known)}")
    return Selection(**given)
