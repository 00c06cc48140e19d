"""The core names packs in one table, and advises to install nothing else."""

import ast
import re
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from pegboard import Dialect, PluginError, RegistrationError, Toolkit, UnknownNameError, hookimpl, tool
from pegboard._base.known_packs import KNOWN_PACKS, how_to_get, known_pack, pack_for_class
from tests.workspace.project import CORE, PACKS

TABLE = CORE.path / "src/pegboard/_base/known_packs.py"


def texts(path: Path) -> Iterator[str]:
    """The text constants of a module without its docstrings, which may show an example."""
    tree = ast.parse(path.read_text("utf-8"))
    shown = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in shown)
    return (node.value for node in constants if isinstance(node.value, str))


def test_no_other_module_names_a_pack() -> None:
    ours = re.compile(rf"pegboard[-_]({'|'.join(pack.name for pack in KNOWN_PACKS)})\b")
    sources = [path for path in (CORE.path / "src").rglob("*.py") if path != TABLE]
    assert [(path.name, text) for path in sources for text in texts(path) if ours.search(text)] == []


def test_every_pack_of_this_repository_is_known() -> None:
    known = {pack.distribution for pack in KNOWN_PACKS}
    assert {pack.name for pack in PACKS if "entry-points" in pack.project} <= known


class TestLookup:
    def test_by_entry_point_or_distribution_name(self) -> None:
        by_name = known_pack("shell")
        assert by_name is not None
        assert by_name == known_pack("pegboard_shell")
        assert by_name.distribution == "pegboard-shell"
        assert known_pack("shelf") is None

    def test_by_what_it_gives(self) -> None:
        assert known_pack("ray", "backends") is not None
        assert known_pack("shell", "backends") is None

    def test_class_of_a_library_belongs_to_its_pack_before_that_of_records(self) -> None:
        record = type("Record", (), {"__dataclass_fields__": {}, "__pydantic_core_schema__": {}})
        found = pack_for_class(record)
        assert found is not None
        assert found.name == "pydantic"

    def test_nothing_to_install_where_it_is_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard._base.known_packs.find_spec", lambda name: None)
        assert how_to_get(known_pack("dialects")) == "To install it: pip install pegboard-dialects"
        monkeypatch.setattr("pegboard._base.known_packs.find_spec", lambda name: ModuleSpec(name, None))
        assert how_to_get(known_pack("dialects")).startswith("pegboard-dialects is installed, but not selected here")
        assert how_to_get(None) == ""


class TestMessages:
    @pytest.mark.parametrize(
        ("backend", "remedy"),
        [("ray", r"To install it: pip install pegboard-ray$"), ("treads", r"Did you mean 'thread'\?")],
    )
    def test_unknown_backend(
        self, toolkit: Toolkit, backend: str, remedy: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pegboard._base.known_packs.find_spec", lambda name: None)

        @tool(backend=backend)
        def far(x: int) -> int:
            return x

        with pytest.raises(RegistrationError, match=rf"no backend '{backend}'\. {remedy}"):
            toolkit.register(far)

    def test_of_packs_that_are_installed_but_not_selected(self) -> None:
        @tool(backend="process")
        def far(x: int) -> int:
            return x

        with Toolkit(plugins=["cli"]) as toolkit, pytest.raises(RegistrationError) as backend:
            toolkit.register(far)
        with Toolkit(plugins=()) as toolkit, pytest.raises(UnknownNameError) as dialect:
            toolkit.schemas("openai")
        for text in (str(backend.value), str(dialect.value)):
            assert "is installed, but not selected" in text
            assert "pip install" not in text

    def test_of_a_policy_that_is_installed_but_not_selected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD_LOCK", "pegboard.lock")
        with pytest.raises(PluginError, match=r"PEGBOARD_LOCK is set.*pegboard-policy is installed, but not selected"):
            Toolkit(plugins=())
        with pytest.raises(PluginError, match="The pack 'policy' is installed, but not selected: plugins=cli does"):
            Toolkit(plugins=["cli"])
        with pytest.raises(PluginError, match="The pack 'policy' is installed, but blocked by block=policy"):
            Toolkit(block=["policy"])

    def test_unknown_dialect_where_the_pack_is_installed(self) -> None:
        @hookimpl
        def provide_dialects() -> list[Dialect]:
            return []

        pack = ModuleType("pegboard_dialects")
        pack.provide_dialects = provide_dialects  # type: ignore[attr-defined]
        with Toolkit(plugins=[pack]) as toolkit, pytest.raises(UnknownNameError) as caught:
            toolkit.schemas("opnai")
        assert "pip install" not in str(caught.value)
