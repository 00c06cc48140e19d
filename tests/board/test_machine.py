"""Groups, sessions, registration and deletion against a reference made of dicts, in any order of operations."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from pegboard import PegboardError, Session, Status, Tool, Toolkit

META = "reset_equipped_tools"


class Refused(Exception):
    """What the reference raises where the toolkit must fail and change nothing."""


@define
class KnownGroup:
    active: bool
    managed_by: str


@define
class KnownTool:
    serial: int
    groups: tuple[str, ...]
    asks: bool


@define
class KnownSession:
    """What one session says, and the session behind it."""

    wider: "KnownSession | None" = None
    groups: dict[str, bool] = field(factory=dict)
    closed: bool = False
    presets: dict[str, dict[str, int]] = field(factory=dict)
    permissions: dict[str, str] = field(factory=dict)
    shown: list[str] | None = None

    def presets_of(self, name: str) -> dict[str, int]:
        return {**(self.wider.presets_of(name) if self.wider else {}), **self.presets.get(name, {})}

    def permission(self, name: str, default: str) -> str:
        if name in self.permissions:
            return self.permissions[name]
        return self.wider.permission(name, default) if self.wider else default

    def in_order_of_reveal(self, offered: list[str]) -> list[str]:
        if self.shown is None:
            wider = self.wider
            while wider is not None and wider.shown is None:
                wider = wider.wider
            self.shown = list(wider.shown or ()) if wider else []
        self.shown += [name for name in offered if name not in self.shown]
        return sorted(offered, key=self.shown.index)


@define
class Reference:
    """The whole behaviour, as plainly as it can be said."""

    deletion: bool = True
    groups: dict[str, KnownGroup] = field(factory=dict)
    tools: dict[str, KnownTool] = field(factory=dict)
    sessions: list[KnownSession] = field(factory=lambda: [KnownSession()])
    serial: int = 0

    def is_active(self, session: KnownSession, name: str) -> bool:
        if name in session.groups:
            return session.groups[name]
        if session.closed:
            return False
        return self.is_active(session.wider, name) if session.wider else self.groups[name].active

    def offers(self, session: KnownSession, name: str) -> bool:
        groups = self.tools[name].groups
        return not groups or any(self.is_active(session, group) for group in groups)

    def check(self, names: Iterable[str], known: Iterable[str]) -> None:
        if not set(names) <= set(known):
            raise Refused

    def create_group(self, name: str, active: bool, managed_by: str) -> None:
        if name in self.groups or not name or managed_by not in ("model", "program"):
            raise Refused
        self.groups[name] = KnownGroup(active, managed_by)

    def remove_groups(self, names: list[str]) -> None:
        self.check(names, self.groups)
        if not self.deletion:
            raise Refused
        for tool, known in list(self.tools.items()):
            left = tuple(group for group in known.groups if group not in names)
            if known.groups and not left:
                self.lose(tool)
            else:
                known.groups = left
        for name in set(names):
            del self.groups[name]
            for session in self.sessions:
                session.groups.pop(name, None)

    def lose(self, name: str) -> None:
        del self.tools[name]
        for session in self.sessions:
            session.presets.pop(name, None)
            if session.permissions.get(name) == "always":
                del session.permissions[name]

    def register(
        self, name: str, groups: tuple[str, ...], asks: bool, presets: Mapping[str, int], on_conflict: str
    ) -> None:
        self.check(groups, self.groups)
        self.check(presets, ("x", "y"))
        if on_conflict == "replace" and not self.deletion:
            raise Refused
        self.serial += 1  # also of those that are refused below: the function has been made
        if name in self.tools:
            if on_conflict == "raise":
                raise Refused
            if on_conflict == "skip":
                return
            if on_conflict == "rename":
                name = next(free for n in range(2, 99) if (free := f"{name}_{n}") not in self.tools)
        for session in self.sessions:
            session.presets.pop(name, None)
        self.tools[name] = KnownTool(self.serial, groups, asks)
        if presets:
            self.sessions[0].presets[name] = dict(presets)

    def unregister(self, names: list[str]) -> None:
        self.check(names, self.tools)
        if not self.deletion:
            raise Refused
        for name in set(names):
            self.lose(name)

    def update_groups(self, session: KnownSession, names: list[str], active: bool) -> None:
        self.check(names, self.groups)
        session.groups.update(dict.fromkeys(names, active))

    def set_active_groups(self, session: KnownSession, names: list[str], managed_by: str | None) -> None:
        among = [name for name, group in self.groups.items() if managed_by in (None, group.managed_by)]
        self.check(names, among)
        session.groups.update({name: name in names for name in among})
        if managed_by is None and session.wider is not None:
            session.closed = True

    def set_presets(self, session: KnownSession, name: str, values: Mapping[str, int], merged: bool) -> None:
        self.check([name], self.tools)
        self.check(values, ("x", "y"))
        session.presets[name] = {**(session.presets.get(name, {}) if merged else {}), **values}

    def set_permission(self, session: KnownSession, name: str, permission: str) -> None:
        self.check([name], self.tools)
        session.permissions[name] = permission

    def permission(self, session: KnownSession, name: str) -> str:
        return session.permission(name, "prompt" if self.tools[name].asks else "always")

    def outcome(self, session: KnownSession, name: str) -> tuple[Status, str | None]:
        if name not in self.tools:
            return Status.NOT_FOUND, None
        if not self.offers(session, name):
            return Status.INACTIVE, None
        if self.permission(session, name) != "always":
            return Status.DENIED, None
        values = {"x": 0, "y": 0} | session.presets_of(name)
        return Status.SUCCESS, f"{self.tools[name].serial} {values['x']} {values['y']}"


def made(name: str, serial: int, asks: bool) -> Tool:
    from pegboard import tool

    @tool(name=name, requires_approval=asks)
    def function(x: int = 0, y: int = 0) -> str:
        return f"{serial} {x} {y}"

    return Tool.from_function(function)


GROUPS = ["a", "b", "c"]
TOOLS = ["t", "u", "t_2"]
VALUES = st.dictionaries(st.sampled_from(["x", "y"] * 6 + ["z"]), st.integers(1, 9), max_size=2)

# Names as numbers, for what they stand for depends on what there is: most operations shall succeed.
NAME = st.integers(0, 19)
SOME = st.lists(NAME, max_size=2)


def name_of(number: int, there: Iterable[str], elsewhere: list[str]) -> str:
    """One of the names that are there, but for one number of twenty."""
    known = list(there)
    return known[number % len(known)] if known and number < 19 else elsewhere[number % len(elsewhere)]


class Board(RuleBasedStateMachine):
    """Does everything twice, and compares after each step what every session shows and does."""

    sessions = Bundle("sessions")

    @initialize(target=sessions, deletion=st.sampled_from([True, True, True, False]))
    def start(self, deletion: bool) -> Any:
        self.known = Reference(deletion)
        self.toolkit = Toolkit(plugins=(), allow_tool_deletion=deletion)
        self.toolkit.register_meta_tool()
        self.live: list[Toolkit | Session] = [self.toolkit]
        for name in ("a", "b"):
            self.create_group(name, active=name == "a", managed_by="model")
        self._register("t", ["a"], False, {}, "raise")
        self._register("u", [], True, {}, "raise")
        return 0

    def both(self, real: Callable[[], Any], expected: Callable[[], None]) -> None:
        try:
            expected()
        except Refused:
            with pytest.raises(PegboardError):
                real()
        else:
            real()

    def group_names(self, numbers: list[int]) -> list[str]:
        return [name_of(number, self.known.groups, GROUPS) for number in numbers]

    def tool_name(self, number: int) -> str:
        return name_of(number, self.known.tools, TOOLS)

    # Rules -----------------------------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(GROUPS),
        active=st.booleans(),
        managed_by=st.sampled_from(["model", "program", "model", "nobody"]),
    )
    def create_group(self, name: str, active: bool, managed_by: Any) -> None:
        self.both(
            lambda: self.toolkit.create_group(name, active=active, managed_by=managed_by),
            lambda: self.known.create_group(name, active, managed_by),
        )

    @rule(numbers=SOME)
    def remove_groups(self, numbers: list[int]) -> None:
        names = self.group_names(numbers)
        self.both(lambda: self.toolkit.remove_groups(names), lambda: self.known.remove_groups(names))

    @rule(number=NAME, active=st.booleans())
    def create_a_group_again(self, number: int, active: bool) -> None:
        """The shortest way to inherit what was said of another one."""
        (name,) = self.group_names([number])
        self.both(lambda: self.toolkit.remove_groups(name), lambda: self.known.remove_groups([name]))
        self.create_group(name, active, "model")

    def _register(self, name: str, groups: list[str], asks: bool, presets: Any, on_conflict: Any) -> None:
        serial = self.known.serial + 1
        unique = tuple(dict.fromkeys(groups))

        def real() -> None:
            tool = made(name, serial, asks)
            self.toolkit.register(tool, group=unique, presets=presets, on_conflict=on_conflict)

        self.both(real, lambda: self.known.register(name, unique, asks, presets, on_conflict))

    @rule(
        name=st.sampled_from(TOOLS),
        groups=SOME,
        asks=st.booleans(),
        presets=VALUES,
        on_conflict=st.sampled_from(["raise", "replace", "skip", "rename"]),
    )
    def register(self, name: str, groups: list[int], asks: bool, presets: Any, on_conflict: Any) -> None:
        self._register(name, self.group_names(groups), asks, presets, on_conflict)

    @rule(numbers=SOME)
    def unregister(self, numbers: list[int]) -> None:
        names = [self.tool_name(number) for number in numbers]
        self.both(lambda: self.toolkit.unregister(*names), lambda: self.known.unregister(names))

    @rule(number=NAME, asks=st.booleans(), on_conflict=st.sampled_from(["raise", "replace"]))
    def register_again(self, number: int, asks: bool, on_conflict: str) -> None:
        name = self.tool_name(number)
        if on_conflict == "raise":
            self.both(lambda: self.toolkit.unregister(name), lambda: self.known.unregister([name]))
        self._register(name, [], asks, {}, on_conflict)

    @rule(
        target=sessions,
        wider=sessions,
        groups=st.none() | SOME,
        presets=st.dictionaries(NAME, VALUES, max_size=1),
    )
    def open_session(self, wider: int, groups: list[int] | None, presets: Any) -> Any:
        known = KnownSession(self.known.sessions[wider])
        named = None if groups is None else self.group_names(groups)
        given = {self.tool_name(number): values for number, values in presets.items()}
        try:
            for name, values in given.items():
                self.known.set_presets(known, name, values, merged=False)
            if named is not None:
                self.known.set_active_groups(known, named, None)
        except Refused:
            with pytest.raises(PegboardError):
                self.live[wider].session(groups=named, presets=given)
            return multiple()
        self.live.append(self.live[wider].session(groups=named, presets=given))
        self.known.sessions.append(known)
        return len(self.live) - 1

    @rule(session=sessions, numbers=SOME, active=st.booleans())
    def update_groups(self, session: int, numbers: list[int], active: bool) -> None:
        names = self.group_names(numbers)
        self.both(
            lambda: self.live[session].update_groups(names, active),
            lambda: self.known.update_groups(self.known.sessions[session], names, active),
        )

    @rule(session=sessions, numbers=SOME, managed_by=st.sampled_from([None, "model", "program"]))
    def set_active_groups(self, session: int, numbers: list[int], managed_by: Any) -> None:
        names = self.group_names(numbers)
        self.both(
            lambda: self.live[session].set_active_groups(names, managed_by=managed_by),
            lambda: self.known.set_active_groups(self.known.sessions[session], names, managed_by),
        )

    @rule(session=sessions, numbers=SOME)
    def let_the_model_choose(self, session: int, numbers: list[int]) -> None:
        names = self.group_names(numbers)
        result = self.live[session].call_sync(META, {"to_activate": names})
        try:
            self.known.set_active_groups(self.known.sessions[session], names, "model")
        except Refused:
            assert result.status is Status.ERROR
        else:
            assert result.status is Status.SUCCESS

    @rule(session=sessions, number=NAME, values=VALUES, merged=st.booleans())
    def set_presets(self, session: int, number: int, values: Any, merged: bool) -> None:
        live, name = self.live[session], self.tool_name(number)
        change = live.update_presets if merged else live.set_presets
        self.both(
            lambda: change(name, values),
            lambda: self.known.set_presets(self.known.sessions[session], name, values, merged),
        )

    @rule(session=sessions, number=NAME, permission=st.sampled_from(["always", "prompt", "never"]))
    def set_permission(self, session: int, number: int, permission: Any) -> None:
        name = self.tool_name(number)
        self.both(
            lambda: self.live[session].set_permission(name, permission),
            lambda: self.known.set_permission(self.known.sessions[session], name, permission),
        )

    # What must hold --------------------------------------------------------------------------------------------

    @invariant()
    def the_board_is_the_same(self) -> None:
        groups = {group.name: KnownGroup(group.active, group.managed_by) for group in self.toolkit.groups}
        assert groups == self.known.groups
        assert list(groups) == list(self.known.groups)
        registered = [(tool.name, tool.groups) for tool in self.toolkit if tool.name != META]
        assert registered == [(name, tool.groups) for name, tool in self.known.tools.items()]

    @invariant()
    def every_session_shows_the_same(self) -> None:
        model_groups = [name for name, group in self.known.groups.items() if group.managed_by == "model"]
        for live, known in zip(self.live, self.known.sessions, strict=True):
            active = [name for name in self.known.groups if self.known.is_active(known, name)]
            assert list(live.active_groups) == active
            offered = [name for name in self.known.tools if self.known.offers(known, name)]
            listed = known.in_order_of_reveal(offered)
            assert [tool.name for tool in live.tools if tool.name != META] == listed
            assert [schema.name for schema in live.schemas() if schema.name != META] == listed
            permissions = {name: self.known.permission(known, name) for name in self.known.tools}
            assert {name: each for name, each in live.permissions.items() if name != META} == permissions
            for name in self.known.tools:
                visible = [key for key in "xy" if key not in known.presets_of(name)]
                assert list(live[name].parameters["properties"]) == visible
            items = live[META].parameters["properties"]["to_activate"]["items"]
            assert items.get("enum", []) == model_groups
            described = [line for line in live[META].description.splitlines() if line.startswith("- ")]
            assert described == [f"- {name}" for name in model_groups]

    @invariant()
    def every_session_does_the_same(self) -> None:
        for live, known in zip(self.live, self.known.sessions, strict=True):
            for name in (*TOOLS, "u_2"):
                result = live.call_sync(name)
                status, text = self.known.outcome(known, name)
                assert result.status is status
                assert text is None or result.text == text


TestBoard = Board.TestCase
TestBoard.settings = settings(max_examples=15, stateful_step_count=20)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_board_at_length(part: int) -> None:
    """In parts, so that none comes near the timeout of five minutes."""
    run_state_machine_as_test(Board, settings=settings(max_examples=125, stateful_step_count=40, database=None))
