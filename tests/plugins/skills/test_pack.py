"""The pack: its settings, its command, and what it loads."""

import json
from pathlib import Path

import pytest

from pegboard import Toolkit
from pegboard_skills import Skills
from pegboard_skills._command import run
from pegboard_testing import assert_conforms
from tests.plugins.skills.desk import skill_text, write_skill
from tests.support.interpreters import printed


@pytest.fixture
def base(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills" / "letters", skill_text("letters", "Writes letters."))
    return tmp_path / "skills"


def test_conforms_with_all_its_tools(base: Path) -> None:
    for number in range(100):
        write_skill(base / f"other-{number}", skill_text(f"other-{number}", "x" * 100))
    # The folders are read when they are registered, and with them PyYAML is loaded, which has 18 modules.
    assert_conforms("skills", settings={"folders": [str(base)]}, budget=55)


class TestSettings:
    def test_without_folders_nothing_is_offered_and_the_reason_is_named(self) -> None:
        with Toolkit(plugins=["skills"]) as toolkit:
            assert (toolkit.tools, toolkit.groups, toolkit.problems) == ([], (), [])
            (record,) = (each for each in toolkit.plugins if each.name == "skills")
            assert [str(each) for each in record.not_offered] == [
                "no folder with skills is configured: set skills.folders"
            ]
            result = toolkit.call_sync("load_skill", {"name": "letters"})
            assert (result.status, "no folder with skills is configured" in result.text) == ("not_found", True)

    def test_name_the_folders(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(base.parent))
        write_skill(base.parent / "mine" / "cards", skill_text("cards"))
        for folders in ([str(base), "~/mine"], ["skills", "mine"]):
            monkeypatch.chdir(base.parent)
            with Toolkit(plugins=["dataclasses", "skills"], settings={"skills": {"folders": folders}}) as toolkit:
                assert [group.name for group in toolkit.groups] == ["skill:cards", "skill:letters"]
                assert toolkit.problems == []

    def test_problems_are_those_of_the_toolkit(self, base: Path) -> None:
        write_skill(base / "broken", "# no front matter")
        folders = [str(base), "missing\0", "~nobody-here/skills"]
        with Toolkit(plugins=["skills"], settings={"skills": {"folders": folders}}) as toolkit:
            broken, nul, user = toolkit.problems
            assert broken.startswith(f"{base}/broken: it is left out: it has no front matter")
            assert nul.startswith("missing: the folder cannot be opened: ")
            assert user.startswith("~nobody-here/skills: the folder cannot be opened: ")

    def test_the_programs_own_come_before_those_of_settings(self, base: Path, tmp_path: Path) -> None:
        write_skill(tmp_path / "own" / "cards", skill_text("cards"))
        with Toolkit(plugins=["skills"], settings={"skills": {"folders": [str(base)]}}) as toolkit:
            toolkit.register(Skills(tmp_path / "own"))
            assert toolkit.call_sync("load_skill", {"name": "cards"}).status == "success"
            assert toolkit.call_sync("load_skill", {"name": "letters"}).is_error
            assert toolkit.call_sync("skills__load_skill", {"name": "letters"}).status == "success"


class TestCommand:
    def test_lists_the_skills(self, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run((), [str(base)]) == 0
        assert run([str(base)], []) == 0
        assert capsys.readouterr().out == "letters: Writes letters.\n" * 2

    def test_fails_with_any_problem(self, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write_skill(base / "cards", skill_text("card"))
        assert run((), [str(base)]) == 1
        assert capsys.readouterr().out == (
            "card: Does it. Use it for it.\nletters: Writes letters.\n"
            f"problem: {base}/cards: its name 'card' is not that of its folder, 'cards'\n"
        )
        assert run((), [str(base.parent / "none")]) == 1

    def test_gives_data(self, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write_skill(base / "broken", "---\nname: broken\n---\n")
        assert run((), [str(base), "--json"]) == 1
        assert json.loads(capsys.readouterr().out) == {
            "skills": [
                {
                    "name": "letters",
                    "description": "Writes letters.",
                    "compatibility": "",
                    "path": f"{base}/letters",
                }
            ],
            "problems": [
                f"{base}/broken: it is left out: it has no description, which says what it does and when to use it"
            ],
        }

    def test_needs_a_folder(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            run((), [])
        assert stopped.value.code == 2
        assert "name a FOLDER, or set skills.folders in the settings" in capsys.readouterr().err

    def test_is_one_of_pegboards(self, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
        main = pytest.importorskip("pegboard_cli", reason="pegboard-cli has the command").main
        with pytest.raises(SystemExit) as stopped:
            main(["skills", str(base)])
        assert stopped.value.code == 0
        assert capsys.readouterr().out == "letters: Writes letters.\n"


def test_nothing_heavy_is_loaded_without_folders() -> None:
    code = (
        "import sys\nfrom pegboard import Toolkit\nToolkit(plugins=['skills'])\n"
        "print([name for name in sys.modules if name.startswith(('yaml', 'pegboard_files', 'pegboard_skills.'))])"
    )
    assert printed(code) == "[]"
