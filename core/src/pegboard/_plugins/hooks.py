"""Hooks: a typed facade over pluggy that calls, attributes and checks each plugin's implementations separately."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, Literal, TypeAlias

import pluggy

from pegboard import hookspecs
from pegboard._base.errors import PluginError, nearest
from pegboard.extension import Accelerator, Command, Converter, Dialect, Injector, Middleware, TypeHandler

HookName: TypeAlias = Literal[
    "provide_accelerators",
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
    "provide_accelerators": Accelerator,
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
        if not _may_be_hook(plugin, name, _IMPLEMENTATION):
            return None
        return super().parse_hookimpl_opts(plugin, name)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        if not _may_be_hook(module_or_class, name, _SPEC):
            return None
        return super().parse_hookspec_opts(module_or_class, name)


def _may_be_hook(plugin: Any, name: str, mark: str) -> bool:
    if type(plugin) is not ModuleType:
        return True
    value = vars(plugin).get(name)
    if type(value) is FunctionType:
        return hasattr(value, mark)
    return isinstance(value, (classmethod, staticmethod, MethodType, FunctionType))


class Hooks:
    """The plugins that are registered, each under its own name; they are called one by one, never together.

    Being asked one by one, `tryfirst` and `trylast` say nothing here: plugins are asked in the order of their names.
    """

    __slots__ = ("_implementations", "_manager")

    def __init__(self) -> None:
        self._implementations: dict[str, dict[str, list[Any]]] = {}
        self._manager = _Manager(hookspecs.GROUP)
        self._manager.add_hookspecs(hookspecs)

    def register(self, plugin: Any, name: str) -> None:
        """Hang a plugin up. Raises `PluginError`, saying what to change, for one that implements no hook rightly."""
        twin = self._manager.get_name(plugin)
        if twin is not None:
            raise PluginError(
                f"it equals the plugin {twin!r}; register one of them, or declare its class with eq=False"
            )
        try:
            registered = self._manager.register(plugin, name)
        except pluggy.PluginValidationError as error:
            raise PluginError(self._diagnose(plugin) or str(error)) from error
        # A plugin of None registers as nothing.
        callers = [] if registered is None else self._manager.get_hookcallers(plugin) or []
        own = {caller.name: [i for i in caller.get_hookimpls() if i.plugin is plugin] for caller in callers}
        problem = self._refuse(own) if own else _no_hooks(plugin)
        if problem:
            if registered is not None:
                self._manager.unregister(name=name)
            raise PluginError(problem)
        self._implementations[name] = own

    def plugin(self, name: str) -> Any:
        """The object that is registered under this name."""
        return self._manager.get_plugin(name)

    def implements(self, name: str, hook: HookName) -> bool:
        """Whether the plugin of this name has an implementation of `hook`."""
        return hook in self._implementations.get(name, {})

    def settings_type(self, name: str) -> type | None:
        """The attrs class of the plugin's settings; None if it has none. Raises what the plugin raises."""
        import attrs

        for answer in self._answers(name, "settings_type", {}):
            if not (isinstance(answer, type) and attrs.has(answer)):
                raise PluginError(f"settings_type returned {_a(answer)}; return an attrs class")
            return answer
        return None

    def tools_from(self, name: str, source: Any) -> tuple[Any, ...] | None:
        """What the plugin makes of `source`; None if it passes. Raises what the plugin raises."""
        for answer in self._answers(name, "tools_from", {"source": source}):
            return _items("tools_from", answer)
        return None

    def provide(self, name: str, hook: HookName, **arguments: Any) -> tuple[Any, ...]:
        """What the plugin contributes through one of the `provide_...` hooks, checked.

        Raises what the plugin raises, and `PluginError` for a result of the wrong kind.
        """
        answers = self._answers(name, hook, arguments)
        return tuple(item for answer in answers for item in _items(hook, answer))

    def _answers(self, name: str, hook: HookName, arguments: Mapping[str, Any]) -> Iterable[Any]:
        for implementation in self._implementations.get(name, {}).get(hook, ()):
            by_position = [arguments[argument] for argument in implementation.argnames]
            by_name = {key: arguments[key] for key in implementation.kwargnames if key in arguments}
            answer = implementation.function(*by_position, **by_name)
            if answer is not None:
                yield answer

    def _refuse(self, own: Mapping[str, list[Any]]) -> str:
        for hook, implementations in sorted(own.items()):
            for implementation in implementations:
                problem = self._misspelt(hook, implementation.optionalhook) or _odd(hook, implementation)
                if problem:
                    return problem
        return ""

    def _diagnose(self, plugin: Any) -> str:
        # pluggy's own message shows a set, whose order differs from run to run.
        for attribute in sorted(dir(plugin)):
            options = self._manager.parse_hookimpl_opts(plugin, attribute)
            if options is None:
                continue
            hook = options.get("specname") or attribute
            problem = self._misspelt(hook, options.get("optionalhook", False)) or _wrong_arguments(
                hook, getattr(plugin, attribute)
            )
            if problem:
                return problem
        return ""

    def _misspelt(self, hook: str, optional: bool) -> str:
        if optional or hook in _SPECS:
            return ""
        close = nearest(hook, _SPECS, limit=1)
        remedy = f"did you mean {close[0]!r}?" if close else f"the hooks are {', '.join(sorted(_SPECS))}"
        return f"there is no hook {hook!r}; {remedy}"


def _specs() -> dict[str, tuple[str, ...]]:
    marked = {name: value for name, value in vars(hookspecs).items() if hasattr(value, _SPEC)}
    return {name: value.__code__.co_varnames[: value.__code__.co_argcount] for name, value in sorted(marked.items())}


_SPECS = _specs()
CONFIGURED = frozenset(name for name, arguments in _SPECS.items() if "settings" in arguments)
"""The hooks that are asked with the plugin's settings."""


def _no_hooks(plugin: Any) -> str:
    what = "the module" if type(plugin).__name__ == "module" else f"the {type(plugin).__name__}"
    return f"{what} implements no hook; mark a function such as provide_tools(settings) with @pegboard.hookimpl"


def _odd(hook: str, implementation: Any) -> str:
    """What pluggy accepts and we do not."""
    import inspect

    function = implementation.function
    if implementation.wrapper or implementation.hookwrapper:
        return f"{hook} is a hook wrapper, and hooks here are called one by one; return a list instead"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return f"{hook} is async, and hooks are sync; make only the tools async"
    if hook not in _SPECS:
        return ""
    return _wrong_arguments(hook, function)


def _wrong_arguments(hook: str, function: Callable[..., Any]) -> str:
    import inspect

    wanted = _SPECS.get(hook, ())
    remedy = f"write it as {hook}({', '.join(wanted)})"
    for parameter in inspect.signature(function).parameters.values():
        optional = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if optional or parameter.default is not parameter.empty:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            return f"{hook} takes {parameter.name!r} by keyword only; {remedy}"
        if parameter.name not in wanted:
            return f"{hook} takes an argument {parameter.name!r} that the hook does not have; {remedy}"
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
        return "" if isinstance(item, kind) else _a(item)
    if hook == "provide_backends":
        fits = isinstance(getattr(item, "name", None), str) and all(
            callable(getattr(item, method, None)) for method in ("submit", "close")
        )
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
