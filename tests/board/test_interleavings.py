"""Threads that change one board at once: none loses what another does, and each meets its own changes at once."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random
from threading import Barrier
from typing import Any

import pytest
from attrs import Factory, define

from pegboard import Session, Text, Toolkit, TypeHandler, TypePlan, Types, shaped

PLAYERS = 3
STEPS = 8


class Mark:
    """What a type handler of a player maps: each has a subclass of its own."""


MARKS: tuple[type[Mark], ...] = tuple(type(f"Mark{number}", (Mark,), {}) for number in range(PLAYERS))


def mapped(mark: type[Mark], version: int) -> TypeHandler:
    """A handler whose schema shows its version; of one origin the higher priority counts."""

    def build(annotation: Any, types: Types) -> TypePlan:
        return shaped(
            {"type": "string", "const": f"v{version}"}, Text(lambda text: mark()), lambda value: f"v{version}"
        )

    return TypeHandler(mark, build, priority=version)


def shared(p0: int = 0, p1: int = 0, p2: int = 0, common: int = 0) -> list[int]:
    """Return what it gets: a parameter of each player, and one of all."""
    return [p0, p1, p2, common]


def made(name: str, mark: int | None) -> Callable[..., Any]:
    """A tool that returns its first argument, and perhaps takes a mark."""

    def plain(a: int = 0) -> int:
        return a

    def marked(a: int = 0, mark: Any = None) -> int:
        return a

    function = plain if mark is None else marked
    function.__name__ = name
    if mark is not None:
        marked.__annotations__["mark"] = MARKS[mark] | None
    return function


@define
class Own:
    """What one player has set in one session, which no other player touches."""

    session: Session | Toolkit
    value: int | None = None
    active: dict[str, bool] = Factory(dict)
    presets: dict[str, int] = Factory(dict)
    permissions: dict[str, str] = Factory(dict)
    common: int = -1


@define
class Player:
    """One thread: what it changes, and what has to come of that whatever the others do."""

    number: int
    toolkit: Toolkit
    random: Random
    root: Own
    narrow: Own
    # Groups by name: whether they were created active. Tools by name: their group, and which mark they take.
    groups: dict[str, bool] = Factory(dict)
    tools: dict[str, tuple[str | None, int | None]] = Factory(dict)
    version: int = 0
    calls: dict[str, int] = Factory(dict)
    numbers: Iterator[int] = Factory(lambda: count(1))

    def play(self) -> None:
        for _ in range(STEPS):
            self.random.choice(CHANGES)(self)

    # What it does ----------------------------------------------------------------------------------------------

    def create_group(self) -> None:
        name, active = f"g{self.number}_{next(self.numbers)}", self.random.random() < 0.5
        self.toolkit.create_group(name, active=active)
        self.groups[name] = active

    def remove_group(self) -> None:
        if name := self._one_of(self.groups):
            self.toolkit.remove_groups(name)
            self._forget([tool for tool, (group, _) in self.tools.items() if group == name])
            del self.groups[name]

    def register(self) -> None:
        names = [f"t{self.number}_{next(self.numbers)}" for _ in range(self.random.choice((1, 1, 3)))]
        group = self._one_of({None: 0, **self.groups})
        mark = self.random.choice((None, *range(PLAYERS)))
        value = next(self.numbers)
        presets = {names[0]: {"a": value}} if self.random.random() < 0.5 else None
        self.toolkit.register(*(made(name, mark) for name in names), group=group, presets=presets)
        self.tools.update(dict.fromkeys(names, (group, mark)))
        if presets:
            self.root.presets[names[0]] = value

    def unregister(self) -> None:
        if name := self._one_of(self.tools):
            self.toolkit.unregister(name)
            self._forget([name])

    def map_type(self) -> None:
        self.version += 1
        self.toolkit.register_type(mapped(MARKS[self.number], self.version))

    def preset_of_shared(self) -> None:
        own = self._either()
        own.value = next(self.numbers)
        own.session.update_presets("shared", {f"p{self.number}": own.value})

    def preset_of_all(self) -> None:
        own = self._either()
        own.common = self.number * 1000 + next(self.numbers)
        own.session.update_presets("shared", {"common": own.common})

    def preset_of_own(self) -> None:
        if name := self._one_of(self.tools):
            own, change = self._either(), self.random.choice(("set_presets", "update_presets"))
            own.presets[name] = next(self.numbers)
            getattr(own.session, change)(name, {"a": own.presets[name]})

    def permit(self) -> None:
        if name := self._one_of(self.tools):
            own = self._either()
            # One that is allowed asks again when it changes, as it does when another player maps what it takes.
            words = ("always", "prompt", "never")[self.tools[name][1] is not None :]
            own.permissions[name] = self.random.choice(words)
            own.session.set_permission(name, own.permissions[name])  # type: ignore[arg-type]

    def switch(self) -> None:
        if name := self._one_of(self.groups):
            own = self._either()
            own.active[name] = self.random.random() < 0.5
            own.session.update_groups(name, own.active[name])

    def call(self) -> None:
        if name := self._one_of(self.tools):
            own = self._either()
            self._check_call(own, name)

    def call_shared(self) -> None:
        own = self._either()
        found = own.session.call_sync("shared").value
        self._count("shared")
        assert found[self.number] == self._shared_value(own)

    def call_in_a_session_of_its_own(self) -> None:
        value = next(self.numbers)
        session = self.narrow.session.session(presets={"shared": {f"p{self.number}": value}}, groups=())
        assert session.call_sync("shared").value[self.number] == value
        self._count("shared")

    def list_tools(self) -> None:
        """While others change them: what is this player's own is there."""
        own = self._either()
        names = {tool.name for tool in own.session.tools}
        assert {name for name in names if name.startswith(f"t{self.number}_")} == self._offered(own)

    # What has to come of it ------------------------------------------------------------------------------------

    def check(self) -> None:
        """When all have ended."""
        names = {tool.name: tool for tool in self.toolkit}
        assert {name for name in names if name.startswith(f"t{self.number}_")} == set(self.tools)
        assert {name: names[name].groups for name in self.tools} == {
            name: () if group is None else (group,) for name, (group, _) in self.tools.items()
        }
        groups = {group.name: group.active for group in self.toolkit.groups}
        assert {name: active for name, active in groups.items() if name.startswith(f"g{self.number}_")} == self.groups
        for own in (self.root, self.narrow):
            permissions = own.session.permissions
            for name in self.tools:
                assert permissions[name] == self._permission(own, name)
                self._check_call(own, name)
            self.call_shared()
        counted = self.toolkit.stats["tools"]
        for name in set(self.calls) & set(self.tools):
            assert counted[name]["calls"] == self.calls[name]

    def _check_call(self, own: Own, name: str) -> None:
        result = own.session.call_sync(name)
        self._count(name)
        assert (result.status, result.value) == self._outcome(own, name), (name, result.text, own is self.root)

    def _outcome(self, own: Own, name: str) -> tuple[str, int | None]:
        if name not in self._offered(own):
            return "inactive", None
        if self._permission(own, name) != "always":
            return "denied", None
        return "success", own.presets.get(name, self.root.presets.get(name, 0))

    def _offered(self, own: Own) -> set[str]:
        active = {**self.groups, **self.root.active, **own.active}
        return {name for name, (group, _) in self.tools.items() if group is None or active[group]}

    def _permission(self, own: Own, name: str) -> str:
        return own.permissions.get(name) or self.root.permissions.get(name) or "always"

    def _shared_value(self, own: Own) -> int:
        return own.value or self.root.value or 0

    def _count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1

    def _either(self) -> Own:
        return self.random.choice((self.root, self.narrow))

    def _one_of(self, names: Any) -> Any:
        return self.random.choice(sorted(names, key=str)) if names else None

    def _forget(self, names: list[str]) -> None:
        for name in names:
            del self.tools[name]


CHANGES: tuple[Callable[[Player], None], ...] = (
    Player.create_group,
    Player.remove_group,
    Player.register,
    Player.register,
    Player.unregister,
    Player.map_type,
    Player.preset_of_shared,
    Player.preset_of_shared,
    Player.preset_of_all,
    Player.preset_of_own,
    Player.permit,
    Player.permit,
    Player.switch,
    Player.call,
    Player.call_shared,
    Player.call_in_a_session_of_its_own,
    Player.list_tools,
)


def interleave(pool: ThreadPoolExecutor, seed: int) -> None:
    """One board, changed by all players at once, compared with what each of them did."""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(shared)
        for number in range(PLAYERS):
            toolkit.register_type(mapped(MARKS[number], 0))
        session = toolkit.session()
        players = [
            Player(number, toolkit, Random(f"{seed} {number}"), Own(toolkit), Own(session)) for number in range(PLAYERS)
        ]
        barrier = Barrier(PLAYERS)

        def begin(player: Player) -> None:
            barrier.wait()
            player.play()

        for future in [pool.submit(begin, player) for player in players]:
            future.result()
        check_all(toolkit, players)


def check_all(toolkit: Toolkit, players: list[Player]) -> None:
    """What each did is there, tools take types as they were mapped last, and of what all set one of the last counts."""
    for player in players:
        player.check()
        for name, (_, mark) in player.tools.items():
            if mark is not None and (properties := toolkit[name].parameters["properties"]).get("mark"):
                assert f"'v{players[mark].version}'" in str(properties["mark"]), name
    roots, narrows = ({getattr(player, own).common for player in players} - {-1} for own in ("root", "narrow"))
    root = toolkit.call_sync("shared").value[-1]
    assert root in (roots or {0})
    assert players[0].narrow.session.call_sync("shared").value[-1] in (narrows or {root})
    calls = sum(player.calls.get("shared", 0) for player in players) + 2
    assert toolkit.stats["tools"]["shared"]["calls"] == calls


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads that the interpreter changes between as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(PLAYERS) as opened:
            yield opened
    finally:
        sys.setswitchinterval(before)


def test_some_interleavings(pool: ThreadPoolExecutor) -> None:
    for seed in range(60):
        interleave(pool, seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_interleavings(pool: ThreadPoolExecutor, part: int) -> None:
    for seed in range(1000 + part * 1000, 2000 + part * 1000):
        interleave(pool, seed)
