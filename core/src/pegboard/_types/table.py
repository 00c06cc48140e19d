"""The type table: which handler maps an annotation, and the plans that come of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from itertools import chain
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, Union, cast, get_args, get_origin

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
_FROM_PROGRAM: Final = "the program provides it, never a model; make it a parameter of its own, or use plain data here"


class Remembered(dict[Any, Any]):
    """What was found out once, of at most 500 keys: then it is found out anew, and nothing is kept alive for good."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= 500:
            self.clear()
        super().__setitem__(key, value)


class Registered(NamedTuple):
    """What was registered, where it comes from, and at which level that places it."""

    item: Any
    origin: Origin
    level: str
    # The key of an annotation that a type handler names; a predicate names none.
    key: Any = None

    @property
    def pack(self) -> str:
        """The name of the pack that brings it."""
        return pack_name(self.origin.plugin or "")


class Ranking:
    """What there is for one purpose: program > plugins > built-in, then the highest priority, then the best fit.

    Of two of plugins that fit equally well the first offered counts, of the program's own the last. `problems` names
    both, and those that failed to say whether they fit.
    """

    def __init__(self) -> None:
        self._levels: dict[str, list[Registered]] = {level: [] for level in get_args(Level)}
        # What follows from what there is now.
        self._known: dict[Any, Any] = Remembered()
        # What is to be said of what was met.
        self._met: dict[Any, str] = {}

    def forget(self) -> None:
        """Keep nothing of what was asked about."""
        self._known.clear()

    def add(self, item: Any, origin: Origin, level: Level) -> Callable[[], None]:
        """Register one; its level says who brings it. What is returned takes it back."""
        return self._entered(Registered(item, origin, level))

    def _entered(self, *new: Registered) -> Callable[[], None]:
        for entry in new:
            self._levels[entry.level].append(entry)
        self.forget()

        def take_back() -> None:
            for entry in new:
                self._levels[entry.level].remove(entry)
            self.forget()

        return take_back

    def told(self, find: Callable[[type], Any]) -> list[str]:
        """What is to be said of plugins' items, sorted; `find` finds out of those that claim one class which counts."""
        classes = [entry.item.matches for entry in self._levels["plugin"] if isinstance(entry.item.matches, type)]
        for cls in classes:
            if classes.count(cls) > 1:
                find(cls)
        return sorted(self._met.values())

    def ranked(self, fit: Callable[[Registered], Any], verb: str, subject: Any) -> Iterator[tuple[Any, Registered]]:
        """How well each fits, and what, best first; a level is asked when the ones before are used up.

        `fit` says how well, or None. Raises what `fit` raises.
        """
        is_first = True
        for level, entries in self._levels.items():
            found = [(fits, entry) for entry in entries if (fits := fit(entry)) is not None]
            if level == "program":
                found.reverse()
            found.sort(key=lambda match: (match[1].item.priority, match[0]), reverse=True)
            if found and is_first:
                is_first = False
                top, best = found[0]
                equal = [entry for fits, entry in found if (entry.item.priority, fits) == (best.item.priority, top)]
                self._compare(equal, verb, subject)
            yield from found

    def _compare(self, equal: list[Registered], verb: str, subject: Any) -> None:
        """Note where several plugins do the same equally well."""
        rival = next((each for each in equal if each.level == "plugin" and each.pack != equal[0].pack), None)
        if rival is None and not self._met:
            return
        claim = f"{verb} {qualified_name(subject)}"
        self._met.pop(claim, None)
        if rival is not None:
            sides, remedy = " and ".join(sorted(str(each.origin) for each in equal)), self._remedy(subject, rival)
            self._met[claim] = f"{sides} both {claim}; {equal[0].origin} counts; {remedy}"

    def _remedy(self, subject: Any, rival: Registered) -> str:
        return "block one, or give one a higher priority"

    def best(self, fit: Callable[[Registered], Any], verb: str, subject: Any) -> Any:
        """What fits best, or None. Raises what `fit` raises."""
        return next((entry.item for _, entry in self.ranked(fit, verb, subject)), None)


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


class TypeTable(Ranking):
    """The type handlers of one toolkit, and the plans that they have built.

    A handler is found by exact class, by predicate, by base class, by generic origin, in this order; before that
    decides where it comes from (the program, a plugin, Pegboard itself), and then its priority. Of plugins that map a
    type equally well the first offered counts, which `problems` says. Plans are cached by the structure of the
    annotation, so `int | str` and `str | int` never share one. Safe to use from any thread.
    """

    def __init__(self, chosen: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__()
        # The annotation, which must live as long as its key, its plan, and the annotations directly inside.
        self._plans: dict[Any, tuple[Any, TypePlan, dict[Any, Any]]] = {}
        self._open: dict[Any, _Open] = {}
        self._unsettled: dict[Any, tuple[Any, TypePlan, dict[Any, Any]]] = {}
        self._lock = threading.RLock()
        # The pack that maps a type, by the type's full name.
        self._chosen = chosen
        # Whether values of a type come from the program, wherever they are needed.
        self.is_provided: Callable[[Any], bool] = lambda annotation: False

    def add(self, handler: TypeHandler, origin: Origin, level: Level) -> Callable[[], None]:
        """Add a handler; what is returned takes it back. Plans that were handed out before stay as they are.

        Raises `RegistrationError` for something that is not a `TypeHandler`.
        """
        if not isinstance(handler, TypeHandler):
            raise RegistrationError(f"{origin} offers {handler!r} as a type handler; wrap it in pegboard.TypeHandler")
        keys = [*map(structural_key, _listed(handler.matches))] or [None]
        return self._entered(*(Registered(handler, origin, level, key) for key in keys))

    def extended(self, types: Mapping[Any, TypeHandler]) -> TypeTable:
        """This table as it is now, with handlers that map just these annotations before all others."""
        own = copy(self)
        own._lock = threading.RLock()
        own._plans, own._open, own._unsettled = {}, {}, {}
        own._levels = {"registration": [], **{level: [*entries] for level, entries in self._levels.items()}}
        for annotation, handler in types.items():
            if not isinstance(handler, TypeHandler):
                raise RegistrationError(f"types= maps {qualified_name(annotation)} with a TypeHandler, not {handler!r}")
            # No subclasses: of what is mapped for one registration, just that.
            own._levels["registration"].append(
                Registered(handler, Origin(), "registration", structural_key(annotation))
            )
        return own

    def forget(self) -> None:
        """Keep no plan: those that were handed out are with the tools that use them."""
        with self._lock:
            self._plans.clear()

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
            if key in self._plans and self._plans[key][2]:
                self._refuse_provided(key, annotation)
        return plan

    def _refuse_provided(self, key: Any, annotation: Any) -> None:
        """Raise `RegistrationError` where something stands inside, at any depth, that the program provides."""
        ways: list[tuple[Any, tuple[Any, ...]]] = [(key, (annotation,))]
        known = {key}
        for place, way in ways:  # which grows meanwhile
            held = self._plans[place][2] if place in self._plans else {}
            for inner in (inner for each, inner in held.items() if each not in known and self.is_provided(inner)):
                names = [annotation, *(each for each in way[1:] if not is_structural(each))]
                holders = " -> ".join(dict.fromkeys(map(qualified_name, names)))
                raise RegistrationError(f"{qualified_name(inner)} stands in {holders}; {_FROM_PROGRAM}")
            ways += [(each, (*way, inner)) for each, inner in held.items() if each not in known]
            known.update(held)

    def plan_without(self, without: Callable[[TypeHandler], bool], annotation: Any) -> TypePlan:
        """The plan of an annotation if some handlers were not there. Raises as `plan` does."""
        matches = (match for match in self._matches(annotation) if not without(match[1].item))
        return self._built(matches, annotation) or self.plan(_stands_for(annotation))

    def handler_for(self, annotation: Any) -> tuple[TypeHandler, Origin, list[tuple[TypeHandler, Origin]]]:
        """The handler that wins for an annotation, where it comes from, and those that it shadows, nearest first.

        Raises as `plan` does.
        """
        bare, items = split(annotation)
        matches = chain(self._matches(bare, items) if items else (), self._matches(bare))
        found = [(entry.item, entry.origin) for _, entry in matches]
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
            named = [each for entry in self._levels["plugin"] for each in _listed(entry.item.matches)]
            for each in named:
                next(self._matches(each), None)
            known = {qualified_name(each): each for each in named}
            misunderstood = [self._misunderstood(name, known) for name in self._chosen]
            return tuple(sorted({*self._met.values(), *misunderstood} - {""}))

    def _misunderstood(self, name: str, known: Mapping[str, Any]) -> str:
        """What is wrong with the pack that was chosen for a type in the settings; empty if nothing is."""
        chosen, setting = self._chosen[name], f"the setting types of pegboard: {name!r}"
        packs = [OWN, *(entry.pack for entry in self._levels["plugin"])]
        if chosen not in packs:
            hint = suggestion(chosen, packs, noun="packs")
            return f"{setting} is to be mapped by {chosen!r}, and no active pack of that name maps types. {hint}"
        if name not in known and not _exists(name):
            return f"{setting} is the name of no type. {suggestion(name, known, noun='types')}"
        if name in known and chosen != OWN and chosen not in [entry.pack for _, entry in self._matches(known[name])]:
            return f"{setting} is to be mapped by {chosen!r}, which does not map it"
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
            if isinstance(error, RegistrationError) and self.is_provided(annotation):
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
            self._unsettled.clear()
        return plan

    def _build(self, annotation: Any) -> TypePlan:
        bare, items = split(annotation)
        if bare is not annotation:
            return self._refined(bare, items)
        found = self._built(self._matches(bare), bare)
        if found is not None:
            return found
        try:
            return self.plan(_stands_for(bare))
        except RegistrationError as error:
            failed = [text for key, text in self._met.items() if key[1:] == (qualified_name(bare),)]
            raise RegistrationError("; ".join([str(error), *failed])) from error if failed else None

    def _built(self, matches: Iterable[tuple[Any, Registered]], annotation: Any) -> TypePlan | None:
        """The plan that the best of these handlers builds; those of packs that fail are passed over."""
        for (_, distance), entry in matches:
            plan = self._call(entry, annotation)
            if plan is not None:
                # A handler for a base may make the base of it.
                return checked_class(plan, annotation) if distance else plan
        return None

    def _refined(self, bare: Any, items: tuple[Any, ...]) -> TypePlan:
        metadata = read_metadata(items)
        if metadata.handler is not None:
            own = self._call(Registered(metadata.handler, Origin(), "program"), bare)
            return refine(cast("TypePlan", own), metadata, bare)
        plan = self._built(self._matches(bare, items), Annotated[(bare, *items)]) if items else None
        if plan is None:
            return refine(self.plan(bare), metadata, bare)
        return refine(plan, metadata.but(bounds=(), predicates=()), bare)

    def _call(self, entry: Registered, annotation: Any) -> TypePlan | None:
        """The plan that a handler builds; None where one of a pack has failed. Raises where another one does."""
        try:
            plan: Any = entry.item.build(annotation, self)
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

    def _fits(self, entry: Registered, annotation: Any) -> bool:
        """Whether a predicate says so. Of what is no class `issubclass` and the like raise: that means no."""
        try:
            return bool(entry.item.matches(annotation))
        except (TypeError, AttributeError):
            return False
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything
            self._fail(entry, annotation, f"{type(error).__name__}: {describe_exception(error)}", error)
            return False

    def _fail(self, entry: Registered, annotation: Any, reason: str, error: BaseException | None = None) -> None:
        """Note that a pack's handler has failed for an annotation, and is passed over. Raises for any other one."""
        if error is not None:
            pass_interrupt(error)
        name = qualified_name(annotation)
        text = f"the type handler of {entry.origin} failed for {name}: {reason}"
        if entry.level != "plugin":
            raise RegistrationError(text) from error
        self._met[entry.item, name] = f"{text}; it is passed over there"
        if self._open:
            next(reversed(self._open.values())).inside.clear()

    def _matches(self, annotation: Any, items: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[int, int], Registered]]:
        """Every handler that maps the annotation, best first; with `items`, those that read it whole with these.

        Where a pack was chosen for the type, and maps it, without those of others.
        """
        fit = self._fit_whole(Annotated[(annotation, *items)]) if items else self._fit(annotation)
        chosen = self._chosen.get(qualified_name(annotation)) if self._chosen else None
        own = [each for each in self._levels["plugin"] if chosen and each.pack == chosen and fit(each) is not None]
        if not own and chosen != OWN:
            return self.ranked(fit, "map", annotation)
        return self.ranked(lambda each: fit(each) if each.level != "plugin" or each in own else None, "map", annotation)

    def _remedy(self, subject: Any, rival: Registered) -> str:
        setting = f'settings={{"pegboard": {{"types": {{"{qualified_name(subject)}": "{rival.pack}"}}}}}}'
        return f"choose with {setting}, or map it in the program with register_type(...)"

    def _fit(self, annotation: Any) -> Callable[[Registered], tuple[int, int] | None]:
        """Says how closely a handler maps an annotation and how far up the base is that it names, or None."""
        cls = get_origin(annotation) or annotation
        exact = {structural_key(cls): (-3, 0), structural_key(annotation): (0, 0)}
        # `object` is a base of everything: a handler for it maps only itself, or it would shadow every refusal.
        bases = [*enumerate(cls.__mro__)][:-1] if isinstance(cls, type) else []
        near = {id(base): (-2 if cls is annotation else -3, -distance) for distance, base in bases} | exact

        def fit(entry: Registered) -> tuple[int, int] | None:
            if entry.key is None:
                return (-1, 0) if self._fits(entry, annotation) else None
            is_class = isinstance(entry.item.matches, type) and entry.level != "registration"
            return (near if is_class else exact).get(entry.key)

        return fit

    def _fit_whole(self, annotation: Any) -> Callable[[Registered], tuple[int, int] | None]:
        """Says whether a handler reads an `Annotated` type with its metadata."""

        def fit(entry: Registered) -> tuple[int, int] | None:
            return (-1, 0) if entry.item.whole and entry.key is None and self._fits(entry, annotation) else None

        return fit


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
