"""Names from the command line: whether they exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pegboard import UnknownNameError
from pegboard.inspection import Plugins, suggestion

__all__ = ["known_name", "known_pack", "normal"]


def normal(name: str) -> str:
    """A pack's name as it is compared: `Acme_Paint` is `acme-paint`."""
    return name.lower().replace("_", "-").replace(".", "-")


def known_name(what: str, name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """The known name that is meant. Raises `UnknownNameError` naming those that there are."""
    names = sorted(set(known))
    meant = {normal(each): each for each in names} | {normal(alias): each for alias, each in (aliases or {}).items()}
    if normal(name) in meant:
        return meant[normal(name)]
    raise UnknownNameError(f"there is no {what} {name!r}. {suggestion(name, names, noun=f'{what}s')}")


def known_pack(plugins: Plugins, name: str) -> str:
    """The installed plugin of that name, or of that distribution. Raises `UnknownNameError`."""
    found = {each.name: each.distribution for each in plugins.records if each.entry_point is not None}
    return known_name("plugin", name, found, {by: name for name, by in found.items() if by})
