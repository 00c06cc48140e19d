"""Settings: from a file, the environment and the program's argument, merged key by key and structured strictly.

Each value is remembered with the place that it came from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_type_hints

from pegboard._base.errors import PluginError, SettingsError, describe_exception, suggestion
from pegboard._base.names import pack_name

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard._plugins.settings_values import Setting
    from pegboard._types.table import TypeTable
    from pegboard.extension import TypeHandler

_PREFIX = "PEGBOARD__"

Kind: TypeAlias = Literal["file", "environment", "argument"]

NamesRule: TypeAlias = tuple[str, str, tuple[str, ...]]
"""`plugins` or `block`, the source as messages name it, and the names."""


class Given:
    """One value as it was given; `source` is how messages name the place. The value may be secret: never shown."""

    __slots__ = ("kind", "source", "value")

    def __init__(self, value: Any, source: str, kind: Kind) -> None:
        self.value = value
        self.source = source
        self.kind = kind


class Layer(NamedTuple):
    """All sections of one source, by pack and key; `rules` are a file's own `plugins` and `block` lists."""

    sections: Mapping[str, Mapping[str, Given]]
    kind: Kind
    rules: tuple[NamesRule, ...] = ()


def read_layers(
    settings: Mapping[str, Any] | None, config: str | os.PathLike[str] | None, environ: Mapping[str, str]
) -> tuple[Layer, ...]:
    """The sources in the order in which a later one wins: file, environment, argument.

    A file is read only if `config` or `PEGBOARD_CONFIG` names it: a model that can write files must not be able to
    write its own policy. Raises `SettingsError` for a source that cannot be read.
    """
    path = config if config is not None else environ.get("PEGBOARD_CONFIG") or None
    layers = [] if path is None else [_from_file(path, "config=" if config is not None else "PEGBOARD_CONFIG")]
    return (*layers, _from_environment(environ), _from_argument(settings or {}))


def _from_file(named: str | os.PathLike[str], named_by: str) -> Layer:
    import tomllib
    from pathlib import Path

    path = Path(named)
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        raise SettingsError(f"{named_by} names {path}, which does not exist") from None
    except OSError as error:
        raise SettingsError(f"{named_by} names {path}, which cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # The decoder's own exception quotes the file, which may hold secrets.
        where = re.search(r"\(at [^)]*\)", str(error))
        raise SettingsError(f"{path} is not valid TOML {where.group() if where else ''}".rstrip()) from None
    if path.name == "pyproject.toml":
        content = content.get("tool", {}).get("pegboard", {})
    rules = [_rule(path, key, content.pop(key)) for key in ("block", "plugins") if isinstance(content.get(key), list)]
    return Layer(_sections(content, str(path), "file"), "file", tuple(rules))


def _rule(path: Path, key: str, names: list[Any]) -> NamesRule:
    if not all(isinstance(name, str) for name in names):
        raise SettingsError(f'{path}: {key!r} is a list of plugin names, such as ["files"]')
    return key, f"{key} in {path}", tuple(names)


def _from_argument(settings: Mapping[str, Any]) -> Layer:
    if not isinstance(settings, Mapping):
        raise SettingsError(f"settings= takes a mapping such as {{'files': {{...}}}}, not {type(settings).__name__}")
    return Layer(_sections(settings, "the settings= argument", "argument"), "argument")


def _sections(content: Mapping[str, Any], source: str, kind: Kind) -> dict[str, dict[str, Given]]:
    sections: dict[str, dict[str, Given]] = {}
    for name, section in content.items():
        if not isinstance(section, Mapping):
            raise SettingsError(f"{source}: {name!r} is a section; give it keys of its own, such as {name}.key")
        values = {str(key): Given(value, source, kind) for key, value in section.items()}
        sections.setdefault(pack_name(str(name)), {}).update(values)
    return sections


def _from_environment(environ: Mapping[str, str]) -> Layer:
    sections: dict[str, dict[str, Given]] = {}
    for variable in sorted(environ):
        if variable.startswith(_PREFIX):
            section, _, key = variable.removeprefix(_PREFIX).partition("__")
            if not (section and key):
                raise SettingsError(f"environment variable {variable} names no key; write PEGBOARD__<PACK>__<KEY>")
            given = Given(environ[variable], f"environment variable {variable}", "environment")
            sections.setdefault(pack_name(section), {})[key.lower()] = given
    return Layer(sections, "environment")


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
        given = settings or config is not None or any(name.startswith("PEGBOARD_") for name in environment)
        return cls(read_layers(settings, config, environment) if given else (), environment)

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
