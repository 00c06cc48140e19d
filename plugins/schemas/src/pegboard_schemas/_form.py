"""Forms of third parties: what they ask for, what a user writes for it, and whether an answer may be sent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Final, final

from attrs import field, frozen

from pegboard_schemas._judged import judged

__all__ = ["FORMATS", "Form", "FormField"]

_INTEGER: Final = re.compile(r"-?\d{1,4000}")
_NUMBER: Final = re.compile(r"-?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,5})?")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


@final
@frozen
class FormField:
    """A member that a form asks for.

    Args:
        name: Name of the member.
        schema: Its schema.
        required: Whether it must be filled in.
        title: Title for the person.
        description: Description for the person.
        choices: Values it can have, each with its label. Empty where it is free.
        several: Whether it takes a list of the choices.
        private: Whether what is written into it is not shown.
    """

    name: str
    schema: Mapping[str, Any] = field(repr=False)
    required: bool
    title: str
    description: str
    choices: tuple[tuple[Any, str], ...] = field(repr=False)
    several: bool
    private: bool

    @property
    def has_default(self) -> bool:
        """Whether the form has a value for it, so that it may be left out even where it is required."""
        return "default" in self.schema

    @property
    def kind(self) -> str:
        """What it takes, in a word or two: `integer`, `date`, `text`, `one of these`."""
        if self.choices:
            return "some of these" if self.several else "one of these"
        label = self.schema.get("format") if _type(self.schema) == "string" else None
        return str(label or {"string": "text", None: "JSON"}.get(_type(self.schema), _type(self.schema)))

    def value(self, text: str) -> Any:
        """The value that a text stands for: one of the choices by its number, value or label, else by its type.

        Raises ValueError that says what is wrong, without the text.
        """
        if self.choices:
            return [self._choice(part) for part in text.split(",")] if self.several else self._choice(text)
        kind = _type(self.schema)
        if kind == "string":
            return text
        if kind == "boolean":
            return _boolean(text.strip().lower())
        if kind in ("integer", "number"):
            return _number(text.strip(), kind)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("expected JSON") from None

    def _choice(self, text: str) -> Any:
        text = text.strip()
        for named in (lambda value, label: text == _written(value), lambda value, label: text == label):
            for value, label in self.choices:
                if named(value, label):
                    return value
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
        if not 1 <= number <= len(self.choices):
            raise ValueError(f"expected a number from 1 to {len(self.choices)}, or one of the values")
        return self.choices[number - 1][0]


@final
class Form:
    """The form of a question: the JSON Schema of an object of plain members, which a third party wrote.

    `fields` are its members, in their order. Raises `RegistrationError` for a schema that cannot be used.

    Args:
        schema: The schema.
        where: Whose it is, for messages.
    """

    def __init__(self, schema: Mapping[str, Any], where: str = "the form") -> None:
        self._check = judged(schema, where).check
        self._schema = dict(schema)
        self._is_open = not {"additionalProperties", "patternProperties"}.isdisjoint(schema)
        required = set(schema.get("required", ()))
        properties: Mapping[str, Any] = schema.get("properties", {})
        self.fields = tuple(_field(name, part, name in required) for name, part in properties.items())
        self._names = {each.name for each in self.fields}

    def filled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given members, and the defaults of those that are not given."""
        return {each.name: each.schema["default"] for each in self.fields if each.has_default} | dict(given)

    def problems(self, answer: Any) -> list[str]:
        """Everything that keeps an answer from being sent, `name: reason` each, without any value of the answer.

        A member that the form does not have is a problem, unless the form says that it takes more.
        """
        unformatted = {each.name: _unformatted(each.schema) for each in self.fields}
        found = self._misfits(answer, {**self._schema, "properties": unformatted}, self._schema)
        if isinstance(answer, Mapping):
            strange = [] if self._is_open else [str(name) for name in answer if name not in self._names]
            found |= {_path(name): "the form has no such member" for name in strange}
            found = {**self._unusual(answer), **found}
        return [f"{path}: {reason}" if path else reason for path, reason in found.items()]

    def value(self, member: FormField, text: str) -> Any:
        """The value that a text stands for in a field. Raises ValueError that says why it does not fit."""
        value = member.value(text)
        found = self._misfits(value, _unformatted(member.schema), dict(member.schema))
        for reason in (*found.values(), *self._unusual({member.name: value}).values()):
            raise ValueError(reason)
        return value

    def _misfits(self, value: Any, *parts: dict[str, Any]) -> dict[str, str]:
        """What is wrong by these parts of the schema, by its path; where a value fits none the first one says why."""
        found: dict[str, str] = {}
        for part in parts:
            problems = self._check.problems(value, redact=_masked, part=part)
            found = {problem.path: _worded(problem.message) for problem in problems} | found
        return found

    def _unusual(self, answer: Mapping[str, Any]) -> dict[str, str]:
        """What a validator may let pass: formats that it does not know, and numbers that JSON does not have."""
        found = {}
        for each in self.fields:
            value = answer.get(each.name)
            if isinstance(value, float) and not math.isfinite(value):
                found[_path(each.name)] = "expected a finite number"
            check, example = FORMATS.get(each.schema.get("format"), (None, ""))
            if check is not None and isinstance(value, str) and not check(value):
                found[_path(each.name)] = f'expected {each.schema["format"]} string: write it as "{example}"'
        return found


def _field(name: str, part: Any, required: bool) -> FormField:
    schema: Mapping[str, Any] = part if isinstance(part, Mapping) else {}
    several = _type(schema) == "array"
    of: Any = schema.get("items", {}) if several else schema
    return FormField(
        name=name,
        schema=schema,
        required=required,
        title=_text(schema, "title"),
        description=_text(schema, "description"),
        choices=tuple(_choices(of) if isinstance(of, Mapping) else ()),
        several=several,
        private=schema.get("format") == "password" or schema.get("writeOnly") is True,
    )


def _choices(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """The values that a schema names, with their labels: `enum` with `enumNames`, or `oneOf` of `const` and `title`."""
    values = schema.get("enum", [])
    labels = schema.get("enumNames", [])
    for number, value in enumerate(values):
        label = labels[number] if isinstance(labels, list) and number < len(labels) else value
        yield value, _written(label)
    several = schema.get("oneOf", schema.get("anyOf", []))
    if not values and all(isinstance(each, Mapping) and "const" in each for each in several):
        yield from ((each["const"], _text(each, "title") or _written(each["const"])) for each in several)


def _type(schema: Mapping[str, Any]) -> str | None:
    """The type of a value; of several the first that is not null."""
    kind = schema.get("type")
    several = [each for each in kind if each != "null"] if isinstance(kind, list) else [kind]
    return several[0] if several else "null"


def _text(schema: Mapping[str, Any], keyword: str) -> str:
    found = schema.get(keyword)
    return found if isinstance(found, str) else ""


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _boolean(text: str) -> bool:
    if text in ("y", "yes", "true", "n", "no", "false"):
        return text[0] in "yt"
    raise ValueError("expected yes or no")


def _number(text: str, kind: str) -> int | float:
    if _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    raise ValueError(f"expected {kind}")


def _unformatted(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword != "format"}


def _masked(text: str) -> str:
    return "***"


def _worded(message: str) -> str:
    """What is wrong, without the value that was given instead, but with how to write the right one."""
    message, _, value = message.partition(", got ")
    hint = value.partition(_masked(""))[2]
    return message + (hint if hint.startswith(": write") else "")


def _path(name: str) -> str:
    return name if name.isidentifier() and len(name) <= 60 else f"[{json.dumps(name, ensure_ascii=False)}]"


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _is_iso(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    text = text.upper()
    return _TIME.fullmatch(text) is not None and _is_iso(datetime.fromisoformat, text)


def _is_iso(read: Callable[[str], Any], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


FORMATS: Final[Mapping[Any, tuple[Callable[[str], Any] | None, str]]] = {
    "date": (_is_date, "2024-05-06"),
    "date-time": (_is_time, "2024-05-06T07:08:09Z"),
    "email": (_EMAIL.fullmatch, "ann@example.com"),
    "uri": (_URI.fullmatch, "https://example.com"),
}
