"""Reading functions: what their code says is what `inspect.signature` says."""

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import MISSING
from pegboard._types.hints import read_hints, read_parameters


def nothing() -> None:
    """Without parameters."""


def plain(a: int, b: str = "x", c: float = 1.5) -> object:
    """With defaults."""
    local = a
    return local, b, c


def positional(a: Any, b: Any = 1, /, c: Any = 2) -> None:
    """Positional only."""


def keywords(a: Any, *, b: Any, c: Any = 3) -> None:
    """Keyword only, one with a default."""


def stars(a: Any, /, b: Any = 1, *rest: Any, c: Any, d: Any = None, **more: Any) -> None:
    """Everything."""


def only_stars(*rest: Any, **more: Any) -> None:
    """Nothing but stars."""


def only_keywords(*, a: Any = 1, **more: Any) -> None:
    """No star of its own."""


def closure() -> Callable[..., Any]:
    outer = 1

    def inner(a: Any, b: Any = outer) -> object:
        return a, b, outer

    return inner


def wrapped() -> Callable[..., Any]:
    @functools.wraps(plain)
    def wrapper(*args: Any, **kwargs: Any) -> object:
        return plain(*args, **kwargs)

    return wrapper


def signed() -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> None:
        """Says that it is another."""

    function.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
    return function


class Thing:
    def method(self, a: Any, b: Any = 2) -> None:
        """Of an instance."""

    @classmethod
    def of_class(cls, a: Any) -> None:
        """Of the class."""

    @staticmethod
    def static(a: Any, *, b: Any = 1) -> None:
        """Of no tool."""

    def __call__(self, a: Any, *rest: Any) -> None:
        """As a callable object."""

    def decorated(self, *arguments: Any, **options: Any) -> None:
        """As a decorator leaves it."""

    def resigned(self, *arguments: Any) -> None:
        """Decorated, and then given another signature."""

    def unbound(*arguments: Any) -> None:
        """Without a parameter for the instance."""


decorated: Any = Thing.decorated
decorated.__wrapped__ = Thing.method
resigned: Any = Thing.resigned
resigned.__wrapped__ = decorated
resigned.__signature__ = inspect.signature(Thing.method).replace(parameters=[])

FUNCTIONS = [
    nothing,
    plain,
    positional,
    keywords,
    stars,
    only_stars,
    only_keywords,
    closure(),
    wrapped(),
    signed(),
    lambda a, b=1: (a, b),
    functools.partial(plain, 1),
    functools.partial(plain, b="y"),
    Thing().method,
    Thing.method,
    Thing().decorated,
    Thing.decorated,
    Thing.resigned,
    functools.wraps(resigned)(lambda *arguments: None),
    Thing().unbound,
    Thing.of_class,
    Thing.static,
    Thing(),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: getattr(function, "__qualname__", "object"))
def test_parameters_are_those_of_the_signature(function: Callable[..., Any]) -> None:
    expected = [
        (each.name, each.kind, MISSING if each.default is each.empty else each.default)
        for each in inspect.signature(function).parameters.values()
    ]
    assert read_parameters(function) == expected


def test_what_has_no_signature() -> None:
    with pytest.raises((TypeError, ValueError)):
        read_parameters(min)


def test_classes_are_hints_as_they_are() -> None:
    assert read_hints(plain) == typing.get_type_hints(plain)


def test_hints_are_a_copy() -> None:
    read_hints(plain).clear()
    assert plain.__annotations__


def test_none_and_text_are_resolved() -> None:
    def function(a: "int") -> None:
        """Needs more than a look."""

    assert read_hints(function) == {"a": int, "return": type(None)}


def test_hints_of_a_function_that_wants_no_check_are_none() -> None:
    @typing.no_type_check
    def function(a: int) -> None:
        """Is none of typing's business."""

    assert read_hints(function) == {}
