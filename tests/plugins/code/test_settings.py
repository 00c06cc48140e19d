"""Code mode by settings, through the command line, under telemetry and over other backends."""

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pegboard import Toolkit, tool
from pegboard_code import CodeMode
from tests.plugins.code.desk import MODES, ran


def test_without_settings_the_pack_offers_nothing() -> None:
    with Toolkit(plugins=["code", "files"]) as toolkit:
        assert "run_code" not in toolkit


def test_settings_name_the_tools(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    settings = {"code": {"tools": ["view_*", "files__list_directory", "late"]}, "files": {"base_dir": str(tmp_path)}}
    with Toolkit(plugins=["code", "files"], settings=settings) as toolkit:
        text = toolkit["run_code"].description
        assert "def view_text_file(" in text
        assert "def list_directory(" in text
        assert "def write_text_file(" not in text
        assert str(toolkit["run_code"].origin).startswith("pegboard-code")
        toolkit.register(lambda: 3, name="late")
        code = "(await list_directory(dir_path='.'))['entries'][0]['name'] + str(await late())"
        assert ran(toolkit, code).data == "a.txt3"


def test_the_command_line_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testing, cli = pytest.importorskip("click.testing"), pytest.importorskip("pegboard_cli")
    (tmp_path / "pegboard.toml").write_text('[code]\ntools = ["list_directory"]\n')
    code = json.dumps({"code": "len((await list_directory(dir_path='.'))['entries'])"})
    monkeypatch.chdir(tmp_path)
    with patch.dict(os.environ):  # a command hands options on in there
        result = testing.CliRunner().invoke(cli.main, ["call", "run_code", code])
    assert (result.exit_code, result.stdout.strip()) == (0, "1"), result.stderr


@pytest.mark.parametrize("mode", MODES)
def test_spans_of_calls_are_children(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pegboard_otel")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporter, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)

    def one(n: int) -> int:
        return n

    with Toolkit(plugins=["otel"]) as toolkit:
        toolkit.register(one, CodeMode(toolkit))
        assert ran(toolkit, "import asyncio\nawait asyncio.gather(one(n=1), one(n=2))", mode).data == [1, 2]
    spans: Any = {span.name: span for span in exporter.get_finished_spans()}
    outer, inner = spans["execute_tool run_code"], spans["execute_tool one"]
    assert inner.parent.span_id == outer.context.span_id
    assert len(exporter.get_finished_spans()) == 3


@tool(backend="process")
def in_a_process(n: int) -> int:
    """Double."""
    return 2 * n


def test_calls_run_where_their_backend_says() -> None:
    with Toolkit(plugins=["process"]) as toolkit:
        toolkit.register(in_a_process, CodeMode(toolkit))
        for mode in MODES:
            assert ran(toolkit, "await in_a_process(n=4)", mode).data == 8
