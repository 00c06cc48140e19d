"""What a user at a terminal sees: the real command, and a real shell, behind a pseudo-terminal."""

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from tests.plugins.cli.command import COMMAND, Installation, Outcome, tool

termios = pytest.importorskip("termios")
pytestmark = pytest.mark.slow
# The process becomes the one that the terminal belongs to, as a login makes it.
LED = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
LIMIT = 120.0
COUNT = """
import pathlib, time
import pegboard

def count(emitter: pegboard.Emitter, go: str) -> str:
    "Count."
    for done in (1, 4):
        emitter.progress(done, 4, "pages")
        while not pathlib.Path(f"{go}{done}").exists():
            time.sleep(0.01)
    return "counted"

@hookimpl
def provide_tools(settings):
    return [count]
"""


@attrs.define
class Terminal:
    """A process at a terminal of 100 columns; `text` is what it has shown, without what moves the cursor."""

    process: "subprocess.Popen[bytes]"
    master: int
    shown: bytes = b""

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r|\a", "", self.shown.decode("utf-8", "replace"))

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def until(self, words: str) -> None:
        """Read until the words stand there."""
        deadline = time.monotonic() + LIMIT
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.master, 65_536)
                except OSError:  # all processes have closed it
                    assert words in self.text, self.text


@contextmanager
def at_a_terminal(installation: Installation, *command: str, **environ: str) -> Iterator[Terminal]:
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    own = {"PYTHONPATH": str(installation.path), "PEGBOARD_BLOCK": "pegboard-*", "TERM": "xterm", "NO_COLOR": "1"}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PEGBOARD", "COLUMNS"))}
    process = subprocess.Popen(
        [sys.executable, "-c", LED, *command],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        cwd=installation.cwd,
        env=inherited | own | environ,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_progress_is_a_bar(installation: Installation, tmp_path: Path) -> None:
    installation.add("counter", COUNT)
    go = tmp_path / "go"
    with at_a_terminal(installation, *COMMAND, "call", "count", f'{{"go": "{go}"}}') as terminal:
        terminal.until(f"count {'█' * 6}{'░' * 18} 1/4 pages")
        (tmp_path / "go1").touch()
        terminal.until(f"count {'█' * 24} 4/4 pages")
        (tmp_path / "go4").touch()
        terminal.until("counted\n")
        assert terminal.process.wait(LIMIT) == 0
        assert terminal.text.rstrip().endswith("counted")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed here")
def test_bash_completes_what_is_typed(
    installation: Installation, run: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.add("dice", tool("roll"))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("completion", "install", "--shell", "bash").code == 0
    path = f"{Path(COMMAND[0]).parent}:{os.environ['PATH']}"
    bash = ("bash", "--rcfile", str(tmp_path / ".bashrc"), "-i")
    with at_a_terminal(installation, *bash, HOME=str(tmp_path), PATH=path, PS1="$ ", INPUTRC="/dev/null") as terminal:
        terminal.type("pegboard sh\t")
        terminal.until("pegboard show ")
        terminal.type("ro\t")
        terminal.until("pegboard show roll ")
        terminal.type("\n")
        terminal.until("Repeat a text.")
        terminal.type("exit\n")
        assert terminal.process.wait(LIMIT) == 0


FORMS = """
import asyncio, json, pegboard

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "code": {"type": "string", "format": "password"},
    },
    "required": ["name"],
}

@pegboard.tool
async def book(call: pegboard.ToolCall, form: bool = True) -> str:
    "Ask in another thread, as for a server."
    asked = FORM if form else None
    request = pegboard.ApprovalRequest(call.session["book"], call.id, call.arguments, "Who are you?", asked)
    answer = await asyncio.to_thread(call.session.approver, request)
    return f"{answer.decision}: {json.dumps(answer.arguments)} {answer.reason}"

@hookimpl
def provide_tools(settings):
    return [book]
"""


class TestForms:
    @pytest.fixture
    def asked(self, installation: Installation) -> Iterator[Terminal]:
        pytest.importorskip("pegboard_schemas")
        installation.add("forms", FORMS)
        with at_a_terminal(installation, *COMMAND, "call", "book") as terminal:
            terminal.until("name (text, required): ")
            yield terminal

    def test_what_is_private_is_not_shown(self, asked: Terminal) -> None:
        asked.type("Ada\n")
        asked.until("age (integer, optional): ")
        asked.type("x\n")
        asked.until("expected integer\nage (integer, optional): ")
        asked.type("36\n")
        asked.until("code (password, optional): ")
        asked.type("hunter2\n")
        asked.until('edit: {"name": "Ada", "age": 36, "code": "hunter2"} \n')
        assert asked.process.wait(LIMIT) == 0
        assert asked.text.count("hunter2") == 1  # in the result, of which the tool says it

    def test_an_interrupt_declines_and_the_call_goes_on(self, asked: Terminal) -> None:
        asked.type("Ada\n")
        asked.until("age (integer, optional): ")
        asked.type("\x03")
        asked.until("deny: null the user said no\n")
        assert asked.process.wait(LIMIT) == 0

    def test_the_end_of_the_input_declines(self, asked: Terminal) -> None:
        asked.type("\x04")
        asked.until("deny: null the user said no\n")
        assert asked.process.wait(LIMIT) == 0


def test_an_interrupt_answers_no_where_approval_is_asked_for(installation: Installation) -> None:
    installation.add("forms", FORMS)
    with at_a_terminal(installation, *COMMAND, "call", "book", "--arg", "form=false") as terminal:
        terminal.until("Run it? (y)es, (n)o, (e)dit [n]: ")
        terminal.type("\x03")
        terminal.until("deny: null the user said no\n")
        assert terminal.process.wait(LIMIT) == 0


def test_a_server_asks_at_the_terminal(installation: Installation) -> None:
    pytest.importorskip("pegboard_mcp")
    script = Path(__file__).parents[1] / "mcp" / "form_server.py"
    (installation.cwd / "desk.py").write_text(
        f"import sys, pegboard, pegboard_mcp\ntoolkit = pegboard.Toolkit(plugins=())\n"
        f"toolkit.register(pegboard_mcp.McpServer.stdio(sys.executable, [{str(script)!r}]))\n"
    )
    form = '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'
    command = (*COMMAND, "--toolkit", "desk:toolkit", "call", "ask", f'{{"form": {form}}}')
    for keys, answer in {
        "Ada\n": '{"action": "accept", "content": {"name": "Ada"}}',
        "\x03": '{"action": "decline", "content": null}',
    }.items():
        with at_a_terminal(installation, *command) as terminal:
            terminal.until("name (text, required): ")
            assert "ask asks\nWho are you?\n" in terminal.text
            terminal.type(keys)
            terminal.until(f"{answer}\n")
            assert terminal.process.wait(LIMIT) == 0
