"""`pegboard call`."""

import json
import os
import re
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.cli.command import COMMAND, Installation, Outcome
from tests.support.plugin_site import Site
from tests.support.thinning import first

Run = Callable[..., Outcome]

ZOO = """
import time
import pegboard

def add(a: int, b: int = 1) -> int:
    print("this is no result")
    return a + b

def both(value: int | str) -> str:
    return repr(value)

def table(rows: list[dict[str, int]]) -> dict[str, object]:
    return {"rows": rows, "über": None}

def count(n: int):
    for number in range(n):
        yield f"{number}\\n"

def work(n: int, emitter: pegboard.Emitter) -> str:
    for number in range(n):
        emitter.emit(f"step {number}")
    return "done"

def fail() -> None:
    raise RuntimeError("kaboom \\x1b[31m")

def picture() -> pegboard.ImageBlock:
    return pegboard.ImageBlock.from_bytes(b"abc", "image/png")

@pegboard.tool(timeout=0.05)
def hang() -> None:
    time.sleep(1)

@pegboard.tool(requires_approval=True)
def wipe(path: str) -> str:
    return f"wiped {path}"

@pegboard.tool(group="rare")
def grouped() -> str:
    return "in a group"

def later() -> None:
    raise pegboard.Suspend("ask the boss")

def haul(n: int, emitter: pegboard.Emitter) -> str:
    for done in range(1, n + 1):
        emitter.progress(done, n, "loading")
    emitter.progress(2.5)
    return "loaded"

def breaks():
    yield "one "
    raise ValueError("no two")

@hookimpl
def provide_tools(settings):
    return [haul, breaks, add, both, table, count, work, fail, picture, hang, wipe, grouped, later]
"""


@pytest.fixture
def zoo(site: Site) -> Site:
    site.add("zoo", ZOO)
    return site


class TestArguments:
    def test_as_json(self, zoo: Site, run: Run) -> None:
        called = run("call", "add", '{"a": 2, "b": 3}')
        assert (called.code, called.out, called.err) == (0, "5\n", "this is no result\n")

    def test_from_standard_input(self, zoo: Site, run: Run) -> None:
        assert run("call", "add", "-", stdin='{"a": 2}').out == "3\n"

    def test_none(self, zoo: Site, run: Run) -> None:
        assert run("call", "grouped").out == "in a group\n"

    def test_as_pairs_that_are_json_where_no_text_is_wanted(self, zoo: Site, run: Run) -> None:
        assert run("call", "add", "--arg", "a=2", "--arg", "b=3").out == "5\n"
        assert json.loads(run("call", "table", "--arg", 'rows=[{"a": 1}]').out) == {"rows": [{"a": 1}], "über": None}
        assert run("call", "both", "--arg", "value=2").out == "2\n"
        assert run("call", "both", "--arg", "value=two").out == "'two'\n"

    def test_as_pairs_that_are_text_where_text_is_wanted(self, zoo: Site, run: Run) -> None:
        assert run("call", "wipe", "--yes", "--arg", "path=1=2").out == "wiped 1=2\n"

    def test_twice_are_refused(self, zoo: Site, run: Run) -> None:
        called = run("call", "add", "{}", "--arg", "a=2")
        assert called.code == 2
        assert called.complaint.startswith("pegboard: arguments come as JSON or as --arg, not both")

    def test_pair_in_the_place_of_json_is_told_how(self, zoo: Site, run: Run) -> None:
        called = run("call", "wipe", "path=a b")
        assert called.code == 2
        assert called.complaint.startswith("pegboard: 'path=a b' is not JSON; write --arg 'path=a b'")

    def test_pair_without_value_is_refused(self, zoo: Site, run: Run) -> None:
        called = run("call", "add", "--arg", "a")
        assert called.code == 2
        assert "--arg NAME=VALUE" in called.complaint


class TestOutcomes:
    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["fail"], 1, "Error: kaboom"),
            (["add", '{"a": "two"}'], 3, "a: expected integer"),
            (["add", "{"], 3, "not valid JSON"),
            (["ad"], 4, "Did you mean 'add'?"),
            (["wipe", '{"path": "/"}'], 6, "approve it beforehand with --yes"),
            (["hang"], 7, "0.05"),
        ],
    )
    def test_failure_has_its_exit_code_and_leaves_standard_output_alone(
        self, zoo: Site, run: Run, arguments: list[str], code: int, message: str
    ) -> None:
        called = run("call", *arguments)
        assert (called.code, called.out) == (code, "")
        assert message in called.err
        assert "\x1b" not in called.err

    def test_suspended(self, zoo: Site, run: Run) -> None:
        assert run("call", "later").code == 9

    def test_as_data(self, zoo: Site, run: Run) -> None:
        called = run("call", "fail", "--json")
        assert called.code == 1
        assert called.data["status"] == "error"
        assert called.data["error"]["message"] == "kaboom \x1b[31m"

    def test_repairs_are_remarked(self, zoo: Site, run: Run) -> None:
        called = run("call", "add", '{"a": "2"}')
        assert called.out == "3\n"
        assert "pegboard: note: a: " in called.err

    def test_tracebacks_on_request(self, zoo: Site, run: Run) -> None:
        assert "Traceback" not in run("call", "fail").err
        assert "Traceback" in run("call", "fail", "--traceback").err

    def test_pictures_are_told_of(self, zoo: Site, run: Run) -> None:
        called = run("call", "picture")
        assert called.code == 0
        assert "ImageBlock" in called.err
        assert "--json" in called.err


class TestStreams:
    def test_what_is_yielded_is_the_result(self, zoo: Site, run: Run) -> None:
        called = run("call", "count", "--arg", "n=3")
        assert (called.out, called.err) == ("0\n1\n2\n", "")

    def test_what_is_reported_is_not(self, zoo: Site, run: Run) -> None:
        called = run("call", "work", "--arg", "n=2")
        assert (called.out, called.err) == ("done\n", "step 0\nstep 1\n")

    def test_progress_goes_to_standard_error(self, zoo: Site, run: Run) -> None:
        called = run("call", "haul", "--arg", "n=2")
        assert (called.code, called.out, called.err) == (0, "loaded\n", "1/2 loading\n2/2 loading\n2.5\n")
        assert run("call", "haul", "--arg", "n=2", "--json").err == ""

    def test_what_came_before_an_error_is_shown_once(self, zoo: Site, run: Run) -> None:
        called = run("call", "breaks")
        assert (called.code, called.out, called.err) == (1, "one \n", "Error: no two\n")

    def test_a_remedy_that_the_error_says_is_not_said_again(self, zoo: Site, run: Run) -> None:
        called = run("call", "brea")
        assert called.code == 4
        assert called.err.count("there is no tool 'brea'") == 1

    def test_json_is_one_document(self, zoo: Site, run: Run) -> None:
        called = run("call", "count", "--arg", "n=2", "--json")
        assert called.data["data"] == "0\n1\n"
        assert called.err == "0\n\n1\n\n"


def at_terminal(
    installation: Installation, *arguments: str, keys: str = "", until: str = "", **more: str
) -> tuple[int, str]:
    """Run the command at a terminal of 80 columns, type `keys` when `until` has appeared; exit code and screen."""
    environ = os.environ | {"PYTHONPATH": str(installation.path), "PEGBOARD_BLOCK": "pegboard-*", "TERM": "xterm"}
    environ |= {"COLUMNS": "80"} | more
    pty = pytest.importorskip("pty", reason="there are no such terminals here")
    child, screen = pty.fork()
    if child == 0:
        os.chdir(installation.cwd)
        os.execve(COMMAND[0], [*COMMAND, *arguments], environ)
    seen = ""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([screen], [], [], 1)
        try:
            seen += os.read(screen, 65536).decode() if ready else ""
        except OSError:  # the other side is closed
            break
        if keys and until in seen:
            os.write(screen, keys.encode())
            keys = ""
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen


# A clear of the screen as C0 and as C1, text turned around, a letter of a tag, another line.
OBEYED = ("\x1b]0;", "\x07", "\x9b2J", "\u202e", "\U000e0041", "\u2028")
HOSTILE = "".join(OBEYED)
HOSTILE_TOOLS = f"""
HOSTILE = {HOSTILE!a}

import pegboard

@pegboard.tool
def echo() -> str:
    "Say it."
    return HOSTILE

@pegboard.tool
def explode() -> str:
    "Raise it."
    raise ValueError(HOSTILE)

@hookimpl
def provide_tools(settings):
    return [echo, explode]
"""


class TestTerminal:
    @pytest.mark.parametrize(("key", "code", "message"), [("y", 0, "wiped /x"), ("n", 6, "the user said no")])
    def test_asks_for_approval(self, installation: Installation, key: str, code: int, message: str) -> None:
        installation.add("zoo", ZOO)
        ended, seen = at_terminal(installation, "call", "wipe", "--arg", "path=/x", keys=f"{key}\n", until="Run it?")
        assert "wipe asks for approval" in seen
        assert '"/x"' in seen.replace("\x1b[32m", "").replace("\x1b[0m", "")
        assert message in seen.partition("Run it?")[2]
        assert ended == code

    def test_a_prompt_hides_and_turns_nothing(self, installation: Installation) -> None:
        installation.add("zoo", ZOO)
        ended, seen = at_terminal(
            installation, "call", "wipe", "--arg", f"path=/x{HOSTILE}", keys="n\n", until="Run it?"
        )
        asked = seen.partition("asks for approval")[2].partition("Run it?")[0]
        assert not [unseen for unseen in OBEYED if unseen in asked]
        assert r"\u009b2J\u202e\udb40\udc41\u2028" in asked
        assert ended == 6

    @pytest.mark.parametrize("options", first(1, [["--json"], [], ["--traceback"]]))
    @pytest.mark.parametrize("name", ["echo", "explode"])
    def test_nothing_that_a_tool_says_is_obeyed(
        self, installation: Installation, name: str, options: list[str]
    ) -> None:
        installation.add("zoo", HOSTILE_TOOLS)
        _, seen = at_terminal(installation, "call", name, *options, NO_COLOR="1")
        assert not [unseen for unseen in OBEYED if unseen in seen]
        assert "u202e" in seen

    @pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
    def test_colours_are_left_out_on_request(
        self, installation: Installation, more: dict[str, str], coloured: bool
    ) -> None:
        installation.add("zoo", ZOO)
        _, seen = at_terminal(installation, "plugins", **more)
        assert "active" in seen
        assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", seen)) is coloured

    def test_streams_below_a_spinner(self, installation: Installation) -> None:
        installation.add("zoo", ZOO)
        ended, seen = at_terminal(installation, "call", "work", "--arg", "n=2")
        assert ended == 0
        assert "work ..." in seen
        assert seen.index("step 0") < seen.index("step 1") < seen.index("done")


def test_edited_arguments(zoo: Site, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pegboard import Approval, ApprovalRequest, Toolkit
    from pegboard_cli._output.live import _edited

    toolkit = Toolkit(plugins=())
    toolkit.register(lambda: None, name="wipe")
    request = ApprovalRequest(toolkit["wipe"], "1", {"path": "/x"})
    editor = tmp_path / "editor.py"
    editor.write_text("import sys; f = sys.argv[1]; t = open(f).read(); open(f, 'w').write(t.replace('/x', '/y'))")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    assert _edited(request) == Approval.edit({"path": "/y"})
    editor.write_text("import sys; open(sys.argv[1], 'w').write('no json')")
    assert _edited(request).decision == "deny"


def test_json_says_the_same_though_nothing_in_it_is_obeyed(site: Site, run: Run) -> None:
    site.add("zoo", HOSTILE_TOOLS)
    told = run("call", "echo", "--json")
    assert told.data["data"] == HOSTILE
    assert not [letter for letter in HOSTILE if not letter.isascii() and letter in told.out]


def test_ctrl_c_is_told(installation: Installation) -> None:
    installation.add("zoo", ZOO.replace("timeout=0.05", "timeout=30").replace("sleep(1)", "sleep(30)"))
    ended, seen = at_terminal(installation, "call", "hang", keys="\x03", until="hang ...")
    assert ended == 130
    assert "pegboard: interrupted" in seen
