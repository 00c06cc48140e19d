"""The type table: which handler maps an annotation, and the plans that come of it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from types import FunctionType, MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, Union, cast, get_origin

from attrs import evolve

from pegboard._base.effects import pass_interrupt, tried
from pegboard._base.errors import RegistrationError, describe_exception, suggestion
from pegboard._base.names import OWN, pack_name
from pegboard._model.shapes import Deferred, TypePlan
from pegboard._model.tool import Origin
from pegboard._schema.nodes import SchemaNode, SchemaRef, embed
from pegboard._types import annotations as reading
from pegboard._types.annotations import is_structural, qualified_name, read_metadata, split, structural_key
from pegboard._types.codegen import structurer
from pegboard._types.plans import checked_class, plain_predicate, refine
from pegboard.extension import TypeHandler

Level: TypeAlias = Literal["program", "plugin", "builtin"]
_LEVELS: tuple[Level, ...] = ("program", "plugin", "builtin")
_FROM_PROGRAM: Final = "the program provides it, never a model; make it a parameter of its own, or use plain data here"


def _added(item: Any, places: list[list[Any]], forget: Callable[[], None]) -> Callable[[], None]:
    """Add something to lists; gives what takes it back. What was concluded from them is to be forgotten each time."""
    for entries in places:
        entries.append(item)
    forget()

    def take_back() -> None:
        for entries in places:
            entries.remove(item)
        forget()

    return take_back


class Remembered(dict[Any, Any]):
    """What was found out once, of at most 500 keys: then it is found out anew, and nothing is kept alive for good."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= 500:
            self.clear()
        super().__setitem__(key, value)


class Ranking(ABC):
    """What there is for one purpose: program > plugins > built-in, then the highest priority, then the best fit.

    Of two that fit equally well the first offered counts. `problems` names both, and those that failed to say whether
    they fit.
    """

    def __init__(self) -> None:
        self._levels: dict[Level, list[tuple[Any, Origin]]] = {level: [] for level in _LEVELS}
        # What follows from what there is now.
        self._known: dict[Any, Any] = Remembered()
        self._met: dict[str, str] = {}

    def forget(self) -> None:
        """Keep nothing of what was asked about."""
        self._known.clear()

    def add(self, item: Any, origin: Origin, level: Level) -> Callable[[], None]:
        """Register one; its level says who brings it. What is returned takes it back."""
        return _added((item, origin), [self._levels[level]], self._known.clear)

    @property
    def problems(self) -> list[str]:
        """What is to be said of plugins' items: of those that claim one class, and of what was met. Sorted."""
        classes = [item.matches for item, _ in self._levels["plugin"] if isinstance(item.matches, type)]
        for cls in classes:
            if classes.count(cls) > 1:
                self.meet(cls)
        return sorted(self._met.values())

    @abstractmethod
    def meet(self, cls: type) -> Any:
        """Find out which item counts for a class."""

    def best(self, fit: Callable[[Any, Origin], Any], verb: str, subject: Any) -> Any:
        """What fits best, or None: `fit` says how well, or None. Raises what `fit` raises."""
        for level in self._levels.values():
            asked = [(fit(item, origin), item, origin) for item, origin in level]
            fitting = [((item.priority, fits), item, origin) for fits, item, origin in asked if fits is not None]
            if fitting:
                top = max(rank for rank, _, _ in fitting)
                best = [(item, origin) for rank, item, origin in fitting if rank == top]
                if len({origin.plugin for _, origin in best}) > 1:
                    claim = f"{verb} {qualified_name(subject)}"
                    self._met[claim] = overlap([origin for _, origin in best], claim)
                return best[-1 if level is self._levels["program"] else 0][0]
        return None


def overlap(origins: list[Origin], claim: str, remedy: str = "block one, or give one a higher priority") -> str:
    """What is to be said of several plugins that do the same equally well, of which the first counts."""
    sides = " and ".join(sorted(map(str, origins)))
    return f"{sides} both {claim}; {origins[0]} counts; {remedy}"


class _Entry(NamedTuple):
    """A handler with where it comes from: program before plugins before built-in, then by priority."""

    handler: TypeHandler
    origin: Origin
    # None for those of the program and the core's own.
    pack: str | None
    order: tuple[int, int]
    # What decides between equals: the program's last word, else the first offered.
    seniority: int


# How closely an entry maps an annotation (the smaller, the more specific), and the entry.
_Match: TypeAlias = tuple[tuple[int, int], _Entry]


class _Open:
    """A plan that is being built: what stands for it meanwhile, if the type turns out to contain itself."""

    def __init__(self) -> None:
        self.plan: TypePlan | None = None
        self.stand_in: TypePlan | None = None
        # The annotations that it was planned from, by their keys.
        self.inside: dict[Any, Any] = {}

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


class Ways(list[tuple[Any, ...]]):
    """How the annotations inside one are come by; and which of them was `held`, when that was `asked`."""

    held: Any = None
    asked: Any = None


class TypeTable:
    """The type handlers of one toolkit, and the plans that they have built.

    A handler is found by exact class, by predicate, by base class, by generic origin, in this order; before that
    decides where it comes from (the program, a plugin, Pegboard itself), and then its priority. Of plugins that map a
    type equally well the first offered counts, which `problems` says. Plans are cached by the structure of the
    annotation, so `int | str` and `str | int` never share one. Safe to use from any thread.
    """

    def __init__(self, chosen: Mapping[str, str] = MappingProxyType({})) -> None:
        self._by_class: dict[type, list[_Entry]] = {}
        self._by_key: dict[Any, list[_Entry]] = {}
        self._by_predicate: list[_Entry] = []
        self._count = 0
        # The annotation, which must live as long as its key, its plan, and the annotations directly inside.
        self._plans: dict[Any, tuple[Any, TypePlan, dict[Any, Any]]] = {}
        self._open: dict[Any, _Open] = {}
        self._unsettled: dict[Any, tuple[Any, TypePlan, dict[Any, Any]]] = {}
        # What `_ways` has found in the plans that there are.
        self._inside: dict[Any, Ways] = {}
        self._lock = threading.RLock()
        # What the handlers of each pack name.
        self._named: dict[str, list[Any]] = {}
        # Overlaps and failures that were met: the type or the handler, and what is to be said.
        self._met: dict[Any, str] = {}
        # The pack that maps a type, by the type's full name.
        self._chosen = chosen
        # Which of some ways leads to a type whose values the program provides, wherever they are needed.
        self.first_held: Callable[[Ways], Any] = lambda ways: None

    def add(self, handler: TypeHandler, origin: Origin, level: Level) -> Callable[[], None]:
        """Add a handler; what is returned takes it back. Plans that were handed out before stay as they are.

        Raises `RegistrationError` for something that is not a `TypeHandler`.
        """
        if not isinstance(handler, TypeHandler):
            raise RegistrationError(f"{origin} offers {handler!r} as a type handler; wrap it in pegboard.TypeHandler")
        with self._lock:
            self._count += 1
            pack, seniority = None, -self._count if level == "program" else self._count
            if level == "plugin":
                pack = pack_name(origin.plugin or "")
                self._named.setdefault(pack, []).extend(_listed(handler.matches))
            entry = _Entry(handler, origin, pack, (_LEVELS.index(level), -handler.priority), seniority)
            return _added(entry, self._places(handler.matches), self.forget)

    def extended(self, types: Mapping[Any, TypeHandler]) -> TypeTable:
        """This table as it is now, with handlers that map just these annotations before all others."""
        with self._lock:
            own = copy(self)
            own._by_class = {cls: [*entries] for cls, entries in self._by_class.items()}
            own._by_key = {key: [*entries] for key, entries in self._by_key.items()}
            own._by_predicate = [*self._by_predicate]
            own._lock = threading.RLock()
            own._plans, own._open, own._unsettled, own._inside = {}, {}, {}, {}
        for annotation, handler in types.items():
            if not isinstance(handler, TypeHandler):
                raise RegistrationError(f"types= maps {qualified_name(annotation)} with a TypeHandler, not {handler!r}")
            # Before those of the program, which have a number below 0, too.
            entry = _Entry(handler, Origin(), None, (0, -(10**9)), 0)
            own._by_key.setdefault(structural_key(annotation), []).append(entry)
        return own

    def forget(self) -> None:
        """Keep no plan: those that were handed out are with the tools that use them."""
        with self._lock:
            self._plans.clear()
            self._inside.clear()

    def _places(self, matches: Any) -> list[list[_Entry]]:
        """Where the entry of a handler belongs."""
        if isinstance(matches, type):
            return [self._by_class.setdefault(matches, [])]
        return [self._by_key.setdefault(structural_key(each), []) for each in _listed(matches)] or [self._by_predicate]

    def plan(self, annotation: Any) -> TypePlan:
        """The plan of an annotation, built once.

        Raises `RegistrationError` for a type that no handler maps, naming it and the remedy.
        """
        key = id(annotation) if type(annotation) is type else structural_key(annotation)
        found = self._plans.get(key)
        if found is not None and not self._open:
            return found[1]
        with self._lock:
            self.contains(annotation)
            return self._settled(key, annotation)

    def passing_plan(self, annotation: Any) -> TypePlan:
        """The plan of a type, which the table does not keep: no tool names it. Raises as `plan` does."""
        with self._lock:
            known = len(self._plans)
            plan = self.plan(annotation)
            while len(self._plans) > known:
                self._plans.popitem()  # the youngest
            return plan

    def contains(self, *inner: Any) -> None:
        """Say that values of the type that is being planned hold values of these; `plan(inner)` says so by itself."""
        if self._open:
            next(reversed(self._open.values())).inside.update({structural_key(each): each for each in inner})

    def model_plan(self, annotation: Any) -> TypePlan:
        """The plan of a type that a model fills in.

        Raises as `plan` does, and `RegistrationError` where something stands inside that the program provides.
        """
        key = id(annotation) if type(annotation) is type else structural_key(annotation)
        with self._lock:
            plan = self.plan(annotation)
            if key not in self._inside:
                self._inside[key] = self._ways(key, annotation)
            ways = self._inside[key]
            if ways and (way := self.first_held(ways)) is not None:
                holders = [annotation, *(each for each in way[1:-1] if not is_structural(each))]
                names = " -> ".join(dict.fromkeys(map(qualified_name, holders)))
                raise RegistrationError(f"{qualified_name(way[-1])} stands in {names}; {_FROM_PROGRAM}")
        return plan

    def _ways(self, key: Any, annotation: Any) -> Ways:
        """How each annotation inside is come by, at any depth; remembered, for many tools share a type."""
        found, ways = {key}, list[tuple[Any, tuple[Any, ...]]]([(key, (annotation,))])
        for place, way in ways:  # which grows meanwhile
            held = self._plans[place][2] if place in self._plans else {}
            ways += [(each, (*way, inner)) for each, inner in held.items() if each not in found]
            found.update(held)
        return Ways(way for _, way in ways[1:])

    def plan_without(self, without: Callable[[TypeHandler], bool], annotation: Any) -> TypePlan:
        """The plan of an annotation if some handlers were not there. Raises as `plan` does."""
        matches = [match for match in self._matches(annotation) if not without(match[1].handler)]
        return self._built(matches, annotation) or self.plan(_stands_for(annotation))

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
        return (*found[0], found[1:]) if found else self.handler_for(_stands_for(bare))

    @property
    def problems(self) -> tuple[str, ...]:
        """Types that packs map equally well, used or not, handlers that failed, and choices that mean nothing. Sorted.

        All start with the plugin, or the name of the type.
        """
        with self._lock:
            for each in [each for listed in self._named.values() for each in listed]:
                self._matches(each)
            return tuple(sorted({*self._met.values(), *map(self._misunderstood, self._chosen)} - {""}))

    def _misunderstood(self, name: str) -> str:
        """What is wrong with the pack that was chosen for a type in the settings; empty if nothing is."""
        pack, setting = self._chosen[name], f"the setting types of pegboard: {name!r}"
        if pack not in (*self._named, OWN):
            hint = suggestion(pack, [*self._named, OWN], noun="packs")
            return f"{setting} is to be mapped by {pack!r}, and no active pack of that name maps types. {hint}"
        known = {qualified_name(each): each for listed in self._named.values() for each in listed}
        if name not in known and not _exists(name):
            return f"{setting} is the name of no type. {suggestion(name, known, noun='types')}"
        if name in known and pack != OWN and pack not in [entry.pack for _, entry in self._matches(known[name])]:
            return f"{setting} is to be mapped by {pack!r}, which does not map it"
        return ""

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
        except BaseException as error:
            self._unsettled.clear()
            if isinstance(error, RegistrationError) and self.first_held(Ways([(annotation,)])):
                raise RegistrationError(f"{qualified_name(annotation)}: {_FROM_PROGRAM}") from error
            raise
        finally:
            del self._open[key]
        if built is opened.stand_in:
            raise RegistrationError(f"{qualified_name(annotation)} is nothing but itself; give it another alternative")
        plan = opened.plan = _named(annotation, built, recursive=opened.stand_in is not None)
        self._unsettled[key] = (annotation, plan, opened.inside)
        if not self._open:
            self._plans.update(self._unsettled)
            self._inside.clear()  # what was held only by name may be known from inside now
            self._unsettled.clear()
        return plan

    def _build(self, annotation: Any) -> TypePlan:
        bare, items = split(annotation)
        if bare is not annotation:
            return self._refined(bare, items)
        found = self._built(self._matches(bare, best=True), bare) or self._built(self._matches(bare), bare)
        if found is not None:
            return found
        try:
            return self.plan(_stands_for(bare))
        except RegistrationError as error:
            failed = [text for (_, name), text in self._met.items() if name == qualified_name(bare)]
            raise RegistrationError("; ".join([str(error), *failed])) from error if failed else None

    def _built(self, matches: list[_Match], annotation: Any) -> TypePlan | None:
        """The plan that the best of these handlers builds; those of packs that fail are passed over."""
        for (closeness, distance), entry in matches:
            plan = self._call(entry, annotation)
            if plan is not None:
                # A handler for a base may make the base of it.
                return checked_class(plan, annotation) if closeness in (2, 3) and distance else plan
        return None

    def _refined(self, bare: Any, items: tuple[Any, ...]) -> TypePlan:
        metadata = read_metadata(items)
        if metadata.handler is not None:
            own = self._call(_Entry(metadata.handler, Origin(), None, (0, 0), 0), bare)
            return refine(cast("TypePlan", own), metadata, bare)
        plan = self._built(self._whole_matches(bare, items), Annotated[(bare, *items)]) if items else None
        if plan is None:
            return refine(self.plan(bare), metadata, bare)
        return refine(plan, metadata.but(bounds=(), predicates=()), bare)

    def _whole_matches(self, bare: Any, items: tuple[Any, ...]) -> list[_Match]:
        """The handlers that understand an `Annotated` type with its metadata, best first."""
        entries = [entry for entry in self._by_predicate if items and entry.handler.whole]
        return self._ranked([((1, 0), each) for each in entries if self._fits(each, Annotated[(bare, *items)])], bare)

    def _call(self, entry: _Entry, annotation: Any) -> TypePlan | None:
        """The plan that a handler builds; None where one of a pack has failed. Raises where another one does."""
        try:
            plan: Any = entry.handler.build(annotation, self)
        except RegistrationError:
            raise
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything
            self._fail(entry, annotation, f"{type(error).__name__}: {describe_exception(error)}", error)
            return None
        if not isinstance(plan, TypePlan) or not isinstance(plan.schema, dict):
            self._fail(entry, annotation, f"it must give a TypePlan with a schema, not {plan!r}")
            return None
        if plan.shape is not None:
            return plan
        from pegboard._schema.foreign import held  # what most toolkits never need

        return held(plan, plain_predicate)

    def _fits(self, entry: _Entry, annotation: Any) -> bool:
        """Whether a predicate says so. Of what is no class `issubclass` and the like raise: that means no."""
        try:
            return bool(entry.handler.matches(annotation))  # type: ignore[operator]  # one of a class is not asked
        except (TypeError, AttributeError):
            return False
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything
            self._fail(entry, annotation, f"{type(error).__name__}: {describe_exception(error)}", error)
            return False

    def _fail(self, entry: _Entry, annotation: Any, reason: str, error: BaseException | None = None) -> None:
        """Note that a pack's handler has failed for an annotation, and is passed over. Raises for any other one."""
        if error is not None:
            pass_interrupt(error)
        name = qualified_name(annotation)
        text = f"the type handler of {entry.origin} failed for {name}: {reason}"
        if entry.pack is None:
            raise RegistrationError(text) from error
        self._met[entry.handler, name] = f"{text}; it is passed over there"
        if self._open:
            next(reversed(self._open.values())).inside.clear()

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
        exact = [entry.order for rank, entry in found if best and rank == (0, 0) and not self._chosen]
        asked = [entry for entry in self._by_predicate if not exact or entry.order < min(exact)]
        found += [((1, 0), entry) for entry in asked if self._fits(entry, annotation)]
        return self._ranked(found, annotation)

    def _ranked(self, matches: list[_Match], annotation: Any) -> list[_Match]:
        """The matches, best first; where a pack was chosen for the type, and maps it, without those of others."""
        chosen = self._chosen.get(qualified_name(annotation)) if self._chosen else None
        if chosen == OWN or chosen in [entry.pack for _, entry in matches if chosen]:
            matches = [match for match in matches if match[1].pack in (None, chosen)]
        found = sorted(matches, key=lambda match: (match[1].order, match[0], match[1].seniority))
        first = [entry for rank, entry in found if (entry.order, rank) == (found[0][1].order, found[0][0])]
        others = [entry.pack for entry in first if entry.pack not in (None, first[0].pack)]
        if others:
            name = qualified_name(annotation)
            setting = f'settings={{"pegboard": {{"types": {{"{name}": "{others[0]}"}}}}}}'
            how = f"choose with {setting}, or map it in the program with register_type(...)"
            self._met[name] = overlap([entry.origin for entry in first], f"map {name}", how)
        elif self._met:
            self._met.pop(qualified_name(annotation), None)
        return found


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


def _listed(matches: Any) -> tuple[Any, ...]:
    """The annotations that a handler names; none for a predicate, which is no NewType, alias or like `list[Ip]`."""
    if isinstance(matches, (type, tuple)):
        return matches if isinstance(matches, tuple) else (matches,)
    if type(matches) is FunctionType:
        return ()
    is_annotation = get_origin(matches) is not None or hasattr(matches, "__supertype__") or reading.is_alias(matches)
    return (matches,) if is_annotation else ()


def _exists(name: str) -> bool:
    """Whether there may be a type of that full name; nothing is imported to find out."""
    import sys
    from importlib.util import find_spec

    module, _, attribute = name.rpartition(".")
    if module in sys.modules:
        return hasattr(sys.modules[module], attribute)
    return tried(find_spec, name.partition(".")[0]) is not None


def _stands_for(annotation: Any) -> Any:
    """What a name for another type stands for: NewType, `type` alias, type variable. Refuses anything else."""
    if hasattr(annotation, "__supertype__"):
        return annotation.__supertype__
    if reading.is_alias(annotation):
        try:
            return reading.alias_value(annotation)
        except NameError as error:
            raise RegistrationError(f"the alias {qualified_name(annotation)} cannot be evaluated: {error}") from error
    if not isinstance(annotation, TypeVar):
        return reading.refuse_unknown(annotation)
    if annotation.__constraints__:
        return Union[annotation.__constraints__]  # noqa: UP007 - a union of a tuple has no other spelling
    return Any if annotation.__bound__ is None else annotation.__bound__
