"""Tool groups: named sets of tools that are offered or not, and who may switch them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, final, get_args

from pegboard._base.errors import RegistrationError, UnknownNameError, suggestion
from pegboard._model.policy import checked_capacity
from pegboard._model.tool import Entry, Tool

if TYPE_CHECKING:
    from pegboard._model.group import Group, Manager

__all__ = ["Groups", "groups_of"]


def groups_of(tool: Tool) -> tuple[str, ...]:
    """The groups of a tool; one that is named by an import string is imported to tell."""
    return tool.groups or tool.options.groups


@final
class Groups:
    """The groups of a toolkit, by name."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._entries: dict[str, Entry] = {}

    def create(self, group: Group) -> None:
        """Add a group. Raises `RegistrationError` for a name that is taken or is none, ValueError for a bad limit."""
        checked_capacity(group.max_concurrency, "max_concurrency")
        if not str(group.name).strip():
            raise RegistrationError(f"a tool group needs a name, got {group.name!r}")
        from pegboard._model.group import Manager

        if group.managed_by not in get_args(Manager):
            raise RegistrationError(f'managed_by takes "model" or "program", got {group.managed_by!r}')
        if group.name in self._groups:
            raise RegistrationError(f"tool group {group.name!r} already exists; remove it first or choose another name")
        self._entries[group.name] = Entry()
        self._groups[group.name] = group

    def check(self, names: Iterable[str] | str, managed_by: Manager | None = None) -> tuple[str, ...]:
        """The names as a tuple, once each. Raises `UnknownNameError` naming the groups that there are."""
        given = tuple(dict.fromkeys((names,) if isinstance(names, str) else names))
        known = [group.name for group in self.all(managed_by)]
        for name in given:
            if name not in known:
                noun = "groups" if managed_by is None else f"groups managed by the {managed_by}"
                raise UnknownNameError(
                    f"there is no tool group {name!r}. {suggestion(str(name), known, noun=noun)} "
                    f"Create it with create_group({name!r}, ...)"
                )
        return given

    def of(self, tool: Tool) -> list[Group]:
        """The groups of a tool, without those that nobody has created."""
        return [self._groups[name] for name in groups_of(tool) if name in self._groups]

    def remove(self, names: Iterable[str]) -> None:
        """Forget groups, all or none."""
        for name in self.check(names):
            del self._groups[name]
            del self._entries[name]

    def entry(self, name: str) -> Entry | None:
        """What tells a group from its namesakes before and after; None for one that does not exist."""
        return self._entries.get(name)

    def starts_active(self, name: str) -> bool:
        """Whether a group is active where nobody says otherwise; one that does not exist is not."""
        group = self._groups.get(name)
        return group is not None and group.active

    def all(self, managed_by: Manager | None = None) -> tuple[Group, ...]:
        """All groups, or those that the model or the program manages, in the order in which they were created."""
        everything = tuple(self._groups.values())
        return everything if managed_by is None else tuple(each for each in everything if each.managed_by == managed_by)
