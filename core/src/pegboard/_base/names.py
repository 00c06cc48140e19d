"""Names: of tools, as every provider can carry them; of distributions and plugins, as installers compare them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from pegboard._base.errors import RegistrationError

# The tool that finds deferred ones: it comes by itself, so that names in views keep clear of it.
SEARCH_TOOL: Final = "search_tools"
# The plugin that the core's own tools come from, which are in no pack.
OWN: Final = "pegboard"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
LONGEST: Final = 64


# One name, or several.
Names: TypeAlias = str | Iterable[str]
# Other names for some: those that a mapping has, or what a function makes of every name.
Rename: TypeAlias = Mapping[str, str] | Callable[[str], str]


def listed(names: Names) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


@lru_cache(4096)
def normalise(name: str) -> str:
    """A distribution or entry-point name as installers compare it: `My_Pack.x` is `my-pack-x`."""
    plain = name.lower().replace("_", "-").replace(".", "-")
    return re.sub("--+", "-", plain) if "--" in plain else plain


def pack_name(name: str) -> str:
    """An entry-point name as tool names carry it: only `[a-z0-9_]`, and never two underscores in a row."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def check_name(name: Any) -> str:
    """`name`, if every provider can carry it: 1 to 64 letters, digits, `_` and `-`, first a letter or `_`."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    allowed = "providers accept 1 to 64 letters, digits, '_' and '-', starting with a letter or '_'"
    raise RegistrationError(f'{name!r} cannot be a tool name: {allowed}; give another one with name="..."')


def renamed(name: str, rename: Rename | None, prefix: str, own: str) -> str:
    """The new name of what its source calls `own`: what `rename` says of that, else `name`, behind the prefix."""
    if isinstance(rename, Mapping):
        name = rename.get(own, name)
    elif rename is not None:
        name = rename(own)
    return f"{prefix}{name}"


def legal_name(name: str) -> str:
    """`name` with `_` for what providers refuse; the end of one that is too long gives way to a hash of the whole."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if not clean[:1].isalpha() and clean[:1] != "_":
        clean = f"_{clean}"
    return clean if len(clean) <= LONGEST else _hashed(clean, name)


def legal_names(names: Iterable[str]) -> dict[str, str]:
    """The legal name of each of the names of one source: `a.b` is `a_b`, and carries a hash where there is an `a_b`."""
    cleaned = {name: legal_name(name) for name in names}
    taken = Counter(cleaned.values())
    return {
        name: clean if clean == name or taken[clean] == 1 else _hashed(clean, name) for name, clean in cleaned.items()
    }


def _hashed(clean: str, name: str) -> str:
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{clean[: LONGEST - 9]}_{digest}"
