"""`pegboard types`: who maps which type."""

from __future__ import annotations

import ast
import builtins
import operator
from collections import Counter
from functools import reduce
from importlib import import_module
from typing import Any, Final

import click

from pegboard import Origin, Toolkit, TypeHandler, qualified_name
from pegboard.inspection import plugins_of
from pegboard_cli._options import ToolkitOptions, json_option, toolkit_options
from pegboard_cli._output.printing import console, json_lines, pairs, print_json, print_table, text
from pegboard_cli._toolkit import opened

__all__ = ["command"]

_HOMES: Final = ("typing", "collections.abc", "datetime", "decimal", "enum", "ipaddress", "pathlib", "re", "uuid")
"""Modules whose names need no module in front, as far as no builtin has them."""


@click.command("types")
@click.argument("annotation", required=False)
@json_option
@toolkit_options
@click.pass_obj
def command(options: ToolkitOptions, annotation: str | None, as_json: bool) -> None:
    """List type handlers, or say which one maps a type.

    ANNOTATION is written as in Python, with modules: 'list[int] | None', 'datetime.date', 'acme.Money'. The answer
    names the handler that wins, where it comes from, and those that it takes precedence over.
    """
    with opened(options) as toolkit:
        data: Any = _handlers(toolkit) if annotation is None else _winner(toolkit, annotation)
    if as_json:
        print_json(data)
    elif annotation is None:
        lines = Counter((each["matches"], _whence(each), str(each["priority"] or "")) for each in data)
        spelled = ([f"{kind} x{count}" if count > 1 else kind, *rest] for (kind, *rest), count in lines.items())
        print_table(console(), ("Type, or what decides", "From", "Priority"), spelled)
    else:
        _print_winner(data)


def _handlers(toolkit: Toolkit) -> list[dict[str, Any]]:
    """The handlers of plugins by type, then the core's own. A plugin's handler takes precedence over the core's."""
    given = plugins_of(toolkit).contributions("provide_types")
    data = [_data(each.value, each.origin) | {"builtin": each.builtin} for each in given]
    return sorted(data, key=lambda each: (each["builtin"], each["matches"], each["plugin"] or ""))


def _data(handler: TypeHandler, origin: Origin) -> dict[str, Any]:
    return {
        "matches": _spelled(handler.matches),
        "priority": handler.priority,
        "plugin": origin.plugin,
        "distribution": origin.distribution,
        "version": origin.version,
        "entry_point": origin.entry_point,
    }


def _spelled(matches: Any) -> str:
    if isinstance(matches, tuple):
        return ", ".join(map(qualified_name, matches))
    if isinstance(matches, type):
        module = "" if matches.__module__ == "builtins" else f"{matches.__module__}."
        return f"{module}{matches.__qualname__}"
    name = getattr(matches, "__qualname__", None)
    # A predicate made by a function is best known by that function.
    return f"{matches.__module__}.{name.partition('.<locals>')[0]}()" if name else str(matches)


def _winner(toolkit: Toolkit, annotation: str) -> dict[str, Any]:
    found = _read_annotation(annotation)
    handler, origin, shadowed = toolkit.types.handler_for(found)
    return {
        "annotation": annotation,
        "handler": _data(handler, origin),
        "shadows": [_data(*each) for each in shadowed],
        "overlap": next((each for each in toolkit.types.problems if f" map {qualified_name(found)};" in each), None),
        "schema": _schema(toolkit, found),
    }


def _schema(toolkit: Toolkit, annotation: Any) -> Any:
    """The schema as a tool's parameter has it, with the definitions that it refers to."""

    def value_of_type(value: Any) -> None: ...

    value_of_type.__annotations__ = {"value": annotation, "return": None}
    (tool,) = toolkit.register(value_of_type, on_conflict="rename")
    schema = tool.parameters
    shared = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {**schema["properties"].get("value", {}), **shared}


def _whence(data: dict[str, Any]) -> str:
    if data["distribution"]:
        return f"{data['distribution']} {data['version'] or '(unknown version)'}"
    return data["plugin"] or "the program"


def _print_winner(data: dict[str, Any]) -> None:
    out = console()
    handler = data["handler"]
    lines = [("Type", data["annotation"]), ("Mapped by", f"{handler['matches']}, from {_whence(handler)}")]
    lines += [("in front of", f"{each['matches']}, from {_whence(each)}") for each in data["shadows"]]
    if data["overlap"]:
        lines.append(("Overlap", data["overlap"]))
    out.print(pairs(lines))
    out.print(text("\nSchema", "bold"))
    out.print(json_lines(data["schema"]), soft_wrap=True)


# Annotations as they are written in source: `list[datetime.date] | None`, `acme.Money`; nothing is evaluated -------


def _read_annotation(source: str) -> Any:
    """The type that the text names. Raises `UsageError` naming the part that is unknown."""
    try:
        return _read(ast.parse(source.strip(), mode="eval").body)
    except SyntaxError:
        raise click.UsageError(f"{source!r} is no annotation; write it as in Python, such as 'list[int]'") from None


def _read(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _named(name)
        case ast.Attribute():
            return _dotted(ast.unparse(node))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return operator.or_(_read(left), _read(right))
        case ast.Subscript(value=value, slice=arguments):
            return _read(value)[_read(arguments)]
        case ast.Tuple(elts=elements):
            return tuple(map(_read, elements))
        case ast.List(elts=elements):
            return list(map(_read, elements))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
    raise click.UsageError(f"{ast.unparse(node)!r} is no part of an annotation; write a type, such as 'list[int]'")


def _named(name: str) -> Any:
    if hasattr(builtins, name):
        return getattr(builtins, name)
    for home in _HOMES:
        module = import_module(home)
        if hasattr(module, name):
            return getattr(module, name)
    raise click.UsageError(f"{name!r} is no builtin type; write it with its module, such as acme.{name}")


def _dotted(path: str) -> Any:
    """`package.module.Class`: as much of it as is a module is imported, the rest looked up."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:length])
        try:
            module = import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name and f"{module_name}.".startswith(f"{error.name}."):
                continue
            raise
        try:
            return reduce(getattr, parts[length:], module)
        except AttributeError:
            raise click.UsageError(f"the module {module_name!r} has no {'.'.join(parts[length:])!r}") from None
    raise click.UsageError(f"there is no module {parts[0]!r}; is it installed here?")
