"""Settings: from a file, the environment and the program's argument, merged key by key and structured strictly.

Each value is remembered with the place that it came from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_type_hints

from pegboard._base.errors import PluginError, SettingsError, describe_exception, suggestion
from pegboard._base.names import OWN, pack_name
from pegboard._base.redaction import SHORTEST, Redaction, texts_in

if TYPE_CHECKING:
    import cattrs

    from pegboard._plugins.settings_values import Setting
    from pegboard.extension import TypeHandler

_PREFIX = "PEGBOARD__"

# `plugins` or `block`, the source as messages name it, and the names.
NamesRule: TypeAlias = tuple[str, str, tuple[str, ...]]


class Given(NamedTuple):
    """One value as it was given; `source` is how messages name the place. The value may be secret: never shown.

    In the environment everything `is_text`, and names have no case of their own. A section that is empty has the key
    None.
    """

    section: str
    key: str | None
    value: Any
    source: str
    is_text: bool = False


class MissingSettingsError(SettingsError):
    """A plugin cannot load without settings that nothing gives: a failure of this plugin, no mistake in a source."""


_ARGUMENT = "the settings= argument"


def _from_file(named: str | os.PathLike[str], named_by: str) -> tuple[list[Given], list[NamesRule]]:
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
    rules: list[NamesRule] = []
    for key in ("block", "plugins"):
        if isinstance(names := content.get(key), list):
            if not all(isinstance(name, str) for name in names):
                raise SettingsError(f'{path}: {key!r} is a list of plugin names, such as ["files"]')
            rules.append((key, f"{key} in {path}", tuple(content.pop(key))))
    return list(_sections(content, str(path))), rules


def _sections(content: Any, source: str) -> Iterator[Given]:
    if not isinstance(content, Mapping):
        raise SettingsError(f"settings= takes a mapping such as {{'files': {{...}}}}, not {type(content).__name__}")
    for name, section in content.items():
        if not isinstance(section, Mapping):
            hint = f"such as {name}.key. {suggestion(name, ('block', 'plugins'), noun='lists')}"
            raise SettingsError(f"{source}: {name!r} is a section; give it keys of its own, {hint}")
        for key, value in section.items() or [(None, None)]:
            yield Given(pack_name(str(name)), None if key is None else str(key), value, source)


def _from_environment(environ: Mapping[str, str]) -> Iterator[Given]:
    for variable in sorted(name for name in environ if name.startswith(_PREFIX)):
        section, _, key = variable.removeprefix(_PREFIX).partition("__")
        if not (section and key):
            raise SettingsError(f"environment variable {variable} names no key; write PEGBOARD__<PACK>__<KEY>")
        source = f"environment variable {variable}"
        yield Given(pack_name(section), key.lower(), environ[variable], source, is_text=True)


_REFERENCE = r"(?a)(\$?)\$\{([A-Za-z_]\w*)\}"


class Settings:
    """All sources, low to high; `structure` turns a pack's section into its class.

    Args:
        given: Values with their sources, low to high.
        rules: Rules that the file has for names of tools.
        environ: Environment variables.
        file: Name of the file, for messages.
    """

    def __init__(
        self, given: list[Given], rules: list[NamesRule], environ: Mapping[str, str], file: str = "pegboard.toml"
    ) -> None:
        self._given = given
        self.rules = rules  # the lists of the file
        self._file = file  # as messages name it
        self._environ = environ
        self._effective: dict[str, tuple[Setting, ...]] = {}
        self._secrets: list[str] = []

    @classmethod
    def read(
        cls,
        settings: Mapping[str, Any] | None = None,
        config: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """Read file, environment and argument, of which the later wins. Raises `SettingsError` for what it cannot read.

        A file is read only if `config` or `PEGBOARD_CONFIG` names it: a model that can write files must not be able to
        write its own policy.

        Args:
            settings: Settings of packs, as `{pack: {key: value}}`. None for none.
            config: Path of a settings file. None reads the one that `PEGBOARD_CONFIG` names.
            environ: Environment variables. None: those of the process.
        """
        environment = os.environ if environ is None else environ
        path = config if config is not None else environment.get("PEGBOARD_CONFIG") or None
        named_by = "config=" if config is not None else "PEGBOARD_CONFIG"
        given, rules = ([], []) if path is None else _from_file(path, named_by)
        given += [*_from_environment(environment), *_sections(settings or {}, _ARGUMENT)]
        return cls(given, rules, environment, *([] if path is None else [str(path)]))

    def check_sections(self, known: Iterable[str], *, only_argument: bool = False) -> None:
        """Raises `SettingsError` for a section of a plugin that is not installed, naming the nearest one that is."""
        names = set(known)
        for given in self._given:
            if given.section not in names and (given.source == _ARGUMENT or not only_argument):
                hint = suggestion(given.section, names, noun="installed plugins")
                raise SettingsError(f"{given.source}: no plugin {given.section!r} is installed to be set up. {hint}")

    def chosen_packs(self, handlers: Iterable[TypeHandler]) -> dict[str, str]:
        """The pack that maps a type, by the type's full name: `types` in the section of Pegboard itself.

        Raises `SettingsError` as `structure` does.
        """
        if not any(given.section == OWN for given in self._given):
            return {}
        from pegboard._plugins.settings_values import OwnSettings

        return {name: pack_name(pack) for name, pack in self.structure(OWN, OwnSettings, handlers).types.items()}

    def structure(self, section: str, cls: type, handlers: Iterable[TypeHandler]) -> Any:
        """Make an instance of an attrs class from a section; `${NAME}` is looked up now.

        Raises `SettingsError` for an unknown key, a value of the wrong type, a reference to nothing and, as
        `MissingSettingsError`, a field without default that nothing gives; whatever else it raises is the fault of
        `cls`.

        Args:
            section: Name of the section.
            cls: The class.
            handlers: Type handlers that values are read with.
        """
        import attrs

        fields = {attribute.alias: attribute for attribute in attrs.fields(cls) if attribute.init and attribute.alias}
        found = _Section(section, cls, fields, self._merged(section, fields))
        defaults = None if found.required else _defaults(cls)
        if missing := [key for key in found.required if key not in found.given]:
            raise MissingSettingsError(self._how_to_give(section, missing))
        values = self._values(found, handlers) if found.given else {}
        try:
            instance = cls(**values) if values else defaults
        except Exception as error:  # noqa: BLE001 - a validator may raise anything
            # Without the cause: its message and its frames hold the value.
            raise found.refusal(values, error, self.redact) from None
        self._effective[section] = found.shown(instance)
        return instance

    def _how_to_give(self, section: str, missing: Iterable[str]) -> str:
        keys = list(missing)
        names, first = " and ".join(map(repr, keys)), keys[0]
        entries = "; ".join(f"{key} = ..." for key in keys)
        lacks = f"the settings of {section!r} lack {names}, without which the plugin does not work"
        variable = f"{_PREFIX}{section.upper()}__{first.upper()}"
        argument = f"settings={{{section!r}: {{{', '.join(f'{key!r}: ...' for key in keys)}}}}}"
        return f"{lacks}; write {entries} under [{section}] in {self._file}, or give {argument} or {variable}"

    def _values(self, section: _Section, handlers: Iterable[TypeHandler]) -> dict[str, Any]:
        from pegboard._plugins.settings_values import strict_converter

        hints, converter = get_type_hints(section.cls, include_extras=True), strict_converter(handlers)
        values: dict[str, Any] = {}
        for key, given in section.given.items():
            field = section.fields[key]
            values[key] = self._value(f"{section.name}.{key}", hints.get(field.name, Any), given, converter)
            if field.metadata.get("secret"):
                self._keep_secret((given.value, values[key]))
        return values

    def refuse_section(self, section: str) -> None:
        """Raises `SettingsError` if anything was set for a plugin that has no settings."""
        for given in self._merged(section).values():
            raise SettingsError(f"{given.source}: the plugin {section!r} has no settings; remove its section")

    def effective(self) -> tuple[Setting, ...]:
        """What was structured so far, by section and in the order of the class's fields."""
        return tuple(setting for _, settings in sorted(self._effective.items()) for setting in settings)

    @property
    def redact(self) -> Redaction:
        """Takes the secret values that were given out of texts."""
        return Redaction(self._secrets)

    def _merged(self, section: str, fields: Mapping[str, Any] | None = None) -> dict[str, Given]:
        """The winning value of each key. With `fields`, an unknown key raises."""
        folded = {key.lower(): key for key in fields or ()}
        merged: dict[str, Given] = {}
        for given in self._given:
            if given.section != section or given.key is None:
                continue
            key = folded.get(given.key, given.key) if given.is_text else given.key
            if fields is not None and key not in fields:
                hint = suggestion(key, fields, noun="keys")
                raise SettingsError(f"{given.source}: unknown key {key!r} in the settings of {section!r}. {hint}")
            merged[key] = given
        return merged

    def _value(self, path: str, annotation: Any, given: Given, converter: cattrs.Converter) -> Any:
        from pegboard._plugins.settings_values import describe_type, describe_value, from_text, wrong_part

        raw = given.value
        read_as_text = given.is_text
        if not read_as_text:
            # A value that is one reference and nothing else takes the type of its field, as the variable itself would.
            reference = re.fullmatch(_REFERENCE, raw) if isinstance(raw, str) else None
            read_as_text = reference is not None and not reference[1]
            raw = self._expand(raw, path, given.source)
        try:
            return from_text(raw, annotation, converter) if read_as_text else converter.structure(raw, annotation)
        except Exception as error:  # noqa: BLE001 - whatever does not fit; the value itself must not show
            got = f"text that cannot be read as {describe_type(annotation)}" if read_as_text else describe_value(raw)
            inside = wrong_part(error)
        problem = f"{path} takes {describe_type(annotation)}, got {got}{inside and f'; what is wrong is {inside}'}"
        raise SettingsError(f"{given.source}: {problem}")

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

    def _keep_secret(self, value: Any) -> None:
        # A shorter one is too likely to be a part of an innocent word, and what is shown here is for people.
        self._secrets += (text for text in texts_in(value) if len(text) >= SHORTEST)


class _Section(NamedTuple):
    """What was set for one pack, and the fields of the class that it is for, both by key."""

    name: str
    cls: type
    fields: Mapping[str, Any]
    given: Mapping[str, Given]

    @property
    def required(self) -> list[str]:
        """The keys without which there can be no instance, as the class has them in order."""
        import attrs

        return [key for key, each in self.fields.items() if each.default is attrs.NOTHING]

    @property
    def secret(self) -> set[str]:
        """The keys whose values are never shown."""
        return {key for key, each in self.fields.items() if each.metadata.get("secret") or _refers(self.given.get(key))}

    def refusal(self, values: Mapping[str, Any], error: Exception, redact: Redaction) -> SettingsError:
        """Which of the values the class refuses, or that it refuses them together, as far as it may be told."""
        secret, required = self.secret, {key: values[key] for key in self.required}
        for key in sorted(values, key=lambda key: (key not in required, key)):
            try:
                self.cls(**{**required, key: values[key]})
            except Exception as own:  # noqa: BLE001 - a validator may raise anything
                if key in required and len(required) > 1:
                    break  # of several that the class always needs, none can be tried alone
                # A pack that raises this one says what is wrong, and knows what it must not say.
                silent = key in secret and not isinstance(own, SettingsError)
                because = "" if silent else f": {redact(describe_exception(own))}"
                return SettingsError(f"{self.given[key].source}: {self.name}.{key} is refused{because}")
        places = ", ".join(sorted({value.source for value in self.given.values()}))
        because = "" if secret & self.given.keys() else f": {describe_exception(error)}"
        return SettingsError(f"{places}: the settings of {self.name!r} are refused together{because}")

    def shown(self, instance: Any) -> tuple[Setting, ...]:
        """Every value of an instance, with the place that it came from."""
        from pegboard._plugins.settings_values import Setting

        secret, sources = self.secret, {key: each.source for key, each in self.given.items()}
        values = {key: "***" if key in secret else getattr(instance, each.name) for key, each in self.fields.items()}
        return tuple(Setting(self.name, key, value, sources.get(key, "default")) for key, value in values.items())


def _defaults(cls: type) -> Any:
    try:
        return cls()
    except SettingsError as error:
        # Nothing is set yet, so it is the plugin that is wrong, not its settings.
        reason = f"{cls.__name__}() raised {describe_exception(error)}; a pack must load without settings"
        raise PluginError(reason) from error


def _refers(given: Given | None) -> bool:
    """Whether a value came through a `${NAME}` reference: then it is shown no more than a secret."""
    if given is None or given.is_text:
        return False
    return any(not reference[1] for text in texts_in(given.value) for reference in re.finditer(_REFERENCE, text))
