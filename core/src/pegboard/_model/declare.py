"""Declaring tools: `@tool` on functions and methods, `@toolset` on classes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, Unpack, overload

from pegboard._base.errors import RegistrationError, check_options
from pegboard._base.names import listed
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.tool import ToolOptions

if TYPE_CHECKING:
    from datetime import timedelta

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_OPTIONS = "__pegboard_tool__"
_NAMESPACE = "__pegboard_namespace__"
_TOOLSET = "__pegboard_toolset__"
_CO_OPTIMIZED = 1  # as in `inspect`, which a decorator need not load


class ToolsetOptions(NamedTuple):
    """What `@toolset(...)` says of a class; `prefix` goes in front of each tool name."""

    name: str | None = None
    description: str | None = None
    prefix: str = ""


class ToolTerms(TypedDict, total=False):
    """The options of `@tool`."""

    name: str | None
    description: str | None
    group: str | Iterable[str] | None
    tags: Iterable[str]
    requires_approval: bool | Callable[..., Any]
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    timeout: float | timedelta | None
    policy: ExecutionPolicy | None
    exclusive: bool
    locks: str | Iterable[str]
    backend: str | None
    resources: Mapping[str, Any] | None
    strict: bool | None
    converter: Callable[[Any], Any] | None
    examples: Iterable[Any]
    extended_model: Any
    defer: bool
    replaces: str | None
    max_output: int | None


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(**options: Unpack[ToolTerms]) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a function or method as a tool; it stays the function that it was.

    Bare (`@tool`) or with options (`@tool(name="search", read_only=True)`), on functions, methods, classmethods,
    staticmethods, async functions and generators. `timeout` is in seconds, or a `timedelta`.
    `requires_approval` is a bool or a predicate over the arguments. `resources` are what its backend has to find for
    it. `replaces` names another pack's tool as `<pack>__<name>`.

    Raises `RegistrationError` for something that is not callable, ValueError for a timeout that is none.
    """
    return marking(sys._getframe(1), function, options)


def marking(frame: Any, function: Any, options: dict[str, Any]) -> Any:
    """What `tool` does for whoever decorates in `frame`."""
    namespace = _local_names(frame)
    check_options("@tool", options, ToolOptions.__annotations__)
    for name in ("tags", "examples", "locks", "group"):
        if options.get(name) is not None:
            options[name] = listed(options[name])
    mark = partial(_mark, options=ToolOptions(**options), namespace=namespace)
    return mark if function is None else mark(function)


@overload
def toolset(cls: C, /) -> C: ...


@overload
def toolset(*, name: str | None = None, description: str | None = None, prefix: str = "") -> Callable[[C], C]: ...


def toolset(cls: Any = None, /, *, name: str | None = None, description: str | None = None, prefix: str = "") -> Any:
    """Group the `@tool` methods of a class, inherited ones included, under a name and a description."""

    def mark(target: Any) -> Any:
        if not isinstance(target, type):
            raise RegistrationError(f"@toolset goes on a class, not on {target!r}; use @tool for functions")
        setattr(target, _TOOLSET, ToolsetOptions(name, description, prefix))
        return target

    return mark if cls is None else mark(cls)


def declared_options(function: Any) -> ToolOptions | None:
    """What `@tool` said of a function, method or descriptor; None if it was not decorated."""
    options = getattr(getattr(function, "__func__", function), _OPTIONS, None)
    return options if isinstance(options, ToolOptions) else None


def declared_namespace(function: Any) -> Mapping[str, Any]:
    """The local names that a function's string annotations may refer to."""
    found = getattr(getattr(function, "__func__", function), _NAMESPACE, None)
    return found if isinstance(found, dict) else {}


def declared_toolset(cls: type) -> ToolsetOptions | None:
    """What `@toolset` said of a class or of one of its bases."""
    options = getattr(cls, _TOOLSET, None)
    return options if isinstance(options, ToolsetOptions) else None


def _mark(target: Any, options: ToolOptions, namespace: Callable[[Any], dict[str, Any]]) -> Any:
    inner = getattr(target, "__func__", target)
    if isinstance(target, type) or not callable(inner):
        remedy = "use @toolset for classes" if isinstance(target, type) else "put @tool on a function or method"
        raise RegistrationError(f"@tool cannot mark {target!r}; {remedy}")
    setattr(inner, _OPTIONS, options)
    if local_names := namespace(inner):
        setattr(inner, _NAMESPACE, local_names)
    return target


def _local_names(frame: Any) -> Callable[[Any], dict[str, Any]]:
    """Picks only the local names that string annotations mention, from the decorating frame and those around it.

    Under `from __future__ import annotations` a function inside a function cannot name its enclosing function's
    classes otherwise; holding the whole frame would keep every local alive.
    """

    def pick(function: Any) -> dict[str, Any]:
        if "<locals>" not in getattr(function, "__qualname__", ""):
            return {}
        texts = [note for note in getattr(function, "__annotations__", {}).values() if isinstance(note, str)]
        mentioned = {word for text in texts for word in re.findall(r"[^\W\d]\w*", text)}
        visible: dict[str, Any] = {}
        around = frame
        while around is not None:
            visible = {**around.f_locals, **visible}
            # A class body is no function: what its methods' annotations mention may be local to the function around it.
            around = None if around.f_code.co_flags & _CO_OPTIMIZED else around.f_back
        return {word: visible[word] for word in sorted(mentioned) if word in visible}

    return pick
