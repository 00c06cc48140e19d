"""Hooks: a typed facade over pluggy that calls, attributes and checks each plugin's implementations separately."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction
from types import FunctionType, MethodType, ModuleType
from typing import Any, Literal, TypeAlias

import pluggy

from pegboard import hookspecs
from pegboard._base.errors import PluginError, suggestion
from pegboard._base.markers import MISSING
from pegboard._types.hints import read_parameters
from pegboard.extension import Command, Converter, Dialect, Injector, Middleware, TypeHandler

HookName: TypeAlias = Literal[
    "provide_backends",
    "provide_commands",
    "provide_converters",
    "provide_dialects",
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
    "provide_injectors": Injector,
    "provide_middleware": Middleware,
    "provide_types": TypeHandler,
}
# More than any pack has; a generator that never ends must not hang the assembly.
_MOST = 100_000
_IMPLEMENTATION = f"{hookspecs.GROUP}_impl"
_SPEC = f"{hookspecs.GROUP}_spec"
_NO_TOOL = (type(None), bool, int, float, complex, bytes, bytearray, Mapping, list, tuple, set, frozenset)


class _Manager(pluggy.PluginManager):
    """Passes over the names of a module that can be no hooks: pluggy looks at each with a care that costs its time."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        options = super().parse_hookimpl_opts(plugin, name) if _may_be_hook(plugin, name) else None
        # Before pluggy judges it, which shows a set in its message: its order differs from run to run.
        problem = _misuse(getattr(plugin, name), name, options) if options else ""
        if problem:
            raise PluginError(problem)
        return options


def _may_be_hook(plugin: Any, name: str) -> bool:
    if type(plugin) is not ModuleType:
        return True
    value = vars(plugin).get(name)
    is_plain = type(value) is FunctionType
    return hasattr(value, _IMPLEMENTATION) if is_plain else isinstance(value, (classmethod, staticmethod, MethodType))


class Hooks:
    """The plugins that are registered, each under its own name; they are called one by one, never together.

    Being asked one by one, `tryfirst` and `trylast` say nothing here: plugins are asked in the order of their names.
    """

    def __init__(self) -> None:
        self._implementations: dict[str, dict[str, list[Any]]] = {}
        self._manager = _Manager(hookspecs.GROUP)
        self._manager.add_hookspecs(hookspecs)

    def register(self, plugin: Any, name: str) -> None:
        """Hang a plugin up. Raises `PluginError`, saying what to change, for one that implements no hook rightly."""
        twin = self._manager.get_name(plugin)
        if twin is not None:
            raise PluginError(f"it equals the plugin {twin!r}; register one of them, or give its class eq=False")
        try:
            self._manager.register(plugin, name)
            callers = self._manager.get_hookcallers(plugin)
            if not callers:
                raise PluginError(_no_hooks(plugin))
        except PluginError:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            raise
        self._implementations[name] = {
            caller.name: [each for each in caller.get_hookimpls() if each.plugin is plugin] for caller in callers
        }

    def implements(self, name: str, hook: HookName) -> bool:
        """Whether the plugin of this name has an implementation of `hook`."""
        return hook in self._implementations.get(name, {})

    def settings_type(self, name: str) -> type | None:
        """The attrs class of the plugin's settings; None if it has none. Raises what the plugin raises."""
        import attrs

        answer = next(self._answers(name, "settings_type", {}), None)
        if answer is not None and not (isinstance(answer, type) and attrs.has(answer)):
            raise PluginError(f"settings_type returned {_a(answer)}; return an attrs class")
        return answer

    def tools_from(self, name: str, source: Any) -> tuple[Any, ...] | None:
        """What the plugin makes of `source`; None if it passes. Raises what the plugin raises."""
        answer = next(self._answers(name, "tools_from", {"source": source}), None)
        return None if answer is None else _items("tools_from", answer)

    def provide(self, name: str, hook: HookName, **arguments: Any) -> tuple[Any, ...]:
        """What the plugin contributes through one of the `provide_...` hooks, checked.

        Raises what the plugin raises, and `PluginError` for a result of the wrong kind.
        """
        return tuple(item for answer in self._answers(name, hook, arguments) for item in _items(hook, answer))

    def _answers(self, name: str, hook: HookName, arguments: Mapping[str, Any]) -> Iterator[Any]:
        for implementation in self._implementations.get(name, {}).get(hook, ()):
            by_position = [arguments[argument] for argument in implementation.argnames]
            by_name = {key: arguments[key] for key in implementation.kwargnames if key in arguments}
            answer = implementation.function(*by_position, **by_name)
            if answer is not None:
                yield answer


_CODES = {name: value.__code__ for name, value in sorted(vars(hookspecs).items()) if hasattr(value, _SPEC)}
_SPECS = {name: code.co_varnames[: code.co_argcount] for name, code in _CODES.items()}
CONFIGURED = frozenset(name for name, arguments in _SPECS.items() if "settings" in arguments)


def _no_hooks(plugin: Any) -> str:
    what = "the module" if type(plugin).__name__ == "module" else f"the {type(plugin).__name__}"
    return f"{what} implements no hook; mark a function such as provide_tools(settings) with @pegboard.hookimpl"


def _misuse(function: Any, name: str, options: Mapping[str, Any]) -> str:
    """What is wrong with one implementation, in what pluggy accepts too."""
    hook = options["specname"] or name
    if hook not in _SPECS and not options["optionalhook"]:
        return f"there is no hook {hook!r}. {suggestion(hook, _SPECS, noun='hooks')}"
    if options["wrapper"] or options["hookwrapper"]:
        return f"{hook} is a hook wrapper, and hooks here are called one by one; return a list instead"
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        return f"{hook} is async, and hooks are sync; make only the tools async"
    return _wrong_arguments(hook, function) if hook in _SPECS else ""


def _wrong_arguments(hook: str, function: Callable[..., Any]) -> str:
    wanted = _SPECS[hook]
    remedy = f"write it as {hook}({', '.join(wanted)})"
    for name, kind, default in read_parameters(function):
        if kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) or default is not MISSING:
            continue
        if kind is Parameter.KEYWORD_ONLY:
            return f"{hook} takes {name!r} by keyword only; {remedy}"
        if name not in wanted:
            return f"{hook} takes an argument {name!r} that the hook does not have; {remedy}"
    return ""


def _items(hook: HookName, answer: Any) -> tuple[Any, ...]:
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


def _unfit(hook: HookName, kind: type | None, item: Any) -> str:
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
