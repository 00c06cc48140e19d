"""Built-in sources: functions, objects and classes with `@tool` methods, tools by hand, and what lists its tools."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pegboard._base.errors import RegistrationError
from pegboard._base.names import legal_names
from pegboard._model.tool import Tool, ToolOptions, declared_options, declared_toolset
from pegboard._tools.definition import unread
from pegboard._tools.signature import read_function
from pegboard.extension import ToolSource
from pegboard.hookspecs import hookimpl

if TYPE_CHECKING:
    from pegboard._model.program import Toolset

# What a tool by hand may say of itself, as attributes.
_FLAGS: Final = ("read_only", "destructive", "idempotent", "open_world", "strict", "defer")


@hookimpl
def tools_from(source: Any) -> Iterable[Any] | None:
    """An object that is its own answer is a function: it is read as such."""
    if isinstance(source, type):
        source = _instantiated(source)
    methods = _tool_methods(source)
    if methods:
        return [_toolset(source, methods)]
    if _is_handwritten(source):
        return [_handwritten(source, source.name)]
    if callable(source):
        return [source]
    if isinstance(source, ToolSource):
        return list(_listed(list(source.tools())))
    return None


def _instantiated(cls: type) -> Any:
    try:
        return cls()
    except TypeError as error:
        remedy = f"register an instance: register({cls.__name__}(...))"
        raise RegistrationError(f"{cls.__qualname__} cannot be made without arguments ({error}); {remedy}") from error


def _tool_methods(source: Any) -> dict[str, ToolOptions]:
    """The names and options of `@tool` methods, in the order of their first definition, inherited ones included.

    Classes are read without touching the instance: a property must not run because tools are looked for.
    """
    if inspect.isroutine(source):
        return {}
    members: dict[str, Any] = {}
    for cls in reversed(type(source).__mro__):
        members |= vars(cls)  # a name keeps its place, whatever it is in a narrower class
    found = ((name, declared_options(member)) for name, member in members.items())
    return {name: options for name, options in found if options is not None}


def _toolset(source: Any, methods: Mapping[str, ToolOptions]) -> Toolset:
    from pegboard._model.program import Toolset

    declared = declared_toolset(type(source))
    tools = tuple(
        unread(read_function, getattr(source, attribute), f"{declared.prefix}{said.name or attribute}", said)
        for attribute, said in methods.items()
    )
    first_line = (type(source).__doc__ or "").strip().partition("\n")[0]
    return Toolset(declared.name or type(source).__name__, declared.description or first_line, tools)


def _is_handwritten(source: Any) -> bool:
    """Whether an object has what a tool by hand needs: `name`, `description`, `parameters` and `call(call)`.

    A `call` of None says that it runs elsewhere.
    """
    return (
        isinstance(getattr(source, "name", None), str)
        and isinstance(getattr(source, "description", None), str)
        and hasattr(source, "parameters")  # what they have to be is said where they are read
        and hasattr(source, "call")
        and (source.call is None or callable(source.call))
    )


def _handwritten(source: Any, name: str) -> Tool:
    from pegboard._tools.plan import Written, read_schema

    flags = {flag: getattr(source, flag, None) for flag in _FLAGS}
    said: dict[str, Any] = {flag: value for flag, value in flags.items() if isinstance(value, bool)}
    meta = getattr(source, "meta", None)
    said["meta"] = meta if isinstance(meta, Mapping) else {}
    options = ToolOptions(tags=tuple(getattr(source, "tags", ())), **said)
    promised, judge = (getattr(source, name, None) for name in ("returns", "judge"))
    returns = promised if isinstance(promised, Mapping) else None
    written = Written(source.description, source.parameters, source.call, returns, judge)
    return unread(read_schema, written, name, options)


def _listed(several: list[Any]) -> Iterator[Any]:
    """The tools of a source: those by hand may have any name there, and get a legal one here."""
    names = legal_names(each.name for each in several if _is_handwritten(each))
    for each in several:
        named = _is_handwritten(each)
        yield _handwritten(each, names[each.name]).evolve(source_name=each.name) if named else each
