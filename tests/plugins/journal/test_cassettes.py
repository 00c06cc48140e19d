"""Cassettes: calls in a text file, which answer the same calls later."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import DataBlock, ImageBlock, PegboardError, Secret, SettingsError, TextBlock, Toolkit, ToolResult, tool
from tests.plugins.journal.desk import Tools, entries, journaled


def on(path: Path, mode: str, tools: Any) -> Toolkit:
    """A toolkit with a cassette and no store."""
    toolkit = Toolkit(plugins=["journal"], settings={"journal": {"mode": mode, "cassette": str(path)}})
    toolkit.register(tools)
    return toolkit


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the cassette is."""
    return tmp_path / "cassettes" / "one.jsonl"


def kinds(result: Any) -> list[str]:
    return [note.kind for note in result.notes]


class TestRecording:
    def test_a_line_is_a_call(self, path: Path) -> None:
        with on(path, "record", Tools()) as toolkit:
            toolkit.call_sync("weather", '{"days": 2, "city": "Zürich"}', call_id="c1")
            schema = toolkit["weather"].schema_hash
        (text,) = path.read_text("utf-8").splitlines()
        data = {"city": "Zürich", "days": 2}
        assert json.loads(text) == {
            "arguments": data,
            "n": 1,
            "result": {
                "status": "success",
                "content": [{"type": "text", "text": json.dumps(data, ensure_ascii=False)}],
                "data": data,
            },
            "schema": schema,
            "tool": "weather",
        }
        assert text == json.dumps(json.loads(text), sort_keys=True)
        assert "c1" not in text

    def test_what_is_there_answers(self, path: Path) -> None:
        tools, results = Tools(), list[Any]()
        for _ in range(2):
            with on(path, "record", tools) as toolkit:
                results = [toolkit.call_sync("weather", {"city": city}) for city in ("Bern", "Oslo", "Bern")]
        assert tools.ran == ["weather Bern 1", "weather Oslo 1", "weather Bern 1"]
        assert [kinds(result) for result in results] == [["replayed"]] * 3
        assert [(line["arguments"]["city"], line["n"]) for line in lines(path)] == [
            ("Bern", 1),
            ("Oslo", 1),
            ("Bern", 2),
        ]

    def test_effects_are_recorded_too(self, path: Path) -> None:
        tools = Tools()
        for _ in range(2):
            with on(path, "record", tools) as toolkit:
                assert toolkit.call_sync("pay", {"amount": 1}).data == {"paid": 1}
        assert len(tools.ran) == 1

    def test_what_was_never_asked_of_the_tool_is_not(self, path: Path) -> None:
        with on(path, "record", Tools()) as toolkit:
            toolkit.call_sync("weather", {"town": 1})
            toolkit.call_sync("wether", {})
            toolkit.call_sync("later", {"question": "?"})
            toolkit.set_permission("weather", "never")
            toolkit.call_sync("weather", {"city": "Bern"})
        assert not path.exists()

    def test_no_secret(self, path: Path) -> None:
        @tool
        def login(user: str, token: str) -> dict[str, Any]:
            """Log in."""
            return {"token": token, "pin": 123456, "nested": [f"Bearer {token}"]}

        tokens = []
        for _ in range(2):
            with on(path, "record", login) as toolkit:
                toolkit.set_presets("login", {"token": Secret("hunter2-hunter2")})
                tokens.append(toolkit.call_sync("login", {"user": "hunter2-hunter2"}).data["token"])
        assert tokens == ["hunter2-hunter2", "***"]
        assert "hunter2" not in path.read_text("utf-8")


class TestReplaying:
    def recorded(self, path: Path) -> None:
        with on(path, "record", Tools()) as toolkit:
            for city in ("Bern", "Oslo"):
                toolkit.call_sync("weather", {"city": city})
            toolkit.call_sync("flaky", {})
            asyncio.run(toolkit.call("slow", {"city": "Bern"}))

    def test_replay_runs_what_is_missing_and_writes_nothing(self, path: Path) -> None:
        self.recorded(path)
        before, tools = path.read_bytes(), Tools()
        with on(path, "replay", tools) as toolkit:
            toolkit.call_sync("weather", {"city": "Bern"})
            toolkit.call_sync("weather", {"city": "Rome"})
            failed = toolkit.call_sync("flaky", {})
        assert tools.ran == ["weather Rome 1"]
        assert (failed.status, failed.text, kinds(failed)) == ("error", "Error: not now", ["replayed"])
        assert path.read_bytes() == before

    def test_awaited(self, path: Path) -> None:
        self.recorded(path)
        tools = Tools()
        with on(path, "strict", tools) as toolkit:
            assert asyncio.run(toolkit.call("slow", {"city": "Bern"})).text == "BERN"
        assert tools.ran == []

    @pytest.mark.parametrize(
        ("name", "arguments", "difference"),
        [
            ("weather", {"city": "Bern", "days": 3}, "the nearest one differs: days: recorded nothing, now 3"),
            ("weather", {"city": "Rome"}, 'the nearest one differs: city: recorded "Bern", now "Rome"'),
            ("put", {"value": 1}, "none of this tool was recorded"),
        ],
    )
    def test_strict_refuses_and_says_how_it_differs(
        self, path: Path, name: str, arguments: dict[str, Any], difference: str
    ) -> None:
        self.recorded(path)
        tools = Tools()
        with on(path, "strict", tools) as toolkit:
            result = toolkit.call_sync(name, arguments)
        assert result.status == "error"
        assert result.text == f"Error: there is no recorded call of {name} like this one; {difference}"
        assert tools.ran == []

    def test_strict_counts(self, path: Path) -> None:
        self.recorded(path)
        with on(path, "strict", Tools()) as toolkit:
            assert not toolkit.call_sync("weather", {"city": "Bern"}).is_error
            again = toolkit.call_sync("weather", {"city": "Bern"})
        assert again.text.endswith("the nearest one differs: it was recorded 1 times, and this is call 2")

    def test_another_schema_is_another_tool(self, path: Path) -> None:
        self.recorded(path)

        @tool(read_only=True)
        def weather(city: str, days: int = 1, unit: str = "C") -> str:
            """Forecast."""
            return "new"

        with on(path, "strict", weather) as toolkit:
            result = toolkit.call_sync("weather", {"city": "Bern"})
        assert result.text.endswith("the tool was described otherwise when it was recorded")

    def test_equal_calls_at_once_are_interchangeable(self, path: Path) -> None:
        counter = iter(range(100))

        @tool
        async def draw() -> int:
            """Draw a number."""
            await asyncio.sleep(0)
            return next(counter)

        async def main(toolkit: Toolkit) -> list[int]:
            return sorted(result.data for result in await toolkit.call_many([("draw", {})] * 10))

        with on(path, "record", draw) as toolkit:
            recorded = asyncio.run(main(toolkit))
        with on(path, "strict", draw) as toolkit:
            assert asyncio.run(main(toolkit)) == recorded == list(range(10))
        assert next(counter) == 10

    def test_permission_and_approval_come_first(self, path: Path) -> None:
        self.recorded(path)
        with on(path, "strict", Tools()) as toolkit:
            toolkit.set_permission("weather", "prompt")
            assert toolkit.call_sync("weather", {"city": "Bern"}).status == "denied"

    def test_every_block_comes_back(self, path: Path) -> None:
        blocks = (TextBlock("a"), ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n", "image/png"), DataBlock({"a": [1, None]}))

        @tool
        def draw() -> ToolResult:
            """Draw."""
            return ToolResult(content=blocks, data={"n": 1}, metadata={"cost": 3}, attachments=(TextBlock("b"),))

        for mode in ("record", "strict"):
            with on(path, mode, draw) as toolkit:
                result = toolkit.call_sync("draw", {})
            assert (result.content, result.attachments) == (blocks, (TextBlock("b"),))
            assert dict(result.metadata) == {"cost": 3}

    def test_with_a_journal_as_well(self, path: Path, tmp_path: Path) -> None:
        self.recorded(path)
        with journaled(tmp_path, mode="strict", cassette=str(path)) as toolkit:
            toolkit.call_sync("weather", {"city": "Bern"})
            assert [(entry.status, entry.attempts) for entry in entries(toolkit)] == [("success", 0)]


class TestFiles:
    @pytest.mark.parametrize(
        "text", ["{", '{"tool": "x"}', "[]", "1", '{"tool":"x","schema":"","arguments":{},"n":1,"result":1}']
    )
    @pytest.mark.parametrize("mode", ["record", "replay", "strict"])
    def test_one_that_is_no_cassette_stops_the_toolkit(self, path: Path, text: str, mode: str) -> None:
        path.parent.mkdir()
        path.write_text(f"{text}\n", "utf-8")
        with pytest.raises(SettingsError, match=r"one.jsonl, line 1: it is no recorded call; record it again"):
            on(path, mode, Tools())

    def test_one_that_cannot_be_written(self, tmp_path: Path) -> None:
        with on(tmp_path / "file" / "one.jsonl", "record", Tools()) as toolkit:
            (tmp_path / "file").write_text("", "utf-8")
            result = toolkit.call_sync("weather", {"city": "Bern"})
        assert result.status == "error"
        assert result.error is not None
        assert isinstance(result.error.exception, PegboardError), result.error

    def test_a_missing_file_refuses_everything(self, path: Path) -> None:
        with on(path, "strict", Tools()) as toolkit:
            assert toolkit.call_sync("weather", {"city": "Bern"}).status == "error"
