"""What a model does with skills: it reads the catalog, loads one, reads its files, and gets its tools."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pegboard import Group, Offer, Toolkit, hookimpl, tool
from pegboard_skills import Skill, Skills, skill_resources
from tests.plugins.skills.desk import BODY, board, skill_text, write_skill
from tests.support.interpreters import printed_under_two_hash_seeds

LINES = "".join(f"This is line {number}.\n" for number in range(5_000))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    forms = {"references/fields.md": "# Fields\n", "scripts/fill.py": "print()\n", "assets/empty.txt": ""}
    write_skill(tmp_path / "pdf-forms", skill_text("pdf-forms", "Fills PDF forms. Use it for any form."), forms)
    more = "compatibility: Needs a printer\n"
    write_skill(tmp_path / "team" / "letters", skill_text("letters", "Writes letters & <cards>.", more=more))
    return tmp_path


class TestCatalog:
    def test_stands_in_the_description(self, base: Path) -> None:
        with board(base) as toolkit:
            assert [each.name for each in toolkit.tools] == ["load_skill", "read_skill_file"]
            assert toolkit["load_skill"].description == (
                "Load a skill: instructions for one kind of task. Where one of the skills below fits a task, load it "
                "before you begin, and follow it.\n"
                "<available_skills>\n"
                "- letters: Writes letters &amp; &lt;cards&gt;.\n"
                "- pdf-forms: Fills PDF forms. Use it for any form.\n"
                "</available_skills>"
            )

    def test_is_the_same_in_every_process(self, base: Path) -> None:
        code = (
            "from pegboard import Toolkit\nfrom pegboard_skills import Skills\n"
            f"toolkit = Toolkit(plugins=())\ntoolkit.register(Skills({str(base)!r}))\nprint(toolkit.schemas())"
        )
        assert "pdf-forms" in printed_under_two_hash_seeds(code)

    def test_of_8_000_characters_is_whole_and_a_longer_one_has_names_alone(self, tmp_path: Path) -> None:
        for number in range(8):  # each is a line of 1,000 characters, its end included
            write_skill(tmp_path / f"skill-{number}", skill_text(f"skill-{number}", "x" * 988))
        with board(tmp_path) as toolkit:
            assert toolkit["load_skill"].description.count("x" * 988) == 8
            assert "search_skills" not in toolkit
        write_skill(tmp_path / "skill-7", skill_text("skill-7", "x" * 989))
        with board(tmp_path) as toolkit:
            text = toolkit["load_skill"].description
            assert f"<available_skills>\n{', '.join(f'skill-{number}' for number in range(8))}\n</avail" in text
            assert "xx" not in text
            assert [each.name for each in toolkit.tools] == ["load_skill", "read_skill_file", "search_skills"]

    def test_of_names_that_are_too_many_says_so(self, tmp_path: Path) -> None:
        for number in range(1, 200):
            write_skill(tmp_path / f"s{number:063}", skill_text(f"s{number:063}"))
        with board(tmp_path) as toolkit:
            text = toolkit["load_skill"].description
            assert "s" + f"{121:063}" + " and 78 more\n" in text
            assert len(text) < 8_400

    def test_shortens_a_description_that_is_too_long(self, tmp_path: Path) -> None:
        write_skill(tmp_path / "long", skill_text("long", "x" * 1_030))
        with board(tmp_path) as toolkit:
            assert f"- long: {'x' * 1_024}...\n" in toolkit["load_skill"].description

    def test_definitions_are_short(self, base: Path) -> None:
        with board(base) as toolkit:
            assert sum(len(str(schema.to_dict())) for schema in toolkit.schemas()) < 1_400


class TestSearch:
    @pytest.fixture
    def toolkit(self, tmp_path: Path) -> Toolkit:
        texts = {
            "pdf-forms": "Fills forms in PDF files.",
            "invoices": "Writes an invoice, as PDF or on paper.",
            "spreadsheets": "Makes tables & charts.",
            "letters-ja": "日本語の手紙を書く。",
        }
        for name, text in texts.items():
            write_skill(tmp_path / name, skill_text(name, text))
        for number in range(100):
            write_skill(tmp_path / f"other-{number}", skill_text(f"other-{number}", f"Does something else. {'y' * 80}"))
        return board(tmp_path)

    @pytest.mark.parametrize(
        ("query", "first"),
        [
            ("fill a form", "pdf-forms"),
            ("PDF", "pdf-forms"),
            ("invoice", "invoices"),
            ("chart something", "spreadsheets"),
            ("手紙", "letters-ja"),
            ("other-7", "other-7"),
        ],
    )
    def test_best_ones_come_first(self, toolkit: Toolkit, query: str, first: str) -> None:
        result = toolkit.call_sync("search_skills", {"query": query})
        assert result.data["matches"][0]["name"] == first
        assert result.text.startswith(f"- {first}: ")
        assert len(result.data["matches"]) <= 10

    @pytest.mark.parametrize("query", ["", "zzz", "!?", "\0"])
    def test_nothing_found_says_what_to_do(self, toolkit: Toolkit, query: str) -> None:
        result = toolkit.call_sync("search_skills", {"query": query})
        assert result.text == "No skill has any of these words. Try other words for the same task."
        assert result.data == {"matches": []}

    def test_shows_no_tags_of_descriptions(self, toolkit: Toolkit) -> None:
        assert "tables &amp; charts" in toolkit.call_sync("search_skills", {"query": "tables"}).text


class TestLoading:
    def test_gives_body_and_files_as_the_guide_says(self, base: Path) -> None:
        with board(base) as toolkit:
            result = toolkit.call_sync("load_skill", {"name": "pdf-forms"})
            assert result.text == (
                f'<skill_content name="pdf-forms">\n{BODY}\n'
                "Files of this skill, for read_skill_file:\n<skill_resources>\n<file>assets/empty.txt</file>\n"
                "<file>references/fields.md</file>\n<file>scripts/fill.py</file>\n</skill_resources>\n</skill_content>"
            )
            assert result.data == {
                "name": "pdf-forms",
                "compatibility": "",
                "text": BODY.strip(),
                "total_chars": len(BODY.strip()),
                "next_start": None,
                "files": ["assets/empty.txt", "references/fields.md", "scripts/fill.py"],
                "has_more_files": False,
                "tools": [],
            }

    def test_says_what_a_skill_needs(self, base: Path) -> None:
        with board(base) as toolkit:
            assert "\nCompatibility: Needs a printer\n" in toolkit.call_sync("load_skill", {"name": "letters"}).text

    def test_results_keep_their_schemas(self, base: Path) -> None:
        import jsonschema

        with board(base) as toolkit:
            for name, arguments in (
                ("load_skill", {"name": "letters"}),
                ("read_skill_file", {"name": "pdf-forms", "path": "references/fields.md"}),
            ):
                schema = toolkit[name].returns
                assert schema is not None
                jsonschema.validate(toolkit.call_sync(name, arguments).data, schema)

    def test_the_nearest_names_are_offered(self, base: Path) -> None:
        with board(base) as toolkit:
            text = toolkit.call_sync("load_skill", {"name": "pdf_form"}).text
            assert text == "There is no skill of this name. Did you mean pdf-forms?"
            text = toolkit.call_sync("load_skill", {"name": "zzz"}).text
            assert text == "There is no skill of this name. The description of load_skill lists them."

    def test_folders_are_read_once(self, base: Path) -> None:
        with board(base) as toolkit:
            write_skill(base / "letters", skill_text("letters", body="Changed."))
            write_skill(base / "new", skill_text("new"))
            assert "Changed." not in toolkit.call_sync("load_skill", {"name": "letters"}).text
            assert toolkit.call_sync("load_skill", {"name": "new"}).is_error

    def test_a_folder_may_be_the_skill_itself(self, base: Path) -> None:
        with board(base / "pdf-forms") as toolkit:
            assert toolkit.problems == []
            files = toolkit.call_sync("load_skill", {"name": "pdf-forms"}).data["files"]
            assert files == ["assets/empty.txt", "references/fields.md", "scripts/fill.py"]
            result = toolkit.call_sync("read_skill_file", {"name": "pdf-forms", "path": files[1]})
            assert result.text == "# Fields\n"

    def test_the_first_of_two_folders_counts(self, base: Path, tmp_path: Path) -> None:
        other = tmp_path / "second"
        write_skill(other / "letters", skill_text("letters", body="The second."))
        skills = Skills(base / "team", other)
        assert skills.skills["letters"].body == BODY.strip()
        where = f"{other}/letters: it is left out: 'letters' is the skill in {base}/team/letters"
        assert skills.problems == [where]


class TestFiles:
    @pytest.fixture
    def toolkit(self, base: Path) -> Toolkit:
        write_skill(base / "long", skill_text("long", body=LINES), {"lines.md": LINES, "one.md": "x" * 50_000})
        return board(base)

    @pytest.mark.parametrize(
        ("path", "whole"), [("SKILL.md", LINES.strip()), ("lines.md", LINES), ("one.md", "x" * 50_000)]
    )
    def test_long_ones_go_on_page_by_page(self, toolkit: Toolkit, path: str, whole: str) -> None:
        start: int | None = 0
        pages = []
        while start is not None:
            result = toolkit.call_sync("read_skill_file", {"name": "long", "path": path, "start": start})
            assert (result.data["start"], result.data["total_chars"]) == (start, len(whole))
            assert len(result.data["text"]) <= 20_000
            pages.append(result.data["text"])
            start = result.data["next_start"]
            if start is not None:
                assert result.text.endswith(f'the rest: read_skill_file(name="long", path="{path}", start={start})]')
        assert "".join(pages) == whole
        assert all(page.endswith("\n") for page in pages[:-1]) or path == "one.md"

    def test_a_long_body_says_how_to_go_on(self, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("load_skill", {"name": "long"})
        start = result.data["next_start"]
        assert f"[characters 0 to {start:,} of {len(LINES) - 1:,}; the rest: read_skill_file(" in result.text
        rest = toolkit.call_sync("read_skill_file", {"name": "long", "path": "SKILL.md", "start": start})
        assert (result.data["text"] + rest.data["text"]) in LINES

    def test_beyond_the_end_says_where_it_is(self, toolkit: Toolkit) -> None:
        arguments = {"name": "long", "path": "one.md", "start": 50_000}
        text = toolkit.call_sync("read_skill_file", arguments).text
        assert text == "start=50000 is beyond the end: there are 50,000 characters, counted from 0."
        assert toolkit.call_sync("read_skill_file", {**arguments, "start": -1}).status == "invalid"

    def test_an_empty_one_is_empty(self, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("read_skill_file", {"name": "pdf-forms", "path": "assets/empty.txt"})
        assert (result.text, result.is_error) == ("", False)

    def test_the_nearest_files_are_offered(self, toolkit: Toolkit) -> None:
        def text(path: str) -> str:
            return toolkit.call_sync("read_skill_file", {"name": "pdf-forms", "path": path}).text

        missing = "there is no such file or directory."
        assert text("reference/fields.md") == (
            f"Cannot open pdf-forms/reference/fields.md: {missing} Did you mean references/fields.md?"
        )
        assert text("zzz") == f"Cannot open pdf-forms/zzz: {missing} load_skill lists the files of a skill."


@tool
def print_form(form: str) -> str:
    """Print a form."""
    return f"printed {form}"


class TestGroups:
    def test_are_brought_by_registering(self, base: Path) -> None:
        with board(base) as toolkit:
            assert toolkit.groups == (
                Group("skill:letters", "Writes letters & <cards>.", active=False, managed_by="program"),
                Group("skill:pdf-forms", "Fills PDF forms. Use it for any form.", active=False, managed_by="program"),
            )

    def test_are_activated_in_the_calling_session_alone(self, base: Path) -> None:
        with board(base) as toolkit:
            toolkit.register(print_form, group="skill:pdf-forms")
            one, other = toolkit.session(), toolkit.session()
            assert one.call_sync("print_form", {"form": "A"}).status == "inactive"
            result = one.call_sync("load_skill", {"name": "pdf-forms"})
            assert result.data["tools"] == ["print_form"]
            assert "\nTools for this skill, available from now on: print_form\n" in result.text
            assert one.call_sync("print_form", {"form": "A"}).text == "printed A"
            assert [each.name for each in one.tools] == ["load_skill", "read_skill_file", "print_form"]
            for session in (other, toolkit, toolkit.session()):
                assert session.call_sync("print_form", {"form": "A"}).status == "inactive"
            assert (other.active_groups, toolkit.active_groups) == ((), ())

    def test_loading_twice_changes_nothing(self, base: Path) -> None:
        with board(base) as toolkit:
            toolkit.register(print_form, group="skill:pdf-forms")
            session = toolkit.session()
            first, second = (session.call_sync("load_skill", {"name": "pdf-forms"}) for _ in range(2))
            assert first.text == second.text
            assert session.active_groups == ("skill:pdf-forms",)

    def test_other_packs_put_tools_into_them(self, base: Path) -> None:
        class Printer:
            @hookimpl
            def provide_tools(self) -> Iterable[Any]:
                return [Offer(print_form, group="skill:pdf-forms")]

        settings = {"skills": {"folders": [str(base)]}}
        with Toolkit(plugins=["dataclasses", Printer(), "skills"], settings=settings) as toolkit:
            assert [each.name for each in toolkit.tools] == ["load_skill", "read_skill_file"]
            assert toolkit.call_sync("load_skill", {"name": "pdf-forms"}).data["tools"] == ["print_form"]
            assert toolkit.call_sync("print_form", {"form": "A"}).text == "printed A"

    def test_no_model_switches_them_otherwise(self, base: Path) -> None:
        with board(base) as toolkit:
            toolkit.register(print_form, group="skill:pdf-forms")
            toolkit.register_meta_tool()
            result = toolkit.call_sync("reset_equipped_tools", {"to_activate": ["skill:pdf-forms"]})
            assert result.is_error
            assert toolkit.active_groups == ()

    def test_one_that_the_program_removed_is_not_missed(self, base: Path) -> None:
        with board(base) as toolkit:
            toolkit.remove_groups("skill:pdf-forms")
            assert toolkit.call_sync("load_skill", {"name": "pdf-forms"}).status == "success"

    def test_many_sessions_on_a_loop_stay_apart(self, base: Path) -> None:
        async def active(toolkit: Toolkit, number: int) -> tuple[str, ...]:
            session = toolkit.session()
            await session.call("load_skill", {"name": "letters" if number % 2 else "pdf-forms"})
            return session.active_groups

        async def run() -> list[tuple[str, ...]]:
            with board(base) as toolkit:
                return await asyncio.gather(*(active(toolkit, number) for number in range(20)))

        assert asyncio.run(run()) == [("skill:pdf-forms",), ("skill:letters",)] * 10


class TestProgram:
    def test_reads_skills_and_their_resources(self, base: Path) -> None:
        skills = Skills(base)
        letters = skills.skills["letters"]
        assert isinstance(letters, Skill)
        assert (letters.name, letters.group, letters.place) == ("letters", "skill:letters", f"{base}/team/letters")
        assert repr(skills) == f"Skills({str(base)!r})"
        text = (base / "team" / "letters" / "SKILL.md").read_text()
        assert skill_resources(skills) == {
            "skill://letters/SKILL.md": (text, "text/markdown"),
            "skill://pdf-forms/SKILL.md": (skills.skills["pdf-forms"].text, "text/markdown"),
        }

    def test_names_a_folder(self) -> None:
        with pytest.raises(ValueError, match=r"Skills\(\.\.\.\) takes the folders"):
            Skills()

    def test_a_folder_without_skills_offers_no_tools(self, tmp_path: Path) -> None:
        for folder in (tmp_path, tmp_path / "missing"):
            with board(folder) as toolkit:
                assert toolkit.tools == []
                assert toolkit.problems[-1] == f"there is no skill, a folder with a SKILL.md, in {folder}"

    def test_unregisters_the_source(self, base: Path) -> None:
        skills = Skills(base)
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(skills)
            toolkit.unregister(skills)
            assert toolkit.tools == []
            toolkit.register(skills, prefix="my_")
            assert toolkit.call_sync("my_load_skill", {"name": "letters"}).data["name"] == "letters"
