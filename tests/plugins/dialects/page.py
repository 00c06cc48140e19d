"""Writes the tables of `docs/dialects.md` from what dialects do: `python -m tests.plugins.dialects.page --write`."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pegboard import Block, FileBlock, Param, tool
from tests.plugins.dialects.desk import BLOCKS, NAMES, bound, definitions, result, schema_of, toolkit_of
from tests.workspace.project import ROOT

PAGE = ROOT / "docs" / "dialects.md"
BEGIN = "<!-- Written by `python -m tests.plugins.dialects.page --write`: do not edit until the end mark. -->\n"
END = "<!-- End of what is written. -->\n"

STRICT = ("openai", "anthropic")


def look(
    day: int = 3,
    code: Annotated[str, Param(pattern="^[a-z]+$")] = "a",
    kind: Literal["x"] = "x",
    size: Annotated[int, Param(ge=1, le=9)] = 1,
    place: tuple[int, str] = (1, "a"),
    tags: set[str] | None = None,
    note: str | None = None,
) -> None:
    """Look at everything."""


KEYWORDS = {
    "`default`": ("day", "default"),
    "`pattern`": ("code", "pattern"),
    "`const`": ("kind", "const"),
    "`minimum`, `maximum`": ("size", "minimum"),
    "`prefixItems` (tuples)": ("place", "prefixItems"),
    "`uniqueItems` (sets)": ("tags", "uniqueItems"),
}


def keyword_cell(schema: Mapping[str, Any], member: str, keyword: str) -> str:
    said = schema["properties"][member]
    if keyword in said:
        return "kept"
    words = f"{keyword}:" in said.get("description", "")
    if keyword == "const" and "enum" in said:
        return "an enum, and in words" if words else "an enum"
    return "in words" if words else "lost"


def optional_cell(schema: Mapping[str, Any]) -> str:
    return "required, may be null" if "note" in schema["required"] else "may be left out"


def open_cell(name: str, strict: bool) -> str:
    def count(of: dict[str, int]) -> None: ...

    if not strict:
        return "kept"
    (definition,) = definitions(toolkit_of(count), name, strict)
    kept = definition.get("function", definition).get("strict")
    return "kept" if kept else "sent without strict"


def schemas() -> Iterator[tuple[str, ...]]:
    """What becomes of a schema, where a provider does not take it as it is written."""
    columns = [("gemini", False), *((name, True) for name in STRICT)]
    yield ("", *(f"`{name}`{', strict' if strict else ''}" for name, strict in columns))
    found = [schema_of(definitions(toolkit_of(look), name, strict)[0]) for name, strict in columns]
    for row, (member, keyword) in KEYWORDS.items():
        yield (row, *(keyword_cell(schema, member, keyword) for schema in found))
    yield ("optional parameters", *map(optional_cell, found))
    yield ("members of any name (`dict[str, int]`)", *(open_cell(name, strict) for name, strict in columns))


@tool(read_only=True, strict=True, examples=[{"n": 1}])
def declared(n: int) -> int:
    """Declares everything."""
    return n


@tool(defer=True)
def deferred() -> None:
    """Is seldom needed."""


def strict_cell(name: str, said: str) -> str:
    return "yes" if '"strict": true' in said else "no"


FACETS: dict[str, Callable[[str, str], str]] = {
    "`strict`": strict_cell,
    "`examples`": lambda name, said: "`input_examples`" if "input_examples" in said else "no",
    "`defer`": lambda name, said: "`defer_loading`" if "defer_loading" in said else "no",
    "schema of results": lambda name, said: next(
        (f"`{each}`" for each in ("output_schema", "outputSchema", "response_json_schema") if each in said), "no"
    ),
    "hints": lambda name, said: "`annotations`" if "readOnlyHint" in said else "no",
    "groups": lambda name, said: "a `namespace` each" if '"namespace"' in said else "no",
}


def facets() -> Iterator[tuple[str, ...]]:
    """What a provider is told of a tool besides name, description and parameters."""
    yield ("", *(f"`{name}`" for name in NAMES))
    toolkit = toolkit_of(deferred)
    toolkit.create_group("numbers")
    toolkit.register(declared, group="numbers")
    said = {name: json.dumps(toolkit.dialect(name).tools()) for name in NAMES}
    for row, cell in FACETS.items():
        yield (row, *(cell(name, said[name]) for name in NAMES))


def holders(value: Any, holder: str = "", later: bool = False) -> Iterator[tuple[str, bool, str]]:
    """Every text in some messages, with the kind of part that it stands in, and whether the user says it."""
    if isinstance(value, dict):
        own = value.get("type")
        named = own if isinstance(own, str) and own not in ("base64", "url") and "media_type" not in value else holder
        for key, inner in value.items():
            of_a_kind = key in ("inline_data", "file_data") and isinstance(inner, dict)
            yield from holders(inner, key if of_a_kind else named, later or value.get("role") == "user")
    elif isinstance(value, list):
        for inner in value:
            yield from holders(inner, holder, later)
    elif isinstance(value, str):
        yield holder, later, value


def block_cell(name: str, block: Block) -> str:
    """Where the block itself stands in the messages, or that only words are left."""
    messages = bound(name).messages([result("text", block)])
    members: list[Any] = [getattr(block, member, None) for member in ("data", "url")]
    payloads = {member for member in members if isinstance(member, str)}
    contents: set[str] = {"a,b"} if isinstance(block, FileBlock) and block.name == "a.csv" else set()
    for holder, later, said in holders(messages):
        if holder in ("", "text", "input_text", "function_call_output", "tool_result"):
            if any(each in said for each in contents):
                return "its text"
        elif any(each in said for each in payloads | contents):
            return f"`{holder}`{', in a user message' if name == 'openai' and later else ''}"
    return "text" if block.text else "in words"


def results() -> Iterator[tuple[str, ...]]:
    """What becomes of results."""
    yield ("", *(f"`{name}`" for name in NAMES))
    for row, block in BLOCKS.items():
        yield (row, *(block_cell(name, block) for name in NAMES))
    yield ("that it is an error", *map(error_cell, NAMES))


def error_cell(name: str) -> str:
    said = json.dumps(bound(name).messages([result("Error: no", status="error")]))
    flags = {'"is_error": true': "`is_error`", '"isError": true': "`isError`", '"error":': "`error`"}
    return next((cell for flag, cell in flags.items() if flag in said), "in words")


def table(rows: Iterator[tuple[str, ...]]) -> str:
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, f"|{'---|' * (head.count('|') - 1)}", *body]) + "\n"


def section() -> str:
    """What is written into the page."""
    return f"""\
{BEGIN}
### Of a tool

{table(facets())}
### Of a schema

All formats but `gemini` get a schema as it is written, unless it is strict. "In words" is in the description, as in
`Forecast days {{default: 3}}`.

{table(schemas())}
### Of a result

"In words" is a sentence such as `[audio, audio/wav, 12 bytes: a tool message takes text alone]`.

{table(results())}
{END}"""


def page() -> str:
    """The page as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    return text[: text.index(BEGIN)] + section() + text[text.index(END) + len(END) :]


def main(arguments: Sequence[str]) -> int:
    """`--write` writes the page; otherwise print what belongs into it."""
    if "--write" in arguments:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(section(), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
