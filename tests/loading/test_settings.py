"""Settings: four sources in their order, strict values, errors that name the place and never a secret."""

import datetime as dt
from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import attrs
import pytest

from pegboard._base.errors import PluginError, SettingsError
from pegboard._base.markers import Param
from pegboard._plugins.settings import Settings
from pegboard._plugins.settings_values import Setting
from pegboard.builtin.types import provide_types
from tests.support.secrets import FORMS, SECRET, leaked


class Number(IntEnum):
    ONE = 1


class Mood(Enum):
    CALM = "calm"
    WILD = "wild"


@attrs.frozen
class Limits:
    size: int = 10
    names: tuple[str, ...] = ()


def positive(_: Any, attribute: Any, value: Any) -> None:
    if value <= 0:
        raise ValueError(f"{attribute.name} must be positive, not {value}")


@attrs.frozen
class Pack:
    unit: str = "celsius"
    days: int = attrs.field(default=3, validator=positive)
    factor: float = 1.0
    quiet: bool = False
    base: Path = Path()
    tags: list[str] = attrs.field(factory=list)
    numbers: Sequence[int] = ()
    pair: tuple[int, str] = (1, "x")
    table: dict[str, int] = attrs.field(factory=dict)
    limits: Limits = Limits()
    maybe: int | None = None
    either: int | str = 0
    place: str | Path = ""
    raw: bytes = b""
    longest: float = 1.0
    scale: Literal["small", "large"] = "small"
    mood: Mood = Mood.CALM
    day: dt.date = dt.date(2020, 1, 1)
    Big: int = 0
    anything: Any = None
    key: str = attrs.field(default="", metadata={"secret": True}, repr=False)
    pin: int = attrs.field(default=1, metadata={"secret": True}, validator=positive)
    _private: int = 0
    hidden: int = attrs.field(default=0, init=False)


def structured(given: Mapping[str, Any] | None = None, **environ: str) -> Pack:
    pack: Pack = Settings.read({"demo": given} if given is not None else None, None, environ).structure(
        "demo", Pack, provide_types()
    )
    return pack


def refused(given: Mapping[str, Any] | None = None, **environ: str) -> str:
    """The message of the error; no other exception is shown with it, whose message could hold the value."""
    with pytest.raises(SettingsError) as caught:
        structured(given, **environ)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.toml"
    path.write_text('[demo]\nunit = "kelvin"\ndays = 7\nfactor = 2\n', encoding="utf-8")
    return path


class TestSources:
    def test_defaults(self) -> None:
        assert structured() == Pack()

    def test_order_key_by_key(self, file: Path) -> None:
        environ = {"PEGBOARD__DEMO__DAYS": "8", "PEGBOARD__DEMO__FACTOR": "3"}
        settings = Settings.read({"demo": {"factor": 4.0}}, file, environ)
        assert settings.structure("demo", Pack, provide_types()) == Pack(unit="kelvin", days=8, factor=4.0)
        assert {item.key: item.source for item in settings.effective()} | {
            "unit": str(file),
            "days": "environment variable PEGBOARD__DEMO__DAYS",
            "factor": "the settings= argument",
            "quiet": "default",
        } == {item.key: item.source for item in settings.effective()}

    def test_file_named_by_the_environment(self, file: Path) -> None:
        settings = Settings.read(environ={"PEGBOARD_CONFIG": str(file)})
        assert settings.structure("demo", Pack, provide_types()).unit == "kelvin"

    def test_argument_names_another_file_than_the_environment(self, file: Path) -> None:
        settings = Settings.read(config=file, environ={"PEGBOARD_CONFIG": "no such file"})
        assert settings.structure("demo", Pack, provide_types()).days == 7

    def test_file_that_was_not_named_is_not_read(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(file.parent)
        (file.parent / "pyproject.toml").write_text("[tool.pegboard.demo]\ndays = 9\n", encoding="utf-8")
        assert Settings.read(environ={"PEGBOARD_CONFIG": ""}).structure("demo", Pack, provide_types()) == Pack()

    def test_pyproject(self, tmp_path: Path) -> None:
        path = tmp_path / "pyproject.toml"
        path.write_text('[project]\nname = "x"\n[tool.pegboard.demo]\ndays = 9\n', encoding="utf-8")
        assert Settings.read(config=path, environ={}).structure("demo", Pack, provide_types()).days == 9

    def test_pyproject_without_our_table(self, tmp_path: Path) -> None:
        path = tmp_path / "pyproject.toml"
        path.write_text('[project]\nname = "x"\n', encoding="utf-8")
        assert Settings.read(config=path, environ={}).structure("demo", Pack, provide_types()) == Pack()

    def test_section_names_are_pack_names(self, tmp_path: Path) -> None:
        path = tmp_path / "pegboard.toml"
        path.write_text("[my-demo]\ndays = 9\n", encoding="utf-8")
        assert Settings.read(config=path, environ={}).structure("my_demo", Pack, provide_types()).days == 9

    def test_environment_is_the_processs_own_by_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD__DEMO__BIG", "5")
        assert Settings.read().structure("demo", Pack, provide_types()).Big == 5

    def test_private_field_goes_by_its_argument(self) -> None:
        assert structured({"private": 4}) == Pack(private=4)


class TestSourcesThatCannotBeRead:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"days = \n", ["is not valid TOML (at line 1, column 8)"]),
            (b'key = "secret\n', ["is not valid TOML (at line 1, column"]),
            (b"\xff\xfe", ["is not valid TOML"]),
            (b"days = 3\n", ["'days' is a section"]),
            (b'blok = ["x"]\n', ["'blok' is a section", "Did you mean 'block'?"]),
            (b"plugins = [1]\n", ["'plugins' is a list of plugin names"]),
        ],
    )
    def test_content(self, tmp_path: Path, content: bytes, words: list[str]) -> None:
        path = tmp_path / "pegboard.toml"
        path.write_bytes(content)
        with pytest.raises(SettingsError) as caught:
            Settings.read(config=path, environ={})
        assert str(caught.value).startswith(str(path))
        assert all(word in str(caught.value) for word in words)
        assert "secret" not in str(caught.value).removeprefix(str(path))

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match=r"PEGBOARD_CONFIG names .*none\.toml, which does not exist"):
            Settings.read(environ={"PEGBOARD_CONFIG": str(tmp_path / "none.toml")})

    def test_directory(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match=r"config= names .*, which cannot be read"):
            Settings.read(config=tmp_path, environ={})

    @pytest.mark.parametrize("variable", ["PEGBOARD__DEMO", "PEGBOARD__", "PEGBOARD____KEY"])
    def test_variable_without_key(self, variable: str) -> None:
        with pytest.raises(SettingsError, match=f"{variable} names no key; write PEGBOARD__<PACK>__<KEY>"):
            Settings.read(environ={variable: "x"})

    @pytest.mark.parametrize("given", [{"demo": 3}, {"demo": "x"}])
    def test_argument(self, given: Any) -> None:
        with pytest.raises(SettingsError, match="the settings= argument: 'demo' is a section"):
            Settings.read(given, environ={})


class TestValues:
    @pytest.mark.parametrize(
        ("key", "given", "expected"),
        [
            ("unit", "x", "x"),
            ("days", 4, 4),
            ("days", 4.0, 4),
            ("factor", 2, 2.0),
            ("factor", 2.5, 2.5),
            ("quiet", True, True),
            ("base", "a/b", Path("a/b")),
            ("base", Path("a"), Path("a")),
            ("tags", ["a", "b"], ["a", "b"]),
            ("tags", ("a",), ["a"]),
            ("numbers", [1, 2], (1, 2)),
            ("pair", [2, "y"], (2, "y")),
            ("table", {"a": 1}, {"a": 1}),
            ("table", MappingProxyType({"a": 1}), {"a": 1}),
            ("limits", {"size": 3, "names": ["a"]}, Limits(3, ("a",))),
            ("limits", Limits(4), Limits(4)),
            ("maybe", None, None),
            ("maybe", 3, 3),
            ("either", "x", "x"),
            ("place", "a/b", "a/b"),
            ("place", Path("a"), Path("a")),
            ("raw", b"x", b"x"),
            ("longest", float("inf"), float("inf")),
            ("scale", "large", "large"),
            ("mood", "wild", Mood.WILD),
            ("mood", Mood.WILD, Mood.WILD),
            ("day", dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
            ("day", "2024-02-29", dt.date(2024, 2, 29)),
            ("anything", [1, {}], [1, {}]),
        ],
    )
    def test_fit(self, key: str, given: Any, expected: Any) -> None:
        value = getattr(structured({key: given}), key)
        assert value == expected
        assert type(value) is type(expected)

    @pytest.mark.parametrize(
        ("key", "given", "words"),
        [
            ("days", "4", "demo.days takes int, got string"),
            ("days", 4.5, "takes int, got number"),
            ("days", True, "takes int, got boolean"),
            ("factor", True, "takes float, got boolean"),
            ("factor", "1.5", "takes float, got string"),
            ("quiet", 1, "takes bool, got integer"),
            ("quiet", "no", "takes bool, got string"),
            ("unit", 3, "takes str, got integer"),
            ("base", 3, "takes Path, got integer"),
            ("tags", "abc", "takes list[str], got string"),
            ("tags", [1], "takes list[str], got array"),
            ("tags", {"a": 1}, "takes list[str], got object"),
            ("pair", [1], "takes tuple[int, str], got array"),
            ("table", ["a"], "takes dict[str, int], got array"),
            ("table", {"a": "1"}, "takes dict[str, int], got object"),
            ("limits", {"sizes": 1}, "takes Limits, got object"),
            ("limits", {"size": "1"}, "takes Limits, got object"),
            ("maybe", "3", "takes int | None, got string"),
            ("either", 1.5, "takes int | str, got number"),
            ("scale", "huge", "takes Literal['small', 'large'], got string"),
            ("mood", "angry", "takes Mood, got string"),
            ("day", dt.datetime(2020, 1, 1), "takes date, got datetime"),  # noqa: DTZ001
        ],
    )
    def test_do_not_fit(self, key: str, given: Any, words: str) -> None:
        message = refused({key: given})
        assert message.startswith(f"the settings= argument: demo.{key} takes ")
        assert words in message

    def test_what_is_wrong_in_a_table_is_named_but_never_shown(self) -> None:
        assert refused({"limits": {"sise": "hunter2"}}).endswith(
            "takes Limits, got object; what is wrong is unknown key 'sise'. Did you mean 'size'?"
        )
        assert refused({"limits": {"size": "hunter2", "names": []}}).endswith("got object; what is wrong is size")

    @pytest.mark.parametrize(
        ("annotation", "given"),
        [
            (bool, "False"),
            (bool, 1),
            (bool, []),
            (int, "5"),
            (int, 5.7),
            (int, True),
            (float, "1.5"),
            (float, True),
            (str, None),
            (str, 5),
            (str, {}),
            (bytes, 3),
            (bytes, [1]),
            (list[str], "abc"),
            (list[str], {"a": 1}),
            (list[int], "123"),
            (set[str], "abc"),
            (tuple[str, ...], "abc"),
            (tuple[str, str], "ab"),
            (dict[str, int], [("a", 1)]),
            (Literal[1], True),
            (Number, True),
            (Number, "1"),
            (int | bool, "1"),
            (str | list[str], 1),
        ],
    )
    def test_nothing_is_converted_at_any_depth(self, annotation: Any, given: Any) -> None:
        """What cattrs would convert by itself."""

        @attrs.frozen
        class Inner:
            value: annotation

        @attrs.frozen
        class Outer:
            alone: annotation = None
            several: Sequence[annotation] = ()
            named: dict[str, annotation] = attrs.field(factory=dict)
            inner: Inner | None = None

        for settings in ({"alone": given}, {"several": [given]}, {"named": {"a": given}}, {"inner": {"value": given}}):
            with pytest.raises(SettingsError, match="takes"):
                Settings.read({"demo": settings}, environ={}).structure("demo", Outer, provide_types())

    def test_bounds_of_an_annotation_hold(self) -> None:
        @attrs.frozen
        class Bounded:
            size: Annotated[int, Param(ge=1)] = 1
            names: Annotated[list[str], Param(max_length=1)] = attrs.field(factory=list)

        for settings in ({"size": 0}, {"names": ["a", "b"]}):
            with pytest.raises(SettingsError, match="takes"):
                Settings.read({"demo": settings}, environ={}).structure("demo", Bounded, provide_types())

    @pytest.mark.parametrize(
        ("key", "text", "expected"),
        [
            ("unit", "3", "3"),
            ("unit", "", ""),
            ("days", "4", 4),
            ("days", "1_000", 1000),
            ("factor", "2", 2.0),
            ("factor", "1e3", 1000.0),
            ("quiet", "true", True),
            ("quiet", "True", True),
            ("quiet", "1", True),
            ("quiet", "no", False),
            ("base", "a/b", Path("a/b")),
            ("tags", "a,b", ["a", "b"]),
            ("tags", '["a, b", "c"]', ["a, b", "c"]),
            ("tags", "1,2", ["1", "2"]),
            ("tags", "", []),
            ("numbers", "1,2", (1, 2)),
            ("numbers", "[1, 2]", (1, 2)),
            ("table", '{"a": 1}', {"a": 1}),
            ("table", "{a = 1}", {"a": 1}),
            ("limits", '{"size": 3}', Limits(3)),
            ("maybe", "null", None),
            ("maybe", "5", 5),
            ("either", "5", "5"),
            ("mood", "wild", Mood.WILD),
            ("day", "2024-02-29", dt.date(2024, 2, 29)),
            ("Big", "7", 7),
        ],
    )
    def test_from_the_environment(self, key: str, text: str, expected: Any) -> None:
        value = getattr(structured(None, **{f"PEGBOARD__DEMO__{key.upper()}": text}), key)
        assert value == expected
        assert type(value) is type(expected)

    @pytest.mark.parametrize("text", ["three", "4.5", "", "true", "3\nother = 4", "9" * 5000])
    def test_text_that_does_not_fit(self, text: str) -> None:
        message = refused(None, PEGBOARD__DEMO__DAYS=text)
        expected = "demo.days takes int, got text that cannot be read as int"
        assert message == f"environment variable PEGBOARD__DEMO__DAYS: {expected}"


class TestUnknownKeys:
    def test_in_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "pegboard.toml"
        path.write_text('[demo]\nunits = "hunter2"\n', encoding="utf-8")
        with pytest.raises(SettingsError) as caught:
            Settings.read(config=path, environ={}).structure("demo", Pack, provide_types())
        message = f"{path}: unknown key 'units' in the settings of 'demo'. Did you mean 'unit'"
        assert str(caught.value).startswith(message)
        assert "hunter2" not in str(caught.value)

    def test_in_the_environment(self) -> None:
        message = refused(None, PEGBOARD__DEMO__UNITS="hunter2")
        assert message.startswith("environment variable PEGBOARD__DEMO__UNITS: unknown key 'units'")

    @pytest.mark.parametrize("key", ["units", "Unit", "hidden", "_private"])
    def test_in_the_argument(self, key: str) -> None:
        assert refused({key: 1}).startswith(f"the settings= argument: unknown key {key!r}")

    def test_in_a_losing_source(self) -> None:
        assert "PEGBOARD__DEMO__UNITS" in refused({"unit": "x"}, PEGBOARD__DEMO__UNITS="y")

    def test_section(self) -> None:
        settings = Settings.read({"demo": {}}, environ={"PEGBOARD__DEMI__X": "1"})
        settings.check_sections(["demo", "demi"])
        settings.check_sections(["demo"], only_argument=True)
        with pytest.raises(SettingsError, match=r"PEGBOARD__DEMI__X: no plugin 'demi' .* Did you mean 'demo'"):
            settings.check_sections(["demo"])
        with pytest.raises(SettingsError, match="the settings= argument: no plugin 'demo'"):
            settings.check_sections([], only_argument=True)


class TestReferences:
    @pytest.mark.parametrize(
        ("key", "given", "expected"),
        [
            ("unit", "${UNIT}", "kelvin"),
            ("unit", "in ${UNIT}, ${DAYS}", "in kelvin, 12"),
            ("unit", "$${UNIT}", "${UNIT}"),
            ("unit", "$UNIT {UNIT}", "$UNIT {UNIT}"),
            ("days", "${DAYS}", 12),
            ("tags", ["${UNIT}", "b"], ["kelvin", "b"]),
            ("tags", "${LIST}", ["a", "b"]),
            ("anything", {"a": ["${UNIT}"]}, {"a": ["kelvin"]}),
        ],
    )
    def test_is_replaced(self, key: str, given: Any, expected: Any) -> None:
        assert getattr(structured({key: given}, UNIT="kelvin", DAYS="12", LIST="a,b"), key) == expected

    def test_late(self) -> None:
        environ: dict[str, str] = {}
        settings = Settings.read({"demo": {"unit": "${UNIT}"}}, environ=environ)
        environ["UNIT"] = "kelvin"
        assert settings.structure("demo", Pack, provide_types()).unit == "kelvin"

    def test_to_nothing(self) -> None:
        message = refused({"unit": "${NO_SUCH}"})
        assert message == "the settings= argument: demo.unit refers to ${NO_SUCH}, and that variable is not set"

    def test_only_of_a_value_that_counts(self) -> None:
        assert structured({"unit": "${NO_SUCH}"} | {"unit": "x"}).unit == "x"
        assert structured(None, PEGBOARD__DEMO__UNIT="${NO_SUCH}").unit == "${NO_SUCH}"


class TestSecrets:
    """No message, repr or listing shows a secret."""

    @pytest.mark.parametrize(
        ("given", "environ"),
        [
            ({"key": ["hunter2"]}, {}),
            ({"pin": "hunter2"}, {}),
            ({}, {"PEGBOARD__DEMO__PIN": "hunter2"}),
            ({"days": "${SECRET}"}, {"SECRET": "hunter2"}),
            ({"tags": {"a": "${SECRET}"}}, {"SECRET": "hunter2"}),
        ],
    )
    def test_in_a_value_of_the_wrong_type(self, given: Any, environ: dict[str, str]) -> None:
        assert "hunter2" not in refused(given, **environ)

    @pytest.mark.parametrize(
        ("given", "environ"),
        [({"pin": -4711}, {}), ({}, {"PEGBOARD__DEMO__PIN": "-4711"}), ({"days": "${N}"}, {"N": "-4711"})],
    )
    def test_in_what_a_validator_says(self, given: Any, environ: dict[str, str]) -> None:
        message = refused(given, **environ)
        assert message.endswith(" is refused")
        assert "4711" not in message

    def test_what_a_validator_says_of_others_is_shown(self) -> None:
        message = "the settings= argument: demo.days is refused: days must be positive, not -3"
        assert refused({"days": -3, "unit": "x", "key": "hunter2"}) == message

    def test_in_listings(self) -> None:
        settings = Settings.read({"demo": {"key": "hunter2", "unit": "${SECRET}"}}, environ={"SECRET": "hunter3"})
        settings.structure("demo", Pack, provide_types())
        shown = repr(settings) + repr(settings.effective())
        assert "hunter" not in shown
        assert Setting("demo", "unit", "***", "the settings= argument") in settings.effective()

    def test_in_text_of_others(self) -> None:
        settings = Settings.read({"demo": {"key": "hunter22"}}, environ={"PEGBOARD__DEMO__UNIT": "kelvin"})
        settings.structure("demo", Pack, provide_types())
        assert settings.redact("bad key 'hunter22' for kelvin") == "bad key '***' for kelvin"

    @pytest.mark.parametrize("form", FORMS)
    def test_in_no_form(self, form: str) -> None:
        settings = Settings.read({"demo": {"key": SECRET, "anything": 1}}, environ={})
        settings.structure("demo", Pack, provide_types())
        assert leaked(settings.redact(f"bad key <{FORMS[form](SECRET)}>")) == []

    def test_numbers_and_parts_of_tables_too(self) -> None:
        cls = attrs.make_class("C", {"table": attrs.field(factory=dict, type=dict, metadata={"secret": True})})
        settings = Settings.read({"demo": {"pin": 471147}, "other": {"table": {"A": "hunter22", "B": "1"}}}, environ={})
        settings.structure("demo", Pack, provide_types())
        settings.structure("other", cls, provide_types())
        assert settings.redact("pin 471147, 1 key hunter22") == "pin ***, 1 key ***"
        assert "hunter22" not in repr(settings.effective())


class TestFieldsWithoutDefault:
    """A plugin may need a setting; without it this plugin does not work, and what to write is said."""

    cls = attrs.make_class("C", {"x": attrs.field(type=int), "y": attrs.field(type=int), "z": attrs.field(default=0)})

    def test_name_file_section_key_and_what_to_write(self, tmp_path: Path) -> None:
        file = tmp_path / "board.toml"
        file.write_text("[demo]\nx = 1\n")
        with pytest.raises(SettingsError) as raised:
            Settings.read(None, file, {}).structure("demo", self.cls, provide_types())
        assert str(raised.value) == (
            "the settings of 'demo' lack 'y', without which the plugin does not work; write y = ... under [demo] in "
            f"{file}, or give settings={{'demo': {{'y': ...}}}} or PEGBOARD__DEMO__Y"
        )

    def test_are_all_named(self) -> None:
        with pytest.raises(SettingsError, match=r"lack 'x' and 'y', .* write x = \.\.\.; y = \.\.\. under \[demo\]"):
            Settings.read(environ={}).structure("demo", self.cls, provide_types())

    def test_count_from_all_sources(self) -> None:
        settings = Settings.read({"demo": {"x": 1}}, environ={"PEGBOARD__DEMO__Y": "2"})
        assert settings.structure("demo", self.cls, provide_types()) == self.cls(1, 2)

    def test_are_not_blamed_for_another_that_is_refused(self) -> None:
        def small(_: Any, __: Any, value: int) -> None:
            if value > 9:
                raise ValueError("too large")

        cls = attrs.make_class(
            "C", {"x": attrs.field(type=int), "a": attrs.field(type=int, default=0, validator=small)}
        )
        with pytest.raises(SettingsError, match=r"demo\.a is refused: .*too large"):
            Settings.read({"demo": {"x": 1, "a": 10}}, environ={}).structure("demo", cls, provide_types())


class TestClassesThatAreWrong:
    """The plugin's fault, not that of the settings."""

    def test_settings_error_of_its_own(self) -> None:
        def refuse(_: Any) -> None:
            raise SettingsError("no key")

        cls = attrs.make_class("C", [], class_body={"__attrs_post_init__": refuse})
        with pytest.raises(PluginError, match=r"C\(\) raised no key; a pack must load without settings"):
            Settings.read(environ={}).structure("demo", cls, provide_types())


def test_refused_together() -> None:
    @attrs.frozen
    class Both:
        low: int = 0
        high: int = 10
        key: str = attrs.field(default="", metadata={"secret": True})  # not set, so there is nothing to hide

        def __attrs_post_init__(self) -> None:
            if self.low + 5 > self.high + (self.low == 0) * 10:
                raise ValueError("low is above high")

    settings = Settings.read({"demo": {"low": 4}}, environ={"PEGBOARD__DEMO__HIGH": "2"})
    with pytest.raises(SettingsError) as caught:
        settings.structure("demo", Both, provide_types())
    sources = "environment variable PEGBOARD__DEMO__HIGH, the settings= argument"
    assert str(caught.value) == f"{sources}: the settings of 'demo' are refused together: low is above high"
