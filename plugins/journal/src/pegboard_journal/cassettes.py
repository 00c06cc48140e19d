"""A plugin of pytest: tests whose tools answer from a cassette, by `@pytest.mark.tool_cassette` and `--tool-calls`.

pytest loads this in every project of an environment, so Pegboard itself is imported for tests that are marked.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtest_call", "pytest_runtest_setup"]

MODES: Final = ("record", "replay", "strict", "off")
_STACK: Final = pytest.StashKey[ExitStack]()
_CASSETTE: Final = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--tool-calls`."""
    parser.getgroup("pegboard").addoption(
        "--tool-calls",
        choices=MODES,
        default="strict",
        help="what cassettes do in tests marked tool_cassette: record what is missing, replay and run what is missing, "
        "refuse what is missing (strict, the default), or nothing (off)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker."""
    config.addinivalue_line(
        "markers",
        "tool_cassette(path): answer tool calls from this file, beside the test's own; "
        "cassettes/<file>/<test>.jsonl without a path",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give the toolkits of a marked test their cassette, those of its fixtures too."""
    marker, mode = item.get_closest_marker("tool_cassette"), item.config.getoption("--tool-calls")
    if marker is not None and mode != "off":
        from pegboard_journal._cassette import Cassette

        path = item.path.parent / Path(*(marker.args or (_default_path(item),)))
        item.stash[_STACK] = stack = ExitStack()
        item.stash[_CASSETTE] = stack.enter_context(Cassette.shared(path, mode))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PEGBOARD__JOURNAL__MODE", mode)
        patch.setenv("PEGBOARD__JOURNAL__CASSETTE", str(path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test whose calls were refused: it has read errors that no tool gave."""
    result = yield
    cassette = item.stash.get(_CASSETTE, None)
    if cassette is not None and cassette.refused:
        remedy = "run it once with --tool-calls=record, and keep the file"
        refused = "\n".join(f"- {reason}" for reason in cassette.refused)
        pytest.fail(f"{cassette.path}: calls were refused; {remedy}\n{refused}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Take the cassette away."""
    try:
        return (yield)
    finally:
        if _STACK in item.stash:
            item.stash[_STACK].close()
            del item.stash[_STACK]


def _default_path(item: pytest.Item) -> Path:
    name = re.sub(r"[^\w.-]+", "-", item.nodeid.partition("::")[2]).strip("-")
    return Path("cassettes", item.path.stem, f"{name}.jsonl")
