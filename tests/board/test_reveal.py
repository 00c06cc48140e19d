"""The order of reveal: what a session listed keeps its place, so that providers' caches keep what stands before it."""

from typing import Any

import pytest

from pegboard import Session, Toolkit, tool
from tests.support.board_tools import board, named, names


def late(*tools: str) -> list[Any]:
    return [tool(defer=True)(named(name)) for name in tools]


def many() -> Toolkit:
    """One plain tool and three deferred ones, too many to be listed."""
    toolkit = Toolkit(plugins=(), defer_threshold=2)
    toolkit.register(named("plain"), *late("ant", "bee", "cat"))
    return toolkit


class TestOrder:
    def test_the_first_look_is_in_board_order(self) -> None:
        toolkit = board(a="x", b_off="y", c="z")
        assert list(toolkit.shown) == []
        assert names(toolkit) == list(toolkit.shown) == ["x", "z"]

    def test_what_comes_later_follows(self) -> None:
        toolkit = board(a="x", b_off=["p", "q"], c="z")
        names(toolkit)
        toolkit.update_groups("b_off", True)
        assert names(toolkit) == ["x", "z", "p", "q"]
        assert [each.name for each in toolkit.schemas()] == names(toolkit)

    def test_what_comes_back_returns_to_its_place(self) -> None:
        toolkit = board("plain", a="x", b="y")
        assert names(toolkit) == ["plain", "x", "y"]
        toolkit.update_groups("a", False)
        assert names(toolkit) == ["plain", "y"]
        toolkit.register(named("new"))
        assert names(toolkit) == ["plain", "y", "new"]
        toolkit.update_groups("a", True)
        assert names(toolkit) == ["plain", "x", "y", "new"]
        toolkit.unregister("plain")
        assert names(toolkit) == ["x", "y", "new"]
        toolkit.register(named("plain"))
        assert names(toolkit) == ["plain", "x", "y", "new"]
        assert toolkit.shown == ("plain", "x", "y", "new")

    def test_what_a_search_finds_follows_the_search(self) -> None:
        session = many().session()
        assert names(session) == ["plain", "search_tools"]
        session.add_found_tools("cat")
        assert names(session) == ["plain", "search_tools", "cat"]
        session.add_found_tools("bee", "ant")  # several at once are in board order
        assert names(session) == ["plain", "search_tools", "cat", "ant", "bee"]

    def test_looking_for_what_is_wrong_lists_nothing(self) -> None:
        toolkit = board(a_off="x", b="y")
        assert (toolkit.problems, toolkit.found_tools, toolkit.deferred_tools) == ([], (), [])
        assert toolkit.shown == ()


class TestNarrower:
    def test_sessions_begin_with_the_order_of_the_wider_one(self) -> None:
        toolkit = board(a_off="x", b="y")
        names(toolkit)
        toolkit.update_groups("a_off", True)
        assert names(toolkit) == ["y", "x"]
        session = toolkit.session()
        assert session.shown == ()
        assert names(session) == names(session.session().session()) == ["y", "x"]

    def test_and_keep_their_own(self) -> None:
        toolkit = board(a_off="x", b_off="y")
        one, two = toolkit.session(), toolkit.session()
        assert (names(one), names(two), names(toolkit)) == ([], [], [])
        one.update_groups("b_off", True)
        assert names(one) == ["y"]
        toolkit.update_groups(["a_off", "b_off"], True)
        assert (names(one), names(two), names(toolkit)) == (["y", "x"], ["x", "y"], ["x", "y"])

    def test_a_view_begins_with_it_under_its_own_names(self) -> None:
        toolkit = board(a_off=["x", "w"], b=["y", "z"])
        names(toolkit)
        toolkit.update_groups("a_off", True)
        view = toolkit.view(exclude="w", rename={"y": "yy"})
        assert names(view) == ["yy", "z", "x"]
        toolkit.unregister("y")
        assert names(toolkit.view(prefix="v_")) == ["v_z", "v_x", "v_w"]


class TestGoingOn:
    def test_in_the_order_of_an_earlier_session(self) -> None:
        def program() -> Toolkit:
            return board(a_off="x", b="y")

        earlier = program().session()
        names(earlier)
        earlier.update_groups("a_off", True)
        assert names(earlier) == ["y", "x"]
        toolkit = program()
        toolkit.update_groups("a_off", True)
        assert names(toolkit) == ["x", "y"]
        assert names(toolkit.session(shown=earlier.shown)) == ["y", "x"]

    def test_with_what_was_found(self) -> None:
        session = many().session(shown=["plain", "search_tools", "cat"])
        assert session.found_tools == ("cat",)
        assert names(session) == ["plain", "search_tools", "cat"]

    @pytest.mark.parametrize("shown", [["gone", "y"], ("y", "gone"), {"y": 1, "gone": 2}, "y"])
    def test_unknown_names_are_ignored(self, shown: Any) -> None:
        toolkit = board("x", "y")
        assert names(toolkit.session(shown=shown)) == ["y", "x"]

    def test_names_of_none_are_a_fresh_start(self) -> None:
        toolkit = board(a_off="x", b="y")
        names(toolkit)
        toolkit.update_groups("a_off", True)
        assert names(toolkit.session(shown=())) == ["x", "y"]

    def test_of_a_view(self) -> None:
        view = board("x", "y").view(prefix="v_")
        session = view.session(shown=["v_y"])
        assert names(session) == ["v_y", "v_x"]


class TestSeveralThreads:
    def test_lose_nothing(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        toolkit = board(*(f"t{number}" for number in range(50)))
        session = toolkit.session()

        def look(_: int) -> list[str]:
            return names(session)

        with ThreadPoolExecutor(8) as pool:
            assert set(map(tuple, pool.map(look, range(64)))) == {session.shown}


def test_reading_the_order_does_not_change_it() -> None:
    session: Session = board("x").session()
    names(session)
    assert session.shown == session.shown == ("x",)
