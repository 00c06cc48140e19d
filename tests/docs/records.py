"""Lets the reference show the signatures of records: griffe, which makes it, knows dataclasses alone.

`docs/mkdocs.yml` names this module as an extension of griffe. It reads the sources and imports nothing of them.
"""

from collections.abc import Iterator
from typing import Any

import griffe

DECORATORS = ("attrs.define", "attrs.frozen")
# A hook of a pack is for the toolkit, which calls it; hooks.md describes each.
HOOKS = ("pegboard.hookimpl", "pegboard.hookspecs.hookimpl")
EMPTY = {"dict": "{}", "list": "[]", "tuple": "()"}


class Records(griffe.Extension):
    """Gives each attrs class, named tuple and class with `__new__` its constructor, and leaves hooks out."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Go through a package that has been loaded."""
        for member in list(_members(pkg)):
            if isinstance(member, griffe.Function):
                _spell_out(member)
                if {each.callable_path for each in member.decorators} & {*HOOKS}:
                    member.public = False
            if isinstance(member, griffe.Class) and "__init__" not in member.members:
                made_by = member.members.get("__new__")
                if _is_record(member):
                    member.set_member("__init__", _constructor(member, _all_fields(member)))
                elif isinstance(made_by, griffe.Function):
                    member.set_member("__init__", _constructor(member, list(made_by.parameters)[1:]))


def _members(parent: griffe.Module | griffe.Class) -> Iterator[griffe.Object]:
    for member in parent.members.values():
        if isinstance(member, griffe.Object):
            yield member
            if isinstance(member, griffe.Module | griffe.Class):
                yield from _members(member)


def _spell_out(function: griffe.Function) -> None:
    """Put the members of a typed dict in place of `**options`, where the docstring describes them one by one."""
    signature = function.overloads[-1] if function.overloads else function
    annotation = next((each.annotation for each in signature.parameters if each.name == "options"), None)
    if not (isinstance(annotation, griffe.ExprSubscript) and str(annotation.left) == "Unpack"):
        return
    if function.docstring is None or "options: " in function.docstring.value:
        return
    terms = function.modules_collection[griffe.ExprName(str(annotation.slice), function.parent).canonical_path]
    del function.parameters["options"]
    for each in [*reversed(terms.mro()), terms]:
        for name, member in each.members.items():
            by_keyword = griffe.ParameterKind.keyword_only
            default = _left_out(str(member.annotation))
            function.parameters[name] = griffe.Parameter(
                name, annotation=member.annotation, kind=by_keyword, default=default
            )


def _left_out(annotation: str) -> str:
    """What an option of a typed dict is where it is left out: nothing of its type."""
    empty = {"bool": "False", "Mapping": "{}", "Iterable": "()", "str | Iterable": "()", "Any": "None"}
    if annotation.endswith("None"):
        return "None"
    return next((value for kind, value in empty.items() if annotation.startswith(kind)), "...")


def _is_record(found: griffe.Class) -> bool:
    return _decorator(found) is not None or any(str(base) == "NamedTuple" for base in found.bases)


def _decorator(found: griffe.Class) -> griffe.Decorator | None:
    return next((each for each in found.decorators if each.callable_path in DECORATORS), None)


def _constructor(owner: griffe.Class, parameters: list[griffe.Parameter]) -> griffe.Function:
    itself = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    return griffe.Function("__init__", parameters=griffe.Parameters(itself, *parameters), returns="None", parent=owner)


def _all_fields(record: griffe.Class) -> list[griffe.Parameter]:
    """What a record is made of: fields of bases first, those by keyword alone last."""
    classes = [*reversed(record.mro()), record]
    fields = {each.name: each for one in classes if _is_record(one) for each in _fields(one)}
    return sorted(fields.values(), key=lambda each: each.kind is griffe.ParameterKind.keyword_only)


def _fields(record: griffe.Class) -> Iterator[griffe.Parameter]:
    decorator = _decorator(record)
    options = _arguments(decorator.value) if decorator else {}
    for name, member in record.members.items():
        if not isinstance(member, griffe.Attribute) or member.annotation is None or "property" in member.labels:
            continue
        if "instance-attribute" not in member.labels:  # a ClassVar
            continue
        is_call = isinstance(member.value, griffe.ExprCall) and member.value.function.canonical_path == "attrs.field"
        field = _arguments(member.value) if is_call else {}
        if field.get("init") == "False":
            continue
        factory = field.get("factory")
        default = EMPTY.get(factory, f"{factory}()") if factory else field.get("default") if is_call else member.value
        keyword_only = "True" in (options.get("kw_only"), field.get("kw_only"))
        kind = griffe.ParameterKind.keyword_only if keyword_only else griffe.ParameterKind.positional_or_keyword
        yield griffe.Parameter(name.lstrip("_"), annotation=member.annotation, kind=kind, default=default)


def _arguments(call: Any) -> dict[str, str]:
    """Keyword arguments of a call, as they stand in the source."""
    if not isinstance(call, griffe.ExprCall):
        return {}
    return {each.name: str(each.value) for each in call.arguments if isinstance(each, griffe.ExprKeyword)}
