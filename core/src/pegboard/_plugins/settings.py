"""Settings: merged key by key, structured strictly, and remembered with the place that each value came from."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from pegboard._base.errors import PluginError, SettingsError, describe_exception, suggestion
from pegboard._plugins.settings_sources import Given, Layer, NamesRule, read_layers

if TYPE_CHECKING:
    from pegboard._plugins.settings_values import Setting
    from pegboard._types.table import TypeTable
    from pegboard.extension import TypeHandler

__all__ = ["Settings"]

_REFERENCE = r"(?a)(\$?)\$\{([A-Za-z_]\w*)\}"
# Shorter ones are too likely to be a part of an innocent word.
_SHORTEST_SECRET = 4


class Settings:
    """All sources, low to high; `structure` turns a pack's section into its class."""

    __slots__ = ("_effective", "_environ", "_layers", "_secrets")

    def __init__(self, layers: tuple[Layer, ...], environ: Mapping[str, str]) -> None:
        self._layers = layers
        self._environ = environ
        self._effective: dict[str, tuple[Setting, ...]] = {}
        self._secrets: set[str] = set()

    @classmethod
    def read(
        cls,
        settings: Mapping[str, Any] | None = None,
        config: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """Read all sources. Raises `SettingsError` for one that cannot be read."""
        environment = os.environ if environ is None else environ
        return cls(read_layers(settings, config, environment), environment)

    @property
    def rules(self) -> tuple[NamesRule, ...]:
        """The `plugins` and `block` lists of the file."""
        return tuple(rule for layer in self._layers for rule in layer.rules)

    def check_sections(self, known: Iterable[str], *, only_argument: bool = False) -> None:
        """Raises `SettingsError` for a section of a plugin that is not installed, naming the nearest one that is."""
        names = set(known)
        for layer in self._layers:
            if only_argument and layer.kind != "argument":
                continue
            for section, values in sorted(layer.sections.items()):
                if section not in names:
                    source = next((given.source for given in values.values()), "the settings= argument")
                    hint = suggestion(section, names, noun="installed plugins")
                    raise SettingsError(f"{source}: no plugin {section!r} is installed to be set up. {hint}")

    def structure(self, section: str, cls: type, handlers: Iterable[TypeHandler]) -> Any:
        """An instance of the attrs class `cls` from a section, by these type handlers; `${NAME}` is looked up now.

        Raises `SettingsError` for an unknown key, a value of the wrong type and a reference to nothing; whatever else
        it raises is the fault of `cls`, such as a field without a default.
        """
        import attrs

        from pegboard._plugins.settings_values import Setting, type_table

        defaults = _defaults(cls)
        fields = {attribute.alias: attribute for attribute in attrs.fields(cls) if attribute.init and attribute.alias}
        given = self._merged(section, fields)
        secret = {key for key, attribute in fields.items() if _is_secret(attribute, given.get(key))}
        values: dict[str, Any] = {}
        if given:
            hints, types = get_type_hints(cls, include_extras=True), type_table(handlers)
            for key, value in given.items():
                annotation = hints.get(fields[key].name, Any)
                values[key] = self._value(f"{section}.{key}", annotation, value, key in secret, types)
        try:
            instance = cls(**values) if values else defaults
        except Exception as error:  # noqa: BLE001 - a validator may raise anything
            # Without the cause: its message and its frames hold the value.
            raise self._refusal(cls, section, values, given, secret & given.keys(), error) from None
        self._effective[section] = tuple(
            Setting(
                section,
                key,
                "***" if key in secret else getattr(instance, attribute.name),
                given[key].source if key in given else "default",
            )
            for key, attribute in fields.items()
        )
        return instance

    def refuse_section(self, section: str) -> None:
        """Raises `SettingsError` if anything was set for a plugin that has no settings."""
        for given in self._merged(section).values():
            raise SettingsError(f"{given.source}: the plugin {section!r} has no settings; remove its section")

    def effective(self, section: str | None = None) -> tuple[Setting, ...]:
        """What was structured so far, by section and in the order of the class's fields."""
        sections = sorted(self._effective) if section is None else [section]
        return tuple(setting for name in sections for setting in self._effective.get(name, ()))

    def carry(self, before: Settings) -> None:
        """Go on knowing what was structured before, and which of it is secret."""
        self._effective.update(before._effective)
        self._secrets.update(before._secrets)

    def redact(self, text: str) -> str:
        """`text` without the secret values that were given out."""
        # The longest first: one secret may be the beginning of another.
        for secret in sorted(self._secrets, key=lambda value: (-len(value), value)):
            text = text.replace(secret, "***")
        return text

    def _merged(self, section: str, fields: Mapping[str, Any] | None = None) -> dict[str, Given]:
        """The winning value of each key. With `fields`, an unknown key raises."""
        # Environment variables have no case of their own.
        folded = {key.lower(): key for key in fields or ()}
        merged: dict[str, Given] = {}
        for layer in self._layers:
            for name, given in layer.sections.get(section, {}).items():
                key = folded.get(name, name) if layer.kind == "environment" else name
                if fields is not None and key not in fields:
                    hint = suggestion(key, fields, noun="keys")
                    raise SettingsError(f"{given.source}: unknown key {key!r} in the settings of {section!r}. {hint}")
                merged[key] = given
        return merged

    def _value(self, path: str, annotation: Any, given: Given, secret: bool, types: TypeTable) -> Any:
        from pegboard._plugins.settings_values import describe_type, describe_value, from_text, structure

        raw = given.value
        read_as_text = given.kind == "environment"
        if not read_as_text:
            # A value that is one reference and nothing else takes the type of its field, as the variable itself would.
            reference = re.fullmatch(_REFERENCE, raw) if isinstance(raw, str) else None
            read_as_text = reference is not None and not reference[1]
            raw = self._expand(raw, path, given.source)
        if secret and isinstance(raw, str):
            self._keep_secret(raw)
        try:
            return (from_text if read_as_text else structure)(raw, annotation, types)
        except Exception:  # noqa: BLE001 - whatever does not fit; the value itself must not show
            got = f"text that cannot be read as {describe_type(annotation)}" if read_as_text else describe_value(raw)
        raise SettingsError(f"{given.source}: {path} takes {describe_type(annotation)}, got {got}")

    def _expand(self, value: Any, path: str, source: str) -> Any:
        """`value` with its `${NAME}` references replaced, at any depth; `$${NAME}` stands for itself."""

        def look_up(reference: re.Match[str]) -> str:
            if reference[1]:
                return reference[0][1:]
            text = self._environ.get(reference[2])
            if text is None:
                raise SettingsError(f"{source}: {path} refers to ${{{reference[2]}}}, and that variable is not set")
            self._keep_secret(text)
            return text

        if isinstance(value, str):
            return re.sub(_REFERENCE, look_up, value)
        if isinstance(value, dict):
            return {key: self._expand(item, path, source) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._expand(item, path, source) for item in value)
        return value

    def _keep_secret(self, text: str) -> None:
        if len(text) >= _SHORTEST_SECRET:
            self._secrets.add(text)

    def _refusal(
        self,
        cls: type,
        section: str,
        values: Mapping[str, Any],
        given: Mapping[str, Given],
        secret: Collection[str],
        error: Exception,
    ) -> SettingsError:
        for key, value in sorted(values.items()):
            try:
                cls(**{key: value})
            except Exception as own:  # noqa: BLE001 - a validator may raise anything
                # A pack that raises this one says what is wrong, and knows what it must not say.
                silent = key in secret and not isinstance(own, SettingsError)
                because = "" if silent else f": {self.redact(describe_exception(own))}"
                return SettingsError(f"{given[key].source}: {section}.{key} is refused{because}")
        sources = ", ".join(sorted({value.source for value in given.values()}))
        because = "" if secret else f": {describe_exception(error)}"
        return SettingsError(f"{sources}: the settings of {section!r} are refused together{because}")


def _defaults(cls: type) -> Any:
    try:
        return cls()
    except SettingsError as error:
        # Nobody set anything yet, so it is the plugin that is wrong, not its settings.
        reason = f"{cls.__name__}() raised {describe_exception(error)}; a pack must load without settings"
        raise PluginError(reason) from error


def _is_secret(attribute: Any, given: Given | None) -> bool:
    """Whether a field's value must not be shown: it says so, or the value came through a `${NAME}` reference."""
    if attribute.metadata.get("secret"):
        return True
    return given is not None and given.kind != "environment" and _refers(given.value)


def _refers(value: Any) -> bool:
    if isinstance(value, str):
        return any(not reference[1] for reference in re.finditer(_REFERENCE, value))
    if isinstance(value, dict):
        return any(_refers(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_refers(item) for item in value)
