"""Records: how they show themselves."""

from attrs import field, frozen

from pegboard._base.records import Shown


@frozen(repr=False)
class Inner(Shown):
    number: int


@frozen(repr=False)
class Outer(Shown):
    inner: Inner
    name: str = "x"
    hidden: str = field(default="secret", repr=False)
    large: str = field(default="a" * 100, repr=lambda text: f"<{len(text)} characters>")


@frozen
class Reference:
    number: int


def test_shows_class_and_fields() -> None:
    assert repr(Outer(Inner(1))) == "Outer(inner=Inner(number=1), name='x', large=<100 characters>)"


def test_as_attrs_does() -> None:
    assert repr(Inner(1)) == repr(Reference(1)).replace("Reference", "Inner")
