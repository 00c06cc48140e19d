"""What the pack brings to a toolkit that a worker assembles: backends that all are the worker's own thread."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final

from pegboard import Backend

__all__ = ["PLACES"]

PLACES: Final[ContextVar[Sequence[Backend]]] = ContextVar("pegboard_ray_places", default=())
"""They stand here while the toolkit is made; for any other there are none."""
