"""What MCP servers have beside tools, through the page's API: resources, prompts and a log."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pegboard import TextBlock, Toolkit
from pegboard_inspector._command import run, toolkit_of
from tests.plugins.inspector.served import Client, served
from tests.support.waiting import PATIENCE, eventually

SERVER = Path(__file__).with_name("library_server.py")
COMMAND = shlex.join([sys.executable, str(SERVER)])
NAME = "library_server"


@contextmanager
def opened(*mcp: str, target: str | None = None) -> Iterator[Client]:
    """The page's client for MCP servers, as the command opens them."""
    with served(partial(toolkit_of, target, mcp), target, None if target else "library") as client:
        client.enter()
        yield client


@pytest.fixture(scope="module")
def library() -> Iterator[Client]:
    pytest.importorskip("pegboard_mcp")
    with opened(COMMAND) as client:
        yield client


class TestOfAServer:
    def test_the_board_says_what_there_is(self, library: Client) -> None:
        board = library.get("board")
        assert [each["name"] for each in board["tools"]] == ["lend"]
        features = ["resources", "prompts", "log"]
        assert board["sources"] == [{"name": NAME, "tools": 1, "problems": [], "features": features}]

    def test_resources_and_templates_are_listed(self, library: Client) -> None:
        found = library.get(f"resources/{NAME}")
        assert [each["uri"] for each in found["resources"]] == ["book://dune", "book://cover", "book://missing"]
        assert found["resources"][0]["title"] == "Dune"
        assert [each["uriTemplate"] for each in found["templates"]] == ["shelf://{number}"]

    @pytest.mark.parametrize(
        ("uri", "text"),
        [("book://dune", "A beginning is a very delicate time."), ("shelf://7", "Shelf 7 is full.")],
    )
    def test_a_resource_is_read(self, library: Client, uri: str, text: str) -> None:
        answer = library.post("resource", source=NAME, uri=uri)
        assert (answer.status, answer.data) == (200, {"content": [{"type": "text", "text": text}]})

    def test_a_picture_is_one(self, library: Client) -> None:
        (block,) = library.post("resource", source=NAME, uri="book://cover").data["content"]
        assert (block["type"], block["media_type"]) == ("image", "image/png")

    def test_what_cannot_be_read_says_so(self, library: Client) -> None:
        answer = library.post("resource", source=NAME, uri="book://missing")
        assert answer.status == 400
        assert answer.data["error"].startswith(f"{NAME} refused: ")

    def test_prompts_are_listed_and_filled_in(self, library: Client) -> None:
        (prompt,) = library.get(f"prompts/{NAME}")["prompts"]
        assert (prompt["name"], prompt["title"]) == ("recommend", "Recommend a book")
        assert [(each["name"], each["required"]) for each in prompt["arguments"]] == [("topic", True), ("mood", False)]
        answer = library.post("prompt", source=NAME, name="recommend", arguments={"topic": "sand"})
        content = {"type": "text", "text": "Which book about sand fits a calm evening?"}
        assert answer.data == {"messages": [{"role": "user", "content": content}]}

    @pytest.mark.parametrize("arguments", [{}, {"topic": 7}, "sand", None])
    def test_a_prompt_that_is_not_filled_in_is_refused(self, library: Client, arguments: Any) -> None:
        assert library.post("prompt", source=NAME, name="recommend", arguments=arguments).status == 400

    def test_the_log_has_stderr_and_logging(self, library: Client) -> None:
        library.ended(library.call("lend", book="dune"))
        eventually(lambda: any(line["text"] == "lent dune" for line in library.get(f"logs/{NAME}")["lines"]))
        lines = library.get(f"logs/{NAME}")["lines"]
        found = [(line["source"], line["level"], line["text"]) for line in lines]
        assert found[0] == ("stderr", None, "the library opens")
        for each in (
            ("log", "debug", "looking for dune"),
            ("log", "error", "shelf: dune is lent"),
            ("stderr", None, "lent dune"),
        ):
            assert each in found
        assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))

    def test_the_page_is_told_of_new_lines(self, library: Client) -> None:
        news = library.news()
        before = next(news)["logs"][NAME]
        library.ended(library.call("lend", book="emma"))
        assert eventually(lambda: next(news)["logs"][NAME] > before)

    def test_a_call_is_copied_for_a_program_alone(self, library: Client) -> None:
        call_id = library.call("lend", book="emma")
        assert library.get("board")["target"] == "library"
        copies = library.ended(call_id)["copies"]
        assert copies == {"python": """await toolkit.call("lend", {"book": "emma"})"""}

    @pytest.mark.parametrize("path", ["resources/other", "prompts/other", "logs/other"])
    def test_one_that_is_not_there_is_named(self, library: Client, path: str) -> None:
        answer = library.send("GET", f"/api/{path}")
        assert answer.status == 404
        assert "there is no source 'other' with " in answer.data["error"]

    @pytest.mark.slow
    def test_a_reload_opens_it_again(self, library: Client) -> None:
        assert library.post("reload").status == 200
        assert library.post("resource", source=NAME, uri="shelf://8").status == 200
        assert library.get(f"logs/{NAME}")["lines"][0]["text"] == "the library opens"


class TestOfAnySource:
    """The page asks for methods by their names, and imports nothing of MCP."""

    class Shelf:
        name = "shelf"
        features = ("resources",)
        problems = ()

        def tools(self) -> list[Any]:
            return []

        def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
            return lambda: None

        async def list_resources(self) -> list[dict[str, str]]:
            return [{"uri": "x://1", "name": "one"}]

        async def read_resource(self, uri: str) -> list[TextBlock]:
            if uri != "x://1":
                raise LookupError("s3cret")
            return [TextBlock("words")]

        @staticmethod
        def redact(text: str) -> str:
            return text.replace("s3cret", "***")

    def test_it_has_what_it_says(self) -> None:
        with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
            toolkit.register(self.Shelf())
            client.enter()
            assert client.get("board")["sources"][0]["features"] == ["resources"]
            found = client.get("resources/shelf")
            assert found == {"resources": [{"uri": "x://1", "name": "one"}], "templates": []}
            answer = client.post("resource", source="shelf", uri="x://1")
            assert answer.data == {"content": [{"type": "text", "text": "words"}]}
            assert client.post("resource", source="shelf", uri="x://2").data == {"error": "shelf refused: ***"}
            assert client.send("GET", "/api/prompts/shelf").status == 404


class TestCommand:
    @pytest.mark.slow
    def test_takes_a_url(self) -> None:
        pytest.importorskip("pegboard_mcp")
        with subprocess.Popen([sys.executable, str(SERVER), "http"], stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            url = running.stdout.readline().strip()
            try:
                with opened(url) as client:
                    assert [each["name"] for each in client.get("board")["tools"]] == ["lend"]
                    name = client.get("board")["sources"][0]["name"]
                    assert name == url
                    path = name.replace("/", "%2F")
                    assert len(client.get(f"resources/{path}")["resources"]) == 3
                    client.ended(client.call("lend", book="dune"))
                    assert eventually(lambda: client.get(f"logs/{path}")["lines"])
            finally:
                running.kill()
                running.wait(PATIENCE)

    @pytest.mark.slow
    def test_takes_several_whose_tools_have_prefixes(self, tmp_path: Path) -> None:
        pytest.importorskip("pegboard_mcp")
        entry = {"command": sys.executable, "args": [str(SERVER)]}
        path = tmp_path / "mcp.json"
        path.write_text(f'{{"mcpServers": {{"shop": {str(entry).replace(chr(39), chr(34))}}}}}')
        with opened(str(path), COMMAND, COMMAND) as client:
            board = client.get("board")
            names = ["library_server_2__lend", "library_server__lend", "shop__lend"]
            assert [each["name"] for each in board["tools"]] == names
            assert [each["name"] for each in board["sources"]] == ["shop", NAME, f"{NAME}_2"]

    def test_a_server_that_does_not_start_is_a_problem_with_its_log(self) -> None:
        pytest.importorskip("pegboard_mcp")
        with opened(shlex.join([sys.executable, "-c", "raise SystemExit('no shelf is left')"])) as client:
            board = client.get("board")
            assert "no shelf is left" in board["problems"][0]
            assert board["sources"][0]["features"] == ["log"]
            assert re.fullmatch(r"python[\d.]*", name := board["sources"][0]["name"])
            assert client.get(f"logs/{name}")["lines"][0]["text"] == "no shelf is left"

    @pytest.mark.parametrize("named", ["", "'", "http://[", "no_such_file.json"])
    def test_says_what_names_no_server(self, named: str, capsys: pytest.CaptureFixture[str]) -> None:
        pytest.importorskip("pegboard_mcp")
        assert run(["--mcp", named]) == 1
        assert re.match(r"pegboard inspect: (an MCP server is named by|no_such_file\.json)", capsys.readouterr().err)

    def test_names_the_package_that_is_missing(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "pegboard_mcp", None)
        assert run(["--mcp", COMMAND]) == 1
        assert "--mcp needs pegboard-mcp; install it: pip install pegboard-mcp" in capsys.readouterr().err

    @pytest.mark.slow
    def test_imports_nothing_of_mcp_unless_it_is_told_to(self) -> None:
        code = (
            "import sys; from pegboard import Toolkit; from pegboard_inspector._command import toolkit_of\n"
            "toolkit_of(None, []).close(); print('pegboard_mcp._client.server' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        assert done.stdout == "False\n"
