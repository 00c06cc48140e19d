"""Tool groups: named sets of tools that are offered or not, and who may switch them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, final, get_args

from pegboard._base.errors import RegistrationError, UnknownNameError, suggestion
from pegboard._model.policy import checked_capacity
from pegboard._model.tool import Tool

if TYPE_CHECKING:
    from pegboard._model.group import Group, Manager

__all__ = ["Activation", "Groups", "groups_of"]

_Said: TypeAlias = Mapping[str, tuple[int | None, bool]]
"""By group: its birth, for what was said of one that is gone does not hold for its namesake; and if it is active."""
_NOTHING: Final[_Said] = {}


def groups_of(tool: Tool) -> tuple[str, ...]:
    """The groups of a tool; one that is named by an import string is imported to tell."""
    return tool.groups or tool.options.groups


@final
class Groups:
    """The groups of a toolkit, by name."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._births: dict[str, int] = {}
        self._created = 0

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
        self._created += 1
        self._births[group.name] = self._created
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
            del self._births[name]

    def born(self, name: str) -> int | None:
        """A number that tells a group from its namesakes before and after; None for one that does not exist."""
        return self._births.get(name)

    def starts_active(self, name: str) -> bool:
        """Whether a group is active where nobody says otherwise; one that does not exist is not."""
        return name in self._groups and self._groups[name].active

    def all(self, managed_by: Manager | None = None) -> tuple[Group, ...]:
        """All groups, or those that the model or the program manages, in the order in which they were created."""
        everything = tuple(self._groups.values())
        return everything if managed_by is None else tuple(each for each in everything if each.managed_by == managed_by)


@final
class Activation:
    """Which groups are active in one session; what it does not say is as in the wider one."""

    __slots__ = ("_closed", "_groups", "_said", "_wider")

    def __init__(self, groups: Groups, wider: Activation | None = None) -> None:
        self._groups = groups
        self._wider = wider
        self._said: _Said = _NOTHING
        self._closed = False

    @property
    def groups(self) -> Groups:
        """The groups that there are to activate."""
        return self._groups

    def is_active(self, name: str) -> bool:
        """Whether a group is active here."""
        said = self._said.get(name)
        if said is not None and said[0] == self._groups.born(name):
            return said[1]
        if self._closed:
            return False
        # A pack's tool may name a group that the program has not created: it stays hidden until somebody does.
        return self._groups.starts_active(name) if self._wider is None else self._wider.is_active(name)

    def offers(self, tool: Tool) -> bool:
        """Whether a tool is offered here: it is in no group, or one of its groups is active."""
        groups = groups_of(tool)
        return not groups or any(map(self.is_active, groups))

    def active(self) -> tuple[str, ...]:
        """The names of the active groups."""
        return tuple(group.name for group in self._groups.all() if self.is_active(group.name))

    def update(self, names: Iterable[str] | str, active: bool) -> None:
        """Switch groups, all or none."""
        self._say(dict.fromkeys(self._groups.check(names), bool(active)))

    def set(self, names: Iterable[str] | str, managed_by: Manager | None = None) -> None:
        """Make `names` the active ones and the others (all others, or those managed alike) inactive, all or none.

        A session that says this of all groups is closed: one that is created later stays inactive there. The toolkit's
        own is not, for `create_group(active=)` is said of it.
        """
        wanted = self._groups.check(names, managed_by)
        self._say({group.name: group.name in wanted for group in self._groups.all(managed_by)})
        if managed_by is None and self._wider is not None:
            self._closed = True

    def _say(self, said: dict[str, bool]) -> None:
        # In one step: whoever looks meanwhile sees all of it or nothing.
        self._said = {**self._said, **{name: (self._groups.born(name), active) for name, active in said.items()}}
