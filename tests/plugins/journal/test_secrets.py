"""Secrets are in no byte of journal, log, cassette, page and export, however a tool writes them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pegboard import (
    Computed,
    DataBlock,
    ExecutionPolicy,
    FileBlock,
    Secret,
    TextBlock,
    ToolError,
    Toolkit,
    ToolOutput,
    ToolResult,
    tool,
)
from pegboard_journal import Journal
from pegboard_journal._command import run
from tests.plugins.journal.desk import url_of
from tests.support.secrets import FORMS, SECRET, leaked


def _raising(error: type[Exception]) -> Callable[[str], Any]:
    def act(text: str) -> Any:
        raise error(f"no: {text}")

    return act


WAYS: dict[str, Callable[[str], Any]] = {
    "text": lambda text: f"<{text}>",
    "data": lambda text: {"a": [{"b": text}]},
    "key": lambda text: {text: 1},
    "block": lambda text: ToolResult(content=(TextBlock(text), DataBlock({"x": text}))),
    "attachment": lambda text: ToolResult(content="a", attachments=(TextBlock(text),), metadata={"m": text}),
    "output": lambda text: ToolOutput({"v": text}, metadata={"m": [text]}),
    "file": lambda text: FileBlock.from_bytes(text.encode(), "text/plain"),
    "error": _raising(OSError),
    "message": _raising(ToolError),
}
"""Ways out of a tool; with the forms of `FORMS` these are more than a hundred channels."""


@pytest.fixture(params=["preset", "computed"])
def secret(request: pytest.FixtureRequest) -> Any:
    """The secret, as it is or computed for each call."""
    return Secret(SECRET) if request.param == "preset" else Secret(Computed(lambda call: SECRET))


def board(folder: Path, act: Callable[[str], Any], form: Callable[[str], str], secret: Any, content: str) -> Toolkit:
    settings = {"url": url_of(folder), "content": content, "once": ["once"], "mode": "record"}
    toolkit = Toolkit(
        plugins=["journal"],
        settings={"journal": {**settings, "cassette": str(folder / "calls.jsonl")}},
        policy=ExecutionPolicy(max_attempts=2, initial_backoff=0.0),
    )

    @tool(idempotent=True)
    def plain(key: str, text: str = "") -> Any:
        """Act."""
        return act(form(key))

    @tool
    def once(key: str, text: str = "") -> Any:
        """Act."""
        return act(form(key))

    @tool
    async def awaited(key: str, text: str = "") -> Any:
        """Act."""
        await asyncio.sleep(0)
        return act(form(key))

    toolkit.register(plain, once, awaited)
    for name in ("plain", "once", "awaited"):
        toolkit.set_presets(name, {"key": secret})
    return toolkit


def bytes_of(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.iterdir()):
        yield path, path.read_bytes()


def check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing in a file or in an export has a form of the secret."""
    for path, data in bytes_of(folder):
        assert not leaked(data.decode("latin-1")), path
        assert not leaked(data.decode("utf-8", "replace")), path
    with closing(sqlite3.connect(folder / "calls.db")) as connection:
        for row in connection.execute("SELECT * FROM pegboard_journal"):
            assert not leaked(" ".join(map(str, row)))
            for value in row:
                if isinstance(value, str) and value.startswith("{"):
                    assert not leaked(json.dumps(json.loads(value), ensure_ascii=False))
    for command in (["list"], ["export"], ["export", "--json"], ["stats", "--html", str(folder / "page.html")]):
        assert run(url_of(folder), command) == 0
    assert not leaked(capsys.readouterr().out)
    assert not leaked((folder / "page.html").read_text("utf-8"))


@pytest.mark.parametrize("content", ["redacted", pytest.param("digest", marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", WAYS)
def test_what_a_tool_does_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str, secret: Any, content: str
) -> None:
    for number, form in enumerate(FORMS.values()):
        with board(tmp_path, WAYS[way], form, secret, content) as toolkit:
            toolkit.call_sync("plain", {"text": str(number)})
            toolkit.call_sync("once", {}, call_id=str(number))
            toolkit.call_sync("once", {}, call_id=str(number))
            asyncio.run(toolkit.call("awaited", {"text": str(number)}))
            if number == 0:
                with Journal(url_of(tmp_path)) as journal:
                    assert len(list(journal.calls())) == 4
                check(tmp_path, capsys)  # while there is a log
    check(tmp_path, capsys)


@pytest.mark.parametrize("form", FORMS)
def test_what_a_model_sends(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """A model that knows the secret may send it back, in arguments, in names and in ids."""
    text = FORMS[form](SECRET)
    with board(tmp_path, WAYS["data"], str, Secret(SECRET), "redacted") as toolkit:
        toolkit.call_sync("plain", {"text": text}, call_id=f"c {text}")
        toolkit.call_sync("plain", json.dumps({"text": f"<{text}>"}))
        toolkit.call_sync("once", {"text": text}, call_id=f"k {text}")
        toolkit.call_sync("plain", {"text": [text]})
        toolkit.call_sync("plain", {text: 1})
        toolkit.call_sync("plain", text)
    check(tmp_path, capsys)
