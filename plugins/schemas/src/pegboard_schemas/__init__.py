"""JSON Schemas and patterns of third parties, judged in bounded time. It is a library and registers nothing."""

from pegboard_schemas._comparison import Comparison, compared_schemas, members_of
from pegboard_schemas._form import Form, FormField
from pegboard_schemas._judged import Judged, judged
from pegboard_schemas._patterns import PatternError, as_re2, compiled_pattern
from pegboard_schemas._search import LineSearch, compiled_search

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
