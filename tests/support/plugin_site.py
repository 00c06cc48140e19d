"""A place of its own for the distributions of one test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import attrs
import cattrs  # noqa: F401 - imported on first use, which a test's own path does not allow
import importlib_metadata  # noqa: F401 - as above
import pytest

from pegboard._model.plugin_record import PluginRecord
from pegboard._plugins.manager import Plugins
from pegboard_testing import fake_distribution

# As above, for archives: newer releases of the library import this on first use too.
with suppress(ImportError):
    import_module("zipp.compat.overlay")

HEADER = "from pegboard import hookimpl\n"
TOOLS = """
def {tool}(): ...

@hookimpl
def provide_tools(settings):
    return [{tool}]
"""


@attrs.frozen
class Site:
    """A directory on the path, in front of everything that is not installed."""

    path: Path

    def add(self, name: str, source: str | None = None, *, distribution: str = "", **options: Any) -> Path:
        """Install a plugin `name` with the module `site_<name>`; without source it offers the tool `<name>_tool`."""
        module = "site_" + name.replace("-", "_")
        body = TOOLS.format(tool=f"{name.replace('-', '_')}_tool") if source is None else dedent(source)
        options = {"entry_points": {name: module}, "modules": {module: HEADER + body}} | options
        return fake_distribution(self.path, distribution or f"acme-{name}", **options)

    def load(self, **options: Any) -> Plugins:
        """Load what is installed here, without the environment's influence."""
        return Plugins.load(**{"environ": {}} | options)


@contextmanager
def fresh_site(path: Path, patch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Hide everything that is installed; forget the modules of the test afterwards."""
    patch.setattr(sys, "path", [str(path), *(entry for entry in sys.path if not any(Path(entry).glob("*.dist-info")))])
    before = set(sys.modules)
    yield Site(path)
    for name in sorted(set(sys.modules) - before):
        if name.startswith("site_"):
            del sys.modules[name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A place for plugins in front of everything else, in an environment that says nothing about them."""
    for name in ("PEGBOARD_PLUGINS", "PEGBOARD_BLOCK", "PEGBOARD_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    with fresh_site(tmp_path / "site", monkeypatch) as made:
        yield made


def states(plugins: Plugins) -> dict[str, str]:
    """State by plugin."""
    return {record.name: str(record.state) for record in plugins.records}


def record(plugins: Plugins, name: str) -> PluginRecord:
    """The record of a plugin."""
    (found,) = [record for record in plugins.records if record.name == name]
    return found


def tool_names(plugins: Plugins) -> list[str]:
    """The tools that are offered."""
    return [getattr(item.value, "__name__", item.value) for item in plugins.tools()]
