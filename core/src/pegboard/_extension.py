"""The nouns that plugins contribute, and the protocols that tools and engines meet through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

from pegboard._call import ToolCall
from pegboard._records import Shown
from pegboard._result import ToolResult
from pegboard._shapes import TypePlan
from pegboard._tool import Tool

__all__ = [
    "Backend",
    "Command",
    "Converter",
    "Dialect",
    "Injector",
    "Matches",
    "Middleware",
    "ToolSource",
    "TypeHandler",
    "Types",
]

Matches: TypeAlias = type | Callable[[Any], bool]
"""A class, or a predicate over annotations."""


class Types(Protocol):
    """The type table as a handler sees it."""

    def plan(self, annotation: Any) -> TypePlan:
        """The plan of an inner annotation. Raises `RegistrationError` for a type that nobody maps."""

    @property
    def converter(self) -> Any:
        """The `cattrs.Converter` whose hooks lead back to this table; strict, for handlers that stand on cattrs."""


@frozen(eq=False, repr=False)
class TypeHandler(Shown):
    """Maps a type: `matches` is a class or a predicate over annotations, `build(annotation, types)` returns its plan.

    Of handlers of one origin the higher `priority` wins; between origins: program, then plugins, then built-in.
    With `whole`, a predicate is also asked about `Annotated` types as they are written, for metadata that only its
    library understands; bounds and predicates in there are then the handler's to enforce.
    """

    matches: Matches
    build: Callable[[Any, Types], TypePlan] = field(repr=False)
    priority: int = 0
    whole: bool = field(default=False, kw_only=True)


@frozen(eq=False, repr=False)
class Injector(Shown):
    """Provides parameters of a type: `matches` is a class or a predicate over annotations.

    `resolve` is a function whose own annotated parameters are provided in the same way (the `ToolCall`, context
    objects, what other injectors give). It may be async, and a generator (sync or async) that yields the value
    once is closed after the call, as a pytest fixture is.
    """

    matches: Matches
    resolve: Callable[..., Any] = field(repr=False)
    priority: int = 0


@frozen(eq=False, repr=False)
class Converter(Shown):
    """Turns what a tool returns into something Pegboard knows: text, a block, a list of blocks, JSON-able data."""

    matches: Matches
    convert: Callable[[Any], Any] = field(repr=False)
    priority: int = 0


@frozen(eq=False, repr=False)
class Middleware(Shown):
    """Runs around calls: `around(call, proceed)` returns a `ToolResult`, usually that of `proceed()`.

    A sync function calls `proceed()`, an async one awaits it. `applies(tool)` is asked once, when a tool's
    call plan is assembled; lower `order` is further out.
    """

    around: Callable[[ToolCall, Callable[[], Any]], ToolResult | Awaitable[ToolResult]] = field(repr=False)
    name: str = ""
    applies: Callable[[Tool], bool] | None = field(default=None, repr=False)
    order: int = 0


class Backend(Protocol):
    """Where sync tools run: `tool(backend="name")` picks one."""

    name: str

    def submit(self, job: Callable[[], Any]) -> Future[Any]:
        """Start `job`; the future ends with its value or its exception."""

    def close(self) -> None:
        """Release what the backend holds. Called once, when the toolkit closes."""


@frozen(eq=False, repr=False)
class Dialect(Shown):
    """A model provider's format: `tools(tools)` renders the offered tools as that provider's definitions."""

    name: str
    tools: Callable[[Iterable[Tool]], list[dict[str, Any]]] = field(repr=False)
    description: str = ""


@frozen(eq=False, repr=False)
class Command(Shown):
    """A command for the command line: `run(arguments)` returns the exit code."""

    name: str
    help: str
    run: Callable[[list[str]], int] = field(repr=False)


@runtime_checkable
class ToolSource(Protocol):
    """Anything that can list its tools: a remote server, an agent, a foreign framework's toolbox."""

    def tools(self) -> Iterable[Any]:
        """The tools: functions, `Tool`s, or whatever else `Toolkit.register` takes."""
