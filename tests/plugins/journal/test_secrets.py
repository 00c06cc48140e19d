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
from tests.support.thinning import one_in


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
EVERY = "every"


def board(folder: Path, act: Callable[[str], Any], secret: Any, content: str = "redacted") -> Toolkit:
    settings = {"url": url_of(folder), "content": content, "once": ["once"], "mode": "record"}
    toolkit = Toolkit(
        plugins=["journal"],
        settings={"journal": {**settings, "cassette": str(folder / "calls.jsonl")}},
        policy=ExecutionPolicy(max_attempts=2, initial_backoff=0.0),
    )

    @tool(idempotent=True)
    def plain(key: str, text: str = "", form: str = "plain") -> Any:
        """Act."""
        return act(written(key, form))

    @tool
    def once(key: str, text: str = "", form: str = "plain") -> Any:
        """Act."""
        return act(written(key, form))

    @tool
    async def awaited(key: str, form: str = "plain") -> Any:
        """Act."""
        await asyncio.sleep(0)
        return act(written(key, form))

    toolkit.register(plain, once, awaited)
    for name in ("plain", "once", "awaited"):
        toolkit.set_presets(name, {"key": secret})
    return toolkit


def written(key: str, form: str) -> str:
    """A secret in one form, or in every form there is."""
    return " | ".join(write(key) for write in FORMS.values()) if form == EVERY else FORMS[form](key)


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


def act_in(toolkit: Toolkit, form: str) -> None:
    toolkit.call_sync("plain", {"form": form})
    toolkit.call_sync("once", {"form": form}, call_id=form)
    toolkit.call_sync("once", {"form": form}, call_id=form)
    asyncio.run(toolkit.call("awaited", {"form": form}))


@pytest.mark.parametrize("content", ["redacted", pytest.param("digest", marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", one_in(3, WAYS))
def test_what_a_tool_does_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str, content: str) -> None:
    with board(tmp_path, WAYS[way], Secret(SECRET), content) as toolkit:
        for form in FORMS:
            act_in(toolkit, form)
        with Journal(url_of(tmp_path)) as journal:
            assert len(list(journal.calls())) == 4 * len(FORMS)
        check(tmp_path, capsys)  # while there is a log
    check(tmp_path, capsys)


@pytest.mark.parametrize("content", ["redacted", pytest.param("digest", marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", one_in(3, WAYS))
def test_what_a_tool_does_with_one_that_is_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str, content: str
) -> None:
    """In all forms at once: its patterns are made for each call, which takes longer than the rest."""
    with board(tmp_path, WAYS[way], Secret(Computed(lambda call: SECRET)), content) as toolkit:
        act_in(toolkit, EVERY)
    check(tmp_path, capsys)


def test_what_a_model_sends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that knows the secret may send it back, in arguments, in names and in ids."""
    with board(tmp_path, WAYS["data"], Secret(SECRET)) as toolkit:
        for text in (write(SECRET) for write in FORMS.values()):
            toolkit.call_sync("plain", {"text": text}, call_id=f"c {text}")
            toolkit.call_sync("plain", json.dumps({"text": f"<{text}>"}))
            toolkit.call_sync("once", {"text": text}, call_id=f"k {text}")
            toolkit.call_sync("plain", {"text": [text]})
            toolkit.call_sync("plain", {text: 1})
            toolkit.call_sync("plain", text)
    check(tmp_path, capsys)
