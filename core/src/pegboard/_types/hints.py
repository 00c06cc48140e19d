"""Annotations of callables, resolved, with errors that name the parameter."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from types import CellType, FrameType, FunctionType, MethodType
from typing import Any, Final, Literal, TypeAlias

from pegboard._base.errors import RegistrationError, describe_exception
from pegboard._base.markers import MISSING

Kind: TypeAlias = Literal["sync", "async", "generator", "async_generator"]

_KIND: Final = inspect._ParameterKind
# Members of an enum are looked up in its class, at the cost of a call; these two are asked for at every registration.
_POSITIONAL_ONLY: Final = _KIND.POSITIONAL_ONLY
_POSITIONAL: Final = _KIND.POSITIONAL_OR_KEYWORD
_CLASSES: Final = frozenset({type})
# Attributes that make a function look other than its code says.
_DISGUISES: Final = frozenset(
    {"__no_type_check__", "__partialmethod__", "__signature__", "__wrapped__", "_partialmethod"}
)


def plain_function(target: Any) -> Any:
    """The function behind bound methods, partials, wrappers and callable objects."""
    while type(target) is not FunctionType or "__wrapped__" in target.__dict__:
        if isinstance(target, functools.partial):
            inner: Any = target.func
        elif inspect.ismethod(target):
            inner = target.__func__
        elif inspect.isfunction(target) or inspect.isbuiltin(target) or inspect.isclass(target):
            inner = inspect.unwrap(target)
        else:
            inner = getattr(type(target), "__call__", None)  # noqa: B004 - the method itself is wanted
            if not inspect.isfunction(inner):
                return target
        if inner is target:
            return target
        target = inner
    return target


def read_parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """Name, kind (as in `inspect.Parameter`) and default (`MISSING` without one) of each parameter, in order.

    Raises what `inspect.signature` raises: TypeError or ValueError where there is no signature.
    """
    # A fifth of the time of a `Signature`, which is half of what reading a tool takes.
    bound = isinstance(function, MethodType)
    plain: Any = function.__func__ if isinstance(function, MethodType) else function
    if type(plain) is FunctionType and "__wrapped__" in plain.__dict__:
        plain = inspect.unwrap(plain, stop=lambda wrapper: hasattr(wrapper, "__signature__"))
    if _is_plain(plain) and plain.__code__.co_argcount >= bound:
        return list(_written_parameters(plain))[bound:]
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, MISSING if each.default is each.empty else each.default) for each in parameters]


def _is_plain(function: Any) -> bool:
    return type(function) is FunctionType and _DISGUISES.isdisjoint(function.__dict__)


def _written_parameters(function: Any) -> Iterator[tuple[str, Any, Any]]:
    code = function.__code__
    names, positional = code.co_varnames, code.co_argcount
    defaults = function.__defaults__ or ()
    required = positional - len(defaults)
    for index in range(positional):
        kind = _POSITIONAL_ONLY if index < code.co_posonlyargcount else _POSITIONAL
        yield names[index], kind, MISSING if index < required else defaults[index - required]
    behind = positional + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        yield names[behind], _KIND.VAR_POSITIONAL, MISSING
    for name in names[positional:behind]:
        yield name, _KIND.KEYWORD_ONLY, (function.__kwdefaults__ or {}).get(name, MISSING)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        yield names[behind + bool(code.co_flags & inspect.CO_VARARGS)], _KIND.VAR_KEYWORD, MISSING


def read_hints(
    function: Callable[..., Any], namespace: Mapping[str, Any] | None = None, *, label: str = ""
) -> dict[str, Any]:
    """The annotations of `function` with strings resolved; `namespace` adds local names, `label` is for errors.

    Raises `RegistrationError` naming the first parameter whose annotation cannot be resolved, and what to do.
    """
    target = plain_function(function)
    if _is_plain(target) and {*map(type, target.__annotations__.values())} <= _CLASSES:
        return dict(target.__annotations__)  # nothing but classes: there is nothing to resolve
    local_names = {**_closure(target), **(namespace or {})}
    while True:
        try:
            return typing.get_type_hints(target, localns=local_names or None, include_extras=True)
        except Exception as error:
            name = getattr(error, "name", None)
            if not isinstance(error, NameError) or not name or name in local_names or not _known(target, name):
                label = label or getattr(target, "__qualname__", repr(target))
                raise _culprit(label, target, local_names, error) from error
            local_names |= _known(target, name)


def _known(target: Any, name: str) -> dict[str, Any]:
    """A local name of a function that is running in the module of `target`, as one that registers it does."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals is getattr(target, "__globals__", None) and name in frame.f_locals:
            return {name: frame.f_locals[name]}
        frame = frame.f_back
    return {}


def _closure(target: Any) -> dict[str, Any]:
    code, cells = getattr(target, "__code__", None), getattr(target, "__closure__", None)
    if code is None or not cells:
        return {}
    # An empty cell equals another one: its name is assigned later.
    filled = [(name, cell) for name, cell in zip(code.co_freevars, cells, strict=True) if cell != CellType()]
    return {name: cell.cell_contents for name, cell in filled}


def _culprit(label: str, target: Any, local_names: Mapping[str, Any], error: Exception) -> RegistrationError:
    for name, annotation in getattr(target, "__annotations__", {}).items():
        probe = type("probe", (), {"__annotations__": {name: annotation}, "__module__": target.__module__})
        try:
            typing.get_type_hints(probe, vars(inspect.getmodule(target) or probe), dict(local_names))
        except Exception as found:  # noqa: BLE001 - the same as above, for this annotation alone
            place = "the return value" if name == "return" else f"parameter {name!r}"
            return RegistrationError(
                f"{label}: the annotation {annotation!r} of {place} "
                f"cannot be resolved ({describe_exception(found)}); import the name at run time (not only under "
                "TYPE_CHECKING), or define it at module level before the tool is registered"
            )
    return RegistrationError(f"{label}: its annotations cannot be resolved ({describe_exception(error)})")


def function_kind(function: Any) -> Kind:
    """How a callable answers; a partial, a bound method or a callable object as what it wraps.

    Args:
        function: The callable.
    """
    # Wrappers keep their own kind: an async wrapper around a sync function is async.
    called = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is wanted
    for target in (function, called, plain_function(function)):
        if inspect.isasyncgenfunction(target):
            return "async_generator"
        if inspect.iscoroutinefunction(target):
            return "async"
        if inspect.isgeneratorfunction(target):
            return "generator"
    return "sync"
