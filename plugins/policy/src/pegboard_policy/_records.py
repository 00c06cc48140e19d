"""Records of the settings: limits and rules as a program or a file writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from pegboard import SettingsError
from pegboard.inspection import suggestion

__all__ = ["record_of"]

T = TypeVar("T", bound=attrs.AttrsInstance)


def record_of(cls: type[T], given: Any, form: str) -> T:
    """A record, or a mapping of its fields. Raises `SettingsError`, which shows the form, for what is neither."""
    if isinstance(given, cls):
        return given
    fields = attrs.fields(cls)
    try:
        if not isinstance(given, Mapping):
            raise TypeError(f"got {given!r}")
        known = [field.name for field in fields]
        for key in given:
            if key not in known:
                raise ValueError(f"unknown key {key!r}. {suggestion(str(key), known, noun='keys')}")
        for field in fields:
            if field.default is attrs.NOTHING and field.name not in given:
                raise ValueError(f"{field.name!r} is missing")
        return cls(**given)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{form}: {error.args[0]}") from error
