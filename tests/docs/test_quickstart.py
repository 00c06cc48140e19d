"""The quickstart runs, in the checkout and elsewhere, warns of nothing and shows what it promises."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard_testing import ScriptedServer
from tests.workspace.project import ROOT

QUICKSTART = ROOT / "docs" / "examples" / "quickstart.py"
KEY = "sk-made-up-for-this-test"


def run(script: Path, cwd: Path, *options: str) -> str:
    command = [sys.executable, "-W", "error", str(script), *options]
    environment = {**os.environ, "EMAIL_API_KEY": KEY, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, check=False, encoding="utf-8", timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(QUICKSTART, tmp_path_factory.mktemp("anywhere"))


def test_answers_the_question(output: str) -> None:
    assert "get_weather: success\n    Weather in Beijing: Sunny, 25°C\nadd: success\n    42.0\n" in output


def test_table_names_tool_pack_version_and_parameters(output: str) -> None:
    lines = [line.split(maxsplit=3) for line in output.splitlines()]
    assert ["TOOL", "PACK", "VERSION", "PARAMETERS"] in lines
    assert ["view_text_file", "pegboard-files", "0.1.0", "file_path, ranges"] in lines
    assert ["send_email", "this", "program", "-        to, subject, api_key (preset), sender (context)"] in lines


def test_shows_this_readme(output: str) -> None:
    assert "\n    1: # Pegboard\n" in output
    assert "MIT licensed.\n" in output


def test_reads_it_as_a_document_in_parts(output: str) -> None:
    assert "document_read: success\n    # Pegboard\n" in output
    assert re.search(r"\[characters 0 to \d+ of [\d,]+; go on with start=\d+\]\n", output)


def test_bad_call_tells_what_to_fix(output: str) -> None:
    assert 'days: expected integer >= 1 and <= 14, got string "three"' in output


def test_an_agent_answers_the_question_of_the_seeds(output: str) -> None:
    talk = output.partition("An agent asks a scripted model and answers")[2].partition("\n\n")[0]
    assert "Question: What's the weather in Beijing? Also, what is 15 + 27?\n" in talk
    assert "get_weather: success\n    Weather in Beijing: Sunny, 25°C\n" in talk
    assert "add: success\n    42.0\n" in talk
    assert talk.endswith("Answer: It is sunny in Beijing, 25°C, and 15 + 27 is 42.")


def test_asks_a_model_that_is_named(tmp_path: Path) -> None:
    with ScriptedServer("A real answer.") as server:
        output = run(QUICKSTART, tmp_path, "--model", "qwen", "--base-url", server.url)
    assert "Answer: A real answer.\n" in output
    assert server.requests[0]["model"] == "qwen"


def test_begins_with_what_a_model_can_correct_and_what_a_person_decides(output: str) -> None:
    begin = output.partition("An agent asks")[0]
    assert "get_forecast: invalid\n    Error: invalid arguments:\n    city: missing (required string)\n" in begin
    assert "approve send_email to bob@example.com?\nsend_email: success\n" in begin
    assert "send_email: denied\n    Error: send_email was not run: Emails may go to example.com only.\n" in begin
    assert output.rpartition("What a model sees of two of them")[2].count('"properties"') == 2


def test_prints_no_secret(output: str) -> None:
    assert "Sent 'Lunch?' from ada@example.com" in output
    assert KEY not in output


def test_fits_a_terminal_of_100_columns(output: str) -> None:
    assert [line for line in output.splitlines() if len(line) > 100] == []


def test_runs_outside_the_checkout(tmp_path: Path) -> None:
    output = run(Path(shutil.copy(QUICKSTART, tmp_path)), tmp_path)
    assert "view_text_file: success" in output
