"""Every promise about trust names what holds it, and that is there."""

import ast
import re

import pytest

from tests.workspace.project import ROOT

PAGE = (ROOT / "docs" / "SECURITY.md").read_text(encoding="utf-8")
PROMISES = re.findall(r"^\| (.+) \| (.+) \|$", PAGE.partition("## What is promised")[2], re.MULTILINE)
ROWS = [(promise, tests) for promise, tests in PROMISES if (promise, tests) != ("promise", "held by")]


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=[promise[:40] for promise, _ in ROWS])
def test_a_promise_is_held_by_tests(promise: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`", tests)
    assert named, promise
    for path, name in named:
        assert (ROOT / path).exists(), path
        if name:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert name in {getattr(node, "name", None) for node in ast.walk(tree)}, f"{path}::{name}"


def test_there_are_promises() -> None:
    assert len(ROWS) > 15
