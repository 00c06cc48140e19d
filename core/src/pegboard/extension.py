"""The nouns that plugins contribute, and the protocols that tools and engines meet through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, cast, final, runtime_checkable

from attrs import field, frozen
from attrs.converters import optional

from pegboard._base.effects import AttemptTimeoutError, tried
from pegboard._base.errors import Fault, PegboardError
from pegboard._base.names import listed
from pegboard._base.records import Shown
from pegboard._base.redaction import Redaction
from pegboard._model.call import CallerSession, CancelToken, Emitter, ToolCall
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Block, Status, ToolResult
from pegboard._model.shapes import TypePlan
from pegboard._model.tool import Tool

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pegboard._model.program import Group

__all__ = [
    "Backend",
    "BoundDialect",
    "Change",
    "Command",
    "Converter",
    "Dialect",
    "EnteredCall",
    "Guard",
    "Injector",
    "Job",
    "LiveSource",
    "Matches",
    "Middleware",
    "Offer",
    "Offering",
    "SuspendedCalls",
    "ToolSource",
    "TypeHandler",
    "Types",
    "Verdict",
]

# A class, or a predicate over annotations.
Matches: TypeAlias = type | Callable[[Any], bool]


class Types(Protocol):
    """The type table as a handler sees it."""

    def plan(self, annotation: Any) -> TypePlan:
        """The plan of an inner annotation. Raises `RegistrationError` for a type that no handler maps."""

    def contains(self, *inner: Any) -> None:
        """Say what else the values of the planned type hold, of types that the handler reads without a plan of theirs.

        A type that the program provides is refused in there, as it is where `plan` was asked for it.
        """

    def plan_without(self, without: Callable[[TypeHandler], bool], annotation: Any) -> TypePlan:
        """The plan of an annotation if some handlers were not there: for one that builds on what it overrides."""


class SuspendedCalls(Protocol):
    """Suspended calls that other programs answer too: what `session.share_suspended` takes.

    An agent keeps its calls like this, in the store of its conversations. Where there is a method `restore(session)`,
    that is called instead of `refresh()`, with the session whose `pending` is read.
    """

    def refresh(self) -> None:
        """Suspend here what other programs have suspended meanwhile, and withdraw what they have answered.

        It is called before `pending` is read, and so before `resume` looks for a call, on whatever thread that is.
        """

    def answer(self, session: CallerSession, call: ToolCall, result: ToolResult) -> bool:
        """Keep the answer of a call of that session, before it counts; False where another program was first.

        What it raises, `resume` raises: the call then waits for its answer as before.

        Args:
            session: The session of the call.
            call: The suspended call.
            result: Its answer.
        """


@frozen(eq=False, repr=False)
class TypeHandler(Shown):
    """Maps a type to a plan.

    Of handlers of one origin the higher `priority` wins; between origins: program, then plugins, then built-in. A
    pack's handler holds for every tool on the board. Of two packs that map a type equally well the first in pluggy's
    order counts, which `toolkit.problems` says.

    Args:
        matches: What it maps: a class with its subclasses; a tuple of annotations for exactly these (classes with any
            type arguments); or a predicate over annotations.
        build: `build(annotation, types)` returns the plan.
        priority: The higher one wins. A handler of many types, such as all dataclasses, takes one below 0, so that a
            handler of a single class comes before it.
        whole: Whether a predicate is also asked about `Annotated` types as they are written, for metadata that only its
            library understands. Bounds and predicates in there are then the handler's to enforce.
    """

    matches: Matches | tuple[Any, ...]
    build: Callable[[Any, Types], TypePlan] = field(repr=False)
    priority: int = 0
    whole: bool = field(default=False, kw_only=True)


@frozen(eq=False, repr=False)
class Injector(Shown):
    """Provides parameters of a type.

    Args:
        matches: Class with its subclasses, or a predicate over annotations.
        resolve: Function whose own annotated parameters are provided in the same way (the `ToolCall`, context objects,
            what other injectors give). It may be async, and a generator (sync or async) that yields the value once is
            closed after the call, as a pytest fixture is.
        priority: The higher one wins.
    """

    matches: Matches
    resolve: Callable[..., Any] = field(repr=False)
    priority: int = 0


@frozen(eq=False, repr=False)
class Converter(Shown):
    """Turns what a tool returns into something Pegboard knows: text, a block, a list of blocks, JSON-able data.

    Args:
        matches: Class with its subclasses, or a predicate over annotations.
        convert: Turns the returned value into what Pegboard knows.
        priority: The higher one wins.
    """

    matches: Matches
    convert: Callable[[Any], Any] = field(repr=False)
    priority: int = 0


@frozen(eq=False, repr=False)
class Middleware(Shown):
    """Runs around calls.

    With `whole` it runs around whole calls, for telemetry: of tools that do not exist, and with arguments that do not
    fit, too. It is a plain function that gets an `EnteredCall` and has to return what `proceed()` does: the result or,
    on an event loop, perhaps an awaitable that ends in it. What it raises makes the call an `error`. What a tool does
    with the answer to a suspended call is the rest of its call: no middleware runs around it again.

    Args:
        around: `around(call, proceed)` returns a `ToolResult`, usually that of `proceed()`. A sync function calls
            `proceed()`, an async one awaits it.
        name: Name for messages.
        applies: Predicate over a tool, asked once when its call plan is assembled. None for all tools.
        order: Lower is further out.
        whole: Whether it runs around whole calls.
        told: `told(what, details)` is called, with `whole`, where the call is made: for each `"retry"`, each answer to
            a request for `"approval"`, each `"denial"` by a guard, and each suspended call that is `"resumed"`, with
            its `call` and `result`.
        answer: `answer(tool, arguments, session)` may return the result of an equal call that was a success; then this
            call ends with the same, and `around` does not run. With None, or if it fails, `around` does. It must not
            wait, and change nothing. It is not asked where more comes before the tool (approval, guards, limits, other
            middleware), where the tool has a `Secret`, nor for a call that was prepared or brings something of its own.
    """

    around: Callable[[Any, Callable[[], Any]], ToolResult | Awaitable[ToolResult]] = field(repr=False)
    name: str = ""
    applies: Callable[[Tool], bool] | None = field(default=None, repr=False)
    order: int = 0
    whole: bool = field(default=False, kw_only=True)
    told: Callable[[str, Mapping[str, Any]], Any] = field(default=lambda what, details: None, repr=False, kw_only=True)
    answer: Callable[[Tool, Any, Any], ToolResult | None] | None = field(default=None, repr=False, kw_only=True)


@frozen(eq=False, repr=False)
class Verdict(Shown):
    """What a guard says of a tool or a call. Of several guards the strictest counts.

    Args:
        offered: Whether the tool is offered.
        permission: `"always"`, `"prompt"` or `"never"`. None says nothing.
        reason: Why, for the program and for the person who is asked, never for a model.
        message: What a model reads of a call that is denied. It must not say how to loosen a policy.
    """

    offered: bool = True
    permission: Permission | None = field(default=None, converter=optional(Permission))
    reason: str = ""
    message: str = field(default="a policy denies this call", kw_only=True)


@frozen(eq=False, repr=False)
class Guard(Shown):
    """Decides about tools: which are offered, which ask and which never run, whatever the program says.

    A guard that fails keeps the tool, or the call, back.

    Args:
        judge: `judge(tool)` returns a verdict or None. It is asked once about each tool, and again after a decision.
        decided: `decided(tool, permission)` is called before the toolkit's `set_permission` changes anything, and with
            None for a tool that was removed. It returns whether it keeps the decision itself; what it raises refuses
            it.
        check: `check(call)` is asked before each call, and again where an approver edits its arguments: a verdict that
            is not offered or `"never"` denies the call, `"prompt"` asks the approver.
        name: Name for messages.
    """

    judge: Callable[[Tool], Verdict | None] = field(repr=False)
    decided: Callable[[Tool, Permission | None], Any] | None = field(default=None, repr=False, kw_only=True)
    check: Callable[[ToolCall], Verdict | None] | None = field(default=None, repr=False, kw_only=True)
    name: str = field(default="", kw_only=True)


class EnteredCall(NamedTuple):
    """A call as middleware around whole calls gets it.

    Args:
        tool: The tool. None where there is none of that name.
        arguments: What was sent.
        agent: The agent that calls.
        redact: Takes the secrets of the call out of texts and data. None where they are not known.
        session: The session that it is made in; `session.subject` is for whom. None where it is not known.
        call_id: Id of the call.
        parent: Id of the call that this one is a part of, as `provider_meta["parent"]` has it. None for none.
        shared: What middleware around the same call shares: `"texts"` is a function of the result that gives arguments
            and result as JSON text without secrets, or None for what must not be shown.
    """

    tool: Tool | None
    arguments: Any
    agent: Any
    redact: Redaction | None
    session: CallerSession | None = None
    call_id: str = ""
    parent: str | None = None
    shared: dict[str, Any] | None = None


@final
@frozen(eq=False, repr=False)
class Job(Shown):
    """One run of a sync tool, as its backend gets it.

    `job()` runs the tool where it is called, draws a generator to its end, and returns or raises what the tool does. A
    backend that takes the work to another process or machine sends `function` and `arguments()` there instead, or
    `tool_id` and `json_arguments` to where the same tool is installed. It passes what the tool reports there to `emit`,
    passes on that `token` was cancelled, and gives `result(value)` for a value that came back as data, or a
    `ToolResult` made there. An error whose attribute `abandoned` is true says that a worker was lost with the job.
    `timeout` is in seconds; the engine stops waiting by itself, and then cancels the future, but for a backend with
    `keeps_time`.

    Args:
        call: The call.
        tool: The tool.
        policy: Timeout and retries that hold for the call.
        json_arguments: What the model sent, after repair and without what the program provides.
        typed: The same as Python values, by parameter.
        emitter: Takes progress.
        token: Says that the job has to stop.
        shown: Parameters that the model knows: no message may name another.
        has_secrets: Whether one of the other parameters is a `Secret`.
        run: Runs the tool in the current thread.
        arguments: Makes the positional and keyword arguments, those of the program included.
        draw: Takes what a generator yields, and returns what it comes to.
        result: Makes the result of a value that came back as data.
        toolkit: The toolkit that the tool is called in.
    """

    call: ToolCall
    tool: Tool
    policy: ExecutionPolicy = field(repr=False)
    json_arguments: Mapping[str, Any] = field(repr=False)
    typed: Mapping[str, Any] = field(repr=False)
    emitter: Emitter = field(repr=False)
    token: CancelToken = field(repr=False)
    shown: frozenset[str] = field(repr=False)
    has_secrets: bool = field(repr=False)
    _run: Callable[[], Any] = field(repr=False)
    # What `function` is called with, by position and by name: presets and injected objects are in there too.
    arguments: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]] = field(repr=False)
    # Draws a generator here, to its end: one that gives what the tool yields elsewhere, and returns what it does. What
    # it yields is reported, and kept for the result.
    draw: Callable[[Generator[Any, Any, Any]], Any] = field(repr=False)
    # The result of a value that came here as data: as if the function had returned that, but without `value`.
    result: Callable[[Any], ToolResult] = field(repr=False)
    toolkit: Any = field(repr=False)  # that it is called in

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

    def timed_out(self) -> BaseException:
        """The exception that a backend with `keeps_time` ends a job with whose time is up."""
        return AttemptTimeoutError(self.timeout or 0.0)


class Backend(Protocol):
    """Where sync tools run: `tool(backend="name")` picks one.

    What a backend may have besides, as an attribute: `keeps_time = True` says that it ends a job itself at its
    deadline, with `job.timed_out()`, and that nothing of the job runs on then; `remote = True` that jobs leave this
    machine; a method `check(tool)` raises `RegistrationError`, with the remedy, for a tool that cannot run there. It is
    asked when the tool is registered; `check_secret(tool, parameter)` likewise refuses a preset that is a `Secret`,
    when it is set. `run_here(job)` gives or raises what a job comes to, with the help of the calling
    thread, which would only wait for a future: of one with `keeps_time`, whose jobs `job.token` ends.
    """

    name: str

    def submit(self, job: Job) -> Future[Any]:
        """Start `job`; the future ends with its value or its exception.

        The simplest way to run a job is to call it: whatever takes a function without parameters can be a backend. A
        future that is not waited for any more is cancelled; one that cannot be (`cancel()` is False) goes on unheard.
        """

    def close(self) -> None:
        """Release what the backend holds. Called once, when the toolkit closes."""


@frozen(eq=False, repr=False)
class Dialect(Shown):
    """A model provider's format: plain functions between the provider's messages and Pegboard's records.

    `toolkit.dialect(name)` binds them to a board. All but `tools` may be left out (None). What is keyword-only here is
    given to those that have a parameter of that name.

    Args:
        name: Name of the dialect.
        tools: `tools(tools, *, strict, groups)`: the definitions of the tools that are offered; `groups` are all that
            there are.
        calls: `calls(response, *, tools)`: the `ToolCall`s in a response, or in a list of chunks. One that has its
            `result` already, such as a call that came incomplete, ends with it and does not run.
        results: `results(results, *, tools, meta)`: messages to append; `meta` is the `provider_meta` of the calls by
            their ids.
        tool_choice: `tool_choice(choice, *, tools)`: the same choice as the provider writes it.
        lint: `lint(tools, *, strict, groups)`: what `tools` does not carry, a sentence or a record each.
        collector: `collector(*, read)`: an object with `feed(chunk)` and `calls()`. What `read(response)` returns is
            remembered.
        external: `external(definitions)`: anything that `register` takes.
        request: `request(tools, *, kept, first, choice, strict, parallel, cache, groups)`: the keyword arguments of the
            provider's call. `kept` are the tools to list where the provider can be told that only `tools` may be
            called; `first` are the names that were listed first, at once.
    """

    name: str
    tools: Callable[..., Iterable[Any]] = field(repr=False)
    calls: Callable[..., Iterable[ToolCall]] | None = field(default=None, repr=False)
    results: Callable[..., Iterable[Any]] | None = field(default=None, repr=False)
    tool_choice: Callable[..., Any] | None = field(default=None, repr=False)
    lint: Callable[..., Iterable[Any]] | None = field(default=None, repr=False)
    collector: Callable[..., Any] | None = field(default=None, repr=False)
    external: Callable[..., Any] | None = field(default=None, repr=False)
    request: Callable[..., Mapping[str, Any]] | None = field(default=None, repr=False)


@frozen
class Change:
    """What differs between two requests.

    Args:
        kind: Whether the tool was added, removed or redefined.
        tool: Name of the tool.
        reason: Why.
    """

    kind: Literal["added", "removed", "redefined"]
    tool: str
    reason: str


class Offering(Protocol):
    """What a dialect is bound to: a toolkit, a session or a view."""

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now."""

    @property
    def app_tools(self) -> list[Tool]:
        """The tools offered to pages of MCP Apps alone."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups."""

    def reveal(self) -> tuple[list[Tool], frozenset[str]]:
        """The tools that were ever listed and are registered still, in order of reveal; the names listed first."""

    def why_listed(self, tool: Tool) -> str:
        """Why a tool is listed."""

    def why_unlisted(self, tool: Tool) -> str:
        """Why a tool that was listed is listed no longer."""


@final
class BoundDialect:
    """A provider's format over what a toolkit, a session or a view offers now: `toolkit.dialect(name)`.

    It remembers what came with the calls that it has read, for the answers to them: take one for each conversation.
    Raises `PegboardError` for what its dialect does not have.

    Args:
        dialect: The dialect.
        board: The toolkit, session or view whose tools it writes.
    """

    REMEMBERED: Final = 4096
    """For how many calls it remembers what came with them; the oldest are forgotten."""

    def __init__(self, dialect: Dialect, board: Offering) -> None:
        self.dialect = dialect
        self.name = dialect.name
        self._board = board
        self._meta: dict[str, Mapping[str, Any]] = {}
        self._sent: list[Tool] | None = None

    def tools(self, strict: bool = False) -> list[Any]:
        """The definitions for the request; `strict` where the provider can hold the model to them."""
        self._sent = self._board.tools
        return list(self._ask("tools", self._sent, strict=strict))

    def request(
        self,
        choice: str | Sequence[str] = "auto",
        *,
        strict: bool = False,
        parallel: bool | None = None,
        cache: bool = True,
        keep: bool = True,
    ) -> dict[str, Any]:
        """Make the keyword arguments of the provider's call: `create(model=..., messages=..., **chat.request())`.

        What is the provider's default is left out; without tools it is empty. Raises `UnknownNameError` for a tool that
        is not offered.

        Args:
            choice: As in `tool_choice`: `"auto"`, `"required"`, `"none"`, a tool's name, or a list of names.
            strict: Whether the provider shall hold the model to the schemas.
            parallel: False asks for one call at a time. None: the provider's default.
            cache: Whether to mark definitions that the provider may keep.
            keep: Whether a tool that was listed and is not offered now keeps its definition, where the provider can be
                told that it may not be called.
        """
        self._sent = tools = self._board.tools
        revealed, first = self._board.reveal()
        kept = revealed if keep and len(revealed) > len(tools) else tools
        options = {"choice": choice, "strict": strict, "parallel": parallel, "cache": cache}
        return dict(self._ask("request", tools, kept=kept, first=first, **options))

    def changes(self) -> list[Change]:
        """What differs from the last `request()` or `tools()`; nothing before the first.

        A tool that only keeps its definition was removed.
        """
        if self._sent is None:
            return []
        before, now = ({tool.name: tool for tool in tools} for tools in (self._sent, self._board.tools))
        removed = {name: self._board.why_unlisted(tool) for name, tool in before.items() if name not in now}
        redefined = {name: _why_redefined(before[name], tool) for name, tool in now.items() if name in before}
        added = {name: self._board.why_listed(tool) for name, tool in now.items() if name not in before}
        kinds: dict[Any, dict[str, str]] = {"removed": removed, "redefined": redefined, "added": added}
        return [Change(kind, name, why) for kind, found in kinds.items() for name, why in found.items() if why]

    def calls(self, response: Any) -> list[ToolCall]:
        """The calls in a response, a message, or a list of stream chunks: SDK objects or dicts. In order, ids kept."""
        calls = list(self._ask("calls", response))
        unlisted = {name for tool in self._board.app_tools for name in (tool.name, tool.qualified_name)}
        for call in calls:
            if call.name in unlisted:
                text = f"there is no tool {call.name!r}"
                fault, call.status = Fault("not_found", text), Status.NOT_FOUND
                call.result = ToolResult(call.id, call.name, call.status, f"Error: {text}", error=fault, attempts=0)
        self._meta.update((call.id, call.provider_meta) for call in calls if call.provider_meta)
        self._meta = dict(list(self._meta.items())[-self.REMEMBERED :])
        return calls

    def messages(self, results: Iterable[ToolResult]) -> list[Any]:
        """What to append to the conversation, in the order of the results. Raises `PegboardError` for anything else."""
        answers: list[Any] = list(results) if hasattr(results, "__iter__") else [None]
        if not all(isinstance(each, ToolResult) for each in answers):
            raise PegboardError("messages(...) takes a list of ToolResults, such as toolkit.call_many(...) gives")
        return list(self._ask("results", answers, meta=self._meta))

    def tool_choice(self, choice: str | Sequence[str]) -> Any:
        """`"auto"`, `"required"`, `"none"` or the name of a tool, as the provider writes it.

        A list of names: one of these, or text; an empty one is `"none"`. Raises `PegboardError` where the provider has
        no form for it.
        """
        return self._ask("tool_choice", choice)

    def collector(self) -> Any:
        """Collects the chunks of one streamed response: `feed(chunk)` each, then ask for `calls()`."""
        chunks: list[Any] = []
        plain = SimpleNamespace(feed=chunks.append, calls=lambda: self.calls(chunks))
        return plain if self.dialect.collector is None else self._ask("collector", read=self.calls)

    def lint(self, strict: bool = False) -> list[Any]:
        """What `tools(strict)` does not carry."""
        return [] if self.dialect.lint is None else list(self._ask("lint", self._board.tools, strict=strict))

    def external(self, definitions: Any) -> Any:
        """The provider's own definitions, of tools that run elsewhere, as one thing that `register` takes."""
        return self._ask("external", definitions)

    def _ask(self, what: str, *given: Any, **more: Any) -> Any:
        function = getattr(self.dialect, what)
        if function is None:
            raise PegboardError(f"the dialect {self.name!r} has no {what}; its pack would have to bring it")
        takes = _parameters(function)[len(given) :]
        more |= {name: getattr(self._board, name) for name in ("tools", "groups") if name in takes}
        return function(*given, **{name: value for name, value in more.items() if name in takes})

    def __repr__(self) -> str:
        return f"BoundDialect({self.name!r})"


def _why_redefined(before: Tool, now: Tool) -> str:
    """Why a definition differs; empty if it does not."""
    if before is now or tried(lambda: before.schema_hash == now.schema_hash):
        return ""
    if hidden := sorted(before.hidden ^ now.hidden):
        return f"presets of {', '.join(hidden)}"
    return "the groups changed" if now.face is not None else f"{now.origin} changed it"


@cache
def _parameters(function: Callable[..., Any]) -> list[str]:
    from inspect import signature

    found = tried(signature, function)
    return [] if found is None else list(found.parameters)  # none of a built-in class


@frozen(eq=False, repr=False)
class Command(Shown):
    """A command for the command line.

    Args:
        name: Name of the command.
        help: What it does, in one line.
        run: `run(arguments)` returns the exit code.
        replaces: One of the command line's own commands that it replaces, such as `"cli__tools"`. None for none.
    """

    name: str
    help: str
    run: Callable[[list[str]], int] = field(repr=False)
    replaces: str | None = None


@runtime_checkable
class ToolSource(Protocol):
    """Anything that can list its tools: a remote server, an agent, another framework's toolbox."""

    def tools(self) -> Iterable[Any]:
        """The tools: functions, `Tool`s, or whatever else `Toolkit.register` takes."""


@runtime_checkable
class LiveSource(ToolSource, Protocol):
    """A source whose tools may change while they are registered, or be unavailable: a connection to a remote server.

    `tools()` waits until the tools are known or until it is clear that they will not be, and does not raise. The names
    that it gives may be any; they are made legal. A toolkit follows a live source until it is closed.

    A source may bring `groups`, an iterable of `Group`s, as an attribute: those that are not there yet are created when
    it is registered. They stay when it is removed.
    """

    name: str

    @property
    def problems(self) -> Sequence[str]:
        """A sentence for each reason why tools are missing now."""

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed()`, on any thread, whenever `tools()` has something new to say; what is returned ends that."""


@final
@frozen(eq=False, repr=False)
class Offer(Shown):
    """A source of tools and the terms of its registration: what `Toolkit.register` takes, for packs in `provide_tools`.

    All names in it are the source's own. Tools of a group that the program has not created are not offered.

    Args:
        source: What becomes tools: anything that `register` takes.
        group: Group or groups of the tools.
        presets: Values that are set: `{tool: {parameter: value}}`.
        enable: Names of the only tools to take. None for all.
        disable: Names of tools to leave out.
        prefix: Text in front of each name.
        rename: Other names, as a mapping or a function of the name.
        name: Name for the one tool that there is.
        description: Description for the one tool that there is.
        extended_model: Further parameters, as in `@tool`.
        defer: Whether the tools are found with `search_tools` where there are many.
        types: Type handlers for these tools alone, as `{annotation: TypeHandler}`, for just these annotations.
    """

    source: Any
    group: tuple[str, ...] = field(default=(), converter=listed)
    presets: Mapping[str, Any] = field(factory=dict, repr=False)
    enable: tuple[str, ...] | None = field(default=None, converter=optional(listed))
    disable: tuple[str, ...] = field(default=(), converter=listed)
    prefix: str = ""
    rename: Mapping[str, str] | Callable[[str], str] | None = None
    name: str | None = field(default=None, kw_only=True)
    description: str | None = field(default=None, kw_only=True)
    extended_model: Any = field(default=None, kw_only=True)
    defer: bool = field(default=False, kw_only=True)
    types: Mapping[Any, TypeHandler] = field(factory=dict, kw_only=True, repr=False)
