"""Where settings come from: the file that was named, the environment, the program's argument."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pegboard._base.errors import SettingsError
from pegboard._base.names import pack_name

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Given", "Layer", "NamesRule", "read_layers"]

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
