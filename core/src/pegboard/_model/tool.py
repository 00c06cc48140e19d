"""Tools: the record of one, and declaring them: `@tool` on functions and methods, `@toolset` on classes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    TypedDict,
    TypeVar,
    cast,
    final,
    overload,
)

from attrs import evolve, field, frozen
from attrs.converters import optional

from pegboard._base.errors import PegboardError, RegistrationError, check_options
from pegboard._base.jsonable import digest, dump_json
from pegboard._base.markers import MISSING
from pegboard._base.names import listed
from pegboard._base.records import Compared
from pegboard._model.policy import ExecutionPolicy, Permission, checked_timeout
from pegboard._model.subschemas import copied, packed, unpacked

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Unpack

    from pegboard._model.call import CallerSession
    from pegboard._model.shapes import TypePlan

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
T = TypeVar("T")

# Where a parameter's value comes from.
Source = Literal["model", "preset", "context", "injected"]


@frozen(eq=False, repr=False)
class Parameter(Compared):
    """One parameter of a tool's function.

    Args:
        name: Name of the parameter.
        description: Text for the model.
        annotation: Its type.
        required: Whether a value must be given.
        default: Value that it has otherwise; `MISSING` where there is none.
        source: Who provides it. Only parameters of the source `"model"` are in the schema.
    """

    name: str
    description: str
    annotation: Any
    required: bool
    default: Any = MISSING
    source: Source = "model"


@frozen(eq=False, repr=False)
class Hints(Compared):
    """What a tool says about its effects; None where it says nothing. Hints are advice, not enforcement.

    Args:
        read_only: Whether it changes nothing.
        destructive: Whether what it changes may be lost.
        idempotent: Whether a second call with the same arguments changes nothing more.
        open_world: Whether it reaches beyond the program.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@frozen(eq=False, repr=False)
class ToolSchema(Compared):
    """A tool as a model sees it.

    Args:
        name: Name for the model.
        description: Description for the model.
        parameters: JSON Schema of the arguments.
        returns: JSON Schema of the return value. None where the annotation promises none.
        strict: Whether strict mode is used for it. None: as the request says.
        examples: Examples of arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None = None
    strict: bool | None = None
    examples: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """`name`, `description` and `parameters`, the three members that every provider has."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


@frozen(eq=False, repr=False)
class Origin(Compared):
    """Where a tool comes from; all None for what the program registered itself.

    Args:
        plugin: Name of the entry point.
        distribution: Name of the distribution.
        version: Version of the distribution.
        entry_point: Value of the entry point: `module` or `module:attribute`.
    """

    plugin: str | None = None
    distribution: str | None = None
    version: str | None = None
    entry_point: str | None = None

    def __str__(self) -> str:
        if self.distribution:
            return f"{self.distribution} {self.version or '(unknown version)'}"
        return self.plugin or "the program"


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
    meta: Mapping[str, Any]


def _checked_meta(meta: Any) -> dict[str, Any]:
    """A copy of it. Raises `RegistrationError` for what is no JSON object."""
    try:
        own = copied(meta)
        if isinstance(own, dict) and json.loads(dump_json(own)) == own:
            return own
    except (TypeError, ValueError, RecursionError):  # no JSON, NaN, or without an end
        pass
    raise RegistrationError(f"meta= takes a mapping of JSON, such as {{'ui': {{...}}}}; got {type(meta).__name__}")


@frozen(eq=False, repr=False)
class ToolOptions(Compared):
    """Everything that `@tool(...)` can say; None means that the author said nothing."""

    name: str | None = None
    description: str | None = None
    group: tuple[str, ...] | None = field(default=None, converter=optional(listed))
    tags: tuple[str, ...] = field(default=(), converter=listed)
    requires_approval: bool | Callable[..., Any] = False
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    timeout: float | None = field(default=None, converter=checked_timeout)
    policy: ExecutionPolicy | None = None
    exclusive: bool = False
    locks: tuple[str, ...] = field(default=(), converter=listed)
    backend: str | None = None
    resources: Mapping[str, Any] | None = None
    strict: bool | None = None
    converter: Callable[[Any], Any] | None = None
    examples: tuple[Any, ...] = field(default=(), converter=listed)
    extended_model: Any = None
    defer: bool = False
    replaces: str | None = None
    max_output: int | None = None
    meta: Mapping[str, Any] = field(factory=dict, converter=_checked_meta)

    @property
    def hints(self) -> Hints:
        """The four effects together."""
        return Hints(self.read_only, self.destructive, self.idempotent, self.open_world)

    @property
    def groups(self) -> tuple[str, ...]:
        """The named groups; none where the author said nothing."""
        return self.group or ()


class SchemaRequest(NamedTuple):
    """Which rendering of a tool's schema is wanted; see `Tool.json_schema`. A tuple, for it is a key that is hashed."""

    of: Literal["parameters", "returns"] = "parameters"
    titles: Literal["none", "qualified"] = "none"
    dialect: Literal["2020-12", "openapi-3.0"] = "2020-12"
    refs: Literal["defs", "inline"] = "defs"


_PARAMETERS = SchemaRequest()
_RETURNS = SchemaRequest(of="returns")


class CallPlan(Protocol):
    """A tool compiled for calls: `accept` structures arguments, or raises; `invoke` calls the function with them."""

    kind: Literal["sync", "async", "generator", "async_generator"]
    accept: Callable[[dict[str, Any], int, str | None], tuple[Any, ...]]
    invoke: Callable[..., Any]
    hidden: frozenset[str]
    overridable: frozenset[str]
    record: TypePlan
    extra: TypePlan | None


class Face(Protocol):
    """What a session's model sees of a tool that looks otherwise in each session.

    Where there is a method `restored(call)`, it gives what goes on with a call that an earlier program has suspended,
    as in `Suspend(reason, resume=...)`.
    """

    own: bool  # whether the tool is one of the core's own

    def of(self, session: CallerSession) -> Face:
        """How the tool looks in that session."""

    @property
    def description(self) -> str:
        """The text for the model."""

    def schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of the parameters, made from that of the tool itself."""


class Definition(Protocol):
    """What a tool is made from, as the rooms that do not make tools see it."""

    @property
    def is_loaded(self) -> bool:
        """Whether the source was read; that of a lazy tool is read on first use."""

    @property
    def description(self) -> str:
        """The text for the model."""

    @property
    def options(self) -> ToolOptions:
        """What the tool declares."""

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function behind the tool; None for external tools."""

    def schema(self, request: SchemaRequest, hidden: frozenset[str]) -> dict[str, Any] | None:
        """The JSON Schema without the `hidden` parameters, rendered anew for each reader.

        None where nothing is known of the return value.
        """

    def parameters(self, hidden: frozenset[str]) -> tuple[Parameter, ...]:
        """All parameters, the model's and the program's; `hidden` ones have the source `preset`."""

    def plan(self, presets: frozenset[str], locked: frozenset[str]) -> CallPlan:
        """The call plan for a tool with these preset and locked parameters; compiled once for each combination."""

    def renderers(self) -> Any:
        """How returned values become content."""

    def structure_preset(self, name: str, value: Any) -> Any:
        """A preset value as the parameter's annotated type. Raises `RegistrationError`."""


@final
class Entry:
    """A tool or a group while it is registered: what is set for it is kept by this object, not by its name.

    Names come back, entries do not: a tool under the name of a removed one inherits nothing.
    """

    __slots__ = ("__weakref__", "_place")

    @property
    def place(self) -> object:
        """What an entry has in common with those that it replaced, and with no other."""
        return getattr(self, "_place", self)

    def succeed(self, other: Entry) -> None:
        """Take the place of another one."""
        self._place = other.place


@final
@frozen(eq=False, repr=False)
class Tool:
    """A tool: frozen, described by a name, a description and a schema, and made to be called through a `Toolkit`.

    Made by `from_function`, `external` and by registering, not by its constructor. Schema, docstring and call plan are
    read on first use.

    Args:
        name: Name for the model.
        definition: The function or the schema behind it.
        options: What `@tool` says. None: what the definition says.
        groups: Groups that it belongs to.
        origin: Where it comes from.
        hidden: Parameters that presets take out of the schema.
        pack: Prefix of its pack's names. None for a tool of the program.
        entry: What settings of this tool are kept by.
        source_name: Its name at its source, where the program chose another. None where they are the same.
        face: How it looks where that differs from session to session. None where it does not.
    """

    # Reading stands floors above this record: the toolkit's room, where `pegboard.Tool` leads, hands it down.
    _reader: ClassVar[Callable[..., Tool]]

    name: str
    definition: Definition
    _options: ToolOptions | None = None
    groups: tuple[str, ...] = ()
    origin: Origin = field(factory=Origin)
    hidden: frozenset[str] = frozenset()
    pack: str | None = None
    entry: Entry = field(factory=Entry)
    source_name: str | None = None
    face: Face | None = None
    _memo: dict[Any, Any] = field(factory=dict, init=False)

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str | None = None, description: str | None = None
    ) -> Tool:
        """Read a typed function. Raises `RegistrationError` naming the parameter, the annotation and the remedy.

        Args:
            function: The function.
            name: Name for the model. None: that of the function.
            description: Description for the model. None: the docstring of the function.
        """
        return cls._reader(function, name, description)

    @classmethod
    def external(
        cls,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> Tool:
        """A tool that runs elsewhere: a call of it is `suspended` until `toolkit.resume(call_id, value)`.

        Args:
            name: Name for the model.
            description: Description for the model.
            parameters: JSON Schema of the arguments, an object. None for no parameters.
            meta: JSON object for hosts. None for none.
        """
        return cls._reader(None, name, description, parameters, meta)

    @property
    def options(self) -> ToolOptions:
        """Everything that the tool declares; a lazy tool is imported to tell."""
        return self.definition.options if self._options is None else self._options

    @property
    def replaces(self) -> str | None:
        """The pack's tool that this one stands in for; a lazy one never does: names are settled before it loads."""
        return None if self._options is None else self._options.replaces

    @property
    def description(self) -> str:
        """The text for the model; may be empty."""
        shown = self.definition if self.face is None else self.face
        return self._remember("description", lambda: shown.description)

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments as the model sees them."""
        return cast("dict[str, Any]", self._schema(_PARAMETERS))  # which there always are

    @property
    def returns(self) -> dict[str, Any] | None:
        """The JSON Schema of the return value; None where the annotation says nothing."""
        return self._schema(_RETURNS)

    @property
    def params(self) -> tuple[Parameter, ...]:
        """Every parameter of the function and where its value comes from."""
        return self._remember("params", lambda: self.definition.parameters(self.hidden))

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function behind the tool; None for external tools."""
        return self.definition.function

    @property
    def hints(self) -> Hints:
        """The effects that the tool declares."""
        return self.options.hints

    @property
    def tags(self) -> tuple[str, ...]:
        """Free labels for filters."""
        return self.options.tags

    @property
    def meta(self) -> dict[str, Any]:
        """Data for hosts, such as `_meta` of MCP, in a copy for each reader; no model is shown it."""
        return {**copied(self.options.meta)}

    @property
    def for_apps_only(self) -> bool:
        """Whether `meta["ui"]["visibility"]` of MCP Apps leaves out the model: it is listed to none."""
        ui = self.options.meta.get("ui")
        visible = ui.get("visibility") if isinstance(ui, dict) else None
        return isinstance(visible, list) and "model" not in visible

    @property
    def permission(self) -> Permission:
        """The default permission: `prompt` for tools that require approval, else `always`."""
        return Permission.PROMPT if self.options.requires_approval is True else Permission.ALWAYS

    @property
    def qualified_name(self) -> str:
        """`<pack>__<name>` for a pack's tool, else the name."""
        prefix = f"{self.pack}__" if self.pack else ""
        return self.name if self.name.startswith(prefix) else f"{prefix}{self.name}"

    @property
    def schema_hash(self) -> str:
        """SHA-256 (hex) over the canonical JSON of name, description and parameters: of what a model is shown."""
        return self._remember("hash", lambda: digest(self.schema().to_dict()))

    @property
    def plan(self) -> CallPlan:
        """The call plan of this view of the tool."""
        return self.definition.plan(self.hidden, frozenset())

    def json_schema(
        self,
        of: Literal["parameters", "returns"] = "parameters",
        titles: Literal["none", "qualified"] = "none",
        dialect: Literal["2020-12", "openapi-3.0"] = "2020-12",
        refs: Literal["defs", "inline"] = "defs",
    ) -> dict[str, Any]:
        """The schema in another rendering: qualified type names as titles, OpenAPI 3.0, everything inlined.

        Raises `PegboardError` for a combination that cannot be written (a recursive type inlined) and for the return
        schema of a function whose annotation promises no data.

        Args:
            of: Which schema: that of the arguments or that of the return value.
            titles: `"qualified"` gives each type its full name as a title.
            dialect: JSON Schema 2020-12, or that of OpenAPI 3.0, which needs `pegboard-dialects`.
            refs: `"defs"` puts types that repeat into `$defs`; `"inline"` writes each where it is used.
        """
        schema = self._schema(SchemaRequest(of, titles, dialect, refs))
        if schema is None:
            raise PegboardError(f"tool {self.name!r} promises no data as its result, so there is no schema of={of!r}")
        return schema

    def schema(self) -> ToolSchema:
        """The tool as a model sees it."""
        examples = tuple(self.options.examples)
        return ToolSchema(self.name, self.description, self.parameters, self.returns, self.options.strict, examples)

    def evolve(self, **changes: Any) -> Tool:
        """A copy with other fields, such as `groups=` or `hidden=`."""
        return evolve(self, **changes)

    def _schema(self, request: SchemaRequest) -> dict[str, Any] | None:
        if request in self._memo:
            # A copy for each reader: a caller that edits its schema must not edit that of all.
            return cast("dict[str, Any] | None", unpacked(self._memo[request]))
        rendered = self.definition.schema(request, self.hidden)
        if self.face is not None and rendered is not None and request.of == "parameters":
            rendered = self.face.schema(rendered)
        self._memo[request] = packed(rendered)
        return rendered

    def _remember(self, key: Any, compute: Callable[[], T]) -> T:
        if key not in self._memo:
            self._memo[key] = compute()
        found: T = self._memo[key]
        return found

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, from {self.origin})"


# Declaring -----------------------------------------------------------------------------------------------------------

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
def tool(**options: Unpack[ToolTerms]) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a function or method as a tool; it stays the function that it was.

    Bare (`@tool`) or with options (`@tool(name="search", read_only=True)`), on functions, methods, classmethods,
    staticmethods, async functions and generators.

    Raises `RegistrationError` for something that is not callable, ValueError for an invalid timeout.

    Args:
        function: The function, where the decorator has no options.
        name: Name for the model. None: that of the function.
        description: Description for the model. None: the docstring of the function.
        group: Group or groups that the tool belongs to; each must exist when it is registered.
        tags: Free labels for filters such as `view(tags=...)`.
        requires_approval: True to request approval before each call, or a predicate over the arguments.
        read_only: Hint that the tool changes nothing. None says nothing; so for the next three.
        destructive: Hint that what it changes may be lost.
        idempotent: Hint that a second call with the same arguments changes nothing more; such a tool may be retried
            after a timeout.
        open_world: Hint that it reaches beyond the program, such as the web.
        timeout: Seconds that one attempt may take, or a `timedelta`. Short for a policy that sets this alone. None: as
            the session or the toolkit says.
        policy: Timeout and retries of this tool.
        exclusive: Whether only one call of this tool runs at a time.
        locks: Names of locks. Tools with the same lock run one at a time.
        backend: Name of the backend that runs a sync tool, such as `"process"` or `"inline"`. None: a thread.
        resources: What the backend has to find for the tool, such as `{"num_gpus": 1}`, in the words of that backend.
        strict: Whether providers' strict mode is used for this tool. None: as the request says.
        converter: Function that turns the returned value into content, in place of those that are registered by type.
        examples: Examples of arguments, for providers that take them.
        extended_model: Further parameters, from a record type or a JSON Schema of an object. They reach `**kwargs` and
            `ToolCall.arguments`.
        defer: Whether the tool is found with `search_tools` where there are many, instead of being listed.
        replaces: Name of another pack's tool that this one replaces, as `<pack>__<name>`.
        max_output: Longest text of a result for the model, in characters. None: as the toolkit says.
        meta: JSON object for hosts, such as `_meta` of MCP. No model is shown it.
    """
    return marking(sys._getframe(1), function, options)


def marking(frame: Any, function: Any, options: dict[str, Any]) -> Any:
    """What `tool` does for a decorator in `frame`."""
    check_options("@tool", options, ToolOptions.__annotations__)
    mark = partial(_mark, options=ToolOptions(**options), frame=frame)
    return mark if function is None else mark(function)


@overload
def toolset(cls: C, /) -> C: ...


@overload
def toolset(*, name: str | None = None, description: str | None = None, prefix: str = "") -> Callable[[C], C]: ...


def toolset(cls: Any = None, /, *, name: str | None = None, description: str | None = None, prefix: str = "") -> Any:
    """Group the `@tool` methods of a class, inherited ones included, under a name and a description.

    Args:
        cls: The class, where the decorator has no options.
        name: Name of the toolset. None: that of the class.
        description: What the tools have in common. None: the first line of the docstring.
        prefix: Text in front of each tool's name.
    """

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


def declared_toolset(cls: type) -> ToolsetOptions:
    """What `@toolset` said of a class or of one of its bases; mostly nothing."""
    options = getattr(cls, _TOOLSET, None)
    return options if isinstance(options, ToolsetOptions) else ToolsetOptions()


def _mark(target: Any, options: ToolOptions, frame: Any) -> Any:
    inner = getattr(target, "__func__", target)
    if isinstance(target, type) or not callable(inner):
        remedy = "use @toolset for classes" if isinstance(target, type) else "put @tool on a function or method"
        raise RegistrationError(f"@tool cannot mark {target!r}; {remedy}")
    setattr(inner, _OPTIONS, options)
    if local_names := _local_names(inner, frame):
        setattr(inner, _NAMESPACE, local_names)
    return target


def _local_names(function: Any, frame: Any) -> dict[str, Any]:
    """The local names that string annotations mention, from the decorating frame and those around it.

    Under `from __future__ import annotations` a function inside a function cannot name its enclosing function's
    classes otherwise; holding the whole frame would keep every local alive.
    """
    if "<locals>" not in getattr(function, "__qualname__", ""):
        return {}
    texts = [note for note in getattr(function, "__annotations__", {}).values() if isinstance(note, str)]
    mentioned = {word for text in texts for word in re.findall(r"[^\W\d]\w*", text)}
    visible: dict[str, Any] = {}
    while frame is not None:
        visible = {**frame.f_locals, **visible}
        # A class body is no function: what its methods' annotations mention may be local to the function around it.
        frame = None if frame.f_code.co_flags & _CO_OPTIMIZED else frame.f_back
    return {word: visible[word] for word in sorted(mentioned) if word in visible}
