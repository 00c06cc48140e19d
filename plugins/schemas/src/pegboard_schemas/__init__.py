"""JSON Schemas and patterns of third parties, judged in bounded time. It is a library and registers nothing."""

from typing import TYPE_CHECKING, Any

from pegboard_schemas._form import Form, FormField
from pegboard_schemas._judged import Judged, judged
from pegboard_schemas._patterns import PatternError, as_re2, compiled_pattern
from pegboard_schemas._search import LineSearch, compiled_search

if TYPE_CHECKING:
    from pegboard_schemas._comparison import Comparison, compared_schemas, members_of

__all__ = [
    "Comparison",
    "Form",
    "FormField",
    "Judged",
    "LineSearch",
    "PatternError",
    "as_re2",
    "compared_schemas",
    "compiled_pattern",
    "compiled_search",
    "judged",
    "members_of",
]


def __getattr__(name: str) -> Any:
    # What compares two schemas is needed by one command, and the rest by each pack that reads a schema.
    if name not in ("Comparison", "compared_schemas", "members_of"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pegboard_schemas import _comparison

    found = globals()[name] = getattr(_comparison, name)
    return found
