"""Selections: which operations of a document become tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, final

from attrs import field, frozen

from pegboard_openapi._document import METHODS
from pegboard_openapi._operation import operation_id

__all__ = ["Selection", "several"]


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
    """Tags, methods, and patterns of paths and operationIds. Raises ValueError for an unknown method.

    An operation has to fit each of these that is given, by any of its values.
    """

    tags: tuple[str, ...] = field(converter=several)
    methods: tuple[str, ...] = field(converter=_known)
    paths: tuple[str, ...] = field(converter=several)
    operations: tuple[str, ...] = field(converter=several)

    def takes(self, method: str, path: str, described: Mapping[str, Any]) -> bool:
        """Whether an operation is selected."""
        tags, own = described.get("tags"), operation_id(method, path, described)
        return (
            (not self.methods or method in self.methods)
            and (not self.tags or (isinstance(tags, list) and any(each in self.tags for each in tags)))
            and (not self.paths or any(fnmatchcase(path, each) for each in self.paths))
            and (not self.operations or any(fnmatchcase(own, each) for each in self.operations))
        )
