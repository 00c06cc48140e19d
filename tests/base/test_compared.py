"""Records that show themselves, compare and hash by a base that is written once, as attrs would do it for each."""

from typing import Any

import pytest
from attrs import field, frozen

from pegboard import ImageBlock, Origin, Param, TextBlock
from pegboard._base.records import Compared, Shown


@frozen(eq=False, repr=False)
class Ours(Compared):
    name: str
    aside: int = field(default=0, eq=False, repr=False)
    several: Any = field(default=(), hash=False)


@frozen
class Theirs:
    name: str
    aside: int = field(default=0, eq=False, repr=False)
    several: Any = field(default=(), hash=False)


@frozen(eq=False, repr=False)
class Narrower(Ours):
    pass


@frozen(eq=False, repr=False)
class Empty(Compared):
    pass


@frozen(eq=False, repr=False)
class Identical(Shown):
    name: str


ARGUMENTS = [("a",), ("b",), ("a", 1), ("a", 0, [1]), ("a", 1, [1]), ("a", 0, [2])]


class TestCompared:
    @pytest.mark.parametrize("left", ARGUMENTS)
    @pytest.mark.parametrize("right", ARGUMENTS)
    def test_is_as_attrs_would_have_it(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> None:
        ours, theirs = (Ours(*left), Ours(*right)), (Theirs(*left), Theirs(*right))
        assert (ours[0] == ours[1]) is (theirs[0] == theirs[1])
        assert (ours[0] != ours[1]) is (theirs[0] != theirs[1])
        assert (hash(ours[0]) == hash(ours[1])) is (hash(theirs[0]) == hash(theirs[1]))
        assert repr(ours[0]) == repr(theirs[0]).replace("Theirs", "Ours")

    def test_class_counts(self) -> None:
        assert Ours("a") != Narrower("a")
        assert Ours("a") != "a"
        assert len({Ours("a"), Narrower("a"), Ours("a")}) == 2

    def test_record_without_fields(self) -> None:
        assert Empty() == Empty()
        assert hash(Empty()) == hash(Empty())

    def test_shown_alone_is_compared_by_identity(self) -> None:
        one = Identical("a")
        assert one == one  # noqa: PLR0124 - that is the point
        assert one != Identical("a")

    def test_public_records(self) -> None:
        assert TextBlock("a") == TextBlock("a") != TextBlock("b")
        assert {ImageBlock(url="a"), ImageBlock(url="a")} == {ImageBlock(url="a")}
        assert Origin("p") == Origin("p")
        assert hash(Param("x", examples=[[1]])) == hash(Param("x", examples=[[2]]))
        assert Param("x", examples=[[1]]) != Param("x", examples=[[2]])
