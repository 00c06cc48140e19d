"""Injection: where the parameters that the model never sees come from."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, Union, get_args, get_origin

from attrs import define, evolve, field, frozen

from pegboard._base.effects import Await, Steps
from pegboard._base.errors import ConflictError, MissingContextError, RegistrationError
from pegboard._base.markers import MISSING, Inject
from pegboard._injection.context import is_unseen_protocol
from pegboard._injection.invocation import Invocation
from pegboard._model.call import Agent
from pegboard._model.tool import Origin
from pegboard._types.table import Level
from pegboard.extension import Injector

if TYPE_CHECKING:
    from pegboard._model.facts import Source

Cleanup: TypeAlias = list[Any]

_EMPTY_HANDED: Final = "its injector gave nothing; give the parameter a default, or allow None"


@frozen(eq=False, repr=False)
class Provider:
    """Provides one parameter. `fetch(invocation)` answers at once, unless the provider is `managed`.

    A managed provider runs a resolver that may await, may need other providers first (`needs`) and may have to be
    closed after the call: it is resolved by `resolve` before the tool runs, and `fetch` then only looks it up.
    `standing`: `fetch` looks at nothing but the scope, so it answers alike for all calls of one scope.
    """

    source: Source
    fetch: Callable[[Invocation], Any]
    function: Callable[..., Any] | None = None
    needs: Mapping[str, Provider] = field(factory=dict)
    managed: bool = False
    standing: bool = False


@define
class InjectorTable:
    """The injectors of one toolkit: program > plugins > built-in, then priority, then exact class before predicate."""

    context_only: set[type] = field(factory=set)
    """Classes whose parameters always come from the context."""
    _levels: dict[Level, list[tuple[Injector, Origin]]] = field(
        factory=lambda: {"program": [], "plugin": [], "builtin": []}
    )
    _providers: dict[int, Provider] = field(factory=dict)
    _compiling: list[Injector] = field(factory=list)
    _left_to_model: set[type] = field(factory=set)
    """Classes that no injector claims: most parameters of most tools."""

    def add(self, injector: Injector, origin: Origin, level: Level) -> None:
        """Register one; its level says whether the program, a plugin or Pegboard itself brings it."""
        self._levels[level].append((injector, origin))
        self._left_to_model.clear()

    def declare_context_only(self, cls: type) -> None:
        """Parameters of this class come from the context from now on."""
        if not isinstance(cls, type):
            raise RegistrationError(f"injectable() takes a class, got {cls!r}")
        self.context_only.add(cls)
        self._left_to_model.clear()

    def provider_for(self, annotation: Any, default: Any = MISSING) -> Provider | None:
        """The provider of a parameter, or None when it is the model's. Raises `ConflictError` for a tie of plugins."""
        if type(annotation) is type and annotation in self._left_to_model:
            return None
        inner, inject, optional = unwrap(annotation)
        fallback = None if optional and default is MISSING else default
        if inject is None:
            injector = self._injector(inner)
            if injector is not None:
                return _guarded(self._special(injector), fallback, inner)
            if not self._is_context_only(inner):
                if type(annotation) is type:
                    self._left_to_model.add(annotation)
                return None
        name = None if inject is None else inject.name
        return Provider("context", _context_fetcher(inner, name, fallback), standing=True)

    def _is_context_only(self, annotation: Any) -> bool:
        cls = get_origin(annotation) or annotation
        if not isinstance(cls, type):
            return False
        marked = bool(getattr(cls, "__pegboard_injectable__", False))
        return marked or any(base in self.context_only for base in cls.__mro__)

    def _injector(self, annotation: Any) -> Injector | None:
        for level in self._levels.values():
            fitting = [(injector, origin) for injector, origin in level if _matches(injector, annotation)]
            if fitting:
                return _best(fitting, annotation)
        return None

    def _special(self, injector: Injector) -> Provider:
        if id(injector) not in self._providers:
            if injector in self._compiling:
                around = " -> ".join(_label(each.resolve) for each in (*self._compiling, injector))
                raise RegistrationError(f"injectors need each other in a circle: {around}")
            self._compiling.append(injector)
            try:
                self._providers[id(injector)] = self._compile(injector)
            finally:
                self._compiling.pop()
        return self._providers[id(injector)]

    def _compile(self, injector: Injector) -> Provider:
        import inspect

        from pegboard._types.hints import read_hints

        function = injector.resolve
        hints = read_hints(function)
        needs: dict[str, Provider] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            annotation = hints.get(name, MISSING)
            if annotation is Invocation:
                needs[name] = _ITSELF
                continue
            default = MISSING if parameter.default is parameter.empty else parameter.default
            provider = None if annotation is MISSING else self.provider_for(annotation, default)
            if provider is None:
                raise RegistrationError(
                    f"injector {_label(function)}: nothing provides its parameter {name!r}; annotate it with ToolCall, "
                    "Injected[T] or a type of another injector"
                )
            needs[name] = provider
        return _provider_of(function, needs)


_ITSELF: Final = Provider("injected", lambda invocation: invocation)
"""Provides the invocation."""


def _guarded(provider: Provider, default: Any, wanted: Any) -> Provider:
    """A provider whose MISSING becomes the parameter's default, or the error that says what is not there."""
    label = getattr(wanted, "__qualname__", str(wanted))

    def fetch(invocation: Invocation) -> Any:
        value = provider.fetch(invocation)
        if value is not MISSING:
            return value
        if default is not MISSING:
            return default
        absence = _absence(label, None, invocation)
        absence["remedy"] = _EMPTY_HANDED if wanted is not Agent else absence["remedy"].replace("context=", "agent=")
        raise MissingContextError(absence)

    return evolve(provider, fetch=fetch)


def _provider_of(function: Callable[..., Any], needs: dict[str, Provider]) -> Provider:
    import inspect

    # A callable object answers as its method does.
    answers = (function, getattr(type(function), "__call__", None))  # noqa: B004 - the method itself is wanted
    waits = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    managed = any(provider.managed for provider in needs.values())
    if managed or any(asks(answer) for asks in waits for answer in answers):
        return Provider("injected", lambda invocation: invocation.resolved[function], function, needs, managed=True)

    if list(needs.values()) == [_ITSELF]:  # as the built-in ones: nothing else has to be asked
        kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
        if kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD]:
            return Provider("injected", function, function, needs)

    def fetch(invocation: Invocation) -> Any:
        return function(**{name: provider.fetch(invocation) for name, provider in needs.items()})

    return Provider("injected", fetch, function, needs)


def resolve(provider: Provider, invocation: Invocation, cleanup: Cleanup) -> Steps:
    """Run a managed provider and those it needs, once for each call; what must be closed is added to `cleanup`."""
    import inspect

    if not provider.managed or provider.function in invocation.resolved:
        return
    for needed in provider.needs.values():
        yield from resolve(needed, invocation, cleanup)
    assert provider.function is not None  # noqa: S101 - managed providers are made with their function
    value = provider.function(**{name: needed.fetch(invocation) for name, needed in provider.needs.items()})
    if inspect.isasyncgen(value):
        cleanup.append(value)
        value = yield from _awaited(partial(anext, value, MISSING))
    elif inspect.isgenerator(value):
        cleanup.append(value)
        value = next(value, MISSING)
    elif inspect.isawaitable(value):
        pending = value
        value = yield from _awaited(lambda: pending)
    invocation.resolved[provider.function] = value


def release(cleanup: Cleanup) -> Steps:
    """Close what resolvers opened, last first; every one is closed, and the first failure is raised afterwards."""
    import inspect

    failures: list[BaseException] = []
    while cleanup:
        opened = cleanup.pop()
        try:
            if inspect.isasyncgen(opened):
                yield from _awaited(partial(anext, opened, None))
            else:
                next(opened, None)
        except BaseException as error:  # noqa: BLE001 - the others must be closed too
            failures.append(error)
    if failures:
        raise failures[0]


def _label(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _awaited(start: Callable[[], Any]) -> Steps:
    value, error = yield Await(start)
    if error is not None:
        raise error
    return value


def unwrap(annotation: Any) -> tuple[Any, Inject | None, bool]:
    """The class behind `Annotated`, `Inject` and `| None`: (inner, inject marker, whether None is allowed)."""
    inject: Inject | None = None
    optional = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *metadata = get_args(annotation)
            # The innermost marker is the alias `Injected[...]`; a name given outside is more specific.
            for marker in metadata:
                found = Inject() if marker is Inject else marker
                if isinstance(found, Inject) and (inject is None or inject.name is None):
                    inject = found
        elif _is_union(annotation) and type(None) in get_args(annotation):
            rest = [member for member in get_args(annotation) if member is not type(None)]
            if len(rest) != 1:
                return annotation, inject, True
            annotation, optional = rest[0], True
        else:
            return annotation, inject, optional


def _context_fetcher(wanted: Any, name: str | None, default: Any) -> Callable[[Invocation], Any]:
    choices = [member for member in get_args(wanted) if member is not type(None)] if _is_union(wanted) else [wanted]
    label = getattr(wanted, "__qualname__", str(wanted))

    def fetch(invocation: Invocation) -> Any:
        for choice in choices:
            found = invocation.scope.find(choice, name)
            if found is not MISSING:
                return found
        if default is not MISSING:
            return default
        absence = _absence(label, name, invocation)
        if any(is_unseen_protocol(get_origin(choice) or choice) for choice in choices):
            absence["remedy"] += (
                f"; {label} is a protocol that is not @typing.runtime_checkable, so its object is not recognised: "
                f"mark it, or pass context={{{label}: <object>}}"
            )
        raise MissingContextError(absence)

    return fetch


def _absence(label: str, name: str | None, invocation: Invocation) -> dict[str, Any]:
    registered = f'context={{"{name}": <{label}>}}' if name else f"context=<{label}>"
    if label == Agent.__name__:
        registered = "agent=<the agent>"
    return {
        "type": label,
        "name": name,
        "searched": list(invocation.scope.levels()),
        "remedy": f"pass {registered} to the call, to toolkit.session(...) or to Toolkit(...)",
    }


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _matches(injector: Injector, annotation: Any) -> bool:
    if isinstance(injector.matches, type):
        return isinstance(annotation, type) and annotation is injector.matches
    return bool(injector.matches(annotation))


def _best(fitting: list[tuple[Injector, Origin]], annotation: Any) -> Injector:
    rank = [(injector.priority, isinstance(injector.matches, type)) for injector, _ in fitting]
    best = [entry for entry, its in zip(fitting, rank, strict=True) if its == max(rank)]
    if len(best) > 1:
        sides = sorted(str(origin) for _, origin in best)
        raise ConflictError(
            f"two injectors provide {annotation!r}: {' and '.join(sides)}; block one, or give one a higher priority"
        )
    return best[0][0]
