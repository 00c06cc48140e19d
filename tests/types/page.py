"""Writes `docs/types.md` from the battery: `python -m tests.types.page > docs/types.md`, or `--check`."""

import dataclasses
import enum
import json
import re
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path, PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import attrs

from tests.types.battery import BATTERY, Entry
from tests.types.table import schema
from tests.workspace.project import ROOT

PAGE = ROOT / "docs" / "types.md"
HEAD = """\
<!-- Written by `python -m tests.types.page`: change the template there, or the battery, and write it anew. -->
# Types

This page says which Python types the parameters of a tool may have, what their JSON Schema is, and which values are
accepted. The rule behind all of it: a JSON value is accepted if and only if the schema accepts it, and the function
then receives the annotated Python type. It never receives a dict for a dataclass, or a string for a `date`. This is
tested with the values of the table below, with values made from the schemas and with random JSON, against another
validator.

## Rules

- **JSON types are exact.** `"1"` is no integer, `1` is no string, `true` is neither 1 nor `"true"`. Nothing is
  converted by Python's own constructors: `"False"` is not `False`, and `5.7` is no `int`.
- **Numbers are compared as JSON has it.** `1.0` is an integer and arrives as `int` where one is asked for; `1` is a
  number and arrives as `float`. NaN and infinities are not JSON.
- **Each type has one spelling as text:** a format of JSON Schema if there is one, otherwise a pattern in the schema. A
  `datetime` has an offset, a `timedelta` has no years or months, bytes are base64, keys of mappings are text.
- **Unions: the exact JSON type first, then the alternatives as written.** `1` is an `int` and `1.0` a `float` in both
  `int | float` and `float | int`; `datetime | str` tries the `datetime` first. An alternative that can never win, as
  the second of `str | datetime`, is refused when the tool is registered, with the remedy. Records that a `Literal`
  member tells apart become `oneOf` with a discriminator. (`typing` itself takes `Annotated[A | B, x]` for the same as
  `Annotated[B | A, x]` and gives the one that a program wrote first; put the metadata on the alternatives.)
- **`Optional[T] = None` is plain `T` that may be left out;** without a default it is required and nullable.
- **Bounds are enforced:** those of `annotated_types`, of `Param`, of `pydantic.Field` and of `msgspec.Meta`.
- **A type without a mapping is refused at registration** in one line that names the parameter, the annotation and what
  to do. [Overriding types](overriding-types.md) shows how to add a mapping, or how to change one.

Dataclasses, attrs classes, TypedDict and NamedTuple are `pegboard-dataclasses`; pydantic models, msgspec structs and
numpy arrays have packs of their own.

## Repairs

Models make mistakes that have one obvious meaning. Only after strict structuring has failed, each of these is tried,
and each leaves a note in `result.notes`. The rule: one reading only, nothing lost, and what real models send. What is
repaired fits the schema afterwards, but for moments without a zone, which arrive naive:

| sent | wanted | becomes |
|---|---|---|
| `"[1, 2]"`, `"{\\"a\\": 1}"` | array, object | the JSON that the text holds |
| all arguments in a fenced code block, or encoded twice | an object | the object, for every tool |
| `"3"`, `"+3"`, `"2.5"`, `"true"`, `"null"` | integer, number, boolean, null | the value that the text spells |
| `1`, `0` | boolean | true, false |
| `3` | a string | `"3"` |
| `null` | something that may be left out | left out |
| `""`, `"null"` | something that may be left out, and whose default is no text | left out |
| `""`, `"null"` | `Optional[T]` | null, or left out |
| `"Red"`, `"RED"`, `" red "` | an enum or Literal with `"red"` | `"red"` |
| `3`, `"a"`, `{"a": 1}` | an array of such | `[3]`, `["a"]`, `[{"a": 1}]` |
| `[1, 1, 2]` | a set | `[1, 2]` |
| `1.50` | `Decimal` | `"1.50"`, with the digits that were sent |
| `"2025-01-01T10:00:00"`, `"2025-01-01 10:00"`, `"10:00"` | `datetime`, `time` | the same, without a zone |
| `"2025-01-01 10:00Z"`, `"2025-01-01T10:00:00+0200"` | `datetime`, `time` | `"2025-01-01T10:00:00Z"` ... |
| `"2025-01-01"` | `datetime` | its midnight |
| `"2025-01-01T00:00:00"` | `date` | `"2025-01-01"` |
| `"01:30:00"` | `timedelta` | `"PT01H30M00S"` |
| a UUID in any form that `uuid.UUID` reads | `UUID` | the usual one |
| base64url, or base64 without its padding | `bytes` | base64 |

Spaces around the text of a number, boolean, enum or UUID are ignored. Keys of mappings are read as values are. Of the
alternatives of a union the one wins that needs the fewest repairs; where two need as few and mean something else, the
call is refused. An array is put around a value once, outside: `[1, 2]` for `list[list[int]]` has two readings and is
refused. A handler without a [shape](overriding-types.md) has numbers, booleans and null repaired by the `type` of its
schema; one with `Text(parse, example=..., repair=...)` says itself what else it reads.

Never repaired: text for a `str` parameter, which is never parsed; `5.7` or `"5.7"` for an integer; `"a, b"`, `""` or
`null` for an array; `"1"` or `"yes"` for a boolean, `"1e3"` for an integer, `"None"` for null; `"10:00 AM"`,
`"5 minutes"`, `"12/05/2025"` (the refusal shows how to write it); malformed JSON for a tool that is not `read_only`.

`Toolkit(repair="off")` repairs nothing, `"safe"` is the default, and `"max"` also repairs malformed JSON, for tools
that are `read_only` alone, if the package `json_repair` is installed (`pip install json_repair`): a truncated path must
not reach a tool that deletes.

### What real models send

The folder `tests/types/transcripts` has calls from public records, each with its source: answers that a leaderboard
recorded, and calls that people reported because they were refused or went wrong. Calls that fit their schema but mean
something else are not counted, because this cannot be seen. For a call whose meaning is unclear, "as meant" is that it
is refused.

__CALLS__

## Where schema and structuring differ

A schema cannot express these rules. A value that breaks one is refused although it fits the schema; it never arrives
wrong:

| type | difference | reason |
|---|---|---|
| `float` | integers beyond 1.8e308 are refused | a JSON number, but no float holds it |
| `datetime`, `time` | leap seconds (`23:59:60Z`) are refused | RFC 3339 has them, Python has not; validators differ |
| mappings | two spellings of one key are refused, as of a `UUID` or a moment | one member would be lost |
| `Annotated[T, Predicate(...)]` | the author's function decides | a schema has no functions |
| records | validators, converters and `__post_init__` decide | as above; what they raise is an argument error |
| types of [a cattrs converter](overriding-types.md) | its hooks decide, once the schema is satisfied | as above |
| pydantic's `Decimal` with bounds | the bound is pydantic's | text has no minimum |
| numpy arrays | rows of different lengths are refused | a schema does not compare lengths |
| Pillow images | base64 text that is no image file is refused | a schema does not read files |

## Results

The return annotation goes through the same handlers: `tool.returns` is the schema of `result.data`. It is None where
`data` could not keep to it:

- without an annotation, with `Any` or a generator, and for a type without a mapping;
- for content blocks, arrays of them and `ToolOutput`, which are content and not data;
- for types that a converter takes, such as `bytes`, and with `@tool(converter=...)`;
- for records that are written otherwise than they are read: an `InitVar` without a default, an attrs converter that
  takes another type, computed fields, serializers and validation aliases of pydantic, types that a cattrs converter
  has a hook to read but none to write. A handler of your own says so with `TypePlan(..., one_way=True)`.

Values that JSON or the schema does not have are written all the same: NaN and infinities as null, a moment without an
offset without one, and whatever a function returns instead of what it promised. Two plugins that map the returned type
equally well are refused at registration, as for a parameter.

## Names

`tool.json_schema(titles="qualified")` names every type in full, type arguments included. A NewType and a `type` alias
stand for another type, and have its title; only where they are an argument of a type does their own name show, as in
`list[shop.UserId]`, since that is how the type is written.

## The table

__COUNT__ annotations. What is sent → what arrives; where only one is shown, both are spelled the same. The names stand
for:

```python
__NAMES__
```

| annotation | schema | accepted | refused |
|---|---|---|---|
"""
NOTHING = (None, False, ())
"""What metadata holds where nothing was said; 0 says something."""
IMPORTS = """\
import enum
from typing import Annotated, NewType, TypeVar

from typing_extensions import TypeAliasType

from pegboard import Param

"""


def page() -> str:
    """The whole page."""
    from tests.types.transcripts import table  # needs packs and pydantic, which the rest of this module does not

    head = HEAD.replace("__COUNT__", str(len(BATTERY))).replace("__NAMES__", IMPORTS + definitions())
    head = head.replace("__CALLS__", table())
    return head + "".join(f"{row(entry)}\n" for entry in BATTERY)


def definitions() -> str:
    """The types that the battery defines, as they stand there."""
    source = (Path(__file__).parent / "battery.py").read_text("utf-8")
    found = re.search(r"^class Color.*?(?=^Fits = )", source, re.MULTILINE | re.DOTALL)
    assert found, "the battery defines no Color"
    return "\n" + re.sub(r"  # noqa.*", "", found[0]).strip()


def row(entry: Entry) -> str:
    good = [code(sent) + ("" if code(sent) == code_of(value) else f" → {code_of(value)}") for sent, value in entry.good]
    refused = "<br>".join(map(code, entry.bad))
    described = code(schema(entry.annotation))
    return f"| `{cell(spelled(entry.annotation))}` | {described} | {'<br>'.join(good)} | {refused} |"


def code(value: Any) -> str:
    return f"`{cell(json.dumps(value, ensure_ascii=False, default=float))}`"


def code_of(value: Any) -> str:
    # What JSON spells the same is shown once.
    return code(value) if is_json(value) else f"`{cell(python(value))}`"


def is_json(value: Any) -> bool:
    if type(value) is list:
        return all(map(is_json, value))
    if type(value) is dict:
        return all(type(key) is str and is_json(inner) for key, inner in value.items())
    return value is None or type(value) in (bool, int, float, str)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def python(value: Any) -> str:
    """A Python value as one would write it, the same on every system and in every run."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, PurePath):
        name = "Path" if type(value) is type(Path()) else type(value).__name__
        return f"{name}({value.as_posix()!r})"
    match value:
        case list():
            return f"[{', '.join(map(python, value))}]"
        case tuple():
            return f"({', '.join(map(python, value))}{',' * (len(value) == 1)})"
        case set() | frozenset() | deque():
            inner = [python(each) for each in value]
            ordered = inner if isinstance(value, deque) else sorted(inner)
            return f"{type(value).__name__}([{', '.join(ordered)}])" if inner else f"{type(value).__name__}()"
        case dict():
            return "{" + ", ".join(f"{python(key)}: {python(inner)}" for key, inner in value.items()) + "}"
    return repr(value)


def spelled(annotation: Any) -> str:
    """An annotation as one would write it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return f"Annotated[{', '.join([spelled(arguments[0]), *map(metadata, annotation.__metadata__)])}]"
    if origin in (Union, UnionType):
        return " | ".join(map(spelled, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(python, arguments))}]"
    if origin is not None:
        return f"{named(origin)}[{', '.join(map(spelled, arguments)) or '()'}]"
    return "..." if annotation is ... else named(annotation)


def named(found: Any) -> str:
    if found is NoneType or found is None:
        return "None"
    if isinstance(found, TypeVar):
        limit = (
            f"bound={spelled(found.__bound__)}" if found.__bound__ else ", ".join(map(spelled, found.__constraints__))
        )
        return f"TypeVar({found.__name__!r}, {limit})"
    # Python 3.13 moved the classes of pathlib into a module of their own.
    module = str(getattr(found, "__module__", "")).replace("pathlib._local", "pathlib")
    name = getattr(found, "__qualname__", None) or getattr(found, "__name__", None) or str(found)
    return name if module in ("builtins", "typing", __package__ + ".battery") else f"{module}.{name}"


def metadata(item: Any) -> str:
    """Metadata with what was said, and without what was not."""
    if isinstance(item, str):
        return repr(item)
    fields: Sequence[Any] = attrs.fields(type(item)) if attrs.has(type(item)) else dataclasses.fields(item)
    said = {field.name: getattr(item, field.name) for field in fields}
    said = {
        name: value for name, value in said.items() if not any(value is nothing for nothing in NOTHING) and value != {}
    }
    if len(fields) == 1:
        return f"{type(item).__name__}({python(next(iter(said.values())))})"
    return f"{type(item).__name__}({', '.join(f'{name}={python(value)}' for name, value in said.items())})"


def main(arguments: Sequence[str]) -> int:
    """Print the page; with `--check` say whether the one in `docs` is it."""
    if "--check" not in arguments:
        sys.stdout.write(page())
        return 0
    current = PAGE.read_text("utf-8") == page()
    print(f"{PAGE.relative_to(ROOT)} is {'as' if current else 'not what'} `python -m {__package__}.page` writes it")
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
