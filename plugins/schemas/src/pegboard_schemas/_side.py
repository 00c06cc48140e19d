"""One of two schemas that are compared: which values it surely accepts and surely refuses, in bounded steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from pegboard import ForeignSchema, Judge, spend
from pegboard_schemas._form import FORMATS
from pegboard_schemas._judged import judged

__all__ = ["ASSERTIONS", "SAMPLES", "Side", "asserted"]

ASSERTIONS: Final = frozenset(
    (
        *("$dynamicRef", "$recursiveRef", "$ref", "allOf", "anyOf", "else", "if", "not", "oneOf", "then"),
        *("const", "enum", "format", "maxLength", "minLength", "pattern", "type"),
        *("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"),
        *("contains", "items", "maxContains", "maxItems", "minContains", "minItems", "prefixItems", "uniqueItems"),
        *("additionalProperties", "dependentRequired", "dependentSchemas", "maxProperties", "minProperties"),
        *("patternProperties", "properties", "propertyNames", "required"),
        *("additionalItems", "dependencies", "unevaluatedItems", "unevaluatedProperties"),
    )
)
"""Keywords that refuse values. All others describe."""


def _is_time(text: str) -> bool:
    check = FORMATS["date-time"][0]
    return check is not None and bool(check(f"2000-01-01T{text}"))


# What stands for a format where jsonschema has no check of it, and texts that fit the format.
_CHECKS: Final[Mapping[str, Callable[[str], Any] | None]] = {
    **{name: check for name, (check, _) in FORMATS.items()},
    "duration": lambda text: text[:1] == "P" and text.isalnum(),
    "time": _is_time,
}
SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (example,) for name, (_, example) in FORMATS.items()},
    "duration": ("PT1H", "P1D"),
    "hostname": ("example.com",),
    "ipv4": ("192.0.2.1",),
    "ipv6": ("2001:db8::1",),
    "regex": ("a+",),
    "time": ("12:00:00Z",),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000",),
}


def _with_formats(keywords: Callable[[Any, Any], Mapping[str, Any]]) -> Callable[[Any, Any], Mapping[str, Any]]:
    """The same keywords, and a check of each format of Pegboard's own types where jsonschema comes without one."""

    def made(checks: Mapping[str, Any], formats: Any) -> Mapping[str, Any]:
        from jsonschema import ValidationError

        found = keywords(checks, formats)

        def check_format(validator: Any, name: Any, value: Any, schema: Any) -> Iterator[Any]:
            own = None if name in formats else _CHECKS.get(name)
            if own is None:
                yield from found["format"](validator, name, value, schema)
            elif isinstance(value, str):
                spend(1 + len(value) // 8)
                if not own(value):
                    yield ValidationError(f"is no {name}")

        return {**found, "format": check_format}

    return made


class Side:
    """A schema, and its root for the references in its parts. Raises `RegistrationError` for one that cannot be used.

    Each question is a check by jsonschema, with patterns matched by RE2. `left` is how many more may be asked.
    """

    def __init__(self, schema: Mapping[str, Any], where: str) -> None:
        found = judged(schema, where, refuses_many=False)
        judge = Judge(found.judge.survey, _with_formats(found.judge.keywords))
        self._check = ForeignSchema(schema, where, judge=judge)
        self._is_whole = not found.unchecked
        self.root = dict(schema)
        # In older drafts `items` and the neighbours of `$ref` mean other things.
        self.is_known = "2020-12" in str(schema.get("$schema", "2020-12"))
        self.left = 0

    def accepts(self, value: Any, part: Any) -> bool:
        """Whether a part of the schema surely accepts a value."""
        return self._answer(value, part) is True and self._is_whole

    def refuses(self, value: Any, part: Any) -> bool:
        """Whether a part of the schema surely refuses a value."""
        return self._answer(value, part) is False

    def _answer(self, value: Any, part: Any) -> bool | None:
        if isinstance(part, bool):
            return part
        self.left -= 1
        if self.left < 0:
            return None
        problems = self._check.problems(value, part=part)
        return None if any(each.unchecked for each in problems) else not problems

    def resolved(self, part: Any) -> Any:
        """A part that is a plain reference, followed; any other part as it is."""
        for _ in range(20):
            if not isinstance(part, Mapping) or set(asserted(part)) != {"$ref"}:
                break
            part = self.target(part["$ref"])
        return part

    def target(self, reference: str) -> Any:
        """What a reference within the schema leads to."""
        found: Any = self.root
        for step in unquote(reference).removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found[name]
        return found


def asserted(part: Any) -> dict[str, Any]:
    """The keywords of a part that refuse values; none for `true`."""
    if isinstance(part, bool):
        return {} if part else {"not": {}}
    return {keyword: value for keyword, value in part.items() if keyword in ASSERTIONS}
