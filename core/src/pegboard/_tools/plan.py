"""Call plans: a tool compiled to straight-line code.

`accept` takes decoded arguments and returns the structured values, or raises; `invoke` takes these values and what the
program provides and calls the function. Nothing in either asks a plugin, reads a signature or walks a schema.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from attrs import frozen

from pegboard._arguments.decode import exact_keys
from pegboard._base.errors import BareMismatch
from pegboard._base.markers import MISSING
from pegboard._injection.injectors import Provider
from pegboard._injection.invocation import Invocation
from pegboard._model.shapes import Member, Record, TypePlan, identity
from pegboard._tools.signature import KEYWORD, STAR, STARS, ParameterPlan, bound_keywords
from pegboard._types.codegen import Writer, emit
from pegboard._types.hints import Kind, function_kind
from pegboard._types.json_kinds import passes_anything

__all__ = ["FunctionPlan", "View", "compile_plan"]


_UNCHANGED: Final[TypePlan] = TypePlan({}, identity)


@final
@frozen
class View:
    """Which parameters the program fills: `presets` may be overridden by the model, `locked` ones may not."""

    presets: frozenset[str] = frozenset()
    locked: frozenset[str] = frozenset()


@final
class FunctionPlan:
    """The compiled call of one function under one view.

    `accept(arguments, keys, text)`: the decoded arguments; `text` is the JSON text or None, and `keys` the number of
    colons in it, an upper bound of its keys: with more keys than members consumed, a key came twice. `hidden` are the
    JSON names that the model cannot set. `invoke(values, provided)`: what `accept` and `provide` gave. It is `standing`
    if `provide` gives the same for all calls of a session that bring no context and no agent of their own.
    """

    __slots__ = (
        "_bind",
        "_binding",
        "_fetched",
        "accept",
        "extra",
        "hidden",
        "invoke",
        "kind",
        "managed",
        "names",
        "opens_call",
        "passes_anything",
        "record",
        "source",
        "standing",
    )

    def __init__(
        self, slots: tuple[ParameterPlan, ...], extension: tuple[Member, ...], function: Any, name: str, view: View
    ) -> None:
        visible = tuple(slot for slot in slots if slot.plan is not None and slot.name not in view.locked)
        extra = next((slot for slot in visible if slot.kind is STARS), None)
        members = tuple(_member(slot, view) for slot in visible if slot.kind is not STARS) + extension
        self.kind: Kind = function_kind(function)
        self.names = tuple(slot.name for slot in visible) + tuple(member.name for member in extension)
        own = frozenset(slot.key for slot in slots if slot is not extra)
        taken = own | keyword_names(function) if extra else own
        self.hidden = taken - {member.key for member in members}
        preset = view.presets | view.locked
        asked = {slot.name: slot.provider for slot in slots if slot.provider is not None and slot.name not in preset}
        self._fetched = {name: provider.fetch for name, provider in asked.items()}
        self.managed: tuple[Provider, ...] = tuple(provider for provider in asked.values() if provider.managed)
        self.standing = all(provider.standing for provider in asked.values())
        self.opens_call = any(slot.provider is not None and slot.provider.opens_call for slot in slots)
        unlisted = frozenset(slot.key for slot in visible if slot.name in view.presets)
        shape = Record(dict, members, name, open=extra is not None, unlisted=unlisted)
        self.record = TypePlan({"type": "object"}, _refuse, shape=shape)
        self.extra: TypePlan | None = extra.plan if extra else None
        self.passes_anything = passes_anything(self.record)
        accept = _AcceptWriter(members, extra, view, slots, self.hidden)
        self.accept: Callable[[dict[str, Any], int, str | None], tuple[Any, ...]] = accept.build(name)
        invoke = _InvokeWriter(slots, visible, extension, function, view)
        self.invoke: Callable[[tuple[Any, ...], Mapping[str, Any]], Any] = invoke.build(name)
        self._binding = (slots, visible, extension, _arguments, view)
        self._bind: Callable[[tuple[Any, ...], Mapping[str, Any]], Any] | None = None
        self.source = f"{accept.writer.source}\n\n{invoke.writer.source}"

    @property
    def fetches(self) -> bool:
        """Whether `provide` asks anybody: without that it gives the presets."""
        return bool(self._fetched)

    def provide(self, invocation: Invocation) -> Mapping[str, Any]:
        """What the program provides, by parameter. Raises `MissingContextError`, and what an injector raises."""
        if not self._fetched:
            return invocation.presets
        return {**invocation.presets, **{name: fetch(invocation) for name, fetch in self._fetched.items()}}

    def bind(self, values: tuple[Any, ...], invocation: Invocation) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What `invoke` would call the function with: what goes to a process where it is called instead."""
        if self._bind is None:
            self._bind = _InvokeWriter(*self._binding).build("arguments")
        bound: tuple[tuple[Any, ...], dict[str, Any]] = self._bind(values, self.provide(invocation))
        return bound

    def typed(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """The structured values by name, without those that nobody sent and nothing defaults."""
        return {name: value for name, value in zip(self.names, values, strict=True) if value is not MISSING}


def _arguments(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def compile_plan(
    slots: tuple[ParameterPlan, ...], extension: tuple[Member, ...], function: Any, name: str, view: View
) -> FunctionPlan:
    """Compile the call of `function` under a view of its parameters."""
    return FunctionPlan(slots, extension, function, name, view)


def keyword_names(function: Any) -> frozenset[str]:
    """The names that `**kwargs` of a function can never carry: its other parameters, and what a partial binds."""
    import inspect

    from pegboard._types.hints import plain_function

    bound = bound_keywords(function)
    try:
        parameters = inspect.signature(plain_function(function)).parameters.values()
    except (TypeError, ValueError):
        return bound
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, KEYWORD)
    return bound | {parameter.name for parameter in parameters if parameter.kind in named}


def _refuse(value: Any) -> Any:
    """Explaining and repairing begin where `accept` has refused, so the record as a whole never fits."""
    raise BareMismatch("the arguments do not fit")


def _member(slot: ParameterPlan, view: View) -> Member:
    assert slot.plan is not None  # noqa: S101 - callers pass the model's slots only
    required = slot.required and slot.name not in view.presets
    return Member(slot.name, slot.key, slot.plan, required, slot.default)


class _AcceptWriter:
    """Writes `accept`: reads each argument, structures it, and refuses what is missing or surplus."""

    def __init__(
        self,
        members: tuple[Member, ...],
        extra: ParameterPlan | None,
        view: View,
        slots: tuple[ParameterPlan, ...],
        hidden: frozenset[str],
    ) -> None:
        self.writer = Writer(count=True)
        self._members = members
        self._extra = extra
        self._view = view
        self._hidden = hidden
        self._stars = frozenset(slot.name for slot in slots if slot.kind is STAR)
        self._spread = frozenset(slot.name for slot in slots if slot.spread)
        self._mismatch = self.writer.constant(BareMismatch, "Mismatch")
        self._locals: dict[str, str] = {}

    def build(self, name: str) -> Callable[..., Any]:
        writer = self.writer
        for reserved in ("arguments", "keys", "text", "members", "size"):
            writer.fresh(reserved)
        with writer.block(f"def accept(arguments, keys, text):  # what the model sends to {name}"):
            writer.line("members = size = len(arguments)")
            for member in self._members:
                self._read(member)
            self._refuse_surplus()
            exact = writer.constant(exact_keys, "exact_keys")
            with writer.block(f"if text is not None and keys != members and {exact}(text) != members:"):
                writer.line(f"raise {self._mismatch}  # a key came twice")
            results = [self._locals[member.name] for member in self._members]
            if self._extra is not None:
                position = len([member for member in self._members if not self._is_extension(member)])
                results.insert(position, self._locals[self._extra.name])
            writer.line(f"return ({''.join(result + ', ' for result in results)})")
        return writer.build("accept", f"<pegboard plan of {name}: accept>")

    def _is_extension(self, member: Member) -> bool:
        return member.default is _EXTENSION

    def _read(self, member: Member) -> None:
        writer = self.writer
        local = self._locals[member.name] = writer.fresh(member.name)
        read = f"arguments[{member.key!r}]"
        if member.required:
            emit(writer, member.plan, read, local)
            return
        with writer.block(f"if {member.key!r} in arguments:"):
            writer.line("size -= 1")
            emit(writer, member.plan, read, local)
        with writer.block("else:"):
            writer.line(f"{local} = {self._absent(member)}")

    def _absent(self, member: Member) -> str:
        default = member.default
        if member.name in self._stars and member.name not in self._view.presets:
            return "()"
        if member.name in self._view.presets or member.name in self._spread or default is _EXTENSION:
            default = MISSING
        if default is None or default is True or default is False:
            return repr(default)
        return self.writer.constant(default, f"default_{member.name}")

    def _refuse_surplus(self) -> None:
        writer = self.writer
        if self._extra is None:
            required = sum(member.required for member in self._members)
            with writer.block(f"if size != {required}:"):
                writer.line(f"raise {self._mismatch}  # a surplus argument")
            return
        local = self._locals[self._extra.name] = writer.fresh(self._extra.name)
        known = writer.constant(frozenset(member.key for member in self._members), "known")
        key, item = writer.fresh("key"), writer.fresh("item")
        writer.line(f"{local} = {{}}")
        with writer.block(f"for {key} in arguments:"), writer.block(f"if {key} not in {known}:"):
            if self._hidden:
                with writer.block(f"if {key} in {writer.constant(self._hidden, 'hidden')}:"):
                    writer.line(f"raise {self._mismatch}  # only the program sets it")
            emit(writer, self._extra.plan or _UNCHANGED, f"arguments[{key}]", item)
            writer.line(f"{local}[{key}] = {item}")


class _Extension:
    """Marks a member that an extended model adds and that the function's own signature does not have."""


_EXTENSION: Final = _Extension()


def extension_member(name: str, plan: TypePlan, *, required: bool) -> Member:
    """A member of an extended model."""
    return Member(name, name, plan, required, _EXTENSION)


class _InvokeWriter:
    """Writes `invoke`: calls the function with the structured values and what the program provides."""

    def __init__(
        self,
        slots: tuple[ParameterPlan, ...],
        visible: tuple[ParameterPlan, ...],
        extension: tuple[Member, ...],
        function: Any,
        view: View,
    ) -> None:
        self.writer = Writer()
        self._slots = slots
        self._visible = visible
        self._extension = extension
        self._function = function
        self._view = view
        self._missing = self.writer.constant(MISSING, "MISSING")

    def build(self, name: str) -> Callable[..., Any]:
        writer = self.writer
        for reserved in ("values", "provided"):
            writer.fresh(reserved)
        local = {slot.name: writer.fresh(slot.name) for slot in self._visible}
        added = {member.name: writer.fresh(member.name) for member in self._extension}
        function = writer.constant(self._function, name)
        with writer.block("def invoke(values, provided):"):
            unpacked = [*local.values(), *added.values()]
            if unpacked:
                writer.line(f"{''.join(each + ', ' for each in unpacked)}= values")
            arguments = [text for slot in self._slots for text in self._argument(slot, local)]
            if any(slot.kind is STARS for slot in self._slots):
                arguments.extend(self._optional(name, local) for name, local in added.items())
            writer.line(f"return {function}({', '.join(arguments)})")
        return writer.build("invoke", f"<pegboard plan of {name}: invoke>")

    def _argument(self, slot: ParameterPlan, local: Mapping[str, str]) -> list[str]:
        if slot.kind is STARS and slot.name in local:
            return [f"**{local[slot.name]}"]
        if slot.kind is STAR:
            return [f"*{self._value(slot, local)}"]
        if slot.spread and slot.name not in self._view.presets | self._view.locked:
            return [self._optional(slot.name, local[slot.name])]
        return [self._passed(slot, local)]

    def _passed(self, slot: ParameterPlan, local: Mapping[str, str]) -> str:
        value = self._value(slot, local)
        if slot.kind is not KEYWORD:
            return value
        # A TypedDict may have keys that no Python source could spell as a keyword.
        spelled = slot.name.isascii() and slot.name.isidentifier() and not keyword.iskeyword(slot.name)
        return f"{slot.name}={value}" if spelled else f"**{{{slot.name!r}: {value}}}"

    def _value(self, slot: ParameterPlan, local: Mapping[str, str]) -> str:
        provided = f"provided[{slot.name!r}]"
        if slot.name in self._view.locked or slot.provider is not None:
            return provided
        if slot.name in self._view.presets:
            return f"({provided} if {local[slot.name]} is {self._missing} else {local[slot.name]})"
        return local[slot.name]

    def _optional(self, name: str, local: str) -> str:
        return f"**({{}} if {local} is {self._missing} else {{{name!r}: {local}}})"
