"""The page of a cookbook's program works in a browser: the script that it serves is as it is printed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard_testing import ScriptedServer
from tests.workspace.project import ROOT

pytestmark = pytest.mark.slow

RECIPE = ROOT / "docs" / "cookbook" / "agent-page.md"
SCRIPT = (("read_invoices", {"month": "May"}), ("pay", {"to": "Bob", "euros": 2000}), "Bob has his money.")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Run a worker of the program, with a model that follows a script."""
    for needed in ("fastapi", "uvicorn"):
        pytest.importorskip(needed)
    program = re.search(r"^```python\n(.*?)^```$", RECIPE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert program
    (tmp_path / "desk.py").write_text(program[1], "utf-8")
    with ScriptedServer(*SCRIPT, fragment=100) as server:
        environ = {**os.environ, "DESK_MODEL": server.url, "DESK_FOLDER": str(tmp_path)}
        command = [sys.executable, "desk.py", "worker"]
        with subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            yield f"http://127.0.0.1:{worker.stdout.readline().strip()}/"
            worker.kill()


def test_a_person_is_asked_and_the_answer_goes_on(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    wrong: list[str] = []
    questions: list[str] = []

    def accept(dialog: Any) -> None:
        questions.append(dialog.message)
        dialog.accept()

    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", accept)
    page.goto(address)
    page.locator("input[name=text]").fill("Pay what is due for May.")
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Bob has his money.").wait_for(timeout=20_000)
    shown = page.locator("pre").text_content().split("\n")[1:]
    context.close()
    assert questions == ['pay {"to":"Bob","euros":2000}?']
    assert shown == ["> Pay what is due for May.", "invoice 1 of 2", "invoice 2 of 2", "Bob has his money."]
    assert wrong == []
