"""pytest fixtures for the tests of Pegboard packs.

pytest loads this in every project of an environment, so the core itself is imported by the fixtures that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pegboard_testing._snapshot import SchemaSnapshot

if TYPE_CHECKING:
    from pegboard import Toolkit

__all__ = ["SchemaSnapshot", "conforms", "pegboard_options", "pegboard_plugins", "schema_snapshot", "toolkit"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--schema-update` and the setting `pegboard_plugins`."""
    group = parser.getgroup("pegboard")
    group.addoption("--schema-update", action="store_true", help="write the schema snapshots instead of comparing")
    parser.addini("pegboard_plugins", "modules of the Pegboard plugins that the tests are about", "args", [])


@pytest.fixture
def pegboard_plugins(pytestconfig: pytest.Config) -> list[Any]:
    """The plugins to test: those of the setting `pegboard_plugins`. Override it to name other plugins."""
    from importlib import import_module

    return [import_module(name) for name in pytestconfig.getini("pegboard_plugins")]


@pytest.fixture
def pegboard_options() -> Mapping[str, Any]:
    """Options of the fixture `toolkit`, such as `settings`. Override it to set them."""
    return {}


@pytest.fixture
def toolkit(pegboard_plugins: list[Any], pegboard_options: Mapping[str, Any]) -> Iterator[Toolkit]:
    """A toolkit with `pegboard_plugins` and nothing else, closed at the end."""
    from pegboard_testing import isolated_toolkit

    with isolated_toolkit(*pegboard_plugins, **pegboard_options) as made:
        yield made


@pytest.fixture
def conforms(pegboard_plugins: list[Any]) -> Callable[..., None]:
    """`conforms(plugin, **options)` is `assert_conforms`; without a plugin it checks all of `pegboard_plugins`."""

    def check(*plugins: Any, **options: Any) -> None:
        __tracebackhide__ = True
        from pegboard_testing import assert_conforms

        checked = plugins or pegboard_plugins
        if not checked:
            pytest.fail('nothing to check: say pegboard_plugins = ["..."] in the settings of pytest', pytrace=False)
        found = [text for plugin in checked if (text := _complaint(assert_conforms, plugin, options))]
        if found:
            pytest.fail("\n".join(found), pytrace=False)

    return check


def _complaint(check: Callable[..., None], plugin: Any, options: Mapping[str, Any]) -> str:
    try:
        check(plugin, **options)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.fixture
def schema_snapshot(request: pytest.FixtureRequest) -> SchemaSnapshot:
    """`schema_snapshot(toolkit)` compares what the model sees with the file `schemas/<test>.json` beside the test."""
    return SchemaSnapshot(
        request.path.parent / "schemas", request.node.name, update=request.config.getoption("--schema-update")
    )
