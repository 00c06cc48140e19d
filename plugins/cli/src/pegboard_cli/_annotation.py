"""Annotations as they are written in source: `list[datetime.date] | None`, `acme.Money`. Nothing is evaluated."""

from __future__ import annotations

import ast
import builtins
import operator
from functools import reduce
from importlib import import_module
from typing import Any, Final

import click

__all__ = ["read_annotation"]

_HOMES: Final = ("typing", "collections.abc", "datetime", "decimal", "enum", "ipaddress", "pathlib", "re", "uuid")
"""Modules whose names need no module in front, as far as no builtin has them."""


def read_annotation(source: str) -> Any:
    """The type that the text stands for. Raises `UsageError` naming the part that stands for nothing."""
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
