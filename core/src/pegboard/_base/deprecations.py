"""What is deprecated: it still works, and warns with what to use instead. docs/versioning.md has the rules."""

from __future__ import annotations

import warnings
from typing import Final, NamedTuple


class Deprecation(NamedTuple):
    """A public name that will be removed: `pegboard.Name`, or the name of a hook.

    `since` is the version of the core that began to warn, `until` the first that does not have it. `instead` is the
    name that replaces it; the old name of `pegboard` gives what has this one.
    """

    name: str
    since: str
    until: str
    instead: str


DEPRECATIONS: Final[tuple[Deprecation, ...]] = ()


def warn_of(name: str, *, user: str = "", stacklevel: int = 1) -> Deprecation | None:
    """Warn if a name is deprecated, and return what is known of it. `user` is what uses it, if that is known.

    With a `stacklevel` of 1 the warning is about the line that calls this, as in `warnings.warn`.
    """
    found = next((each for each in DEPRECATIONS if each.name == name), None)
    if found is not None:
        text = f"{name} is deprecated since {found.since} and will be removed in {found.until}: use {found.instead}"
        warnings.warn(f"{user}{text}", DeprecationWarning, stacklevel=stacklevel + 1)
    return found
