"""JSON Schemas and patterns that third parties wrote, judged in bounded time. A library: nothing is registered."""

from pegboard_schemas._judged import Judged, judged
from pegboard_schemas._patterns import as_re2, compiled_pattern

__all__ = ["Judged", "as_re2", "compiled_pattern", "judged"]
