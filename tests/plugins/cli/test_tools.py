"""`pegboard tools`, `show` and `schema`."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard_testing import fake_distribution
from tests.plugins.cli.command import Outcome, tool
from tests.support.plugin_site import Site

Run = Callable[..., Outcome]

LAZY = """
@hookimpl
def provide_tools(settings):
    return ["site_behind:heavy"]
"""
BEHIND = 'def heavy(weight: int) -> int:\n    "Lift something heavy."\n    return weight\n'


@pytest.fixture
def board(site: Site) -> Site:
    site.add("dice", tool("roll", read_only=True, tags=("games",)))
    site.add("paint", tool("draw", requires_approval=True, destructive=True), distribution="Acme_Paint")
    return site


class TestTools:
    def test_lists_name_pack_parameters_and_hints(self, board: Site, run: Run) -> None:
        listed = run("tools")
        assert listed.code == 0
        heading, _, draw, roll, count = listed.out.splitlines()
        assert heading.split() == ["Tool", "Pack", "Parameters", "Hints", "Description"]
        assert draw.split(None, 6)[:5] == ["draw", "paint", "text,", "times?", "destructive,"]
        assert "asks first" in draw
        assert roll.split()[:5] == ["roll", "dice", "text,", "times?", "read-only"]
        assert count.strip() == "2 tools"
        assert listed.err == ""

    def test_as_data(self, board: Site, run: Run) -> None:
        draw, roll = run("tools", "--json").data
        assert (draw["name"], draw["approval"]) == ("draw", "always")
        assert roll == {
            "name": "roll",
            "pack": "dice",
            "distribution": "acme-dice",
            "version": "1.0",
            "loaded": True,
            "description": "Repeat a text.",
            "groups": [],
            "tags": ["games"],
            "parameters": [{"name": "text", "required": True}, {"name": "times", "required": False}],
            "hints": {"read_only": True, "destructive": None, "idempotent": None, "open_world": None},
            "approval": "never",
        }

    @pytest.mark.parametrize(
        ("arguments", "names"),
        [
            (["--pack", "dice"], ["roll"]),
            (["--pack", "acme-paint"], ["draw"]),
            (["--tag", "games"], ["roll"]),
            (["RO"], ["roll"]),
            (["repeat"], ["draw", "roll"]),
            (["repeat", "--tag", "games"], ["roll"]),
        ],
    )
    def test_filters(self, board: Site, run: Run, arguments: list[str], names: list[str]) -> None:
        listed = run("tools", "--json", *arguments)
        assert [each["name"] for each in listed.data] == names
        assert listed.err == ""

    def test_says_so_where_none_fits(self, board: Site, run: Run) -> None:
        listed = run("tools", "nonsense")
        assert (listed.code, listed.out) == (0, "")
        assert listed.complaint == "pegboard: none of 2 tools fits; packs with tools: dice, paint"

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["--pack", "dise"], "pegboard: there is no plugin 'dise'. Did you mean 'dice'?"),
            (["--plugins", "dise"], "pegboard: there is no plugin 'dise'. Did you mean 'dice'?"),
            (["--group", "games"], "pegboard: there is no group 'games'. There are no groups."),
            (["--tag", "gmes"], "pegboard: there is no tag 'gmes'. Did you mean 'games'?"),
        ],
    )
    def test_a_name_of_nothing_is_an_error(self, board: Site, run: Run, arguments: list[str], complaint: str) -> None:
        listed = run("tools", *arguments)
        assert (listed.code, listed.out, listed.complaint) == (4, "", complaint)

    def test_keeps_the_description_on_a_narrow_terminal(
        self, board: Site, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        heading, _, draw, *_ = run("tools").out.splitlines()
        assert heading.split() == ["Tool", "Pack", "Description"]
        assert draw.split(None, 2)[2].strip() == "Repeat a text."


class TestSearch:
    def test_best_first(self, board: Site, run: Run) -> None:
        assert [each["name"] for each in run("search", "draw", "repeat", "--json").data] == ["draw", "roll"]
        assert [each["name"] for each in run("search", "repeat", "--limit", "1", "--json").data] == ["draw"]
        assert run("search", "text").out.splitlines()[-1].strip() == "2 tools"

    def test_finds_nothing(self, board: Site, run: Run) -> None:
        found = run("search", "nonsense")
        assert (found.code, found.complaint) == (0, "pegboard: none of 2 tools fits; see: pegboard tools")

    def test_groups_have_a_column_where_there_are_any(self, site: Site, run: Run) -> None:
        site.add("dice", tool("roll", group="games"))
        assert "Group" in run("tools").out
        assert [each["groups"] for each in run("tools", "--group", "games", "--json").data] == [["games"]]

    def test_import_strings_are_not_imported_for_the_list(self, site: Site, run: Run) -> None:
        site.add("lazy", LAZY)
        fake_distribution(site.path, "behind", modules={"site_behind": BEHIND})
        (heavy,) = run("tools", "--json").data
        assert (heavy["name"], heavy["loaded"], heavy["parameters"]) == ("heavy", False, None)
        assert "(not loaded)" in run("tools").out
        assert "site_behind" not in sys.modules
        (heavy,) = run("tools", "--json", "--load").data
        assert (heavy["loaded"], heavy["description"]) == (True, "Lift something heavy.")
        assert "site_behind" in sys.modules

    def test_tool_that_cannot_be_read_is_listed_with_the_reason(self, site: Site, run: Run) -> None:
        site.add("lazy", LAZY)
        (heavy,) = run("tools", "--json", "--load").data
        assert "No module named 'site_behind'" in heavy["problem"]

    def test_empty_board_says_what_to_install(self, site: Site, run: Run) -> None:
        listed = run("tools")
        assert (listed.code, listed.out) == (0, "")
        assert "pip install pegboard-files" in listed.complaint

    def test_broken_plugins_are_mentioned(self, board: Site, run: Run) -> None:
        board.add("broken", "raise RuntimeError")
        listed = run("tools", "--json")
        assert len(listed.data) == 2
        assert listed.complaint == "pegboard: 1 plugin cannot be used: broken; see: pegboard doctor"

    def test_texts_of_packs_cannot_move_the_cursor(self, site: Site, run: Run) -> None:
        site.add("evil", tool("evil").replace("Repeat a text.", "\\x1b[2J\\u202eEvil [red]text[/red]."))
        assert r"\x1b[2J\u202eEvil [red]text[/red]." in run("tools").out


class TestShow:
    def test_shows_everything(self, board: Site, run: Run) -> None:
        shown = run("show", "draw").out
        for part in ("Repeat a text.", "Acme_Paint 1.0", "plugin paint (site_paint)", "destructive, asks first"):
            assert part in shown
        assert "site_paint.py:" in shown
        assert 'pegboard call draw \'{"text": "text"}\'' in shown

    def test_as_data(self, board: Site, run: Run) -> None:
        shown = run("show", "dice__roll", "--json").data
        assert shown["name"] == "roll"
        assert shown["parameters"]["properties"]["times"] == {
            "type": "integer",
            "default": 1,
            "description": "How often",
        }
        assert shown["returns"] == {"type": "string"}
        assert shown["example"] == {"text": "text"}
        assert len(shown["schema_hash"]) == 64

    def test_own_example_comes_first(self, site: Site, run: Run) -> None:
        site.add("dice", tool("roll", examples=[{"text": "ho", "times": 3}]))
        assert run("show", "roll", "--json").data["example"] == {"text": "ho", "times": 3}

    def test_example_fits_the_schema_or_is_left_out(self, site: Site, run: Run) -> None:
        source = tool("roll").replace("import pegboard", "import pegboard, typing")
        pattern = 'typing.Annotated[str, pegboard.Param(pattern="^[0-9]{4}$")]'
        site.add("dice", source.replace("text: str", f"text: {pattern}"))
        assert run("show", "roll", "--json").data["example"] is None

    def test_unknown_tool_names_the_nearest(self, board: Site, run: Run) -> None:
        missed = run("show", "rol")
        assert missed.code == 4
        assert missed.complaint == "pegboard: there is no tool 'rol'. Did you mean 'roll'?"

    def test_tool_of_a_broken_plugin_says_so(self, board: Site, run: Run) -> None:
        board.add("broken", "raise RuntimeError('no network')")
        missed = run("show", "broken__fetch")
        assert missed.code == 4
        assert "no network" in missed.complaint


class TestSchema:
    def test_is_what_a_model_sees(self, board: Site, run: Run) -> None:
        roll, draw = run("schema", "--json").data  # in the order that a model gets
        assert [roll["name"], draw["name"]] == ["roll", "draw"]
        assert roll["parameters"]["required"] == ["text"]
        assert run("schema").data == [roll, draw]

    def test_of_named_tools(self, board: Site, run: Run) -> None:
        assert [each["name"] for each in run("schema", "roll", "--json").data] == ["roll"]
        assert run("schema", "rol").code == 4

    def test_in_a_dialect_of_a_pack(self, board: Site, run: Run) -> None:
        source = """
        import pegboard

        @hookimpl
        def provide_dialects():
            return [pegboard.Dialect("acme", lambda tools: [{"fn": tool.name} for tool in tools])]
        """
        board.add("acme", source)
        assert run("schema", "--dialect", "acme", "--json").data == [{"fn": "roll"}, {"fn": "draw"}]
        missed = run("schema", "--dialect", "acne")
        assert missed.code == 4
        assert "Did you mean 'acme'?" in missed.complaint


class TestToolkit:
    """`--toolkit MODULE:NAME`: a program's own board."""

    @pytest.fixture(autouse=True)
    def program(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (here / "site_program.py").write_text(
            "from pegboard import Toolkit\n"
            "toolkit = Toolkit(plugins=())\n"
            "toolkit.create_group('rare', active=False)\n"
            "def own(text: str) -> str:\n    return text\n"
            "toolkit.register(lambda: 'found', name='hidden', group='rare')\n"
            "toolkit.register(own)\n"
        )
        monkeypatch.setattr(sys, "path", list(sys.path))

    def test_has_the_programs_tools(self, site: Site, run: Run) -> None:
        assert [each["name"] for each in run("tools", "--toolkit", "site_program:toolkit", "--json").data] == [
            "hidden",
            "own",
        ]
        assert "(program)" in run("--toolkit", "site_program:toolkit", "tools").out

    def test_inactive_tools_can_be_called_by_name(self, site: Site, run: Run) -> None:
        called = run("--toolkit", "site_program:toolkit", "call", "hidden")
        assert (called.code, called.out) == (0, "found\n")

    def test_schema_shows_what_is_offered(self, site: Site, run: Run) -> None:
        assert [each["name"] for each in run("--toolkit", "site_program:toolkit", "schema").data] == ["own"]
