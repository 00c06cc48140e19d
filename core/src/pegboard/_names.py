"""Names of distributions and plugins, as installers and as tools compare them."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["normalise", "pack_name"]


@lru_cache(4096)
def normalise(name: str) -> str:
    """A distribution or entry-point name as installers compare it: `My_Pack.x` is `my-pack-x`."""
    plain = name.lower().replace("_", "-").replace(".", "-")
    return re.sub("--+", "-", plain) if "--" in plain else plain


def pack_name(name: str) -> str:
    """An entry-point name as tool names carry it: only `[a-z0-9_]`, and never two underscores in a row."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
