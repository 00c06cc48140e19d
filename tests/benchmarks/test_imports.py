"""Import times: what is read from the interpreter's report, and how it is summed."""

from tests.benchmarks import imports
from tests.benchmarks.imports import Imported

REPORT = """\
import time: self [us] | cumulative | imported package
import time:      1500 |       1500 |   attr._make
import time:       250 |       1750 | attr
import time:        99 |         99 | org
"""


def test_report_is_read_for_what_was_found() -> None:
    assert imports.own_times(REPORT, {"attr", "attr._make"}) == {"attr._make": 1.5, "attr": 0.25}


def test_small_third_party_modules_share_a_row_and_ours_do_not() -> None:
    found = [
        Imported("pegboard", "pegboard", 0.1, 0.1),
        Imported("pegboard", "pegboard._model.tool", None, 0.2),
        Imported("standard library", "json", None, 1.0),
        Imported("standard library", "token", 0.25, 0.25),
    ]
    assert imports.cells(found) == [
        ("pegboard", "0.10", "0.10"),
        ("pegboard._model.tool", "", "0.20"),
        ("pegboard together", "0.10", "0.30"),
        ("json", "", "1.00"),
        ("1 others", "0.25", "0.25"),
        ("standard library together", "0.25", "1.25"),
        ("all", "0.35", "1.55"),
    ]


def test_what_is_measured_is_pegboard_before_its_libraries() -> None:
    found = {each.module: each for each in imports.measure(1)}
    assert found["pegboard"].at_import is not None
    assert (found["pegboard._model.policy"].at_import, found["pegboard._model.policy"].origin) == (None, "pegboard")
    assert found["attr"].origin == "libraries"
    assert next(iter(found.values())).origin == "pegboard"
    assert "site" not in found, "an empty interpreter loads it too"
