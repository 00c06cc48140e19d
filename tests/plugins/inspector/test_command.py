"""`pegboard inspect`, in an interpreter of its own."""

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from pegboard import Toolkit
from pegboard_inspector._command import run
from pegboard_inspector._serving import serve_async
from tests.plugins.inspector.served import Client
from tests.support.waiting import PATIENCE, eventually

START = "import sys; from pegboard_inspector._command import run; sys.exit(run(sys.argv[1:]))"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_prints_an_address_and_ends_by_a_signal(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "acme_board.py").write_text(
        "import pegboard\n\n\ndef toolkit():\n    print('made')\n    return pegboard.Toolkit(plugins=())\n"
    )
    arguments = [sys.executable, "-c", START, "--port", "0", "--toolkit", "acme_board:toolkit"]
    with subprocess.Popen(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        url = running.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", url)
        client = Client(url)
        client.enter()
        assert client.get("board")["target"] == "acme_board:toolkit"
        running.send_signal(how)
        assert running.wait(PATIENCE) == 0
        assert (running.stdout.read(), running.stderr.read()) == ("", "made\n")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ends_by_a_signal_from_its_address_on_and_leaves_the_handlers_as_they_were(how: signal.Signals) -> None:
    def own(number: int, frame: FrameType | None) -> None:
        raise AssertionError("the signal was the server's")

    before = signal.signal(how, own)
    try:
        asyncio.run(serve_async(Toolkit(plugins=()), 0, announce=lambda url: signal.raise_signal(how)))
        assert signal.getsignal(how) is own
    finally:
        signal.signal(how, before)


@pytest.mark.slow
def test_ends_in_silence_where_a_call_takes_its_time_to_stop(tmp_path: Path) -> None:
    (tmp_path / "acme_slow.py").write_text(
        "import asyncio\n"
        "from pegboard import Toolkit\n\n\n"
        "async def tidy() -> None:\n"
        "    try:\n"
        "        await asyncio.sleep(60)\n"
        "    finally:\n"
        "        await asyncio.sleep(30)\n\n\n"
        "toolkit = Toolkit(plugins=())\n"
        "toolkit.register(tidy)\n"
    )
    arguments = [sys.executable, "-c", START, "--port", "0", "--toolkit", "acme_slow:toolkit"]
    with subprocess.Popen(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        client = Client(running.stdout.readline().strip())
        client.enter()
        call_id = client.call("tidy")
        assert eventually(lambda: client.get(f"calls/{call_id}")["status"] == "running")
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 0
        assert running.stderr.read() == ""


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("acme_board2", "write MODULE:NAME"),
        ("acme_nowhere:toolkit", "ModuleNotFoundError"),
        ("acme_board2:number", "is of type int; name a Toolkit"),
        ("acme_board2:nothing", "AttributeError"),
    ],
)
def test_says_what_is_wrong_with_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, said: str
) -> None:
    (tmp_path / "acme_board2.py").write_text("number = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert run(["--toolkit", target]) == 1
    assert said in capsys.readouterr().err


def test_says_that_a_port_is_taken(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--port", str(client.port)]) == 1
    assert f"pegboard inspect: cannot serve at 127.0.0.1:{client.port}" in capsys.readouterr().err


def test_is_a_command_of_the_command_line() -> None:
    main = pytest.importorskip("pegboard_cli").main
    from click.testing import CliRunner

    said = CliRunner().invoke(main, ["inspect", "--help"])
    assert "--toolkit MODULE:NAME" in said.output
    assert said.exit_code == 0


def test_what_it_complains_about_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--toolkit", "no_such\x1b[2Jmodule:toolkit"]) == 1
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "no_such\\x1b[2Jmodule" in said
