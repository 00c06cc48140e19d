"""Presets: parameters that the program fills, tool by tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, final

from attrs import frozen

from pegboard._errors import RegistrationError, suggestion
from pegboard._markers import Computed, Locked, Secret, reveal
from pegboard._tool import Tool

__all__ = ["Preset", "PresetTarget", "Presets", "for_tools", "secret_texts"]


class PresetTarget(Protocol):
    """What presets need of a definition."""

    def structure_preset(self, name: str, value: Any) -> Any:
        """The value as the parameter's type; raises `RegistrationError`."""
        ...


@final
@frozen(repr=False)
class Preset:
    """One preset: its structured value or the function that computes it, and whether the model may override it."""

    value: Any
    locked: bool = False
    secret: bool = False
    computed: Callable[[Any], Any] | None = None

    def __repr__(self) -> str:
        kind = "secret" if self.secret else "computed" if self.computed else "locked" if self.locked else "plain"
        return f"<{kind} preset>"


@final
class Presets:
    """The presets of one session, by tool name and parameter; what it does not set is as in the wider session."""

    def __init__(self, wider: Presets | None = None, *, override: bool = True) -> None:
        self._wider = wider
        self._override = override
        self._set: dict[str, dict[str, Preset]] = {}

    def of(self, tool: str) -> dict[str, Preset]:
        """The presets of a tool, wider ones first."""
        if tool in self._set:
            return self._set[tool]
        return {} if self._wider is None else self._wider.of(tool)

    def replace(self, tool: Tool, values: Mapping[str, Any]) -> None:
        """Set the presets of a tool and drop those it had. Raises `RegistrationError` naming tool and parameter."""
        self._set[tool.name] = self.read(tool, values)

    def merge(self, tool: Tool, values: Mapping[str, Any]) -> None:
        """Set some presets of a tool and keep the others."""
        self._set[tool.name] = {**self.of(tool.name), **self.read(tool, values)}

    def read(self, tool: Tool, values: Mapping[str, Any]) -> dict[str, Preset]:
        """Structured presets. Values are never shown in errors: they may be secret."""
        target: Any = tool.definition
        return {name: self._read(target, name, given) for name, given in values.items()}

    def _read(self, target: PresetTarget, name: str, given: Any) -> Preset:
        secret = isinstance(given, Secret)
        locked = secret or isinstance(given, Locked) or not self._override
        value = reveal(given)
        if isinstance(value, Computed):
            target.structure_preset(name, None)  # the name must be known, whatever will be computed
            return Preset(None, locked, secret, value.function)
        return Preset(target.structure_preset(name, value), locked, secret)

    def forget(self, tools: Iterable[str]) -> None:
        """Drop the presets of tools that are gone."""
        for name in tools:
            self._set.pop(name, None)


def for_tools(given: Mapping[str, Any], tools: Iterable[Tool], *, label: str) -> dict[str, Mapping[str, Any]]:
    """Presets of a registration as `{tool: {parameter: value}}`.

    Keys are tool names if they name tools of this registration; otherwise a flat `{parameter: value}` for the one tool
    that there is. Raises `RegistrationError` when neither reading fits, or both do.
    """
    by_name = {tool.name: tool for tool in tools}
    nested = set(given) <= set(by_name) and all(isinstance(value, Mapping) for value in given.values())
    flat = len(by_name) == 1 and set(given) <= {
        parameter.name for tool in by_name.values() for parameter in tool.params
    }
    if nested and flat and given:
        raise RegistrationError(
            f"{label}: {sorted(given)} may be tools or parameters; write presets={{tool: {{parameter: value}}}}"
        )
    if nested:
        return dict(given)
    if flat:
        return {next(iter(by_name)): given}
    unknown = sorted(set(given) - set(by_name))
    if len(by_name) == 1:
        (tool,) = by_name.values()
        known = [*by_name, *(parameter.name for parameter in tool.params)]
        raise RegistrationError(f"{label}: nothing is called {unknown[0]!r}. {suggestion(unknown[0], known)}")
    if not unknown:
        raise RegistrationError(f"{label}: presets take a mapping for each tool, {{tool: {{parameter: value}}}}")
    raise RegistrationError(f"{label}: presets name {unknown[0]!r}. {suggestion(unknown[0], by_name, noun='tools')}")


def secret_texts(presets: Mapping[str, Preset]) -> tuple[str, ...]:
    """The texts that must not be shown, longest first so that one inside another is masked too."""
    texts = {
        str(preset.value)
        for preset in presets.values()
        if preset.secret and isinstance(preset.value, str | bytes | int)
    }
    return tuple(sorted((text for text in texts if text), key=len, reverse=True))
