"""Tool groups: named sets of tools that are offered or not, and who may switch them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, final

from attrs import frozen

from pegboard._errors import RegistrationError, UnknownNameError, suggestion

__all__ = ["Activation", "Group", "Groups"]


@frozen
class Group:
    """A group: `managed_by` says whether the meta tool may switch it, `instructions` are shown with it when active."""

    name: str
    description: str = ""
    active: bool = True
    managed_by: Literal["model", "program"] = "model"
    instructions: str | None = None


@final
class Groups:
    """The groups of a toolkit, by name."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def create(self, group: Group) -> None:
        """Add a group. Raises `RegistrationError` for a name that is taken."""
        if group.managed_by not in ("model", "program"):
            raise RegistrationError(f'managed_by takes "model" or "program", got {group.managed_by!r}')
        if group.name in self._groups:
            raise RegistrationError(f"tool group {group.name!r} already exists; remove it first or choose another name")
        self._groups[group.name] = group

    def check(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names as a tuple, once each. Raises `UnknownNameError` naming the known groups."""
        given = tuple(dict.fromkeys(names))
        for name in given:
            if name not in self._groups:
                raise UnknownNameError(
                    f"there is no tool group {name!r}. {suggestion(name, self._groups, noun='groups')} "
                    f"Create it with create_group({name!r}, ...)"
                )
        return given

    def remove(self, names: Iterable[str]) -> None:
        """Forget groups, all or none."""
        for name in self.check(names):
            del self._groups[name]

    def starts_active(self, name: str) -> bool:
        """Whether a group is active where nobody says otherwise; one that does not exist is not."""
        return name in self._groups and self._groups[name].active

    def all(self) -> tuple[Group, ...]:
        """All groups, in the order in which they were created."""
        return tuple(self._groups.values())


@final
class Activation:
    """Which groups are active in one session; what it does not say is as in the wider one."""

    __slots__ = ("_groups", "_said", "_wider")

    def __init__(self, groups: Groups, wider: Activation | None = None) -> None:
        self._groups = groups
        self._wider = wider
        self._said: dict[str, bool] = {}

    def is_active(self, name: str) -> bool:
        """Whether a group is active here."""
        if name in self._said:
            return self._said[name]
        # A pack's tool may name a group that the program has not created: it stays hidden until somebody does.
        return self._groups.starts_active(name) if self._wider is None else self._wider.is_active(name)

    def active(self) -> tuple[str, ...]:
        """The names of the active groups."""
        return tuple(group.name for group in self._groups.all() if self.is_active(group.name))

    def update(self, names: Iterable[str], active: bool) -> None:
        """Switch groups, all or none."""
        for name in self._groups.check(names):
            self._said[name] = bool(active)

    def set(self, names: Iterable[str], among: Iterable[str] | None = None) -> None:
        """Make `names` the active ones and the others (of `among`, or of all) inactive."""
        wanted = set(self._groups.check(names))
        scope = [group.name for group in self._groups.all()] if among is None else list(among)
        for name in scope:
            self._said[name] = name in wanted

    def forget(self, names: Iterable[str]) -> None:
        """Drop what was said of groups that are gone."""
        for name in names:
            self._said.pop(name, None)
