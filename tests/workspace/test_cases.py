"""Of a test with many cases the test line takes some, the same ones every time; whoever names a folder gets all."""

from typing import Any

import pytest

from tests.conftest import MOST_CASES, pytest_collection_modifyitems

Source = pytest.Config.ArgsSource


class Item:
    """A collected test, as far as the choice looks at it."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid = nodeid
        self.marks = set(marks)

    def get_closest_marker(self, name: str) -> str | None:
        """Return the mark of this name."""
        return name if name in self.marks else None

    def add_marker(self, name: str) -> None:
        """Mark it."""
        self.marks.add(name)


def taken(source: Any, *items: Item) -> list[str]:
    class Config:
        args_source = source

    given: Any = list(items)
    config: Any = Config
    pytest_collection_modifyitems(config, given)
    return [item.nodeid for item in items if "further" not in item.marks]


def cases(number: int, *marks: str) -> list[Item]:
    return [Item(f"a.py::test[{each}]", *marks) for each in range(number)]


def test_some_of_many_are_taken_and_the_same_ones_every_time() -> None:
    chosen = taken(Source.TESTPATHS, *cases(50))
    assert len(set(chosen)) == MOST_CASES
    assert taken(Source.TESTPATHS, *cases(50)) == chosen


def test_few_cases_and_other_tests_stay() -> None:
    assert (
        len(taken(Source.TESTPATHS, *cases(MOST_CASES), *(Item(f"b.py::test_{each}") for each in range(50))))
        == MOST_CASES + 50
    )


def test_what_is_slow_does_not_count() -> None:
    slow = cases(50, "slow")
    assert len(taken(Source.TESTPATHS, *slow)) == len(slow)


def test_whoever_names_a_folder_gets_all() -> None:
    assert len(taken(Source.ARGS, *cases(50))) == 50
