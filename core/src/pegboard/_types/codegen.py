"""Strict structuring as generated Python: straight-line code from shapes.

The generated code checks exact types in line, calls a function of `_strict` only where that fails, and builds nested
records and arrays without a call per level. `writer.source` shows it, and tracebacks into it show its lines.
"""

from __future__ import annotations

import itertools
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import NoneType
from typing import Any

from pegboard._base.errors import BareMismatch
from pegboard._model import shapes
from pegboard._model.shapes import Convert
from pegboard._model.subschemas import TYPE_NAMES, distinct
from pegboard._types import json_kinds

# Python allows 20 nested loops; code that deep is unreadable long before.
_MAX_BLOCKS = 8
# A type that is used in many places is inlined in each, until the function is this long.
_MAX_LINES = 400
# What the emitted code itself means by these names, whatever the user's classes are called.
_BUILTINS = (KeyError, bool, dict, float, frozenset, int, isinstance, len, list, set, str, sum, tuple, type)
_BUILTIN_NAMES = {id(builtin): builtin.__name__ for builtin in _BUILTINS}
_numbers = itertools.count(1)


class Writer:
    """Collects the lines, constants and local names of one generated function.

    With `count=True` the emitted code adds the size of every JSON object that it consumes to a local `members`, so that
    the caller can tell duplicate keys by comparing with the number of keys in the text.
    """

    def __init__(self, *, count: bool = False) -> None:
        self.count = count
        self.depth = 0
        self._lines: list[str] = []
        self._namespace: dict[str, Any] = {}
        self._constants: dict[int, str] = dict(_BUILTIN_NAMES)
        self._names: set[str] = {"members", *_BUILTIN_NAMES.values()}

    @property
    def source(self) -> str:
        """The code so far."""
        return "\n".join(self._lines) + "\n"

    @property
    def is_long(self) -> bool:
        """Whether further types had better be called than inlined."""
        return self.depth > _MAX_BLOCKS or len(self._lines) > _MAX_LINES

    def line(self, text: str) -> None:
        """Add one statement."""
        self._lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Add a compound statement; what is written inside the `with` is its body."""
        self.line(header)
        self.depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self.depth -= 1

    def constant(self, value: Any, hint: str = "") -> str:
        """The name of a global bound to `value`, by default its own: the same object gives the same name."""
        if id(value) not in self._constants:
            name = self._constants[id(value)] = self.fresh(hint or getattr(value, "__name__", "value"))
            self._namespace[name] = value
        return self._constants[id(value)]

    def fresh(self, hint: str) -> str:
        """A name that nothing else has, as close to `hint` as an identifier can be."""
        # Python reads names in this form too: the ligature of "fi" as two letters, and so as the same name.
        hint = hint if hint.isascii() else unicodedata.normalize("NFKC", hint)
        base = re.sub(r"\W+", "_", hint.replace("<locals>", "")).strip("_") or "value"
        base = f"_{base}" if base[0].isdigit() or keyword.iskeyword(base) else base
        numbered = (f"{base}_{number}" for number in itertools.count(2))
        name = next(name for name in itertools.chain([base], numbered) if name not in self._names)
        self._names.add(name)
        return name

    def build(self, name: str, filename: str) -> Callable[..., Any]:
        """Execute the code and return what it defined as `name`. Tracebacks show the lines under `filename`."""
        import linecache
        import weakref

        unique = f"<{filename.strip('<>')} {next(_numbers)}>"
        source = self.source
        namespace = dict(self._namespace)
        exec(compile(source, unique, "exec"), namespace)  # noqa: S102 - code that was generated above, from shapes
        function: Callable[..., Any] = namespace[name]
        namespace.update(self._namespace)  # a constant may have the name of the function, which has no use for its own
        linecache.cache[unique] = (len(source), None, source.splitlines(keepends=True), unique)
        weakref.finalize(function, linecache.cache.pop, unique, None).atexit = False
        return function


def structurer(shape: shapes.Shape) -> Convert:
    """The strict structuring function of a shape, compiled when it is first called.

    It takes a decoded JSON value, and raises `Mismatch`, or what a parser or class of the user's raises, if the value
    does not fit.
    """
    compiled: Convert | None = None

    def structure(value: Any) -> Any:
        nonlocal compiled
        if compiled is None:
            compiled = _compiled(shape)
        return compiled(value)

    return structure


def emit(writer: Writer, plan: shapes.TypePlan, source: str, target: str) -> None:
    """Append statements after which the local `target` holds the structured value of the expression `source`.

    The statements raise `Mismatch` (or what a third party's function raises) where the value does not fit. Names that
    the caller uses itself have to come from `writer.fresh` before the first type is emitted.
    """
    if plan.shape is None or (writer.is_long and not isinstance(plan.shape, shapes.Scalar)):
        _emit_call(writer, plan.structure, "structure", source, target)
    else:
        _EMITTERS[type(plan.shape)](writer, plan.shape, source, target)


def _compiled(shape: shapes.Shape) -> Convert:
    if isinstance(shape, shapes.Deferred):
        return _through(shape)
    writer = Writer()
    label = writer.fresh(f"structure_{shape.name}" if isinstance(shape, shapes.Record) else "structure")
    value, result = writer.fresh("value"), writer.fresh("result")
    with writer.block(f"def {label}({value}):"):
        _EMITTERS[type(shape)](writer, shape, value, result)
        writer.line(f"return {result}")
    return writer.build(label, f"pegboard {label}")


def _through(shape: shapes.Deferred) -> Convert:
    structure = shape.resolve().structure

    def structure_nested(value: Any) -> Any:
        try:
            return structure(value)
        except RecursionError:
            raise BareMismatch("nested too deeply") from None

    return structure_nested


def _assign(writer: Writer, target: str, source: str) -> None:
    if target != source:
        writer.line(f"{target} = {source}")


def _refuse_if(writer: Writer, condition: str) -> None:
    with writer.block(f"if {condition}:"):
        writer.line(f"raise {writer.constant(BareMismatch)}")


def _emit_call(writer: Writer, function: Callable[..., Any], hint: str, source: str, target: str) -> None:
    _assign(writer, target, source)
    _emit_count(writer, target)
    writer.line(f"{target} = {writer.constant(function, hint)}({target})")


def _emit_count(writer: Writer, value: str) -> None:
    """Count what no emitted line counts: the members of all objects inside a value."""
    if writer.count:
        writer.line(f"members += {writer.constant(json_kinds.count_members)}({value})")


def _emit_exact(writer: Writer, kind: type, source: str, target: str) -> None:
    """`target` becomes a value of exactly the JSON type `kind`, or is refused by the fallback of that type."""
    fallback = _FALLBACKS[kind]
    _assign(writer, target, source)
    with writer.block(f"if {_inexact(kind, target)}:"):
        writer.line(f"{target} = {writer.constant(fallback)}({target})")


def _inexact(kind: type, name: str) -> str:
    if kind is float:
        # Only infinities and NaN do not give 0.0 here.
        return f"type({name}) is not float or {name} - {name} != 0.0"
    return f"type({name}) is not {kind.__name__}"


def _emit_checks(writer: Writer, checks: tuple[shapes.Check, ...], value: str) -> None:
    for check in checks:
        _refuse_if(writer, f"not ({_condition(writer, check, value)})")


def _condition(writer: Writer, check: shapes.Check, value: str) -> str:
    limit = check.limit
    if check.keyword == "pattern":
        limit = re.compile(limit)
    literal = repr(limit) if type(limit) in (int, float) else writer.constant(limit, check.keyword)
    return check.expression.format(value=value, limit=literal)


def _emit_scalar(writer: Writer, shape: shapes.Scalar, source: str, target: str) -> None:
    if shape.type is object:
        _assign(writer, target, source)
        _emit_count(writer, target)
    elif shape.type in _FALLBACKS:
        _emit_exact(writer, shape.type, source, target)
    else:
        _assign(writer, target, source)
        strange = (
            f"{target} is not None" if shape.type is NoneType else f"{target} is not True and {target} is not False"
        )
        _refuse_if(writer, strange)
    _emit_checks(writer, shape.checks, target)


def _emit_text(writer: Writer, shape: shapes.Text, source: str, target: str) -> None:
    _emit_exact(writer, str, source, target)
    _emit_checks(writer, shape.checks, target)
    writer.line(f"{target} = {writer.constant(shape.parse)}({target})")


def _emit_choice(writer: Writer, shape: shapes.Choice, source: str, target: str) -> None:
    if all(isinstance(value, str) for value, _ in shape.pairs):
        words = writer.constant(dict(reversed(shape.pairs)), "choices")
        _emit_exact(writer, str, source, target)
        _emit_lookup(writer, [target], [f"{words}[{target}]"])
        return
    table = writer.constant(json_kinds.choice_table(shape.pairs), "choices")
    writer.line(f"{target} = {writer.constant(json_kinds.choose)}({table}, {source})")


def _emit_lookup(writer: Writer, names: list[str], lookups: list[str]) -> None:
    """Several lookups, of which each may find nothing."""
    with writer.block("try:"):
        for name, lookup in zip(names, lookups, strict=True):
            writer.line(f"{name} = {lookup}")
    with writer.block("except KeyError:"):
        writer.line(f"raise {writer.constant(BareMismatch)} from None")


def _emit_container(writer: Writer, kind: type, source: str, target: str) -> str:
    """The name of a local that holds an array or an object."""
    name = writer.fresh(f"{target}_{TYPE_NAMES[kind]}")
    _assign(writer, name, source)
    _refuse_if(writer, f"not isinstance({name}, {kind.__name__})")
    return name


def _emit_items(writer: Writer, shape: shapes.Items, source: str, target: str) -> None:
    array = _emit_container(writer, list, source, target)
    _emit_checks(writer, shape.checks, array)
    if shape.unique:
        _refuse_if(writer, f"len({writer.constant(distinct)}({array})) != len({array})")
    inline = _inline_scalar(writer, shape.item)
    if inline is not None:
        writer.line(f"{target} = [{inline} for item in {array}]")
    else:
        item, built = writer.fresh("item"), writer.fresh(f"{target}_items")
        writer.line(f"{built} = []")
        with writer.block(f"for {item} in {array}:"):
            emit(writer, shape.item, item, item)
            writer.line(f"{built}.append({item})")
        _assign(writer, target, built)
    if shape.build is not list:
        writer.line(f"{target} = {writer.constant(shape.build)}({target})")


def _inline_scalar(writer: Writer, plan: shapes.TypePlan) -> str | None:
    """An expression for an `item` that is a scalar without bounds; None for anything else."""
    shape = plan.shape
    if not isinstance(shape, shapes.Scalar) or shape.checks or shape.type not in _FALLBACKS:
        return None
    return f"{writer.constant(_FALLBACKS[shape.type])}(item) if {_inexact(shape.type, 'item')} else item"


def _emit_fixed_items(writer: Writer, shape: shapes.FixedItems, source: str, target: str) -> None:
    array = _emit_container(writer, list, source, target)
    _refuse_if(writer, f"len({array}) != {len(shape.items)}")
    names = []
    for position, plan in enumerate(shape.items):
        names.append(writer.fresh(f"{target}_{position}"))
        emit(writer, plan, f"{array}[{position}]", names[-1])
    if shape.build is tuple:
        writer.line(f"{target} = ({''.join(f'{name}, ' for name in names)})")
    else:
        writer.line(f"{target} = {writer.constant(shape.build)}([{', '.join(names)}])")


def _emit_object(writer: Writer, source: str, target: str) -> str:
    name = _emit_container(writer, dict, source, target)
    if writer.count:
        writer.line(f"members += len({name})")
    return name


def _emit_mapped(writer: Writer, shape: shapes.Mapped, source: str, target: str) -> None:
    mapping = _emit_object(writer, source, target)
    _emit_checks(writer, shape.checks, mapping)
    built, key, value = writer.fresh(f"{target}_items"), writer.fresh("key"), writer.fresh("item")
    writer.line(f"{built} = {{}}")
    with writer.block(f"for {key}, {value} in {mapping}.items():"):
        # Text decoded from JSON has only string keys; a mapping that a program hands in may not.
        emit(writer, shape.key or _KEY, key, key)
        emit(writer, shape.value, value, value)
        writer.line(f"{built}[{key}] = {value}")
    if shape.key is not None:
        # Two spellings of one key would lose a member silently.
        _refuse_if(writer, f"len({built}) != len({mapping})")
    writer.line(f"{target} = {built if shape.build is None else writer.constant(shape.build) + f'({built})'}")


def _emit_record(writer: Writer, shape: shapes.Record, source: str, target: str) -> None:
    mapping = _emit_object(writer, source, target)
    required = [member for member in shape.members if member.required]
    optional = [member for member in shape.members if not member.required]
    names = [writer.fresh(f"{target}_{member.name}") for member in required]
    if required:
        _emit_lookup(writer, names, [f"{mapping}[{member.key!r}]" for member in required])
    given = _emit_optional(writer, optional, mapping, target) if optional else None
    if not shape.open:
        _refuse_if(writer, f"len({mapping}) != {len(required)}" + (f" + len({given})" if given else ""))
    elif writer.count:
        _emit_surplus_count(writer, shape, mapping)
    for member, name in zip(required, names, strict=True):
        emit(writer, member.plan, name, name)
    arguments = _arguments(shape.build, [member.name for member in required], names) + ([f"**{given}"] if given else [])
    writer.line(f"{target} = {writer.constant(shape.build)}({', '.join(arguments)})")


def _arguments(build: Callable[..., Any], parameters: list[str], names: list[str]) -> list[str]:
    """The arguments of a call of `build`, as source: positional where that means the same, in half the time.

    `names` are the expressions that give the values of `parameters`, one for each.
    """
    if _takes_in_order(build, parameters):
        return names
    pairs = list(zip(parameters, names, strict=True))
    if all(parameter.isidentifier() and not keyword.iskeyword(parameter) for parameter in parameters):
        return [f"{parameter}={name}" for parameter, name in pairs]
    return [f"**{{{', '.join(f'{parameter!r}: {name}' for parameter, name in pairs)}}}"]


def _takes_in_order(build: Any, parameters: list[str]) -> bool:
    function, bound = build, 0
    if isinstance(build, type):
        if type(build).__call__ is not type.__call__ or getattr(build, "__new__", None) is not object.__new__:
            return False
        function, bound = getattr(build, "__init__", None), 1
    code = getattr(function, "__code__", None)
    return code is not None and list(code.co_varnames[bound : code.co_argcount])[: len(parameters)] == parameters


def _emit_optional(writer: Writer, optional: list[shapes.Member], mapping: str, target: str) -> str:
    """The members that are there, in a dict of their own: the rest is left to the defaults of `build`."""
    given = writer.fresh(f"{target}_given")
    writer.line(f"{given} = {{}}")
    for member in optional:
        name = writer.fresh(f"{target}_{member.name}")
        with writer.block(f"if {member.key!r} in {mapping}:"):
            emit(writer, member.plan, f"{mapping}[{member.key!r}]", name)
            writer.line(f"{given}[{member.name!r}] = {name}")
    return given


def _emit_surplus_count(writer: Writer, shape: shapes.Record, mapping: str) -> None:
    known = writer.constant(frozenset(member.key for member in shape.members), "known_keys")
    counter = writer.constant(json_kinds.count_members)
    writer.line(f"members += sum({counter}(surplus) for key, surplus in {mapping}.items() if key not in {known})")


def _emit_nullable(writer: Writer, shape: shapes.Nullable, source: str, target: str) -> None:
    _assign(writer, target, source)
    with writer.block(f"if {target} is not None:"):
        emit(writer, shape.inner, target, target)


def _emit_union(writer: Writer, shape: shapes.Union, source: str, target: str) -> None:
    kind = writer.fresh(f"{target}_kind")
    _assign(writer, target, source)
    writer.line(f"{kind} = type({target})")
    word = "if"
    for accepted, plans in _by_candidates(shape):
        if str in accepted and any(isinstance(plan.shape, shapes.Text) for plan in plans):
            accepted.append(shapes.RepairedText)
        condition = " or ".join(f"{kind} is {writer.constant(found)}" for found in accepted)
        with writer.block(f"{word} {condition}:"):
            _emit_attempts(writer, plans, target)
        word = "elif"
    with writer.block("else:"):
        # Not a JSON type: a value of a subclass is tried again as its JSON type, anything else is refused.
        retry = structurer(shape)
        _emit_call(writer, lambda value: retry(json_kinds.plain(value)), "retry_as_json_type", target, target)


def _by_candidates(shape: shapes.Union) -> list[tuple[list[type], tuple[shapes.TypePlan, ...]]]:
    """The plans to try for each JSON type, with the types that share the same plans taken together."""
    found: dict[tuple[int, ...], tuple[list[type], tuple[shapes.TypePlan, ...]]] = {}
    for kind in json_kinds.JSON_TYPES:
        tried = json_kinds.candidates(shape.members, kind)
        found.setdefault(tuple(map(id, tried)), ([], tried))[0].append(kind)
    return [(kinds, plans) for kinds, plans in found.values() if plans]


def _emit_attempts(writer: Writer, plans: tuple[shapes.TypePlan, ...], target: str) -> None:
    if len(plans) == 1:
        emit(writer, plans[0], target, target)
        return
    structures = tuple(plan.structure for plan in plans)
    _emit_call(writer, lambda value: json_kinds.first_of(structures, value), "first_that_fits", target, target)


def _emit_tagged(writer: Writer, shape: shapes.Tagged, source: str, target: str) -> None:
    mapping = _emit_container(writer, dict, source, target)
    table = writer.constant(
        json_kinds.choice_table([(tag, plan.structure) for tag, plan in shape.members.items()]), "tags"
    )
    _emit_count(writer, mapping)
    writer.line(f"{target} = {writer.constant(json_kinds.choose)}({table}, {mapping}.get({shape.key!r}))({mapping})")


def _emit_deferred(writer: Writer, shape: shapes.Deferred, source: str, target: str) -> None:
    _emit_call(writer, structurer(shape), "structure_nested", source, target)


_KEY = shapes.TypePlan({"type": "string"}, json_kinds.to_text, shape=shapes.Scalar(str))
_FALLBACKS: dict[type, Convert] = {
    str: json_kinds.to_text,
    int: json_kinds.to_integer,
    float: json_kinds.to_number,
}
_EMITTERS: dict[type[shapes.Shape], Callable[[Writer, Any, str, str], None]] = {
    shapes.Choice: _emit_choice,
    shapes.Deferred: _emit_deferred,
    shapes.FixedItems: _emit_fixed_items,
    shapes.Items: _emit_items,
    shapes.Mapped: _emit_mapped,
    shapes.Nullable: _emit_nullable,
    shapes.Record: _emit_record,
    shapes.Scalar: _emit_scalar,
    shapes.Tagged: _emit_tagged,
    shapes.Text: _emit_text,
    shapes.Union: _emit_union,
}
