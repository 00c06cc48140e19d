"""`pegboard plugins`, `settings` and `types`."""

import sys
from collections.abc import Callable

import pytest

from tests.plugins.cli.command import Outcome, tool
from tests.support.plugin_site import Site
from tests.support.secrets import FORMS, SECRET, leaked

Run = Callable[..., Outcome]

SETTINGS = """
import attrs
import pegboard

@attrs.frozen
class Settings:
    sides: int = 6
    key: str = attrs.field(default="", metadata={"secret": True})
    note: str = ""

@hookimpl
def settings_type():
    return Settings

def roll() -> None: ...

@hookimpl
def provide_tools(settings):
    return [roll]
"""
TYPES = """
import pegboard

class Money: ...

def build(annotation, types):
    return pegboard.TypePlan({"type": "string", "pattern": "^[0-9]+ EUR$"}, structure=str, unstructure=str)

@hookimpl
def provide_types():
    return [pegboard.TypeHandler(Money, build), pegboard.TypeHandler(int, build, priority=3)]
"""


def states(listed: Outcome) -> dict[str, str]:
    return {each["name"]: each["state"] for each in listed.data["plugins"]}


class TestPlugins:
    @pytest.fixture(autouse=True)
    def packs(self, site: Site) -> None:
        site.add("good", tool("good"))
        site.add("broken", "raise RuntimeError('no network')")
        site.add("newer", tool("newer"), requires=["pegboard>=99"])
        site.add("hooked", "@hookimpl\ndef provide_commands(): raise OSError('no commands')")

    def test_states_and_reasons(self, run: Run) -> None:
        listed = run("plugins", "--json")
        assert listed.code == 0
        assert states(listed) == {"broken": "failed", "good": "active", "hooked": "failed", "newer": "incompatible"}
        broken, good, hooked, newer = listed.data["plugins"]
        assert broken["reason"] == "raised RuntimeError at import: no network"
        assert hooked["reason"] == "raised OSError in provide_commands: no commands"
        assert "requires pegboard>=99" in newer["reason"]
        assert (good["distribution"], good["version"], good["entry_point"]) == ("acme-good", "1.0", "site_good")
        assert good["import_seconds"] > 0

    @pytest.mark.parametrize("width", ["80", "140"])
    def test_reasons_show_at_any_width(self, run: Run, width: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", width)
        listed = run("plugins").out
        assert max(map(len, listed.splitlines())) <= int(width)
        assert "raised RuntimeError at import: no network" in listed
        assert "4 plugins, 1 active" in listed

    def test_without_loading_nothing_is_imported(self, run: Run) -> None:
        assert states(run("plugins", "--no-load", "--json")) == {
            "broken": "found",
            "good": "found",
            "hooked": "found",
            "newer": "incompatible",
        }
        assert "site_good" not in sys.modules

    def test_options_select(self, run: Run) -> None:
        assert states(run("plugins", "--json", "--block", "brok*,hooked"))["broken"] == "blocked"
        assert states(run("--plugins", "good", "plugins", "--json"))["broken"] == "found"
        assert states(run("--block", "good", "plugins", "--json", "--block", "newer"))["good"] == "active"

    def test_tracebacks_on_request(self, run: Run) -> None:
        assert "Traceback" not in run("plugins").err
        shown = run("plugins", "--traceback").err
        assert "broken (acme-broken 1.0):" in shown
        assert "RuntimeError: no network" in shown

    def test_wrong_settings_do_not_hide_the_list(self, run: Run) -> None:
        listed = run("plugins", "--json", "--settings", "nobody.key=1")
        assert listed.code == 1
        assert states(listed)["good"] == "active"
        assert "no plugin 'nobody' is installed" in listed.complaint


class TestSettings:
    @pytest.fixture(autouse=True)
    def packs(self, site: Site) -> None:
        site.add("dice", SETTINGS)

    def test_values_and_where_each_came_from(self, run: Run, here: object, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD__DICE__NOTE", "from outside")
        shown = run("settings", "--json", "--settings", "dice.sides=20")
        assert shown.data == [
            {"section": "dice", "key": "sides", "value": 20, "source": "--settings dice.sides"},
            {"section": "dice", "key": "key", "value": "***", "source": "default"},
            {"section": "dice", "key": "note", "value": "from outside", "source": "environment variable "
             "PEGBOARD__DICE__NOTE"},
        ]  # fmt: skip

    def test_options_beat_the_environment(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD__DICE__SIDES", "12")
        assert run("settings", "--json", "--settings", "dice.sides=20").data[0]["value"] == 20

    def test_secrets_are_never_printed(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD__DICE__NOTE", "swordfish and more")
        for arguments in (["settings"], ["settings", "--json"]):
            shown = run(*arguments, "--settings", "dice.key=swordfish")
            assert "***" in shown.out
            assert "swordfish" not in shown.out + shown.err

    def test_logins_in_addresses_are_never_printed(self, run: Run) -> None:
        shown = run("settings", "--settings", "dice.note=https://ann:swordfish@example.com/a?b=c")
        assert "https://***@example.com/a?b=c" in shown.out
        assert "swordfish" not in shown.out + shown.err

    @pytest.mark.parametrize("form", FORMS)
    def test_not_in_another_form_either(self, run: Run, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
        monkeypatch.setenv("PEGBOARD__DICE__NOTE", f"see {FORMS[form](SECRET)} there")
        shown = run("settings", "--json", "--settings", f"dice.key={SECRET}")
        assert leaked(shown.out + shown.err) == []

    def test_wrong_value_is_one_line_in_the_words_of_the_command_line(self, run: Run) -> None:
        refused = run("settings", "--settings", "dice.sides=many")
        assert refused.code == 1
        assert refused.complaint.startswith("pegboard: --settings dice.sides: dice.sides takes int")

    def test_option_that_names_no_setting(self, run: Run) -> None:
        refused = run("settings", "--settings", "dice")
        assert refused.code == 2
        assert "PACK.KEY=VALUE" in refused.complaint

    def test_of_one_pack(self, run: Run, site: Site) -> None:
        site.add("other", SETTINGS)
        assert {each["section"] for each in run("settings", "other", "--json").data} == {"other"}
        site.add("plain", "")
        assert run("settings", "plain").out == "plain has no settings.\n"
        ended = run("settings", "oter")
        assert (ended.code, ended.out) == (4, "")
        assert ended.complaint == "pegboard: there is no plugin 'oter'. Did you mean 'other'?"


class TestFile:
    @pytest.fixture(autouse=True)
    def packs(self, site: Site) -> None:
        site.add("dice", SETTINGS)

    def test_pegboard_toml_here_is_used_and_named(self, run: Run, here: object) -> None:
        with open("pegboard.toml", "w") as file:  # noqa: PTH123 - the current directory is the point
            file.write("[dice]\nsides = 8\n")
        shown = run("settings", "--json")
        assert shown.data[0] == {"section": "dice", "key": "sides", "value": 8, "source": "pegboard.toml"}
        assert shown.complaint == "pegboard: settings from pegboard.toml"

    @pytest.mark.parametrize("name", ["pyproject.toml", ".pegboard.toml", "../pegboard.toml"])
    def test_no_other_file_is_looked_for(self, run: Run, name: str) -> None:
        with open(name, "w") as file:  # noqa: PTH123 - as above
            file.write("[tool.pegboard.dice]\nsides = 8\n[dice]\nsides = 8\n")
        shown = run("settings", "--json")
        assert shown.data[0]["value"] == 6
        assert shown.err == ""

    def test_named_file_wins(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, sides in (("pegboard.toml", 8), ("environment.toml", 10), ("named.toml", 12)):
            with open(name, "w") as file:  # noqa: PTH123 - as above
                file.write(f"[dice]\nsides = {sides}\n")
        monkeypatch.setenv("PEGBOARD_CONFIG", "environment.toml")
        assert run("settings", "--json").data[0]["value"] == 10
        shown = run("settings", "--json", "--config", "named.toml")
        assert shown.data[0]["value"] == 12
        assert shown.complaint == "pegboard: settings from named.toml"

    def test_file_that_is_not_there(self, run: Run) -> None:
        refused = run("settings", "--config", "nowhere.toml")
        assert refused.code == 2
        assert "'nowhere.toml' does not exist" in refused.complaint


class TestTypes:
    @pytest.fixture(autouse=True)
    def packs(self, site: Site) -> None:
        site.add("money", TYPES)

    def test_winner_origin_and_what_it_shadows(self, run: Run) -> None:
        found = run("types", "int", "--json").data
        assert found["handler"]["distribution"] == "acme-money"
        assert found["handler"]["priority"] == 3
        assert [each["plugin"] for each in found["shadows"]] == ["pegboard.builtin.types"]
        assert found["schema"]["pattern"] == "^[0-9]+ EUR$"

    @pytest.mark.parametrize(
        ("annotation", "schema"),
        [
            ("str", {"type": "string"}),
            ("list[site_money.Money] | None", {"anyOf": [{"type": "array"}, {"type": "null"}]}),
            ("Literal['a', -1]", {"enum": ["a", -1]}),
            ("datetime.date", {"type": "string", "format": "date"}),
            ("Mapping[str, float]", {"type": "object"}),
            ("tuple[bool, ...]", {"type": "array"}),
        ],
    )
    def test_annotations_are_read_as_written(self, run: Run, annotation: str, schema: dict[str, object]) -> None:
        def within(part: object, whole: object) -> bool:
            if isinstance(part, dict) and isinstance(whole, dict):
                return all(key in whole and within(value, whole[key]) for key, value in part.items())
            if isinstance(part, list) and isinstance(whole, list):
                return len(part) == len(whole) and all(map(within, part, whole))
            return part == whole

        found = run("types", annotation, "--json").data
        assert within(schema, found["schema"])

    @pytest.mark.parametrize(
        ("annotation", "message"),
        [
            ("Monney", "'Monney' is no builtin type; write it with its module, such as acme.Monney"),
            ("site_money.Monney", "the module 'site_money' has no 'Monney'"),
            ("nowhere.Money", "there is no module 'nowhere'"),
            ("list[", "'list[' is no annotation"),
            ("print(1)", "'print(1)' is no part of an annotation"),
        ],
    )
    def test_what_stands_for_nothing_is_named(self, run: Run, annotation: str, message: str) -> None:
        refused = run("types", annotation)
        assert refused.code == 2
        assert message in refused.complaint

    def test_type_without_a_mapping(self, run: Run) -> None:
        refused = run("types", "site_money.pegboard.Toolkit")
        assert refused.code == 1
        assert "Toolkit" in refused.complaint

    def test_list(self, run: Run) -> None:
        listed = run("types", "--json").data
        assert [each["matches"] for each in listed if not each["builtin"]] == ["int", "site_money.Money"]
        assert {"int", "str", "datetime.date"} <= {each["matches"] for each in listed if each["builtin"]}
        assert "site_money.Money" in run("types").out
