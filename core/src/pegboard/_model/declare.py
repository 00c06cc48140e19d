"""Declaring tools: `@tool` on functions and methods, `@toolset` on classes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, overload

from pegboard._base.errors import RegistrationError
from pegboard._base.names import listed
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.tool import ToolOptions

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


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    group: str | Iterable[str] | None = None,
    tags: Iterable[str] = (),
    requires_approval: bool | Callable[..., Any] = False,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    timeout: float | None = None,
    policy: ExecutionPolicy | None = None,
    exclusive: bool = False,
    locks: str | Iterable[str] = (),
    backend: str | None = None,
    strict: bool | None = None,
    converter: Callable[[Any], Any] | None = None,
    examples: Iterable[Any] = (),
    extended_model: Any = None,
    defer: bool = False,
    replaces: str | None = None,
    max_output: int | None = None,
) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a function or method as a tool; it stays the function that it was.

    Bare (`@tool`) or with options (`@tool(name="search", read_only=True)`), on functions, methods, classmethods,
    staticmethods, async functions and generators. `timeout` is in seconds. `requires_approval` is a bool or a
    predicate over the arguments. `replaces` names another pack's tool as `<pack>__<name>`.

    Raises `RegistrationError` for something that is not callable.
    """
    namespace = _local_names(sys._getframe(1))
    if function is not None:
        return _mark(function, ToolOptions(), namespace)
    for name in ("tags", "examples", "locks", "group"):
        if options.get(name) is not None:
            options[name] = listed(options[name])
    declared = ToolOptions(**options)
    return lambda target: _mark(target, declared, namespace)


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
    inner = getattr(function, "__func__", function)
    options = getattr(inner, _OPTIONS, None)
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
    local_names = namespace(inner)
    if local_names:
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
