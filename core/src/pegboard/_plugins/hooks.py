"""Hooks: pluggy calls them; of each plugin it has a guard, whose functions run the plugin's isolated and checked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Mapping
from copy import copy
from functools import partial, wraps
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from types import FunctionType, MethodType, ModuleType
from typing import Any, Literal, TypeAlias

import pluggy

from pegboard import hookspecs
from pegboard._base.errors import PegboardError, PluginError, suggestion
from pegboard._base.markers import MISSING
from pegboard._model.tool import Origin
from pegboard._plugins.candidates import Candidate
from pegboard._types.hints import read_parameters
from pegboard.extension import Command, Converter, Dialect, Guard, Injector, Middleware, TypeHandler

HookName: TypeAlias = Literal[
    "provide_backends",
    "provide_commands",
    "provide_converters",
    "provide_dialects",
    "provide_guards",
    "provide_injectors",
    "provide_middleware",
    "provide_tools",
    "provide_types",
    "settings_type",
    "tools_from",
]

_KINDS: Mapping[str, type] = {
    "provide_commands": Command,
    "provide_converters": Converter,
    "provide_dialects": Dialect,
    "provide_guards": Guard,
    "provide_injectors": Injector,
    "provide_middleware": Middleware,
    "provide_types": TypeHandler,
}
# `run(hook, action)` runs an implementation, with `around=True` a part of a wrapper; None where that fails, or its
# plugin has failed.
Run: TypeAlias = Callable[..., Any]
# More than any pack has; a generator that never ends must not block the assembly.
_MOST = 100_000
_IMPLEMENTATION = f"{hookspecs.GROUP}_impl"
_SPEC = f"{hookspecs.GROUP}_spec"
_NO_TOOL = (type(None), bool, int, float, complex, bytes, bytearray, Mapping, list, tuple, set, frozenset)
_HOOKS = {name: value for name, value in sorted(vars(hookspecs).items()) if hasattr(value, _SPEC)}
_SPECS = {name: [argument for argument, _, _ in read_parameters(hook)] for name, hook in _HOOKS.items()}


class Answer(list[Any]):
    """What one plugin answers to a hook. A wrapper gets a list of these, and may change what they hold.

    `origin` is the plugin, `pack` the prefix of its tools' names, None for one of the core's own. A `refusal` is what
    it says of a source that cannot be tools.
    """

    def __init__(
        self, items: Iterable[Any], origin: Origin, pack: str | None, refusal: BaseException | None = None
    ) -> None:
        super().__init__(items)
        self.origin = origin
        self.pack = pack
        self.refusal = refusal


class PluginGuard:
    """Stands for one plugin in pluggy. Its functions never raise, but for the core's own.

    Raises `PluginError`, saying what to change, for a plugin that implements no hook rightly.
    """

    def __init__(self, plugin: Any, slot: Candidate, run: Run) -> None:
        self._slot = slot
        self._run = run
        self.options: dict[str, Any] = {}
        for name in _marked(plugin) if type(plugin) is ModuleType else dir(plugin):
            options = _PARSER.parse_hookimpl_opts(plugin, name)
            if options is not None:
                self._add(name, getattr(plugin, name), dict(options))
        if not self.options:
            raise PluginError(_no_hooks(plugin))

    def _add(self, name: str, function: Any, options: dict[str, Any]) -> None:
        hook = options["specname"] or name
        if hook not in _SPECS and options["optionalhook"]:
            return  # of a later core
        if problem := _misuse(hook, function, options):
            raise PluginError(problem)
        parameters = read_parameters(function)
        if problem := _wrong_arguments(hook, parameters):
            raise PluginError(problem)
        wraps_others = options["wrapper"] or options["hookwrapper"]
        bound = partial(self._given, function, [argument for argument, _, _ in parameters])
        made = self._wrapping(hook, bound, options) if wraps_others else self._answering(hook, bound)
        attribute = f"{hook}.{name}"  # which no name of this class can be
        setattr(self, attribute, wraps(function)(made))
        # The core's own are called last.
        self.options[attribute] = options | {"specname": hook, "trylast": options["trylast"] or not self._slot.pack}

    def __dir__(self) -> list[str]:
        return list(self.options)

    def _given(
        self, function: Any, names: list[str], given: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Callable[[], Any]:
        """The plugin's function with what it asks for; instead of pluggy's `settings=None` it gets its own."""
        if "settings" not in names:
            return partial(function, *given, **named)
        own = {"settings": self._slot.settings}
        by_position = [own.get(name, value) for name, value in zip(names, given, strict=False)]
        return partial(function, *by_position, **{name: own.get(name, value) for name, value in named.items()})

    def _answering(self, hook: str, bound: Callable[..., Callable[[], Any]]) -> Any:
        def answering(*given: Any, **named: Any) -> Any:
            return self._run(hook, partial(self._answer, hook, bound(given, named)))

        return answering

    def _answer(self, hook: str, ask: Callable[[], Any]) -> Answer | None:
        try:
            answer = ask()
        except PegboardError as error:
            if hook != "tools_from" or isinstance(error, PluginError):
                raise
            return self._own((), error)  # which goes to the caller, past all wrappers
        return None if answer is None else self._own(checked(hook, answer))

    def _own(self, items: Iterable[Any], refusal: BaseException | None = None) -> Answer:
        return Answer(items, self._slot.record.origin, self._slot.pack or None, refusal)

    def _wrapping(self, hook: str, bound: Callable[..., Callable[[], Any]], options: dict[str, Any]) -> Any:
        is_old_style = options["hookwrapper"]
        options |= {"wrapper": True, "hookwrapper": False}

        def wrapping(*given: Any, **named: Any) -> Generator[None, Any, Any]:
            begun = self._run(hook, partial(_begun, hook, bound(given, named)), around=True)
            outcome = yield
            if begun is None:
                return outcome
            several = type(outcome) is list
            # What the core brings is no wrapper's to take away: it is overridden by what replaces it.
            core = [each for each in outcome if each.pack is None] if several else []
            shown = [copy(each) for each in outcome if each.pack is not None] if several else copy(outcome)
            sent = pluggy.Result.from_call(lambda: shown) if is_old_style else shown
            ended = self._run(hook, lambda: (self._checked(hook, _ended(hook, begun, sent)),), around=True)
            if ended is None:
                return outcome
            return [*ended[0], *core] if several else ended[0]

        return wrapping

    def _checked(self, hook: str, result: Any) -> Any:
        """What a wrapper gives back, made of answers; those that are new are its own plugin's."""
        if hook == "tools_from":
            return None if result is None else self._kept(hook, result)
        if not isinstance(result, list) or isinstance(result, Answer):
            raise PluginError(f"it returned {_a(result)}; return the list that `yield` gave, changed or not")
        return [self._kept(hook, each) for each in result]

    def _kept(self, hook: str, answer: Any) -> Answer:
        items = checked(hook, answer[0] if hook == "settings_type" and isinstance(answer, list) else answer)
        known = answer if isinstance(answer, Answer) else self._own(())
        return Answer(items, known.origin, known.pack, known.refusal)


def _begun(hook: str, begin: Callable[[], Any]) -> Generator[Any, Any, Any]:
    generator: Generator[Any, Any, Any] = begin()
    try:
        next(generator)
    except StopIteration:
        raise PluginError(f"it did not yield; write `answers = yield` once, as {hook} is called there") from None
    return generator


def _ended(hook: str, begun: Generator[Any, Any, Any], outcome: Any) -> Any:
    try:
        begun.send(outcome)
    except StopIteration as stop:
        return outcome.get_result() if isinstance(outcome, pluggy.Result) else stop.value
    begun.close()
    raise PluginError(f"it yielded twice; {hook} is called once")


class Manager(pluggy.PluginManager):
    """Has guards alone, and passes over what can be no hook: pluggy looks at each name with great care."""

    def register(self, plugin: Any, name: str | None = None) -> str | None:
        """Register a guard. Raises `PluginError` for a bare plugin, which would bypass its checks."""
        if not isinstance(plugin, PluginGuard):
            raise PluginError(f"{_a(plugin)} is registered by Toolkit(plugins=[...]), which isolates and checks it")
        return super().register(plugin, name)

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        """The options of a guard's function."""
        return dict(plugin.options[name])

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        """The options of a specification; None for anything else."""
        return super().parse_hookspec_opts(module_or_class, name) if name in _SPECS else None


_PARSER = pluggy.PluginManager(hookspecs.GROUP)
_HOOKABLE = (FunctionType, MethodType, staticmethod)


def _marked(module: ModuleType) -> list[str]:
    """The names of a module that hold a marked function, sorted."""
    found = sorted(vars(module).items())
    return [name for name, value in found if isinstance(value, _HOOKABLE) and hasattr(value, _IMPLEMENTATION)]


def _no_hooks(plugin: Any) -> str:
    what = type(plugin).__name__
    return f"the {what} implements no hook; mark a function such as provide_tools(settings) with @pegboard.hookimpl"


def _misuse(hook: str, function: Any, options: Mapping[str, Any]) -> str:
    """What is wrong with one implementation, in what pluggy accepts too."""
    if hook not in _SPECS:
        return f"there is no hook {hook!r}. {suggestion(hook, _SPECS, noun='hooks')}"
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        return f"{hook} is async, and hooks are sync; make only the tools async"
    if options["wrapper"] and options["hookwrapper"]:
        return f"{hook} is a wrapper of both kinds; leave hookwrapper=True away"
    if (options["wrapper"] or options["hookwrapper"]) and not isgeneratorfunction(function):
        return f"{hook} is a wrapper that yields nothing; write `answers = yield` in it, and return them"
    return ""


def _wrong_arguments(hook: str, parameters: Iterable[tuple[str, Any, Any]]) -> str:
    wanted = _SPECS[hook]
    remedy = f"write it as {hook}({', '.join(wanted)})"
    for name, kind, default in parameters:
        if kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) or default is not MISSING:
            continue
        if kind is Parameter.KEYWORD_ONLY:
            return f"{hook} takes {name!r} by keyword only; {remedy}"
        if name not in wanted:
            return f"{hook} takes an argument {name!r} that the hook does not have; {remedy}"
    return ""


def checked(hook: str, answer: Any) -> tuple[Any, ...]:
    """What an implementation answers, as a tuple. Raises `PluginError` for what the hook does not want."""
    if hook == "settings_type":
        import attrs

        if not (isinstance(answer, type) and attrs.has(answer)):
            raise PluginError(f"settings_type returned {_a(answer)}; return an attrs class")
        return (answer,)
    kind = _KINDS.get(hook)
    wanted = f"an iterable of {kind.__name__ if kind else 'backends' if hook == 'provide_backends' else 'tools'}"
    if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, Iterable):
        raise PluginError(f"{hook} returned {_a(answer)}; return {wanted}, such as a list")
    items = tuple(itertools.islice(answer, _MOST + 1))
    if len(items) > _MOST:
        raise PluginError(f"{hook} gave more than {_MOST:,} items; return {wanted} that ends")
    for position, item in enumerate(items):
        problem = _unfit(hook, kind, item)
        if problem:
            raise PluginError(f"item {position} of {hook} is {problem}; return {wanted}")
    return items


def _unfit(hook: str, kind: type | None, item: Any) -> str:
    if kind is not None:
        rank = getattr(item, "priority", getattr(item, "order", 0))
        unranked = "" if isinstance(rank, int | float) else f"{_a(item)} whose priority or order is {_a(rank)}"
        return unranked if isinstance(item, kind) else _a(item)
    if hook == "provide_backends":
        methods = getattr(item, "submit", None), getattr(item, "close", None)
        fits = isinstance(getattr(item, "name", None), str) and all(map(callable, methods))
        return "" if fits else f"{_a(item)} without name, submit(job) and close()"
    if isinstance(item, str):
        module, colon, attribute = item.partition(":")
        path = f"{module}.{attribute}".split(".")
        fits = bool(colon) and all(map(str.isidentifier, path))
        return "" if fits else f"the text {item[:80]!r}, which is not of the form 'package.module:attribute'"
    return _a(item) if isinstance(item, _NO_TOOL) else ""


def _a(value: Any) -> str:
    """A value as a message names it: by its type, for its repr may be long, secret or broken."""
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"the class {name}" if isinstance(value, type) else f"{article} {name}"
