"""Call plans: a tool compiled to straight-line code, or one that was written by hand as a schema and a `call`.

`accept` takes decoded arguments and returns the structured values, or raises; `invoke` takes these values and what the
program provides and calls the function. Nothing in either asks a plugin, reads a signature or walks a schema.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from attrs import define

from pegboard._arguments.decode import exact_keys, has_every_key
from pegboard._base.effects import tried
from pegboard._base.errors import BareMismatch, Mismatch, Suspend
from pegboard._base.jsonable import carried, carried_data
from pegboard._base.markers import MISSING
from pegboard._injection.injectors import Provider
from pegboard._injection.invocation import Invocation
from pegboard._model.call import ToolCall
from pegboard._model.shapes import JsonSchema, Member, Record, TypePlan, identity
from pegboard._model.tool import SchemaRequest, ToolOptions
from pegboard._schema.nodes import render
from pegboard._tools import signature
from pegboard._tools.signature import ParameterPlan, Reading, TypeTables, bound_keywords, foreign_object
from pegboard._types.codegen import Writer, emit
from pegboard._types.hints import Kind, function_kind, plain_function, read_parameters
from pegboard._types.plans import plain_predicate

if TYPE_CHECKING:
    from pegboard._schema.foreign import ForeignSchema
    from pegboard._schema.vet import Judge

EMPTY_SCHEMA: Final[JsonSchema] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
_UNCHANGED: Final[TypePlan] = TypePlan({}, identity)
# The one thing that is provided to a tool by hand, beside the presets; no parameter has such a name.
_INVOCATION: Final = ""

Bound: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


class ParameterView(NamedTuple):
    """Which parameters the program fills: `presets` may be overridden by the model, `locked` ones may not."""

    presets: frozenset[str] = frozenset()
    locked: frozenset[str] = frozenset()


@define(eq=False, slots=False)
class CompiledPlan:
    """The compiled call of one tool under one view.

    `accept(arguments, keys, text)`: the decoded arguments; `text` is the JSON text or None, and `keys` the number of
    colons in it, an upper bound of its keys: with more keys than members consumed, a key came twice. `hidden` are the
    JSON names that the model cannot set, `overridable` those that it may though the program has, `names` the
    parameters that it can set; without names, the values are one object. With an overridable argument, `accept` raises
    unless `keys` is -1, so that the admission has to report it.
    `invoke(values, provided)`: what `accept` and `provide` gave; a third argument is called in place of the function.
    It is `standing` if `provide` gives the same for all calls of a session that bring no context and no agent of their
    own, `fetches` if it asks for anything at all, and `blocking` if that runs plain code of a plugin or the program.
    """

    kind: Kind
    record: TypePlan
    accept: Callable[[dict[str, Any], int, str | None], tuple[Any, ...]]
    invoke: Callable[..., Any]
    providers: Mapping[str, Provider]
    hidden: frozenset[str]
    names: tuple[str, ...] = ()
    overridable: frozenset[str] = frozenset()
    extra: TypePlan | None = None

    def __attrs_post_init__(self) -> None:
        providers = self.providers.values()
        self.fetches = bool(providers)
        self.managed = tuple(each for each in providers if each.managed)
        self.blocking = any(each.blocking for each in providers)
        self.standing = all(each.standing for each in providers)

    def provide(self, invocation: Invocation) -> Mapping[str, Any]:
        """What the program provides, by parameter. Raises `MissingContextError`, and what an injector raises."""
        if not self.fetches:
            return invocation.presets
        provided = {**invocation.presets}
        for name, each in self.providers.items():
            value = each.fetch(invocation)  # as `give`, without its frame
            provided[name] = each.otherwise(invocation) if value is MISSING else value
        return provided

    def bind(self, values: tuple[Any, ...], invocation: Invocation) -> Bound:
        """What `invoke` would call the function with: what goes to a process where it is called instead."""
        bound: Bound = self.invoke(values, self.provide(invocation), _as_called)
        return bound

    def typed(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """The structured values by name, without those that were not sent and have no default."""
        if values and not self.names:
            return dict(values[0])
        return {name: value for name, value in zip(self.names, values, strict=True) if value is not MISSING}


def compile_plan(slots: tuple[ParameterPlan, ...], function: Any, name: str, view: ParameterView) -> CompiledPlan:
    """Compile the call of `function` under a view of its parameters."""
    visible = tuple(slot for slot in slots if slot.plan is not None and slot.name not in view.locked)
    extra = next((slot for slot in visible if slot.kind is signature.STARS), None)
    members = tuple(
        Member(slot.name, slot.key, slot.plan, slot.required and slot.name not in view.presets, slot.default)
        for slot in visible
        if slot is not extra and slot.plan is not None
    )
    own = frozenset(slot.key for slot in slots if slot is not extra)
    hidden = (own | keyword_names(function) if extra else own) - {member.key for member in members}

    filled = view.presets | view.locked
    providers = {slot.name: slot.provider for slot in slots if slot.provider is not None and slot.name not in filled}
    unlisted = frozenset(slot.key for slot in visible if slot.name in view.presets)
    shape = Record(dict, members, name, open=extra is not None, unlisted=unlisted)
    record = TypePlan({"type": "object"}, identity, shape=shape)  # `accept` has the last word
    accept = _PlanWriter(Writer(count=True), slots, visible, extra, members, view, hidden).build(function, name)
    return CompiledPlan(
        function_kind(function),
        record,
        accept,
        accept.__globals__["invoke"],
        providers,
        hidden,
        names=tuple(slot.name for slot in visible),
        overridable=unlisted,
        extra=extra.plan if extra else None,
    )


def _as_called(*args: Any, **kwargs: Any) -> Bound:
    return args, kwargs


def keyword_names(function: Any) -> frozenset[str]:
    """The names that `**kwargs` of a function can never carry: its other parameters, and what a partial binds."""
    parameters = tried(read_parameters, plain_function(function)) or ()
    names = (name for name, kind, _ in parameters if kind in (signature.KEYWORD, signature.POSITIONAL))
    return bound_keywords(function).union(names)


class _PlanWriter(NamedTuple):
    """Writes the code of a plan, whose `members` the `visible` slots are, but for the `extra` one of `**kwargs`."""

    writer: Writer
    slots: tuple[ParameterPlan, ...]
    visible: tuple[ParameterPlan, ...]
    extra: ParameterPlan | None
    members: tuple[Member, ...]
    view: ParameterView
    hidden: frozenset[str]

    def build(self, function: Any, name: str) -> Any:
        """The function `accept`, among whose globals is `invoke`."""
        writer = self.writer
        for reserved in ("accept", "invoke", "arguments", "keys", "text", "members", "size", "values", "provided"):
            writer.fresh(reserved)
        local = {slot.name: writer.fresh(slot.name) for slot in self.visible}
        with writer.block(f"def accept(arguments, keys, text):  # what the model sends to {name}"):
            self._write_accept(local)
        called = writer.constant(function, name)
        with writer.block(f"def invoke(values, provided, {called}={called}):"):
            if local:
                writer.line(f"{''.join(each + ', ' for each in local.values())}= values")
            arguments = [text for slot in self.slots for text in self._argument(slot, local)]
            writer.line(f"return {called}({', '.join(arguments)})")
        return writer.build("accept", f"<pegboard plan of {name}>")

    def _write_accept(self, local: Mapping[str, str]) -> None:
        """Read each argument, structure it, and refuse what is missing or surplus."""
        writer = self.writer
        writer.line("members = size = len(arguments)")
        members = iter(self.members)
        for slot in self.visible:
            if slot is not self.extra:
                self._read(slot, next(members), local[slot.name])
        self._refuse_surplus(local)
        exact = writer.constant(exact_keys, "exact_keys")
        with writer.block(f"if text is not None and keys != members and {exact}(text) != members:"):
            writer.line(f"raise {writer.constant(BareMismatch, 'Mismatch')}  # a key came twice")
        writer.line(f"return ({''.join(each + ', ' for each in local.values())})")

    def _read(self, slot: ParameterPlan, member: Member, local: str) -> None:
        writer = self.writer
        read = f"arguments[{member.key!r}]"
        if member.required:
            emit(writer, member.plan, read, local)
            return
        with writer.block(f"if {member.key!r} in arguments:"):
            writer.line("size -= 1")
            if slot.name in self.view.presets:
                with writer.block("if keys >= 0:"):
                    writer.line(f"raise {writer.constant(BareMismatch, 'Mismatch')}  # a preset is overridden")
            emit(writer, member.plan, read, local)
        with writer.block("else:"):
            writer.line(f"{local} = {self._absent(slot)}")

    def _absent(self, slot: ParameterPlan) -> str:
        preset = slot.name in self.view.presets
        if slot.kind is signature.STAR and not preset:
            return "()"
        default = MISSING if preset or slot.omissible else slot.default
        if isinstance(default, signature.Made):
            return f"{self.writer.constant(default.make, f'make_{slot.name}')}()"
        return self.writer.constant(default, f"default_{slot.name}")

    def _refuse_surplus(self, local: Mapping[str, str]) -> None:
        writer, extra = self.writer, self.extra
        if extra is None:
            required = sum(member.required for member in self.members)
            with writer.block(f"if size != {required}:"):
                writer.line(f"raise {writer.constant(BareMismatch, 'Mismatch')}  # a surplus argument")
            return
        known = writer.constant(frozenset(member.key for member in self.members), "known")
        key, item = writer.fresh("key"), writer.fresh("item")
        writer.line(f"{local[extra.name]} = {{}}")
        with writer.block(f"for {key} in arguments:"), writer.block(f"if {key} not in {known}:"):
            if self.hidden:
                with writer.block(f"if {key} in {writer.constant(self.hidden, 'hidden')}:"):
                    writer.line(f"raise {writer.constant(BareMismatch, 'Mismatch')}  # only the program sets it")
            emit(writer, extra.plan or _UNCHANGED, f"arguments[{key}]", item)
            writer.line(f"{local[extra.name]}[{key}] = {item}")

    def _argument(self, slot: ParameterPlan, local: Mapping[str, str]) -> list[str]:
        if slot.kind is signature.ADDED and not any(each.kind is signature.STARS for each in self.slots):
            return []
        if slot is self.extra:
            return [f"**{local[slot.name]}"]
        if slot.kind is signature.STAR:
            return [f"*{self._value(slot, local)}"]
        if slot.omissible and slot.name not in self.view.presets | self.view.locked:
            value, missing = local[slot.name], self.writer.constant(MISSING, "MISSING")
            return [f"**({{}} if {value} is {missing} else {{{slot.name!r}: {value}}})"]
        return [self._passed(slot, local)]

    def _passed(self, slot: ParameterPlan, local: Mapping[str, str]) -> str:
        value = self._value(slot, local)
        if slot.kind is not signature.KEYWORD:
            return value
        # A TypedDict may have keys that no Python source could spell as a keyword.
        spelled = slot.name.isascii() and slot.name.isidentifier() and not keyword.iskeyword(slot.name)
        return f"{slot.name}={value}" if spelled else f"**{{{slot.name!r}: {value}}}"

    def _value(self, slot: ParameterPlan, local: Mapping[str, str]) -> str:
        provided = f"provided[{slot.name!r}]"
        if slot.name in self.view.locked or slot.provider is not None:
            return provided
        if slot.name in self.view.presets:
            missing = self.writer.constant(MISSING, "MISSING")
            return f"({provided} if {local[slot.name]} is {missing} else {local[slot.name]})"
        return local[slot.name]


# Tools by hand ---------------------------------------------------------------------------------------------------


class Written(NamedTuple):
    """A tool as it was written by hand; `call` is None for one that runs elsewhere, `returns` the schema of results.

    `judge` is there where a third party wrote the schema, see `ForeignSchema`.
    """

    description: str
    parameters: Mapping[str, Any]
    call: Callable[[ToolCall], Any] | None = None
    returns: Mapping[str, Any] | None = None
    judge: Judge | None = None


def read_schema(source: Written, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
    """Read a tool by hand; there is no Python type that its parameters could have.

    Raises `RegistrationError` for a schema that is not one, is not an object's, or could block a validator.
    """
    parameters = {"type": "object"} if source.parameters == {} else source.parameters
    if options is not None and options.extended_model is not None:
        parameters = _extended(
            parameters, signature.added(options.extended_model, _slots(parameters), tables.types, name)
        )
    foreign = foreign_object(parameters, f"tool {name!r}: parameters", source.judge)
    slots = _slots(foreign.schema)
    returns = None if source.returns is None else carried_data(dict(source.returns))
    text = source.description and carried(source.description)
    return Reading(source.call, options or ToolOptions(), slots, text=text, foreign=foreign, returns=returns)


def _extended(schema: Mapping[str, Any], added: tuple[ParameterPlan, ...]) -> JsonSchema:
    """The schema of a tool by hand with the members of an extended model."""
    members = {slot.key: render(slot.plan.schema, SchemaRequest(refs="inline")) for slot in added if slot.plan}
    required = [*schema.get("required", ()), *(slot.key for slot in added if slot.required)]
    return {**schema, "properties": {**schema.get("properties", {}), **members}, "required": required}


def _slots(schema: Mapping[str, Any]) -> tuple[ParameterPlan, ...]:
    slots = []
    for name, member in schema.get("properties", {}).items():
        known = member if isinstance(member, Mapping) else {}
        default, required = known.get("default", MISSING), name in schema.get("required", ())
        slot = ParameterPlan(name, name, signature.KEYWORD, Any, default, required, _UNCHANGED)
        slots.append(slot._replace(description=str(known.get("description", ""))))
    return tuple(slots)


def schema_plan(
    foreign: ForeignSchema,
    call: Callable[[ToolCall], Any] | None,
    view: ParameterView,
) -> CompiledPlan:
    """The call of a tool by hand: validates with jsonschema, merges presets, hands `call` a `ToolCall` of its own."""
    filled = view.presets | view.locked
    shown = without(foreign.schema, view.locked, filled)
    record = foreign.like(shown, plain_predicate).plan()
    # What stood in an earlier version of the schema is not sent to a tool that no longer knows it.
    known = filled.intersection(foreign.schema.get("properties", ()))

    def accept(arguments: dict[str, Any], keys: int, text: str | None) -> tuple[Any, ...]:
        if not (view.locked if keys < 0 else filled).isdisjoint(arguments):
            raise Mismatch("an argument that the program sets")
        if text is not None and not has_every_key(arguments, keys, text):
            raise Mismatch("a key came twice")
        return (record.structure(arguments),)

    def invoke(values: tuple[Any, ...], provided: Mapping[str, Any], call: Callable[..., Any] | None = call) -> Any:
        if call is None:
            raise Suspend(f"{provided[_INVOCATION].name} runs outside; its answer comes later")
        presets = {name: value for name, value in provided.items() if name in known}
        return call(_surrounded(provided[_INVOCATION], {**presets, **values[0]}))

    kind = "sync" if call is None else function_kind(call)
    providers = {_INVOCATION: Provider("injected", identity)}
    free = filled - view.locked
    return CompiledPlan(kind, record, accept, invoke, providers, view.locked, overridable=free)


def _surrounded(invocation: Invocation, arguments: dict[str, Any]) -> ToolCall:
    """The call as a tool by hand gets it: with its presets, and what it logs and attaches there is the caller's."""
    sent = invocation.call
    own = ToolCall(sent.id, sent.name, arguments, sent.provider_meta)
    own.typed = arguments
    own.surround(invocation)
    own.logs, own.attachments = sent.logs, sent.attachments
    return own


def without(schema: JsonSchema, properties: frozenset[str], required: frozenset[str]) -> JsonSchema:
    """A copy of an object schema without some `properties`, and without some names in `required`."""
    if not properties and not required:
        return schema
    kept = {name: member for name, member in schema.get("properties", {}).items() if name not in properties}
    trimmed = {**schema, "properties": kept}
    if "required" in schema:
        trimmed["required"] = [name for name in schema["required"] if name not in required]
    return trimmed
