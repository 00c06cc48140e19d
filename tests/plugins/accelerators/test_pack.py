"""What the pack chooses, and when it imports it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

import pegboard_accelerators
from pegboard import PluginError, SettingsError, Toolkit
from tests.plugins.accelerators.sides import LIBRARIES
from tests.support.interpreters import printed

MODULES = [library.replace("-", "_") for library in LIBRARIES]


def used(**settings: str) -> dict[str, str]:
    options: dict[str, Any] = {"settings": {"accelerators": settings}} if settings else {}
    with Toolkit(plugins=[pegboard_accelerators], on_plugin_error="raise", **options) as toolkit:
        assert toolkit.problems == []
        return toolkit.accelerators


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for module in request.param:
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize(
    ("without", "decoder"),
    [([], "msgspec"), (["msgspec"], "orjson"), (["orjson"], "msgspec"), (["msgspec", "orjson"], None)],
    indirect=["without"],
)
@pytest.mark.usefixtures("without")
def test_the_best_decoder_that_is_there_is_used(decoder: str | None) -> None:
    if decoder:
        pytest.importorskip(decoder)
    assert used(validator="none") == ({"decode": decoder} if decoder else {})


@pytest.mark.parametrize("without", [MODULES], indirect=True)
@pytest.mark.usefixtures("without")
def test_nothing_is_said_where_nothing_is_there() -> None:
    assert used() == {}


@pytest.mark.parametrize("without", [MODULES], indirect=True)
@pytest.mark.parametrize(("setting", "library"), [("decoder", "orjson"), ("validator", "jsonschema-rs")])
@pytest.mark.usefixtures("without")
def test_what_was_asked_for_by_name_has_to_be_there(setting: str, library: str) -> None:
    with pytest.raises(PluginError, match=rf"pip install 'pegboard-accelerators\[{library}\]'"):
        used(**{setting: library})


@pytest.mark.parametrize("library", LIBRARIES)
def test_settings_choose(library: str) -> None:
    pytest.importorskip(library.replace("-", "_"))
    kinds = ("decode", "decoder") if library != "jsonschema-rs" else ("validator", "validator")
    other = {"decoder", "validator"} - {kinds[1]}
    assert used(**{kinds[1]: library}, **dict.fromkeys(other, "none")) == {kinds[0]: library}


def test_everything_can_be_switched_off() -> None:
    assert used(decoder="none", validator="none") == {}


def test_other_values_are_refused() -> None:
    with pytest.raises(SettingsError, match="decoder"):
        used(decoder="simdjson")


def test_nothing_is_imported_before_a_toolkit_needs_it() -> None:
    code = f"""
import sys, json
import pegboard_accelerators
from pegboard import Toolkit

class Stranger:
    name, description = "stranger", "Take anything."
    parameters = {{"type": "object", "properties": {{"a": {{"type": "integer"}}}}}}
    def call(self, call):
        return call.arguments

def loaded():
    return [module for module in {MODULES!r} if module in sys.modules]

def add(a: int) -> int:
    return a

found = []
with Toolkit(plugins=[pegboard_accelerators]) as toolkit:
    toolkit.register(add, Stranger())
    toolkit.schemas()
    toolkit.call_sync("add", {{"a": 1}})
    found.append([dict(toolkit.accelerators), loaded()])
    toolkit.call_sync("add", '{{"a": 1}}')
    found.append(loaded())
    toolkit.call_sync("stranger", {{"a": 1}})
    found.append(loaded())
print(json.dumps(found))
"""
    (chosen, before), decoding, validating = json.loads(printed(code))
    assert before == []
    assert decoding == [name for kind, name in chosen.items() if kind == "decode"]
    assert set(validating) == {name.replace("-", "_") for name in chosen.values()}


def test_a_broken_library_is_a_problem_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found, but not to be imported: a wheel for another machine, say."""
    pytest.importorskip("msgspec")
    monkeypatch.setitem(sys.modules, "msgspec.json", None)

    def add(a: int) -> int:
        """Add nothing."""
        return a

    with Toolkit(plugins=[pegboard_accelerators]) as toolkit:
        toolkit.register(add)
        assert toolkit.call_sync("add", '{"a": 1}').data == 1
        assert "decode" not in toolkit.accelerators
        assert toolkit.problems[0].startswith("the accelerator msgspec cannot be used: ")
