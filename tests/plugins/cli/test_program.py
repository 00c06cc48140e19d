"""The program: starting, errors, commands of packs, and what stays the same from run to run."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import pegboard
from pegboard import Status
from pegboard_cli._output.exits import of_status
from pegboard_cli.plugin import OWN, provide_commands
from tests.plugins.cli.command import COMMAND, Installation, Outcome, tool
from tests.support.interpreters import printed
from tests.support.measuring import least
from tests.support.plugin_site import Site
from tests.workspace.project import ROOT

Run = Callable[..., Outcome]

COMMANDS_OF_A_PACK = """
import pegboard

def hello(arguments):
    print("hello", *arguments)
    return 7

def board(arguments):
    with pegboard.Toolkit() as toolkit:
        print([(record.name, record.state.value) for record in toolkit.plugins])

def bad(arguments):
    raise ValueError("no such thing")

def leave(arguments):
    raise SystemExit(9)

@hookimpl
def provide_commands():
    return [
        pegboard.Command("hello", "Say hello.", hello),
        pegboard.Command("board", "Show the board.", board),
        pegboard.Command("bad", "Fail.", bad),
        pegboard.Command("leave", "Leave.", leave),
        pegboard.Command("tools", "Other tools.", hello),
    ]
"""


class TestStart:
    @pytest.mark.parametrize(
        ("arguments", "absent"),
        [
            (["--version"], ["rich", "pluggy", "cattrs", "jsonschema", "importlib_metadata", "site_dice"]),
            (["tools", "--json"], ["rich", "jsonschema", "site_behind"]),
            (["plugins", "--no-load", "--json"], ["rich", "jsonschema", "site_dice"]),
        ],
    )
    def test_imports_only_what_it_needs(
        self, installation: Installation, arguments: list[str], absent: list[str]
    ) -> None:
        installation.add("dice", "@hookimpl\ndef provide_tools(settings): return ['site_behind:heavy']")
        code = (
            f"import sys; from pegboard_cli import main; main({arguments}, standalone_mode=False)\n"
            f"print([name for name in {absent} if name in sys.modules])"
        )
        environ = {"PYTHONPATH": str(installation.path), "PEGBOARD_BLOCK": "pegboard-*"}
        assert printed(code, env=environ).splitlines()[-1] == "[]"

    def test_version(self, run: Run) -> None:
        assert run("--version").out == f"pegboard {pegboard.__version__}\n"

    def test_as_a_module(self, here: Path) -> None:
        command = [sys.executable, "-m", "pegboard_cli", "--version"]
        assert subprocess.run(command, capture_output=True, check=True, text=True).stdout.startswith("pegboard ")

    def test_every_command_has_help_without_loading_plugins(self, site: Site, run: Run) -> None:
        site.add("dice", tool("roll"))
        for each in OWN.values():
            assert each.help in run(each.name, "--help").out
        assert "site_dice" not in sys.modules


class TestBare:
    def test_is_the_help(self, site: Site, run: Run) -> None:
        ended = run()
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == run("--help").out


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "code", "complaint"),
        [
            (["tols"], 2, r"pegboard: there is no command 'tols'. Did you mean 'tools'\? See: pegboard --help"),
            (["tools", "--jsn"], 2, r"pegboard: No such option.* See: pegboard tools --help"),
            (["show"], 2, r"pegboard: Missing argument 'NAME'. See: pegboard show --help"),
            (["tools", "--toolkit", "nowhere:toolkit"], 1, "pegboard: nowhere:toolkit cannot be loaded: Mod.*"),
            (["tools", "--toolkit", "json"], 1, "pegboard: 'json' names no program; write MODULE:NAME.*"),
            (["tools", "--toolkit", "json:dumps"], 1, "pegboard: json:dumps cannot be loaded: TypeError.*"),
            (["tools", "--toolkit", "json:__name__"], 1, "pegboard: json:__name__ is of type str; name a Tool.*"),
            (
                ["tools", "--toolkit", "json:x", "--block", "x"],
                2,
                "pegboard: --toolkit takes a program.s toolkit as it is; .*",
            ),
        ],
    )
    def test_are_one_line(self, site: Site, run: Run, arguments: list[str], code: int, complaint: str) -> None:
        failed = run(*arguments)
        assert (failed.code, failed.out) == (code, "")
        assert re.fullmatch(complaint, failed.complaint)

    def test_have_tracebacks_on_request(self, site: Site, run: Run) -> None:
        failed = run("--traceback", "tools", "--toolkit", "nowhere:toolkit")
        assert failed.err.startswith("Traceback")
        assert failed.err.splitlines()[-1].startswith("pegboard: nowhere:toolkit cannot be loaded")

    def test_of_our_own_are_one_line_too(self, site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_cli._commands.tools.summary", lambda tool, load: 1 / 0)
        site.add("dice", tool("roll"))
        failed = run("tools")
        assert failed.code == 1
        assert failed.complaint.startswith("pegboard: this is a fault of pegboard or of a pack: ZeroDivisionError")

    def test_slow_plugins_are_told_of(self, site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_cli._toolkit.PATIENCE", 0.02)
        site.add("slow", f"import time; time.sleep(0.3)\n{tool('roll')}")
        listed = run("tools", "--json")
        assert "plugins are still loading" in listed.complaint
        assert len(listed.data) == 1

    @pytest.mark.parametrize(
        "damage",
        [
            "import json; json.dumps = lambda *a, **k: 'garbled'",
            "import sys; sys.stdout.close()",
            pytest.param("import sys; sys.stdout = None", marks=pytest.mark.slow),
            pytest.param("import warnings; warnings.warn('beware')", marks=pytest.mark.slow),
        ],
    )
    def test_damage_to_the_process_garbles_no_output(self, installation: Installation, damage: str) -> None:
        installation.add("damage", f"{damage}\n{tool('roll')}")
        listed = installation.run("plugins", "--json").data["plugins"]
        assert [(each["state"], each["reason"]) for each in listed if each["name"] == "damage"] == [("active", "")]
        assert installation.run("call", "roll", "--arg", "text=ho").out == "ho\n"

    @pytest.mark.parametrize("arguments", [["tools", "--json"], ["chatter"]], ids=["our command", "a pack's command"])
    def test_reader_that_stops_early_is_no_error(self, installation: Installation, arguments: list[str]) -> None:
        functions = "\n".join(f"def tool_{number}(): ..." for number in range(2000))
        names = ", ".join(f"tool_{number}" for number in range(2000))
        chatter = "lambda arguments: print(*range(100_000), sep=chr(10))"
        installation.add(
            "many",
            f"{functions}\n@hookimpl\ndef provide_tools(settings): return [{names}]\n"
            f"from pegboard import Command\n@hookimpl\n"
            f"def provide_commands(): return [Command('chatter', 'Say much.', {chatter})]",
        )
        environ = {"PYTHONPATH": str(installation.path), "PEGBOARD_BLOCK": "pegboard-*"}
        with subprocess.Popen(
            [*COMMAND, *arguments], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.read(1)
            process.stdout.close()
            assert process.stderr is not None
            assert process.stderr.read() == b""
            assert process.wait(60) == 0

    @pytest.mark.slow
    def test_failed_start_of_one_plugin_costs_no_command(self, installation: Installation) -> None:
        installation.add("raises", "raise RuntimeError('no network')")
        installation.add("exits", "import sys; sys.exit(3)")
        installation.add("interrupts", "raise KeyboardInterrupt")
        installation.add("garbage", "@hookimpl\ndef provide_tools(settings): return 7")
        installation.add("types", "@hookimpl\ndef provide_types(): raise OSError")
        installation.add("syntax", "def (")
        installation.add("malformed", entry_points="[pegboard]\nmalformed\n")
        broken = {"exits", "garbage", "interrupts", "malformed", "raises", "syntax", "types"}
        endings = {}
        for arguments, code in [
            (["tools", "--json"], 0),
            (["schema", "--json"], 0),
            (["types", "int", "--json"], 0),
            (["settings", "--json"], 0),
            (["plugins", "--json"], 0),
            (["doctor", "--json"], 1),
            (["show", "raises__tool"], 4),
            (["call", "raises__tool"], 4),
            (["lock"], 0),
            (["--help"], 0),
        ]:
            ended = endings[arguments[0]] = installation.run(*arguments)
            assert (ended.code, "Traceback" in ended.err) == (code, False), (arguments, ended)
        listed = {each["name"]: each["state"] for each in endings["plugins"].data["plugins"]}
        assert {name for name, state in listed.items() if state == "failed"} == broken
        told = {each["subject"].partition(" ")[0] for each in endings["doctor"].data}
        assert told == broken


class TestPipe:
    def test_gets_a_line_for_each_tool(self, site: Site, run: Run) -> None:
        site.add("dice", tool("roll").replace("Repeat a text.", "Repeat " + "a text " * 50))
        heading, rule, row, _ = run("tools").out.splitlines()
        assert set(rule) == {" ", "-"}
        assert heading.index("Description") == row.index("Repeat")
        assert row.endswith("a text")


class TestWidth:
    COMMANDS = (
        ["tools"],
        ["show", "roll_the_dice_of_a_pack_with_a_long_name"],
        ["plugins"],
        ["settings"],
        ["types"],
        ["doctor"],
        ["--help"],
    )

    @pytest.mark.parametrize("width", [80, 140])
    @pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
    def test_nothing_is_wider_than_the_terminal(
        self, site: Site, run: Run, arguments: list[str], width: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        site.add("dice-of-a-long-name", tool("roll_the_dice_of_a_pack_with_a_long_name", destructive=True))
        site.add("broken", "raise RuntimeError('no network ' * 30)")
        told = run(*arguments)
        wrapped = [line for line in told.out.splitlines() if not line.startswith(("  ", "pegboard call"))]
        assert max(map(len, wrapped)) <= width


class TestCommandsOfPacks:
    @pytest.fixture(autouse=True)
    def packs(self, site: Site) -> None:
        site.add("acme", COMMANDS_OF_A_PACK)
        site.add("broken", "@hookimpl\ndef provide_commands(): raise OSError('nope')")

    def test_run_with_their_arguments_and_exit_code(self, run: Run) -> None:
        ended = run("hello", "--loud", "you", "--help", "--json")
        assert (ended.code, ended.out) == (7, "hello --loud you --help --json\n")

    def test_are_listed(self, run: Run) -> None:
        helped = run("--help").out
        assert re.search(r"Commands of packs:\n(.*\n)*  hello +Say hello. \(acme-acme 1.0\)\n", helped)
        assert re.search(r"  acme__tools +Other tools.", helped)

    def test_do_not_hide_ours(self, run: Run) -> None:
        assert run("tools", "--json").data == []
        assert run("acme__tools").out == "hello\n"
        assert run("acme__hello").out == "hello\n"

    @pytest.mark.parametrize("name", OWN)
    def test_that_replace_one_of_ours_run_in_its_place(self, run: Run, site: Site, name: str) -> None:
        source = f"""
        import pegboard

        def stand_in(arguments):
            print("stands in", *arguments)
            return 5

        @hookimpl
        def provide_commands():
            return [pegboard.Command({name!r}, "Stand in.", stand_in, replaces="cli__{name}")]
        """
        site.add("stand-in", source)
        needed = {each: ["x"] for each in ("call", "new", "search", "show")} | {"completion": ["show"]}
        arguments = needed.get(name, [])
        ended = run(name, *arguments)
        assert (ended.code, ended.out) == (5, " ".join(["stands in", *arguments]) + "\n")
        assert "Stand in" not in run(name, "--help").out  # read without loading a plugin
        blocked = run(name, *arguments, "--block", "*")
        assert "stands in" not in blocked.out

    def test_of_two_packs_that_replace_one_of_ours_none_runs(self, run: Run, site: Site) -> None:
        for pack in ("one", "two"):
            command = "pegboard.Command('tools', 'Stand in.', print, replaces='cli__tools')"
            site.add(pack, f"import pegboard\n@hookimpl\ndef provide_commands(): return [{command}]")
        refused = run("tools")
        assert refused.code == 2
        assert "acme-one 1.0 and acme-two 1.0 both replace the command 'tools'; block one of them" in refused.complaint

    def test_ours_come_through_the_hook_too(self) -> None:
        assert [each.name for each in provide_commands()] == sorted(OWN)
        listed = {each.name: each for each in provide_commands()}
        assert listed["plugins"].run(["--no-load", "--json"]) == 0

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--settings", "sided.sides=8", "sides"],
            ["--config", "other.toml", "sides"],
            ["tools", "--settings", "sided.sides=8"],
            ["tools", "--config", "other.toml"],
        ],
    )
    def test_get_the_settings_of_the_command_line(self, run: Run, site: Site, here: Path, arguments: list[str]) -> None:
        source = """
        import attrs
        import pegboard

        @attrs.frozen
        class Settings:
            sides: int = 6

        @hookimpl
        def settings_type():
            return Settings

        @hookimpl
        def provide_commands(settings):
            def run(arguments):
                print(settings.sides)
            return [
                pegboard.Command("sides", "Say how many.", run),
                pegboard.Command("few", "Say how many.", run, replaces="cli__tools"),
            ]
        """
        site.add("sided", source)
        (here / "other.toml").write_text("[sided]\nsides = 8\n", "utf-8")
        assert run(*arguments).out == "8\n"
        assert run("sides").out == "6\n"

    def test_of_one_name_stand_under_their_packs(self, run: Run, site: Site) -> None:
        site.add("other", COMMANDS_OF_A_PACK)
        refused = run("hello")
        assert refused.code == 2
        assert "use one of: acme__hello, other__hello" in refused.complaint
        assert run("other__hello").out == "hello\n"

    def test_that_fail_are_one_line(self, run: Run) -> None:
        ended = run("bad")
        assert ended.code == 1
        assert ended.complaint.startswith(
            "pegboard: the command 'bad' of acme-acme 1.0 raised ValueError: no such thing"
        )
        assert "Traceback" in run("--traceback", "bad").err

    def test_may_leave(self, run: Run) -> None:
        assert run("leave").code == 9

    def test_missing_one_may_belong_to_a_broken_plugin(self, run: Run) -> None:
        refused = run("unheard")
        assert refused.code == 2
        assert "It may belong to a plugin that is broken: broken" in refused.complaint

    def test_one_of_a_plugin_that_is_not_selected(self, site: Site, run: Run, here: Path) -> None:
        site.add("near")
        (here / "pegboard.toml").write_text('plugins = ["near"]\n', encoding="utf-8")
        refused = run("hello")
        assert refused.code == 2
        assert "one that is installed, but not selected: acme, " in refused.err
        assert "`pegboard plugins` says why each is left out" in refused.err

    def test_one_of_a_known_pack_that_is_not_selected(self, site: Site, run: Run, here: Path) -> None:
        site.add("near")
        site.add("agent", distribution="pegboard-agent")
        (here / "pegboard.toml").write_text('plugins = ["near"]\n', encoding="utf-8")
        message = run("chat").err
        assert "It is a command of agent (pegboard-agent 1.0), which is installed, but not selected: " in message
        assert "pegboard.toml" in message.splitlines()[-1]

    def test_one_of_a_known_pack_that_is_not_installed(self, site: Site, run: Run) -> None:
        message = run("inspect").complaint
        assert "It comes with pegboard-inspector: pip install pegboard-inspector" in message

    def test_get_the_options_before_their_name(self, run: Run) -> None:
        assert "('broken', 'blocked')" in run("--block", "broken", "board").out
        assert "('broken', 'found')" in run("--plugins", "acme", "board").out


class TestSameFromRunToRun:
    NAMES = ("bone", "acorn", "clay", "dice")

    def outputs(self, folder: Path, here: Path, names: tuple[str, ...], seed: int) -> list[str]:
        installation = Installation(folder, here)
        for name in names:  # directories list what was made first, first, or by hash
            installation.add(name, tool("roll") + tool(f"{name}_only").replace("return [", "return [roll, "))
        return [installation.run(*each, PYTHONHASHSEED=str(seed)).out for each in (["tools", "--json"], ["schema"])]

    def check(self, tmp_path: Path, here: Path, runs: int) -> None:
        names: tuple[str, ...] = self.NAMES
        outputs = []
        for seed in range(runs):
            names = (*names[1:], names[0]) if seed % 2 else tuple(reversed(names))
            outputs.append(self.outputs(tmp_path / f"packs{seed}", here, names, seed))
        assert len({json.dumps(each).replace("packs0", "") for each in outputs}) == 1
        assert "acorn__roll" in outputs[0][0]

    @pytest.mark.slow
    def test_few(self, tmp_path: Path, here: Path) -> None:
        self.check(tmp_path, here, 3)

    @pytest.mark.slow
    def test_many(self, tmp_path: Path, here: Path) -> None:
        self.check(tmp_path, here, 20)


@pytest.mark.slow
def test_list_of_many_packs_takes_twice_that_of_one_at_most(tmp_path: Path, here: Path) -> None:
    """300 distributions, 50 of them packs with 20 tools each, against 300 with one pack."""

    def fill(folder: Path, packs: int) -> Installation:
        installation = Installation(folder, here)
        for number in range(300):
            if number >= packs:
                installation.add(f"other-{number}", entry_points={"console_scripts": {"x": "y:z"}}, modules={})
                continue
            names = [f"tool_{number}_{count}" for count in range(20)]
            functions = "\n".join(f"def {name}(text: str, times: int = 1) -> str:\n    'Do it.'" for name in names)
            hook = f"@hookimpl\ndef provide_tools(settings): return [{', '.join(names)}, 'site_heavy:heavy_{number}']"
            installation.add(f"pack-{number}", f"{functions}\n{hook}\n")
        (folder / "site_heavy.py").write_text("raise AssertionError('imported')")
        return installation

    def spent() -> float:
        return sum(os.times()[2:4])  # of the programs that have ended: no clock that runs on while they wait

    def cost(installation: Installation, *arguments: str) -> float:
        started = spent()
        assert all(installation.run("tools", *arguments).code == 0 for _ in range(3))
        return spent() - started

    def ratio(*arguments: str) -> float:
        return cost(many, *arguments) / cost(one, *arguments)

    one, many = fill(tmp_path / "one", 1), fill(tmp_path / "many", 50)
    assert len(many.run("tools", "--json").data) == 50 * 21
    for arguments in ([], ["--json"]):
        assert least(partial(ratio, *arguments), enough=2) < 2, arguments


class TestPage:
    PAGE = (ROOT / "docs" / "command-line.md").read_text("utf-8")

    def test_lists_every_command(self) -> None:
        listed = re.findall(r"^\| `pegboard ([\w-]+)[^`]*` \| (.*) \|$", self.PAGE, re.MULTILINE)
        assert {name: line[:1].upper() + line[1:] + "." for name, line in listed} == {
            each.name: each.help for each in OWN.values()
        }

    def test_lists_every_exit_code(self) -> None:
        listed = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.*) \|$", self.PAGE, re.MULTILINE)}
        for status in list(Status)[3:]:
            assert listed[of_status(status)].startswith(str(status)), status
        assert {2, 130} <= set(listed)
