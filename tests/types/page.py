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

The schema of a tool is a promise. A JSON value is accepted by the schema if and only if it can be structured, and the
function then receives the annotated Python type: never a dict where it asked for a dataclass, never a string where it
asked for a `date`. For the types below this is tested with the values of the table, with values made from the schema
and with random JSON, against another validator of JSON Schema.

## Rules

- **JSON types are exact.** `"1"` is no integer, `1` is no string, `true` is neither 1 nor `"true"`. Nothing is
  converted by Python's own constructors: `"False"` is not `False`, and `5.7` is no `int`.
- **Numbers are compared as JSON has it.** `1.0` is an integer and arrives as `int` where one is asked for; `1` is a
  number and arrives as `float`. NaN and infinities are not JSON.
- **Text has one spelling for each type:** a format of JSON Schema where there is one, else a pattern in the schema.
  Moments carry an offset, durations have no years or months, bytes are base64, keys of mappings are text.
- **Unions: the exact JSON type first, then the alternatives as written.** `1` is an `int` and `1.0` a `float` in both
  `int | float` and `float | int`; `datetime | str` tries the moment first. An alternative that can never win, as the
  second of `str | datetime`, is refused when the tool is registered, with the remedy. Records that a `Literal` member
  tells apart become `oneOf` with a discriminator. (`typing` itself takes `Annotated[A | B, x]` for the same as
  `Annotated[B | A, x]` and gives the one that a program wrote first; put the metadata on the alternatives.)
- **`Optional[T] = None` is plain `T` that may be left out;** without a default it is required and nullable.
- **Bounds are enforced:** those of `annotated_types`, of `Param`, of `pydantic.Field` and of `msgspec.Meta`.
- **A type that nobody maps is refused at registration** in one line that names the parameter, the annotation and what
  to do. [Overriding types](overriding-types.md) shows how to map it, or how to map another one otherwise.

Dataclasses, attrs classes, TypedDict and NamedTuple are `pegboard-dataclasses`; pydantic models, msgspec structs and
numpy arrays have packs of their own.

## Repairs

Models make mistakes that have one obvious meaning. Only after strict structuring has failed, and never against the
promise (what is repaired has to fit the schema afterwards), each of these is tried, and each leaves a note in
`result.notes`:

| sent | wanted | becomes |
|---|---|---|
| `"[1, 2]"`, `"{\\"a\\": 1}"` | array, object | the JSON that the text holds |
| `"3"`, `"2.5"`, `"true"`, `"null"` | integer, number, boolean, null | the value that the text spells |
| `null` | something that may be left out | left out |
| `""`, `"null"` | `Optional[T]` | null, or left out |
| `"Red"`, `"RED"` | an enum or Literal with `"red"` | `"red"` |
| `3` | an array of integers | `[3]` |
| `3` | a string | `"3"` |

Keys of mappings are read as values are. Of the alternatives of a union the one wins that needs the fewest repairs. A
handler without a [shape](overriding-types.md) has numbers, booleans and null repaired by the `type` of its schema.

Never repaired: text for a `str` parameter, which is never parsed; `5.7` or `"5.7"` for an integer; `"abc"` for an array
of numbers; `1` or `"yes"` for a boolean; malformed JSON for a tool that is not `read_only`. `Toolkit(repair="off")`
repairs nothing.

## Where schema and structuring differ

No schema can say these; what fits the schema is refused then, and never arrives wrong:

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

- without an annotation, with `Any` or a generator, and for a type that nobody maps;
- for content blocks, arrays of them and `ToolOutput`, which are content and not data;
- for types that a converter takes, such as `bytes`, and with `@tool(converter=...)`;
- for records that are written otherwise than they are read: an `InitVar` without a default, an attrs converter that
  takes another type, computed fields, serializers and validation aliases of pydantic, types that a cattrs converter
  has a hook to read but none to write. A handler of your own says so with `Record(..., one_way=True)`.

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
    head = HEAD.replace("__COUNT__", str(len(BATTERY))).replace("__NAMES__", IMPORTS + definitions())
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
