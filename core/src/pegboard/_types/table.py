"""The type table: which handler maps an annotation, and the plans that come of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_origin

from attrs import evolve

from pegboard._base.errors import ConflictError, RegistrationError
from pegboard._model.shapes import Deferred, TypePlan
from pegboard._model.tool import Origin
from pegboard._schema.nodes import SchemaNode, SchemaRef, embed
from pegboard._types.annotations import (
    alias_value,
    is_alias,
    is_structural,
    qualified_name,
    read_metadata,
    refuse_unknown,
    split,
    structural_key,
)
from pegboard._types.codegen import structurer
from pegboard._types.plans import refine
from pegboard.extension import TypeHandler

Level: TypeAlias = Literal["program", "plugin", "builtin"]
_LEVELS: tuple[Level, ...] = ("program", "plugin", "builtin")


class _Entry:
    """A handler with where it comes from: program before plugins before built-in, then by priority."""

    __slots__ = ("handler", "level", "order", "origin", "seniority")

    def __init__(self, handler: TypeHandler, origin: Origin, level: Level, number: int) -> None:
        self.handler = handler
        self.origin = origin
        self.level = level
        self.order = _LEVELS.index(level), -handler.priority
        # What breaks a tie within one origin: the program's last word, else the first offered.
        self.seniority = -number if level == "program" else number


_Match: TypeAlias = tuple[tuple[int, int], _Entry]
"""How closely an entry maps an annotation (the smaller, the more specific), and the entry."""


class _Open:
    """A plan that is being built: what stands for it meanwhile, if the type turns out to contain itself."""

    def __init__(self) -> None:
        self.plan: TypePlan | None = None
        self.stand_in: TypePlan | None = None

    def defer(self, annotation: Any) -> TypePlan:
        """The stand-in, which becomes the plan itself once that is there."""
        if self.stand_in is None:
            shape = Deferred(self._resolve)
            self.stand_in = TypePlan(
                SchemaRef(qualified_name(annotation), lambda: self._resolve().schema),
                structurer(shape),
                lambda value: self._resolve().unstructure(value),
                shape,
            )
        return self.stand_in

    def _resolve(self) -> TypePlan:
        plan = self.plan or self.stand_in
        assert plan is not None  # noqa: S101 - only reachable through the stand-in
        return plan


class TypeTable:
    """The type handlers of one toolkit, and the plans that they have built.

    A handler is found by exact class, by predicate, by base class, by generic origin, in this order; before that
    decides where it comes from (the program, a plugin, Pegboard itself), and then its priority. Plans are cached
    by the structure of the annotation, so `int | str` and `str | int` never share one. Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._by_class: dict[type, list[_Entry]] = {}
        self._by_key: dict[Any, list[_Entry]] = {}
        self._by_predicate: list[_Entry] = []
        self._count = 0
        self._plans: dict[Any, tuple[Any, TypePlan]] = {}
        self._open: dict[Any, _Open] = {}
        self._unsettled: dict[Any, tuple[Any, TypePlan]] = {}
        self._lock = threading.RLock()
        self._converter: Any = None

    def add(self, handler: TypeHandler, origin: Origin, level: Level) -> Callable[[], None]:
        """Add a handler; what is returned takes it back. Plans that were handed out before stay as they are.

        Raises `RegistrationError` for something that is not a `TypeHandler`.
        """
        if not isinstance(handler, TypeHandler):
            raise RegistrationError(f"{origin} offers {handler!r} as a type handler; wrap it in pegboard.TypeHandler")
        with self._lock:
            self._count += 1
            entry = _Entry(handler, origin, level, self._count)
            places = self._places(handler.matches)
            for entries in places:
                entries.append(entry)
            self._plans.clear()

        def take_back() -> None:
            with self._lock:
                for entries in places:
                    entries.remove(entry)
                self._plans.clear()

        return take_back

    def _places(self, matches: Any) -> list[list[_Entry]]:
        """Where the entry of a handler belongs."""
        if isinstance(matches, type):
            return [self._by_class.setdefault(matches, [])]
        if isinstance(matches, tuple):
            return [self._by_key.setdefault(structural_key(each), []) for each in matches]
        return [self._by_key.setdefault(structural_key(matches), []) if _is_annotation(matches) else self._by_predicate]

    def plan(self, annotation: Any) -> TypePlan:
        """The plan of an annotation, built once.

        Raises `RegistrationError` for a type that nobody maps, naming it and the remedy, and `ConflictError` where two
        plugins map it equally well.
        """
        key = structural_key(annotation)
        found = self._plans.get(key)
        if found is not None:
            return found[1]
        with self._lock:
            return self._settled(key, annotation)

    def plan_without(self, without: Callable[[TypeHandler], bool], annotation: Any) -> TypePlan:
        """The plan of an annotation if some handlers were not there. Raises as `plan` does."""
        matches = [match for match in self._matches(annotation) if not without(match[1].handler)]
        return self._built(matches, annotation) if matches else self.plan(_stands_for(annotation))

    def handler_for(self, annotation: Any) -> tuple[TypeHandler, Origin, list[tuple[TypeHandler, Origin]]]:
        """The handler that wins for an annotation, where it comes from, and those that it shadows, nearest first.

        Raises as `plan` does.
        """
        bare, items = split(annotation)
        matches = self._whole_matches(bare, items) + self._matches(bare)
        found = [(match[1].handler, match[1].origin) for match in matches]
        own = read_metadata(items).handler
        if own is not None:
            return own, Origin(), found
        if not found:
            return self.handler_for(_stands_for(bare))
        _refuse_tie(bare, matches)
        return *found[0], found[1:]

    @property
    def ties(self) -> tuple[str, ...]:
        """A sentence for each class that two plugins map equally well, whether or not a tool uses it. Sorted."""
        with self._lock:
            classes = [cls for cls, entries in self._by_class.items() if len(entries) > 1]
        return tuple(sorted(tie for cls in classes if (tie := _tie(cls, self._matches(cls)))))

    @property
    def converter(self) -> Any:
        """A `cattrs.Converter` whose hooks lead back to this table: as strict as the plans are."""
        if self._converter is None:
            from pegboard._types.cattrs_bridge import make_converter

            self._converter = make_converter(self)
        return self._converter

    def _settled(self, key: Any, annotation: Any) -> TypePlan:
        """Build a plan. What is built on the way counts only once the outermost is there, which it may refer to."""
        for known in (self._plans, self._unsettled):
            if key in known:
                return known[key][1]
        if key in self._open:
            # Types contain themselves through names only, so a container met again is simply built again.
            if is_structural(annotation):
                return _named(annotation, self._build(annotation), recursive=False)
            return self._open[key].defer(annotation)
        opened = self._open[key] = _Open()
        try:
            built = self._build(annotation)
        except BaseException:
            self._unsettled.clear()
            raise
        finally:
            del self._open[key]
        if built is opened.stand_in:
            raise RegistrationError(f"{qualified_name(annotation)} is nothing but itself; give it another alternative")
        plan = opened.plan = _named(annotation, built, recursive=opened.stand_in is not None)
        self._unsettled[key] = (annotation, plan)
        if not self._open:
            self._plans.update(self._unsettled)
            self._unsettled.clear()
        return plan

    def _build(self, annotation: Any) -> TypePlan:
        bare, items = split(annotation)
        if bare is not annotation:
            return self._refined(bare, items)
        matches = self._matches(bare, best=True)
        return self._built(matches, bare) if matches else self.plan(_stands_for(bare))

    def _built(self, matches: list[_Match], annotation: Any) -> TypePlan:
        """The plan that the best of these handlers builds."""
        _refuse_tie(annotation, matches)
        return self._call(matches[0][1].handler, matches[0][1].origin, annotation)

    def _refined(self, bare: Any, items: tuple[Any, ...]) -> TypePlan:
        metadata = read_metadata(items)
        if metadata.handler is not None:
            return refine(self._call(metadata.handler, Origin(), bare), metadata, bare)
        matches = self._whole_matches(bare, items)
        if not matches:
            return refine(self.plan(bare), metadata, bare)
        whole = Annotated[(bare, *items)]
        return refine(self._built(matches, whole), metadata.but(bounds=(), predicates=()), bare)

    def _whole_matches(self, bare: Any, items: tuple[Any, ...]) -> list[_Match]:
        """The handlers that understand an `Annotated` type with its metadata, best first."""
        entries = [entry for entry in self._by_predicate if items and entry.handler.whole]
        found = [((1, 0), entry) for entry in entries if _applies(entry.handler.matches, Annotated[(bare, *items)])]
        return sorted(found, key=_precedence)

    def _call(self, handler: TypeHandler, origin: Origin, annotation: Any) -> TypePlan:
        plan: Any
        try:
            plan = handler.build(annotation, self)
        except RegistrationError:
            raise
        except Exception as error:
            name = qualified_name(annotation)
            raise RegistrationError(f"the type handler of {origin} failed for {name}: {error!r}") from error
        if not isinstance(plan, TypePlan):
            name = qualified_name(annotation)
            raise RegistrationError(f"the type handler of {origin} must give a TypePlan for {name}, not {plan!r}")
        return plan

    def _matches(self, annotation: Any, *, best: bool = False) -> list[_Match]:
        """Every handler that maps the annotation, best first; for the `best` alone, fewer predicates are asked."""
        cls = get_origin(annotation) or annotation
        found = [((0, 0), entry) for entry in self._by_key.get(structural_key(annotation), ())]
        if cls is not annotation:
            found += [((3, 0), entry) for entry in self._by_key.get(structural_key(cls), ())]
        for distance, base in enumerate(cls.__mro__ if isinstance(cls, type) else ()):
            # `object` is a base of everything: a handler for it maps only itself, or it would shadow every refusal.
            if base is not object or annotation is object:
                rank = (0, 0) if annotation is base else ((2, distance) if cls is annotation else (3, distance))
                found += [(rank, entry) for entry in self._by_class.get(base, ())]
        exact = [entry.order for rank, entry in found if best and rank == (0, 0)]
        asked = [entry for entry in self._by_predicate if not exact or entry.order < min(exact)]
        found += [((1, 0), entry) for entry in asked if _applies(entry.handler.matches, annotation)]
        return sorted(found, key=_precedence)


def _precedence(match: _Match) -> tuple[Any, ...]:
    rank, entry = match
    return entry.order, rank, entry.seniority


def _named(annotation: Any, plan: TypePlan, *, recursive: bool) -> TypePlan:
    """The plan with a schema that knows its type, and that is a reference if the type contains itself."""
    schema = plan.schema
    if "$defs" in schema or "definitions" in schema:
        schema = embed(schema, qualified_name(annotation))
    if not isinstance(schema, SchemaNode):
        schema = SchemaNode(schema, lambda: qualified_name(annotation))
    if recursive and not isinstance(schema, SchemaRef):
        body = schema
        schema = SchemaRef(qualified_name(annotation), lambda: body)
    return plan if schema is plan.schema else evolve(plan, schema=schema)


def _refuse_tie(annotation: Any, matches: list[_Match]) -> None:
    tie = _tie(annotation, matches)
    if tie:
        raise ConflictError(tie)


def _tie(annotation: Any, matches: list[_Match]) -> str:
    offered, best = [match for match in matches if match[1].level == "plugin"], _precedence(matches[0])[:2]
    rivals = {str(match[1].origin) for match in offered if _precedence(match)[:2] == best}
    if len(rivals) < 2:
        return ""
    return (
        f"{' and '.join(sorted(rivals))} both map {qualified_name(annotation)}; give one of their handlers a higher "
        "priority, block one of the plugins, or register a handler of your own, which always wins"
    )


def _is_annotation(matches: Any) -> bool:
    """Whether this is an annotation rather than a predicate: a NewType, an alias, or something like `list[Ip]`."""
    return get_origin(matches) is not None or hasattr(matches, "__supertype__") or is_alias(matches)


def _applies(predicate: Any, annotation: Any) -> bool:
    try:
        return bool(predicate(annotation))
    except Exception:  # noqa: BLE001 - `issubclass(annotation, X)` raises for what is not a class; that means no
        return False


def _stands_for(annotation: Any) -> Any:
    """What a name for another type stands for: NewType, `type` alias, type variable. Refuses anything else."""
    if hasattr(annotation, "__supertype__"):
        return annotation.__supertype__
    if is_alias(annotation):
        try:
            return alias_value(annotation)
        except NameError as error:
            raise RegistrationError(f"the alias {qualified_name(annotation)} cannot be evaluated: {error}") from error
    if not isinstance(annotation, TypeVar):
        return refuse_unknown(annotation)
    if annotation.__constraints__:
        return Union[annotation.__constraints__]  # noqa: UP007 - a union of a tuple has no other spelling
    return Any if annotation.__bound__ is None else annotation.__bound__
