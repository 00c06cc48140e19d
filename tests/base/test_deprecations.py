"""What is deprecated works until it is removed, and warns with what to use instead."""

from pathlib import Path

import pytest
from packaging.version import Version

import pegboard
from pegboard import Toolkit
from pegboard._base import deprecations
from pegboard._base.deprecations import DEPRECATIONS, Deprecation
from tests.workspace.project import CORE


@pytest.fixture(autouse=True)
def deprecated(monkeypatch: pytest.MonkeyPatch) -> None:
    renamed = Deprecation("pegboard.Peg", "0.2", "0.3", "Tool")
    hook = Deprecation("provide_dialects", "0.2", "0.3", "provide_converters")
    monkeypatch.setattr(deprecations, "DEPRECATIONS", (renamed, hook))


def test_a_renamed_class_is_the_new_one() -> None:
    message = r"^pegboard\.Peg is deprecated since 0\.2 and will be removed in 0\.3: use Tool$"
    with pytest.warns(DeprecationWarning, match=message) as warned:
        assert pegboard.Peg is pegboard.Tool  # type: ignore[attr-defined]
    assert [Path(each.filename) for each in warned] == [Path(__file__)]
    assert "Peg" not in dir(pegboard)


def test_an_import_of_it_warns_where_it_stands() -> None:
    with pytest.warns(DeprecationWarning, match="use Tool") as warned:
        from pegboard import Peg  # type: ignore[attr-defined]
    assert Peg is pegboard.Tool
    assert {Path(each.filename) for each in warned} == {Path(__file__)}


def test_other_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="module 'pegboard' has no attribute 'Pegs'"):
        _ = pegboard.Pegs  # type: ignore[attr-defined]


class Old:
    """A pack that implements a hook that will be removed."""

    @pegboard.hookimpl
    def provide_dialects(self) -> list[pegboard.Dialect]:
        return [pegboard.Dialect("old", tools=lambda tools: ["of the old pack"])]


def test_a_pack_with_a_deprecated_hook_works_and_is_named() -> None:
    with pytest.warns(DeprecationWarning, match=r"^the plugin \S*Old.*: provide_dialects is deprecated since 0\.2"):
        toolkit = Toolkit(plugins=[Old()], on_plugin_error="raise")
    with toolkit:
        assert [each.state for each in toolkit.plugins] == ["active"]
        assert toolkit.dialect("old").tools() == ["of the old pack"]


def faults(deprecation: Deprecation, core: str, names: set[str]) -> list[str]:
    """What of a deprecation breaks the rules of docs/versioning.md, in a core of a version with these public names."""
    since, until, now = Version(deprecation.since), Version(deprecation.until), Version(core)
    at_least = (since.major + 1, 0) if since.major else (0, since.minor + 1)
    checks = {
        "is removed too early": until.release[:2] < at_least,
        "should have been removed": now >= until,
        "is not deprecated yet": now < since,
        # A hook has to be there as long as packs may implement it.
        "is still public": deprecation.name.removeprefix("pegboard.") in names - {deprecation.name},
        "is replaced by what is not public": deprecation.instead not in names,
    }
    return [fault for fault, is_so in checks.items() if is_so]


@pytest.mark.parametrize(
    ("change", "core", "found"),
    [
        ({}, "0.2.0", []),
        ({}, "0.2.7", []),
        ({"until": "0.2.1"}, "0.2.0", ["is removed too early"]),
        ({"since": "1.1", "until": "1.2"}, "1.1", ["is removed too early"]),
        ({"since": "1.1", "until": "2.0"}, "1.1", []),
        ({}, "0.3.0", ["should have been removed"]),
        ({}, "0.1.9", ["is not deprecated yet"]),
        ({"name": "pegboard.Tool"}, "0.2.0", ["is still public"]),
        ({"instead": "Pegs"}, "0.2.0", ["is replaced by what is not public"]),
    ],
)
def test_the_rules_find_what_breaks_them(change: dict[str, str], core: str, found: list[str]) -> None:
    deprecation = Deprecation("pegboard.Peg", "0.2", "0.3", "Tool")._replace(**change)
    assert faults(deprecation, core, {"Tool"}) == found


def test_all_that_is_deprecated_keeps_the_rules() -> None:
    names = {*pegboard.__all__, *pegboard.hookspecs.__all__}
    assert [(each, told) for each in DEPRECATIONS for told in faults(each, CORE.project["version"], names)] == []
