"""Presets: parameters that the program fills, tool by tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pegboard._base.errors import PegboardError, RegistrationError, suggestion
from pegboard._base.markers import Computed, Locked, Secret, reveal
from pegboard._model.tool import Definition, Tool


class Preset(NamedTuple):
    """One preset: its structured value or the function that computes it, and whether the model may override it."""

    value: Any
    locked: bool = False
    secret: bool = False
    computed: Callable[[Any], Any] | None = None

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
        return Preset(target.structure_preset(name, value), locked, secret)
    if inspect.iscoroutinefunction(value.function):
        raise RegistrationError(
            f"the preset of {name!r} is computed by an async function; Computed takes a plain one, an Injector may be "
            "async"
        )
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
        raise RegistrationError(
            f"presets: {name!r} is a tool and also a parameter of it; register it without presets, then call "
            f"set_presets({name!r}, {{parameter: value}})"
        )
    if nested:
        return dict(given)
    if flat:
        return {next(iter(tools)): given}
    raise _unfit(given, tools, parameters)


_NESTED = "presets={tool: {parameter: value}}"


def _unfit(given: Mapping[str, Any], tools: Mapping[str, Tool], parameters: set[str]) -> RegistrationError:
    unknown = sorted(set(given) - set(tools), key=str)
    if not unknown:
        return RegistrationError(f"presets take a mapping for each tool: write {_NESTED}")
    name = unknown[0]
    if len(tools) == 1:
        known = suggestion(str(name), {*tools, *parameters})
        return RegistrationError(f"presets: nothing is called {name!r}. {known}")
    if name in parameters:
        owners = sorted(
            tool for tool, each in tools.items() if any(name == parameter.name for parameter in each.params)
        )
        return RegistrationError(
            f"presets: {name!r} is a parameter, and {len(tools)} tools are registered at once; write "
            f"presets={{{owners[0]!r}: {{{name!r}: ...}}}}"
        )
    known = suggestion(str(name), tools, noun="tools")
    return RegistrationError(f"presets: {name!r} is no tool of this registration. {known} Write {_NESTED}")


def secret_texts(values: Iterable[Any]) -> tuple[str, ...]:
    """The texts that must not be shown, longest first so that one inside another is masked too."""
    texts = {spelling for value in values for text in _texts(value) for spelling in _spellings(text)}
    return tuple(sorted((text for text in texts if text), key=lambda text: (-len(text), text)))


def _texts(value: Any) -> Iterator[str]:
    """Every text in a secret: a record or a container is as secret as its parts."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, Mapping):
        yield from (text for part in value.values() for text in _texts(part))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (text for part in value for text in _texts(part))
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif not isinstance(value, str | int | float) and hasattr(value, "__dict__"):
        yield from (text for part in vars(value).values() for text in _texts(part))
    else:
        yield str(value)


def _spellings(text: str) -> tuple[str, str]:
    """As it is, and as an exception that quotes it would write it."""
    return text, repr(text)[1:-1]
