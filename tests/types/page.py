"""Writes `docs/reference/type-table.md` from the battery: `python -m tests.types.page > ...`, or `--check`."""

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

PAGE = ROOT / "docs" / "reference" / "type-table.md"
HEAD = """\
<!-- Written by `python -m tests.types.page`: change the battery, and write it anew. -->
# Table of types

__COUNT__ annotations with their JSON Schema, and values that are accepted and refused. [Types](../types.md) has the
rules. An arrow leads from the value that is sent to the value that the function receives; without an arrow both are
spelled the same. The names stand for:

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
