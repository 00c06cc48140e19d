"""Tables in Markdown, whatever is in them."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pegboard_sql._markdown import markdown_table
from pegboard_sql._values import Taken

CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), st.integers(0, 200))
def test_a_row_is_a_line_of_as_many_cells(rows: list[tuple[Any, Any]], most: int) -> None:
    text, shown = markdown_table(["a", "b|c\n"], rows, most)
    lines = text.splitlines()
    assert len(lines) == 2 + shown
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}
    assert shown == len(rows) or sum(len(line) + 1 for line in lines[2:]) <= most or shown == 1


@given(st.lists(st.lists(CELLS | st.binary(max_size=2000), min_size=1, max_size=1), max_size=6), st.integers(1, 8))
def test_rows_are_taken_until_there_is_no_room(rows: list[list[Any]], most: int) -> None:
    taken = Taken(most)
    kept = [taken.take(row) for row in rows]
    answer = taken.answer(["a"], ["TEXT"])
    assert kept == [True] * min(most, len(rows)) + [False] * max(0, len(rows) - most)
    assert (len(answer["rows"]), answer["truncated"]) == (min(most, len(rows)), len(rows) > most)
    long = [row for row in rows[:most] if isinstance(row[0], bytes) and len(row[0]) > 1000]
    assert answer["clipped"] == len(long)


def test_what_is_too_large_is_not_taken() -> None:
    taken = Taken(10_000)
    rows = 0
    while taken.take(["x" * 2_000]):
        rows += 1
    assert (rows, taken.answer(["a"], ["TEXT"])["truncated"]) == (1_001, True)
