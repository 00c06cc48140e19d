"""Presets: parameters that the program fills, tool by tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pegboard._base.errors import PegboardError, RegistrationError, suggestion
from pegboard._base.jsonable import owned
from pegboard._base.markers import Computed, Locked, Secret, reveal
from pegboard._model.tool import Definition, Tool


class Preset(NamedTuple):
    """One preset: its structured value or the function that computes it, and whether the model may override it."""

    value: Any
    locked: bool = False
    secret: bool = False
    computed: Callable[[Any], Any] | None = None
    make: Callable[[], Any] | None = None  # the value anew, if it came as JSON that a tool could change

    def __repr__(self) -> str:
        kind = "secret" if self.secret else "computed" if self.computed else "locked" if self.locked else "plain"
        return f"<{kind} preset>"


def read_presets(tool: Tool, values: Mapping[str, Any], *, override: bool) -> dict[str, Preset]:
    """Structured presets; without `override` no model can set one. Raises `RegistrationError` naming the parameter.

    Values are never shown in errors: they may be secret.
    """
    return {name: _read(tool.definition, name, given, override) for name, given in values.items()}


def _read(target: Definition, name: str, given: Any, override: bool) -> Preset:
    secret = isinstance(given, Secret) or (isinstance(given, Locked) and isinstance(given.value, Secret))
    locked = isinstance(given, Secret | Locked) or not override
    value = reveal(given)
    if not isinstance(value, Computed):
        structured = target.structure_preset(name, value)
        if type(value) not in (list, dict):
            return Preset(structured, locked, secret)
        kept = owned({name: value})
        return Preset(structured, locked, secret, make=lambda: target.structure_preset(name, owned(kept)[name]))
    if inspect.iscoroutinefunction(value.function):
        remedy = "Computed takes a plain one, an Injector may be async"
        raise RegistrationError(f"the preset of {name!r} is computed by an async function; {remedy}")
    target.structure_preset(name, None)  # the name must be known, whatever will be computed
    return Preset(None, locked, secret, _structured(target, name, value.function))


def _structured(target: Definition, name: str, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def computed(call: Any) -> Any:
        try:
            return target.structure_preset(name, compute(call))
        except Exception as error:
            # The model reads this: it must learn neither the parameter's name nor what the program's code says.
            raise PegboardError("a value that the program computes is not available") from error

    return computed


def for_tools(
    given: Mapping[str, Any], tools: Mapping[str, Tool], *, lenient: bool = False
) -> dict[str, Mapping[str, Any]]:
    """Presets of a registration as `{tool: {parameter: value}}`; tools go by the names that their source uses.

    Keys are tool names if they name tools of this registration; otherwise a flat `{parameter: value}` for the one tool
    that there is. `lenient`: what is said of tools that are not there waits for them. Raises `RegistrationError` when
    neither reading fits, or both do.
    """
    if lenient and (not tools or all(isinstance(value, Mapping) for value in given.values())):
        given = {name: value for name, value in given.items() if name in tools}
    if not given:
        return {}
    nested = set(given) <= set(tools) and all(isinstance(value, Mapping) for value in given.values())
    parameters = {parameter.name for tool in tools.values() for parameter in tool.params}
    flat = len(tools) == 1 and set(given) <= parameters
    if nested and flat:
        name = next(iter(tools))
        remedy = f"register it without presets, then call set_presets({name!r}, {{parameter: value}})"
        raise RegistrationError(f"presets: {name!r} is a tool and also a parameter of it; {remedy}")
    if nested:
        return dict(given)
    if flat:
        return {next(iter(tools)): given}
    raise _unfit(given, tools, parameters)


def _unfit(given: Mapping[str, Any], tools: Mapping[str, Tool], parameters: set[str]) -> RegistrationError:
    name = min(set(given) - set(tools), key=str, default=None)
    if name is None:
        return RegistrationError("presets take a mapping for each tool: write presets={tool: {parameter: value}}")
    if len(tools) == 1:
        known = suggestion(str(name), {*tools, *parameters})
        return RegistrationError(f"presets: nothing is called {name!r}. {known}")
    if name in parameters:
        owner = min(tool for tool, each in tools.items() if name in (parameter.name for parameter in each.params))
        known = f"{len(tools)} tools are registered at once; write presets={{{owner!r}: {{{name!r}: ...}}}}"
        return RegistrationError(f"presets: {name!r} is a parameter, and {known}")
    known = f"{suggestion(str(name), tools, noun='tools')} Write presets={{tool: {{parameter: value}}}}"
    return RegistrationError(f"presets: {name!r} is no tool of this registration. {known}")
