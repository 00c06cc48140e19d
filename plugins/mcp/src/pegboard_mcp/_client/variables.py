"""Variables: `${NAME}` in what says how a server is reached."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

__all__ = ["expanded", "expanded_all", "variables"]

_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")


def expanded(text: str) -> str:
    """`text` with `${NAME}` and `${NAME:-default}` replaced from the environment. Raises `ValueError` naming it."""

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = os.environ.get(name, default)
        if found is None:
            raise ValueError(f"the environment variable {name!r} is not set")
        return found

    return _VARIABLE.sub(value, text)


def expanded_all(texts: Mapping[str, str] | None) -> dict[str, str]:
    """The same for all values of a mapping."""
    return {name: expanded(text) for name, text in (texts or {}).items()}


def variables(text: str) -> Iterator[str]:
    """The values of the variables that a text speaks of, as far as they are set."""
    for name, default in _VARIABLE.findall(text):
        yield os.environ.get(name, default)
