"""Commands that serve, list or write run as printed: what they serve answers, and what they write is read."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from pegboard import Toolkit
from pegboard_mcp import McpServer
from tests.docs.blocks import blocks
from tests.docs.places import COMMANDS, Piece, run_by
from tests.docs.programs import Desk, skip_if_taken
from tests.plugins.inspector.served import Client

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="the programs of the folder are for sh")]
WRITES = {"--install", "--server-json"}


def of(program: str, writes: bool = False) -> pytest.MarkDecorator:
    """Parametrize a test with the commands of one program that write something, or that do not."""
    found = [each for each in run_by(COMMANDS) if each.words[1] == program and bool(WRITES & {*each.words}) == writes]
    return pytest.mark.parametrize("piece", found, ids=lambda piece: piece.label)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def run(desk: Desk, piece: Piece, status: int = 0) -> str:
    """Run a command that ends; return what it prints."""
    done = subprocess.run(
        piece.words, cwd=desk.folder, env=desk.environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def ask(server: McpServer, piece: Piece) -> None:
    """Call what a command serves."""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        assert not toolkit.problems
        assert toolkit.call_sync("find_desk", {"number": 3}).text == "desk 3"
        assert ("far__echo" in {tool.name for tool in toolkit.tools}) == ("mcp.json" in piece.words)


@of("serve")
def test_serve(desk: Desk, piece: Piece) -> None:
    if "--http" not in piece.words:
        program, *arguments = piece.words
        ask(McpServer.stdio(program, arguments, env=desk.environ, cwd=desk.folder), piece)
        return
    address = piece.words[piece.words.index("--http") + 1]
    skip_if_taken(int(address.rpartition(":")[2]))
    with desk.started(piece.words) as process:
        assert process.stderr
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        assert url == f"http://{address}/mcp"
        ask(McpServer.http(url), piece)


@of("inspect")
def test_inspect(desk: Desk, piece: Piece) -> None:
    port = piece.words[piece.words.index("--port") + 1] if "--port" in piece.words else ""
    if port:
        skip_if_taken(int(port))
    with desk.started(piece.words) as process:
        assert process.stdout
        assert process.stderr
        client = Client(process.stdout.readline().strip() or process.stderr.read())
        client.enter()
        names = {tool["name"] for tool in client.get("board")["tools"]}
        assert client.url.startswith(f"http://127.0.0.1:{port}")
    assert ("find_desk" in names) == ("--mcp" not in piece.words or "--toolkit" in piece.words)
    assert any(name.endswith("echo") for name in names) == ("--mcp" in piece.words)


@of("serve", writes=True)
def test_serve_writes(desk: Desk, piece: Piece) -> None:
    run(desk, piece)
    if "--server-json" in piece.words:
        written = json.loads((desk.folder / "server.json").read_text("utf-8"))
        assert written["name"] == "io.github.ada/tidy-board"
        assert "DESK_KEY" in str(written["packages"])
        return
    (path,) = desk.home.rglob("claude_desktop_config.json")
    (shown,) = (json.loads(each.text) for each in blocks("jsonc") if "mcpServers" in each.text)
    (written,), (entry,) = (each["mcpServers"].values() for each in (json.loads(path.read_text("utf-8")), shown))
    assert [Path(each).name for each in written["args"]] == [Path(each).name for each in entry["args"]]
    assert Path(written["command"]).name == Path(entry["command"]).name


@of("skills")
def test_skills(desk: Desk, piece: Piece) -> None:
    """With the skills of the page: one is as it has to be, one has no description."""
    _, *shown = piece.block.text.splitlines(keepends=True)
    for line in shown[:1]:
        name, description = line.strip().split(": ", 1)
        front = f"---\nname: {name}\ndescription: {description}\n---\n\nWrite it.\n"
        (desk.folder / "skills" / name / "SKILL.md").write_text(front, "utf-8")
    (desk.folder / "skills" / "offers" / "SKILL.md").write_text("---\nname: offers\n---\n\nOffer it.\n", "utf-8")
    assert run(desk, piece, status=1) == "".join(shown)


@of("completion")
def test_completion(desk: Desk, piece: Piece) -> None:
    run(desk, piece)
    assert "pegboard" in (desk.home / ".bashrc").read_text("utf-8")
