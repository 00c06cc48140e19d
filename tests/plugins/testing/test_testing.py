"""What the core ships for the tests of packs."""

import asyncio
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import attrs
import importlib_metadata
import pytest

import pegboard_testing
from pegboard import Agent, Status, ToolError, ToolResult, hookimpl
from pegboard_testing import ScriptedModel, fake_distribution, isolated_toolkit


def test_distribution_is_found_as_an_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    info = fake_distribution(
        tmp_path,
        "Acme.Fake-Dice",
        "1.2",
        entry_points={"dice": "acme_fake_dice:pack", "console_scripts": {"dice": "acme_fake_dice:main"}},
        requires=["pegboard>=0.1", "attrs; extra == 'x'"],
        modules={"acme_fake_dice": "from acme_fake_dice.sub.faces import pack", "acme_fake_dice.sub.faces": "pack = 6"},
    )
    assert info == tmp_path / "acme_fake_dice-1.2.dist-info"
    found = importlib_metadata.distribution("acme-fake-dice")
    assert (found.metadata["Name"], found.version) == ("Acme.Fake-Dice", "1.2")
    assert found.requires == ["pegboard>=0.1", "attrs; extra == 'x'"]
    assert {(entry.group, entry.name) for entry in found.entry_points} == {
        ("pegboard", "dice"),
        ("console_scripts", "dice"),
    }
    assert found.entry_points.select(group="pegboard")["dice"].load() == 6
    for name in ("acme_fake_dice", "acme_fake_dice.sub", "acme_fake_dice.sub.faces"):
        del sys.modules[name]


def test_record_lists_every_file_with_its_hash(tmp_path: Path) -> None:
    info = fake_distribution(tmp_path, "acme", entry_points={"a": "b"}, modules={"b": "x = 'ü'"})
    files = importlib_metadata.Distribution.at(info).files or []
    assert sorted(map(str, files)) == sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    )
    sizes = {str(file): file.size for file in files}
    assert sizes["b.py"] == len("x = 'ü'".encode())


def test_malformed_entry_points_are_written_as_they_are(tmp_path: Path) -> None:
    info = fake_distribution(tmp_path, "acme", entry_points="[pegboard]\nbroken")
    assert (info / "entry_points.txt").read_text(encoding="utf-8") == "[pegboard]\nbroken"


def test_writing_again_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    fake_distribution(tmp_path, "acme-twice", entry_points={"a": "b"})
    assert len(importlib_metadata.distribution("acme-twice").entry_points) == 1
    fake_distribution(tmp_path, "acme-twice", requires=["x"])
    again = importlib_metadata.distribution("acme-twice")
    assert (again.requires, len(again.entry_points)) == (["x"], 0)


class TestIsolatedToolkit:
    def test_environment_does_not_reach_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD_BLOCK", "*")
        monkeypatch.setenv("PEGBOARD__PACK__UNIT", "kelvin")
        with isolated_toolkit(Pack(), settings={"pack": {"unit": "celsius"}}) as toolkit:
            assert toolkit.call_sync("unit").text == "celsius"
            assert "PEGBOARD_BLOCK" not in os.environ
        assert os.environ["PEGBOARD_BLOCK"] == "*"

    def test_only_what_is_named(self) -> None:
        with isolated_toolkit() as toolkit:
            assert toolkit.plugins == []
        with isolated_toolkit("files") as toolkit:
            assert [record.name for record in toolkit.plugins if record.state == "active"] in (["files"], [])

    def test_closes_and_restores_after_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD_BLOCK", "*")
        with pytest.raises(ZeroDivisionError), isolated_toolkit(Pack()) as toolkit:
            1 // 0  # noqa: B018 - it is to raise
        assert os.environ["PEGBOARD_BLOCK"] == "*"
        assert toolkit.call_sync("unit").text == "celsius"


@attrs.frozen
class Settings:
    unit: str = "celsius"


class Pack:
    @hookimpl
    def settings_type(self) -> type[Settings]:
        return Settings

    @hookimpl
    def provide_tools(self, settings: Settings) -> list[object]:
        def unit() -> str:
            return settings.unit

        return [unit]


def double(number: int) -> int:
    if number > 100:
        raise ToolError("too much")
    return number * 2


class TestScriptedModel:
    def test_plays_turn_by_turn(self) -> None:
        model = ScriptedModel(
            ("double", {"number": 2}),
            lambda model: ("double", {"number": model.last.data}),
            [("double", {"number": 1}), ("double", '{"number": 50}'), ("double", {"number": 101})],
            "no_such_tool",
        )
        with isolated_toolkit() as toolkit:
            toolkit.register(double)
            results = model.run_sync(toolkit)
        assert [result.data for result in results[:4]] == [4, 8, 2, 100]
        assert [result.status for result in results[4:]] == [Status.ERROR, Status.NOT_FOUND]
        assert results == model.results
        assert [len(turn.results) for turn in model.turns] == [1, 1, 3, 1]
        assert model.turns[0].calls == (("double", {"number": 2}),)
        assert model.turns[-1].calls == (("no_such_tool", {}),)

    def test_knows_what_was_offered(self) -> None:
        with isolated_toolkit() as toolkit:
            toolkit.create_group("more", active=False)
            toolkit.register(double, group="more")
            toolkit.register_meta_tool()
            model = ScriptedModel(
                "double",
                ("reset_equipped_tools", {"to_activate": ["more"]}),
                ("double", {"number": 1}),
            )
            model.run_sync(toolkit.session())
        assert [result.status for result in model.results] == [Status.INACTIVE, Status.SUCCESS, Status.SUCCESS]
        assert [turn.offered for turn in model.turns] == [
            ("reset_equipped_tools",),
            ("reset_equipped_tools",),
            ("reset_equipped_tools", "double"),
        ]

    def test_from_coroutines(self) -> None:
        async def play() -> list[ToolResult]:
            with isolated_toolkit() as toolkit:
                toolkit.register(double)
                return await ScriptedModel(("double", {"number": 2}), ["double", "double"]).run(toolkit)

        assert [result.status for result in asyncio.run(play())] == [Status.SUCCESS, Status.INVALID, Status.INVALID]

    def test_options_reach_the_calls(self) -> None:
        def who(agent: Agent) -> str:
            return agent.name

        with isolated_toolkit() as toolkit:
            toolkit.register(who)
            model = ScriptedModel("who")
            model.run_sync(toolkit, agent=SimpleNamespace(name="Ada"))
        assert model.last.text == "Ada"

    def test_before_the_first_turn(self) -> None:
        with pytest.raises(IndexError):
            _ = ScriptedModel().last


def test_every_name_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "testing-packs.md").read_text("utf-8")
    assert [name for name in pegboard_testing.__all__ if f"`{name}" not in page] == []
    assert [name for name in pegboard_testing.__all__ if not getattr(pegboard_testing, name).__doc__] == []
