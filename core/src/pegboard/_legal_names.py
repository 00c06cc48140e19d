"""Legal names: names that others gave, made such that every provider can carry them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

__all__ = ["legal_name", "legal_names"]

LONGEST: Final = 64
_FOREIGN: Final = r"[^A-Za-z0-9_-]"


def legal_name(name: str) -> str:
    """`name` with `_` for what providers refuse; the end of one that is too long gives way to a hash of the whole."""
    clean = re.sub(_FOREIGN, "_", name)
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
