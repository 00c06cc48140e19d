"""The nouns that plugins contribute, and the protocols that tools and engines meet through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast, final, runtime_checkable

from attrs import field, frozen

from pegboard._base.effects import AttemptTimeoutError
from pegboard._base.names import listed, listed_if_given
from pegboard._base.records import Shown
from pegboard._model.call import CancelToken, Emitter, ToolCall
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.result import Block, ToolResult
from pegboard._model.shapes import TypePlan
from pegboard._model.tool import Tool

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = [
    "Accelerator",
    "Backend",
    "Command",
    "Converter",
    "Dialect",
    "Injector",
    "Job",
    "LiveSource",
    "Matches",
    "Middleware",
    "Offer",
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

    def plan_without(self, without: Callable[[TypeHandler], bool], annotation: Any) -> TypePlan:
        """The plan of an annotation if some handlers were not there: for one that builds on what it overrides."""


@frozen(eq=False, repr=False)
class TypeHandler(Shown):
    """Maps a type: `matches` is a class or a predicate over annotations, `build(annotation, types)` returns its plan.

    A class stands for its subclasses too; a tuple of annotations for exactly these (classes with any type arguments).

    Of handlers of one origin the higher `priority` wins; between origins: program, then plugins, then built-in.
    With `whole`, a predicate is also asked about `Annotated` types as they are written, for metadata that only its
    library understands; bounds and predicates in there are then the handler's to enforce.
    """

    matches: Matches | tuple[Any, ...]
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


@final
@frozen(eq=False, repr=False)
class Job(Shown):
    """One run of a sync tool, as its backend gets it.

    `job()` runs the tool where it is called, draws a generator to its end, and returns or raises what the tool does.
    A backend that takes the work to another process or machine sends `function` and `arguments()` there instead, or
    `tool_id` and `json_arguments` to where the same tool is installed; it hands what the tool reports there to `emit`,
    and passes on that `token` was cancelled. `timeout` is in seconds; the engine stops waiting by itself, and then
    cancels the future, but for a backend with `keeps_time`. `shown` are the parameters that the model knows: no message
    may name another.
    """

    call: ToolCall
    tool: Tool
    policy: ExecutionPolicy = field(repr=False)
    json_arguments: Mapping[str, Any] = field(repr=False)
    """What the model sent, after repair and without what the program provides."""
    typed: Mapping[str, Any] = field(repr=False)
    """The same as Python values, by parameter."""
    emitter: Emitter = field(repr=False)
    token: CancelToken = field(repr=False)
    shown: frozenset[str] = field(repr=False)
    _run: Callable[[], Any] = field(repr=False)
    _bind: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]] = field(repr=False)
    _draw: Callable[[Generator[Any, Any, Any]], Any] = field(repr=False)

    def __call__(self) -> Any:
        """Run the function and return what it returns."""
        return self._run()

    @property
    def tool_id(self) -> tuple[str | None, str]:
        """The plugin that the tool comes from, None for one of the program's own, and the tool's name."""
        return self.tool.origin.plugin, self.tool.name

    @property
    def function(self) -> Callable[..., Any]:
        """The function behind the tool."""
        return cast("Callable[..., Any]", self.tool.function)

    @property
    def timeout(self) -> float | None:
        """Seconds that the attempt may take; None for no limit."""
        return self.policy.timeout

    def emit(self, content: str | Block) -> None:
        """Report text or a block as progress of the call."""
        self.emitter.emit(content)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What `function` is called with, by position and by name: presets and injected objects are in there too."""
        return self._bind()

    def draw(self, stream: Generator[Any, Any, Any]) -> Any:
        """Draw a generator here, to its end: one that gives what the tool yields elsewhere, and returns what it does.

        What it yields is reported, and kept for the result.
        """
        return self._draw(stream)

    def timed_out(self) -> BaseException:
        """The exception that a backend with `keeps_time` ends a job with whose time is up."""
        return AttemptTimeoutError(self.timeout or 0.0)


class Backend(Protocol):
    """Where sync tools run: `tool(backend="name")` picks one.

    What a backend may have besides, as an attribute: `keeps_time = True` says that it ends a job itself at its
    deadline, with `job.timed_out()`, and that nothing of the job runs on then; `remote = True` that jobs leave this
    machine; a method `check(tool)` raises `RegistrationError`, with the remedy, for a tool that cannot run there. It is
    asked when the tool is registered.
    """

    name: str

    def submit(self, job: Job) -> Future[Any]:
        """Start `job`; the future ends with its value or its exception.

        The simplest way to run a job is to call it: whatever takes a function without parameters can be a backend. A
        future that nobody waits for any more is cancelled; one that cannot be (`cancel()` is False) goes on unheard.
        """

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
    """A command for the command line: `run(arguments)` returns the exit code.

    `replaces` names one of the command line's own that it stands for, such as `"cli__tools"`.
    """

    name: str
    help: str
    run: Callable[[list[str]], int] = field(repr=False)
    replaces: str | None = None


@frozen(eq=False, repr=False)
class Accelerator(Shown):
    """Does faster what the core can do itself: it may only ever say yes, and the core decides and explains the rest.

    `load()` is called when the toolkit first needs what it returns:

    - kind `"decode"`: a function from JSON text to what `json.loads` makes of it, types included. It raises, whatever
      it likes, for text that it does not read or makes something else of. Text of fewer than `shortest` characters is
      not given to it. The core watches over depth and over keys that come twice.
    - kind `"validator"`: a function from a JSON Schema that the core has vetted to a predicate over values, or None for
      a schema that it leaves to the core. True has to mean that jsonschema accepts the value, within the bounds of
      `ForeignSchema.WORK`; whatever else the predicate says or raises, the core decides.

    Raises ValueError for another kind.
    """

    kind: Literal["decode", "validator"]
    name: str
    load: Callable[[], Callable[..., Any]] = field(repr=False)
    shortest: int = 0

    def __attrs_post_init__(self) -> None:
        if self.kind not in ("decode", "validator"):
            raise ValueError(f'the kind of an accelerator is "decode" or "validator", got {self.kind!r}')


@runtime_checkable
class ToolSource(Protocol):
    """Anything that can list its tools: a remote server, an agent, a foreign framework's toolbox."""

    def tools(self) -> Iterable[Any]:
        """The tools: functions, `Tool`s, or whatever else `Toolkit.register` takes."""


@runtime_checkable
class LiveSource(ToolSource, Protocol):
    """A source whose tools may change while they hang on the board, or be away: a connection to a remote server.

    `tools()` waits until the tools are known or until it is clear that they will not be, and does not raise. The names
    that it gives may be any; they are made legal. A toolkit follows a live source until it is closed.
    """

    name: str

    @property
    def problems(self) -> Sequence[str]:
        """A sentence for each reason why tools are missing now."""
        ...

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed()`, on any thread, whenever `tools()` has something new to say; what is returned ends that."""
        ...


@final
@frozen(eq=False, repr=False)
class Offer(Shown):
    """A source of tools and the terms on which it hangs: what `Toolkit.register` says, and packs in `provide_tools`.

    Tools of a group that the program has not created are not offered.
    """

    source: Any
    group: tuple[str, ...] = field(default=(), converter=listed)
    presets: Mapping[str, Any] = field(factory=dict, repr=False)
    """`{tool: {parameter: value}}`, by the source's own names, as everything here goes by them."""
    enable: tuple[str, ...] | None = field(default=None, converter=listed_if_given)
    disable: tuple[str, ...] = field(default=(), converter=listed)
    prefix: str = ""
    rename: Mapping[str, str] | Callable[[str], str] | None = None
    name: str | None = field(default=None, kw_only=True)
    """Of the one tool that there is."""
    description: str | None = field(default=None, kw_only=True)
    extended_model: Any = field(default=None, kw_only=True)
