"""`pegboard chat`, in a program of its own."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard import ApprovalRequest, Toolkit
from pegboard_agent._chat import _approve
from pegboard_testing import Broken, Failing, Raw, ScriptedServer, fake_distribution
from tests.plugins.agent.desk import KEY, half_said
from tests.support.thinning import first
from tests.support.waiting import eventually

RUN = "import sys; from pegboard_agent._chat import run; sys.exit(run(sys.argv[1:]))"
# The process becomes the one that the terminal belongs to, so that Ctrl-C is a signal for it.
LED = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
TOOLS = """
import asyncio
import pegboard

@pegboard.tool
def add(a: int, b: int) -> int:
    "Add."
    print("noise of a tool")
    return a + b

@pegboard.tool(requires_approval=lambda arguments: arguments["amount"] > 5)
def pay(amount: int) -> str:
    "Pay."
    return "paid"

@pegboard.tool
async def book(call: pegboard.ToolCall) -> str:
    "Ask in another thread, as for a server."
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    request = pegboard.ApprovalRequest(call.session["book"], call.id, call.arguments, "Who are you?", form)
    answer = await asyncio.to_thread(call.session.approver, request)
    return f"{answer.decision} {answer.arguments} {answer.reason}"

@pegboard.tool(group="secret")
def tell() -> str:
    "Tell."
    return "told"

@pegboard.hookimpl
def provide_tools():
    return [add, pay, book, tell]
"""


def said_until(terminal: int, end: str) -> str:
    """What a program writes to a terminal until it waits for an answer."""
    said = ""
    while not said.endswith(end):
        said += os.read(terminal, 1024).decode()
    return said


def chat(server: ScriptedServer, tmp_path: Path, said: str, *options: str) -> subprocess.CompletedProcess[str]:
    command, environ = started(server, tmp_path, *options)
    done = subprocess.run(
        command, input=said, env=environ, cwd=tmp_path, capture_output=True, check=False, encoding="utf-8", timeout=60
    )
    assert KEY not in done.stdout + done.stderr
    return done


def started(server: ScriptedServer, tmp_path: Path, *options: str) -> tuple[list[str], dict[str, str]]:
    """The command, and the environment that it is to be run in."""
    site = tmp_path / "site"
    if not site.exists():
        fake_distribution(site, "acme-sums", entry_points={"sums": "acme_sums"}, modules={"acme_sums": TOOLS})
    environ = {
        **os.environ,
        "OPENAI_API_KEY": KEY,
        "PEGBOARD_PLUGINS": "sums",
        "PYTHONPATH": str(site),
        "PYTHONIOENCODING": "utf-8",
    }
    return [
        sys.executable,
        "-W",
        "error",
        "-c",
        RUN,
        "--model",
        "scripted",
        "--base-url",
        server.url,
        *options,
    ], environ


class TestChat:
    def test_each_line_of_a_pipe_is_answered(self, tmp_path: Path) -> None:
        with ScriptedServer(["Let me see. ", ("add", {"a": 1, "b": 2})], "3", "Bye — 再见.") as server:
            done = chat(server, tmp_path, "1 + 2?\n\nBye\n", "--system", "Be brief.")
        assert (done.returncode, done.stdout) == (0, "3\nBye — 再见.\n")
        assert '[add {"a": 1, "b": 2}]' in done.stderr
        assert "[add: success] 3" in done.stderr
        assert "noise of a tool" in done.stderr
        assert [message["content"] for message in server.requests[-1]["messages"]][:2] == ["Be brief.", "1 + 2?"]
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    @pytest.mark.slow
    def test_an_answer_that_was_cut_off_says_so(self, tmp_path: Path) -> None:
        with ScriptedServer(half_said("length")) as server:
            done = chat(server, tmp_path, "Tell me all.\n")
        assert (done.returncode, done.stdout) == (0, "The first half\n")
        assert "[the answer was cut off at the server's length limit]" in done.stderr

    @pytest.mark.slow
    def test_a_failing_server_is_one_sentence(self, tmp_path: Path) -> None:
        with ScriptedServer(Failing(401, f"wrong key {KEY}")) as server:
            done = chat(server, tmp_path, "hi\n")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines() == [
            f"pegboard chat: {server.url.split('/')[2]} answered 401: wrong key ***",
        ]

    @pytest.mark.slow
    def test_a_file_keeps_the_conversation(self, tmp_path: Path) -> None:
        with ScriptedServer("Hello Ann.", "Ann.") as server:
            chat(server, tmp_path, "I am Ann.\n", "--session", "talk.jsonl")
            done = chat(server, tmp_path, "Who am I?\n", "--session", "talk.jsonl")
        assert done.stdout == "Ann.\n"
        assert [message["role"] for message in server.requests[1]["messages"]] == ["user", "assistant", "user"]

    @pytest.mark.slow
    def test_a_conversation_that_ended_in_the_middle_goes_on(self, tmp_path: Path) -> None:
        with ScriptedServer(("add", {"a": 1, "b": 2}), Failing(400), "3", "Bye.") as server:
            assert chat(server, tmp_path, "1 + 2?\n", "--session", "talk.jsonl").returncode == 1
            path = tmp_path / "talk.jsonl"
            lines = path.read_text("utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[:3]), "utf-8")  # as if the program had ended before the call did
            done = chat(server, tmp_path, "Bye!\n", "--session", "talk.jsonl")
        assert done.stdout == "3\nBye.\n"

    @pytest.mark.slow
    def test_groups_are_switched_on(self, tmp_path: Path) -> None:
        with ScriptedServer("ok", "ok") as server:
            chat(server, tmp_path, "hi\n")
            assert chat(server, tmp_path, "hi\n", "--group", "secret").returncode == 0
            unknown = chat(server, tmp_path, "hi\n", "--group", "secrets")
        offered = [[each["function"]["name"] for each in request["tools"]] for request in server.requests]
        assert offered == [["add", "pay", "book"], ["add", "pay", "book", "tell"]]
        assert unknown.returncode == 1
        assert "pegboard chat: there is no group 'secrets'. Groups: secret." in unknown.stderr

    def test_a_session_that_is_no_file_is_named(self, tmp_path: Path) -> None:
        with ScriptedServer("ok") as server:
            done = chat(server, tmp_path, "hi\n", "--session", "no/such/folder.jsonl")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith("no/such/folder.jsonl.lock: No such file or directory\n")

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
    @pytest.mark.parametrize(("answer", "told"), first(1, [("y", "paid"), ("n", "not approved")]))
    def test_a_terminal_is_asked_for_approval(self, tmp_path: Path, answer: str, told: str) -> None:
        import pty

        with ScriptedServer(("pay", {"amount": 7}), "Done.\x1b[2J") as server:
            ours, theirs = pty.openpty()
            command, environ = started(server, tmp_path)
            with subprocess.Popen(
                command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environ, cwd=tmp_path
            ) as process:
                os.close(theirs)
                shown = said_until(ours, "> ")
                os.write(ours, b"pay!\n")
                shown += said_until(ours, "(y/n) ")
                os.write(ours, answer.encode() + b"\n")
                shown += said_until(ours, "> ")
                os.write(ours, b"\x04")
                assert process.stdout is not None
                assert process.stdout.read() == b"Done.\x1b[2J\n"  # to a pipe as it is
            os.close(ours)
        assert process.returncode == 0
        assert 'pay {"amount": 7} asks for approval' in shown
        assert told in server.requests[1]["messages"][-1]["content"]

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
    @pytest.mark.parametrize(
        ("keys", "answer"), first(1, [("Ada\n", "edit {'name': 'Ada'} "), ("\x03", "deny None the user said no")])
    )
    def test_a_terminal_is_asked_a_form(self, tmp_path: Path, keys: str, answer: str) -> None:
        import pty

        pytest.importorskip("pegboard_cli")
        with ScriptedServer(("book", {}), "Done.") as server:
            ours, theirs = pty.openpty()
            command, environ = started(server, tmp_path)
            command = [sys.executable, "-c", LED, *command]
            with subprocess.Popen(
                command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=tmp_path, start_new_session=True
            ) as process:
                os.close(theirs)
                said_until(ours, "> ")
                os.write(ours, b"book!\n")
                shown = said_until(ours, "name (text, required): ")
                os.write(ours, keys.encode())
                shown += said_until(ours, "> ")
                os.write(ours, b"\x04")
            os.close(ours)
        assert process.returncode == 0
        assert "book {} asks: Who are you?" in shown
        assert server.requests[1]["messages"][-1]["content"] == answer

    def test_a_prompt_hides_nothing(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda path: None, name="wipe")
        request = ApprovalRequest(toolkit["wipe"], "1", {"path": "/x\x9b2J\u202e\U000e0041"}, "because\x1b[2J")
        assert _approve(request)
        asked = capsys.readouterr().err
        assert r'wipe {"path": "/x\x9b2J\u202e\U000e0041"} asks for approval: because\x1b[2J' in asked

    @pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
    @pytest.mark.slow
    def test_an_interrupt_ends_it_and_keeps_the_conversation(self, tmp_path: Path) -> None:
        with ScriptedServer(Broken(seconds=30)) as server:
            command, environ = started(server, tmp_path, "--session", "talk.jsonl")
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, cwd=tmp_path
            ) as process:
                assert process.stdin is not None
                process.stdin.write(b"hi\n")
                process.stdin.flush()
                assert eventually(lambda: bool(server.requests))
                process.send_signal(signal.SIGINT)
                said = process.communicate(timeout=30)[1]
        assert (process.returncode, said) == (130, b"pegboard chat: interrupted\n")
        assert '"hi"' in (tmp_path / "talk.jsonl").read_text("utf-8")

    @pytest.mark.slow
    def test_what_a_model_thought_is_no_answer(self, tmp_path: Path) -> None:
        thought = '{"choices": [{"delta": {"reasoning_content": "Let me\\nsee\\u001b[2J."}}]}'
        said = '{"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]}'
        with ScriptedServer(Raw(f"data: {thought}\n\ndata: {said}\n\ndata: [DONE]\n\n")) as server:
            done = chat(server, tmp_path, "Is it?\n")
        assert (done.returncode, done.stdout) == (0, "Yes.\n")
        assert done.stderr == "[thought] Let me see\\x1b[2J.\n"

    @pytest.mark.parametrize(("limit", "asked"), [("--max-requests", 2), ("--max-tokens", 1)])
    @pytest.mark.slow
    def test_a_limit_that_is_reached_is_one_sentence(self, tmp_path: Path, limit: str, asked: int) -> None:
        with ScriptedServer(forever=("add", {"a": 1, "b": 2})) as server:
            done = chat(server, tmp_path, "for ever\n", limit, "2")
        assert (done.returncode, done.stdout, len(server.requests)) == (1, "", asked)
        assert done.stderr.splitlines()[-1].startswith(f"pegboard chat: limits.{limit.removeprefix('--max-')}: ")

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--max-requests", "0"], "pegboard chat: requests is a whole number >= 1"),
            (["--provider", "acme"], "invalid choice: 'acme'"),
        ],
    )
    def test_options_that_there_are_not(self, tmp_path: Path, options: list[str], said: str) -> None:
        with ScriptedServer() as server:
            done = chat(server, tmp_path, "hi\n", *options)
        assert done.returncode != 0
        assert said in done.stderr

    @pytest.mark.parametrize(
        ("provider", "member"),
        first(1, [("anthropic", "messages"), ("gemini", "contents"), ("openai", "messages"), ("responses", "input")]),
    )
    def test_each_provider_is_asked_in_its_own_format(self, tmp_path: Path, provider: str, member: str) -> None:
        with ScriptedServer(Failing(400, "no such model")) as server:
            done = chat(server, tmp_path, "hi\n", "--provider", provider)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith("answered 400: no such model\n")
        assert "hi" in str(server.requests[0][member])
        assert ("tool_choice" in server.requests[0], "tools" in server.requests[0]) == (False, True)

    def test_a_model_has_to_be_named(self) -> None:
        done = subprocess.run(
            [sys.executable, "-c", RUN], capture_output=True, check=False, encoding="utf-8", timeout=60
        )
        assert done.returncode == 2
        assert "--model" in done.stderr
