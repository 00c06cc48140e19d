"""Problems: what is wrong with a JSON value, in words that a model can act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from attrs import field, frozen

from pegboard._base.errors import Mismatch, describe_exception, nearest
from pegboard._model.shapes import Deferred, RepairedText, Text, TypePlan
from pegboard._model.subschemas import TYPE_NAMES
from pegboard._schema.nodes import SchemaRef

# A model needs no more: walks stop here, so that a hostile value cannot make a report of unbounded size.
MOST_PROBLEMS = 1000

# Takes out of a text what no message may show.
Redact: TypeAlias = Callable[[str], str]

_LINE = 200


@frozen(slots=False)  # half the time of slots, and every refused call makes some
class Problem:
    """One thing that is wrong: where (`days`, `orders[2].qty`, empty for the whole value) and what.

    An `unchecked` one says only that it cannot be told.
    """

    path: str
    message: str
    unchecked: bool = field(default=False, kw_only=True)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def mismatch(path: str, wanted: str, value: Any, detail: str = "", redact: Redact | None = None) -> Problem:
    """A value that is not what was expected."""
    return Problem(path, f"expected {wanted}, got {got(value, redact)}{detail}")


def missing(path: str, wanted: str) -> Problem:
    """A member that must be there and is not."""
    return Problem(path, f"missing (required {wanted})")


def unknown(path: str, key: str, known: Sequence[str]) -> Problem:
    """A member of the object at `path` that it does not know."""
    noun = "member" if path else "argument"
    names = f" (known: {', '.join(known[:12])})" if known else ""
    return Problem(join(path, key), f"unknown {noun}{similar(key, known, repr) or names}")


def message(problems: Sequence[Problem | str], limit: int = 20) -> str:
    """All problems, in at most `limit` lines of at most 200 characters; the last says how many more there are."""
    shown = problems if len(problems) <= limit else problems[: limit - 1]
    lines = [_one_line(str(problem)) for problem in shown]
    if len(shown) < len(problems):
        more = "at least " if len(problems) >= MOST_PROBLEMS else ""
        lines.append(f"and {more}{len(problems) - len(shown)} more problems")
    return "\n".join(lines)


def _one_line(text: str) -> str:
    if len(text) <= _LINE and text.isprintable():  # most are, and splitting takes longer than to ask
        return text
    return _cut(" ".join(text.splitlines()), _LINE)


def join(path: str, key: str | int) -> str:
    """The path of an array's item or an object's member; keys that are no plain names are quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key.isidentifier() or len(key) > 60:
        return f"{path}[{spell(key)}]"
    return f"{path}.{key}" if path else key


def got(value: Any, redact: Redact | None = None) -> str:
    """The value for a message: its type and its JSON text, shortened to about 60 characters.

    Of what is not JSON, the Python class.
    """
    kind = TYPE_NAMES.get(str if type(value) is RepairedText else type(value))
    if value is None or kind is None:
        return kind or f"a Python {type(value).__name__}"
    if redact is None:
        return f"{kind} {spell(value)}"
    # Redacted before it is cut: half a secret is no longer recognised.
    return f"{kind} {_cut(redact(spell(value, limit=4096)), 60)}"


def spell(value: Any, limit: int = 60) -> str:
    """The value as JSON text, cut after `limit` characters; a large value is never written out first."""
    if type(value) is str and len(value) <= limit:
        return _cut(encode_basestring(value), limit + 2)
    return _cut(_spelled(value, limit), limit)


def _spelled(value: Any, limit: int) -> str:
    """The text, or more than `limit` characters of it."""
    if limit < 0:
        return ""
    if isinstance(value, str):
        return encode_basestring(value[: limit + 1])
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        # Python refuses to spell integers of more than 4,300 digits.
        return int.__repr__(value) if value.bit_length() < 4000 else f"of {value.bit_length()} bits"
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, (list, tuple)):
        return _enclosed("[", ((item,) for item in value), "]", limit)
    return _enclosed("{", value.items(), "}", limit) if isinstance(value, Mapping) else f"<{type(value).__name__}>"


def _enclosed(opening: str, members: Iterable[tuple[Any, ...]], closing: str, limit: int) -> str:
    """An array of items, or an object of keys with values."""
    text = opening
    for member in members:
        text += ", " if text != opening else ""
        text += ": ".join([_spelled(each, limit - len(text)) for each in member])
        if len(text) > limit:
            return text
    return text + closing


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def one_of(choices: Iterable[Any]) -> str:
    """`one of "C", "F"`, shortened where there are many."""
    several = list(choices)
    texts = [spell(choice) for choice in several[: 12 if len(several) <= 12 else 10]]
    if len(several) == 1:
        return texts[0]
    if len(texts) < len(several):
        texts.append(f"... ({len(several)} in all)")
    return f"one of {', '.join(texts)}"


def similar(value: Any, known: Iterable[Any], spelled: Redact = spell) -> str:
    """The question that follows a wrong name: `, did you mean "F"?`, or nothing where no name is near."""
    if not isinstance(value, str) or len(value) > 100:  # comparing is quadratic
        return ""
    close = nearest(value, [name for name in known if isinstance(name, str) and len(name) <= 200], limit=1)
    return f", did you mean {spelled(close[0])}?" if close else ""


def expectation(schema: Mapping[str, Any] | bool) -> str:
    """What a JSON Schema expects, in words: `integer >= 1`, `date string`, `one of "C", "F"`, `integer or null`."""
    schema = _target(schema)
    if not isinstance(schema, (dict, Mapping)):  # the first is what it is, and quickly told
        return "any value" if schema else "no value"
    if "type" in schema and _RICHER.isdisjoint(schema) and isinstance(schema["type"], str):
        return schema["type"]
    if "const" in schema:
        return spell(schema["const"])
    if "enum" in schema:
        return one_of(schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _alternatives(schema[several], "discriminator" in schema)
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type", "any value")
    words = " or ".join(kind) if isinstance(kind, list) else kind
    label = schema.get("format") or schema.get("contentEncoding")
    if label and kind == "string":
        return f"{label} string"
    bounds = [phrase.format(spell(schema[word])) for word, phrase in BOUNDS.items() if word in schema]
    return f"{words} {' and '.join(bounds)}" if bounds else str(words)


def written(schema: Mapping[str, Any] | bool) -> str:
    """How to write what a schema asks for, by its own example or that of its format; nothing where there is none."""
    said = schema if isinstance(schema, (dict, Mapping)) and schema.get("type") == "string" else {}
    example = next(iter(said.get("examples", ())), FORMATS.get(said.get("format") or said.get("contentEncoding")))
    return "" if example is None else f": write it as {spell(example)}"


FORMATS: Mapping[Any, str] = {
    "date-time": "2024-05-06T07:08:09Z",
    "date": "2024-05-06",
    "time": "07:08:09Z",
    "duration": "P1DT2H30M",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "base64": "aGVsbG8=",
}

BOUNDS = {
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "that is a multiple of {}",
    "minLength": "of at least {} characters",
    "maxLength": "of at most {} characters",
    "pattern": "matching {}",
    "minItems": "of at least {} items",
    "maxItems": "of at most {} items",
    "uniqueItems": "of unique items",
    "minProperties": "of at least {} members",
    "maxProperties": "of at most {} members",
}
_RICHER = frozenset({"const", "enum", "anyOf", "oneOf", "format", "contentEncoding", *BOUNDS})


def expected(plan: TypePlan) -> str:
    """What a plan expects, in words."""
    if isinstance(plan.shape, Text) and plan.shape.example:
        return f"string such as {spell(plan.shape.example)}"
    return expectation(plan.schema)


def settled(plan: TypePlan) -> TypePlan:
    """The plan behind a deferred one."""
    for _ in range(100):  # a type that is nothing but itself has no end
        if not isinstance(plan.shape, Deferred):
            break
        plan = plan.shape.resolve()
    return plan


def _alternatives(schemas: Sequence[Any], is_tagged: bool) -> str:
    """What each alternative expects; objects by what they must have, where there are several without a tag."""
    words = list(map(expectation, schemas))
    if words.count("object") > 1 and not is_tagged:
        for index, schema in enumerate(map(_target, schemas)):
            if words[index] == "object" and schema.get("required"):
                words[index] = f"object with {', '.join(schema['required'])}"
    return " or ".join(dict.fromkeys(words))


def _target(schema: Any) -> Any:
    """The schema that is meant by a reference to a type."""
    return schema.target if isinstance(schema, SchemaRef) else schema


def reason(error: BaseException, redact: Redact | None = None) -> str:
    """What an exception says; nothing for a bare mismatch, which only repeats what a problem says anyway."""
    if isinstance(error, BaseExceptionGroup):
        text = "; ".join(dict.fromkeys(map(_said, _leaves(error))))
    else:
        text = "" if isinstance(error, Mismatch) and not error.args else _said(error)
    return redact(text) if redact else text


def _said(error: BaseException) -> str:
    """The message; without what validators of attrs raise beside it, objects for programs."""
    match error:
        case TypeError(args=(str(text), _, *_)) | ValueError(args=(str(text), _, *_)) if type(error).__str__ is _PLAIN:
            return text
    return describe_exception(error)


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        yield from _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]


_PLAIN = BaseException.__str__
