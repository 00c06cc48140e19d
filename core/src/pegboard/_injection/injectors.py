"""Injection: where the parameters that the model never sees come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

from attrs import evolve, field, frozen

from pegboard._base.effects import pass_interrupt
from pegboard._base.errors import MissingContextError, RegistrationError, describe_exception
from pegboard._base.markers import MISSING, Inject
from pegboard._injection.context import is_unseen_protocol
from pegboard._injection.invocation import Invocation
from pegboard._model.call import Agent
from pegboard._types.annotations import is_union, qualified_name
from pegboard._types.table import Ranking, Ways
from pegboard.extension import Injector

if TYPE_CHECKING:
    from pegboard._model.tool import Origin, Source

_EMPTY_HANDED: Final = "its injector gave nothing; give the parameter a default, or allow None"


# An injector that fails over one of these says no: they are what a model sends, and a program has none of its own. Over
# another class the tool is refused, or what the program provides could become the model's to send.
_PLAIN: Final = (str, int, float, bool, bytes, type(None), list, dict, tuple, set, frozenset)


@frozen(eq=False, repr=False)
class Provider:
    """Provides one parameter. `fetch(invocation)` answers at once, unless the provider is `managed`.

    Where that is MISSING, `otherwise(invocation)` gives the parameter's default or raises `MissingContextError`.

    A managed provider runs a resolver that may await, may need other providers first (`needs`) and may have to be
    closed after the call: it is resolved before the tool runs, and `fetch` then only looks it up. `kind` is that of its
    function. One that is `blocking` runs plain code of a plugin or the program, which no event loop has to wait for.
    `standing`: `fetch` looks at nothing but the scope, so it answers alike for all calls of one scope.
    """

    source: Source
    fetch: Callable[[Invocation], Any]
    function: Callable[..., Any] | None = None
    needs: Mapping[str, Provider] = field(factory=dict)
    managed: bool = False
    kind: str = "sync"
    blocking: bool = False
    standing: bool = False
    otherwise: Callable[[Invocation], Any] = field(default=lambda invocation: MISSING)

    def give(self, invocation: Invocation) -> Any:
        """What the parameter becomes. Raises `MissingContextError`."""
        value = self.fetch(invocation)
        return self.otherwise(invocation) if value is MISSING else value


class InjectorTable(Ranking):
    """The injectors of one toolkit: program > plugins > built-in, then priority, then exact class before predicate.

    `context_only` are classes whose parameters always come from the context.
    """

    # Classes that no injector claims, as most parameters are of, with None; injectors with their providers.
    _known: dict[Any, Any]

    def __init__(self, context_only: Iterable[type] = ()) -> None:
        super().__init__()
        self.context_only = {*context_only}
        # The classes of what the toolkit's own context holds.
        self.in_context: frozenset[Any] = frozenset()
        self._compiling: list[Injector] = []

    def declare_context_only(self, cls: type) -> Callable[[], None]:
        """Parameters of this class come from the context from now on. What is returned takes that back."""
        if not isinstance(cls, type):
            raise RegistrationError(f"injectable() takes a class, got {cls!r}")
        before = self.context_only
        self._declare({*before, cls})
        return lambda: self._declare(before)

    def _declare(self, classes: set[type]) -> None:
        self.context_only = classes
        self._known.clear()

    def provider_for(self, annotation: Any, default: Any = MISSING) -> Provider | None:
        """The provider of a parameter, or None when it is the model's.

        Raises `RegistrationError` where an injector that might provide it fails.
        """
        if type(annotation) is type and annotation in self._known and not _is_marked(annotation):
            return None
        inner, inject, optional = unwrap(annotation)
        fallback = None if optional and default is MISSING else default
        name = None if inject is None else inject.name
        injector = None if name else self.meet(inner)
        if inject is None:
            if injector is not None:
                return evolve(self._special(injector), otherwise=_otherwise(inner, None, fallback, _EMPTY_HANDED))
            cls = get_origin(inner) or inner
            if not isinstance(cls, type) or not (_is_marked(cls) or not self.context_only.isdisjoint(cls.__mro__)):
                if type(annotation) is type:
                    self._known[annotation] = None
                return None
        fetch, otherwise = partial(_from_context, _choices(inner), name), _otherwise(inner, name, fallback)
        if injector is None:
            return Provider("context", fetch, standing=True, otherwise=otherwise)
        behind = evolve(self._special(injector), otherwise=otherwise)
        return evolve(behind, fetch=fetch, otherwise=behind.give)

    def meet(self, cls: Any) -> Injector | None:
        """The injector of a type, or None. Raises as `provider_for` does."""
        found: Injector | None = self.best(partial(self._fit, cls), "provide", cls)
        return found

    def _fit(self, annotation: Any, injector: Injector, origin: Origin) -> bool | None:
        """Whether it is for that very class, and no predicate; None if it does not fit."""
        if isinstance(injector.matches, type):
            return True if annotation is injector.matches else None
        try:
            return False if injector.matches(annotation) else None
        except BaseException as error:
            pass_interrupt(error)
            what = f"the injector {_label(injector.resolve)} of {origin} cannot say whether it provides"
            text = f"{what} {qualified_name(annotation)}: {describe_exception(error)}"
            if (get_origin(annotation) or annotation) not in _PLAIN:
                raise RegistrationError(text) from error
            self._met[f"{origin} {_label(injector.resolve)}"] = text
            return None

    def first_held(self, ways: Ways) -> Any:
        """The first way whose end has a provider, or None. Raises as `provider_for` does."""
        now = self._known.setdefault(Ways, object())  # another one as soon as anything has changed
        if ways.asked is not now:
            ways.held, ways.asked = next((way for way in ways if self.provider_for(way[-1]) is not None), None), now
        return ways.held

    def _special(self, injector: Injector) -> Provider:
        provider = self._known.get(injector)
        if provider is None:
            if injector in self._compiling:
                around = " -> ".join(_label(each.resolve) for each in (*self._compiling, injector))
                raise RegistrationError(f"injectors need each other in a circle: {around}")
            self._compiling.append(injector)
            try:
                provider = self._known[injector] = self._compile(injector)
            finally:
                self._compiling.pop()
        return provider

    def _compile(self, injector: Injector) -> Provider:
        from pegboard._types.hints import read_hints, read_parameters

        function = injector.resolve
        hints = read_hints(function)
        needs: dict[str, Provider] = {}
        for name, _, default in read_parameters(function):
            annotation = hints.get(name, MISSING)
            provider = _ITSELF if annotation is Invocation else None
            if provider is None and annotation is not MISSING:
                provider = self.provider_for(annotation, default)
            if provider is None:
                how = "annotate it with ToolCall, Injected[T] or a type of another injector"
                raise RegistrationError(f"injector {_label(function)}: nothing provides its parameter {name!r}; {how}")
            needs[name] = provider
        own = any(each is injector for each, _ in self._levels["builtin"])
        return _provider_of(function, needs, own=own)


def _is_marked(cls: type) -> bool:
    return bool(getattr(cls, "__pegboard_injectable__", False))


# Provides the invocation.
_ITSELF: Final = Provider("injected", lambda invocation: invocation)


def _otherwise(wanted: Any, name: str | None, default: Any, remedy: str = "") -> Callable[[Invocation], Any]:
    """Gives the default of a parameter for which nothing is there, or raises the error that says what is not."""
    label = getattr(wanted, "__qualname__", str(wanted))

    def otherwise(invocation: Invocation) -> Any:
        if default is not MISSING:
            return default
        registered = f'context={{"{name}": <{label}>}}' if name else f"context=<{label}>"
        if label == Agent.__name__:
            registered = "agent=<the agent>"
        absence: dict[str, Any] = {
            "type": label,
            "name": name,
            "searched": list(invocation.scope.levels()),
            "remedy": f"pass {registered} to the call, to toolkit.session(...) or to Toolkit(...)",
        }
        if remedy and wanted is not Agent:
            absence["remedy"] = remedy
        elif not remedy and any(is_unseen_protocol(get_origin(choice) or choice) for choice in _choices(wanted)):
            absence["remedy"] += (
                f"; {label} is a protocol that is not @typing.runtime_checkable, so its object is not recognised: "
                f"mark it, or pass context={{{label}: <object>}}"
            )
        raise MissingContextError(absence)

    return otherwise


def _provider_of(function: Callable[..., Any], needs: dict[str, Provider], *, own: bool) -> Provider:
    import inspect

    from pegboard._types.hints import function_kind, read_parameters

    kind = function_kind(function)
    if kind != "sync" or any(provider.managed for provider in needs.values()):
        return Provider(
            "injected", lambda invocation: invocation.resolved[function], function, needs, managed=True, kind=kind
        )
    blocking = not own or any(provider.blocking for provider in needs.values())
    if list(needs.values()) == [_ITSELF]:  # as the built-in ones: nothing else has to be asked
        kinds = [kind for _, kind, _ in read_parameters(function)]
        if kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD]:
            return Provider("injected", function, function, needs, blocking=blocking)

    def fetch(invocation: Invocation) -> Any:
        return function(**{name: provider.give(invocation) for name, provider in needs.items()})

    return Provider("injected", fetch, function, needs, blocking=blocking)


def _label(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


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
        elif is_union(annotation) and type(None) in get_args(annotation):
            rest = [member for member in get_args(annotation) if member is not type(None)]
            if len(rest) != 1:
                return annotation, inject, True
            annotation, optional = rest[0], True
        else:
            return annotation, inject, optional


def _from_context(choices: list[Any], name: str | None, invocation: Invocation) -> Any:
    for choice in choices:
        found = invocation.scope.find(choice, name)
        if found is not MISSING:
            return found
    return MISSING


def _choices(wanted: Any) -> list[Any]:
    return [member for member in get_args(wanted) if member is not type(None)] if is_union(wanted) else [wanted]
