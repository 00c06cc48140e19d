"""Our own packs are what we ask of others'."""

from importlib.util import find_spec

import pytest

from pegboard_testing import assert_conforms
from tests.workspace.project import PACKS

PLUGINS = [pack.path.name for pack in PACKS if "pegboard" in pack.project.get("entry-points", {})]


@pytest.mark.slow
@pytest.mark.parametrize("name", PLUGINS)
def test_conforms(name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec(f"pegboard_{name}") is None:
        pytest.skip(f"pegboard-{name} has a session of its own")
    monkeypatch.chdir(tmp_path_factory.mktemp(name))
    assert_conforms(name)


def test_examples_of_the_documentation_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    from tests.workspace.project import ROOT

    for source in sorted(ROOT.glob("docs/examples/*/src")):
        monkeypatch.syspath_prepend(source)
        (package,) = (path.parent.name for path in source.glob("*/__init__.py"))
        assert_conforms(import_module(package))
