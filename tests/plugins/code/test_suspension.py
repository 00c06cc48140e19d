"""Programs that wait for an answer, in this program and over a restart."""

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pegboard import PegboardError, Status, Suspend, ToolError, Toolkit, ToolResult
from pegboard_code import CodeMode
from tests.plugins.code.desk import MODES, Tools, coded, ran

KEY = b"0123456789abcdef0123456789abcdef"
ONE = "x = await ask_person(question='May I?')\nx + '!'"
TWO = (
    "import asyncio\nprint('before')\nw = await get_weather(city='Oslo')\n"
    "a, b, c = await asyncio.gather(ask_person(question='1'), get_weather(city='Rome'), ask_person(question='2'))\n"
    "print('after')\n[a, b['city'], c, w['city']]"
)


def resumed(toolkit: Any, call_id: str, value: Any, mode: str) -> ToolResult:
    """What the answer brings, from plain code or on a loop."""
    if mode == "plain":
        plain: ToolResult = toolkit.resume(call_id, value)
        return plain

    async def main() -> ToolResult:
        result: ToolResult = await toolkit.aresume(call_id, value)
        return result

    return asyncio.run(main())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kept", [False, True], ids=["memory", "store"])
class TestHere:
    @pytest.fixture
    def options(self, kept: bool, tmp_path: Path) -> dict[str, Any]:
        """Where programs are kept."""
        return {"store": tmp_path / "store", "key": KEY} if kept else {}

    def test_a_program_waits_under_its_own_id(self, mode: str, options: dict[str, Any]) -> None:
        with coded(**options) as toolkit:
            result = ran(toolkit, ONE, mode, call_id="c1")
            assert result.status is Status.SUSPENDED
            assert result.text == "ask_person: asked: May I?"
            assert [call.id for call in toolkit.pending] == ["c1"]
            assert resumed(toolkit, "c1", "yes", mode).data == "yes!"
            assert toolkit.pending == []
            with pytest.raises(PegboardError, match="no suspended call"):
                resumed(toolkit, "c1", "yes", mode)

    def test_several_answers_are_asked_for_in_order(self, mode: str, options: dict[str, Any]) -> None:
        tools = Tools()
        with coded(tools, **options) as toolkit:
            first = ran(toolkit, TWO, mode, call_id="c1")
            second = resumed(toolkit, "c1", "one", mode)
            last = resumed(toolkit, "c1", "two", mode)
        assert [first.text, second.text] == ["ask_person: asked: 1", "ask_person: asked: 2"]
        assert last.data == ["one", "Rome", "two", "Oslo"]
        assert last.text.startswith("before\nafter\n")
        assert len(tools.calls) == 2

    def test_it_may_wait_again_and_again(self, mode: str, options: dict[str, Any]) -> None:
        code = "r = []\nfor i in range(3):\n    r.append(await ask_person(question=str(i)))\nr"
        with coded(**options) as toolkit:
            ran(toolkit, code, mode, call_id="c1")
            for answer in "ab":
                assert resumed(toolkit, "c1", answer, mode).status is Status.SUSPENDED
            assert resumed(toolkit, "c1", "c", mode).data == ["a", "b", "c"]

    def test_an_error_as_the_answer_is_a_tool_error(self, mode: str, options: dict[str, Any]) -> None:
        code = "try:\n    await ask_person(question='1')\nexcept ToolError as e:\n    x = str(e)\nx"
        with coded(**options) as toolkit:
            ran(toolkit, code, mode, call_id="c1")
            assert resumed(toolkit, "c1", ToolError("nobody is there"), mode).data == "nobody is there"

    def test_handles_and_limits_go_on(self, mode: str, options: dict[str, Any]) -> None:
        code = (
            "h = await draw(what='a')\nshow(h)\nawait ask_person(question='1')\nshow(h)\n"
            "await get_weather(city='a')\nawait get_weather(city='a')"
        )
        with coded(max_calls=4, **options) as toolkit:
            ran(toolkit, code, mode, call_id="c1")
            result = resumed(toolkit, "c1", "ok", mode)
            assert [block.kind for block in result.content] == ["text", "image", "image"]
            ran(toolkit, f"{code}\nawait get_weather(city='a')", mode, call_id="c2")
            assert "more than 4 calls" in resumed(toolkit, "c2", "ok", mode).text

    def test_what_was_approved_as_a_whole_stays_so(self, mode: str, options: dict[str, Any]) -> None:
        asked: list[str] = []

        def approve(request: Any) -> bool:
            asked.append(request.tool.name)
            return True

        code = "await ask_person(question='1')\nawait send_mail(to='a')"
        with coded(None, approve, approve="program", **options) as toolkit:
            ran(toolkit, code, mode, call_id="c1")
            assert resumed(toolkit, "c1", "ok", mode).data == "sent to a"
        assert asked == ["run_code"]

    def test_time_and_random_stay_as_they_were(self, mode: str, options: dict[str, Any]) -> None:
        code = (
            "import datetime, random\na = datetime.datetime.now()\nrandom.random()\nawait ask_person(question='1')\n"
            "b = datetime.datetime.now()\n[a == b, random.random()]"
        )
        whole = "import random\nrandom.random()\nrandom.random()"
        with coded(**options) as toolkit:
            ran(toolkit, code, mode, call_id="c1")
            same, number = resumed(toolkit, "c1", "ok", mode).data
            ran(toolkit, code, mode, call_id="c2")
            assert resumed(toolkit, "c2", "ok", mode).data == [True, number]
            assert ran(toolkit, whole, mode).data != number
        assert same

    def test_a_tool_that_goes_on_itself_does(self, mode: str, options: dict[str, Any]) -> None:
        def order(what: str) -> str:
            def colour(value: str) -> str:
                raise Suspend("which size?", resume=lambda size: f"{what} {value} {size}")

            raise Suspend("which colour?", resume=colour)

        with coded(**options) as toolkit:
            toolkit.register(order)
            assert ran(toolkit, "await order(what='shirt')", mode, call_id="c1").text == "order: which colour?"
            assert resumed(toolkit, "c1", "red", mode).text == "order: which size?"
            assert resumed(toolkit, "c1", "L", mode).data == "shirt red L"

    def test_what_the_host_has_answered_by_then_is_kept(self, mode: str, options: dict[str, Any]) -> None:
        code = (
            "import asyncio\nasync def large():\n    try:\n"
            "        return await get_weather(city=['a' * 10 ** 6] * 20)\n"
            "    except ToolError as e:\n        return str(e)\n"
            "f = find_tools(query='weather')\n"
            "x = await asyncio.gather(ask_person(question='q'), large())\n[*x, await f]"
        )
        with coded(check=False, **options) as toolkit:
            ran(toolkit, code, mode, call_id="c1")
            answer, refusal, found = resumed(toolkit, "c1", "yes", mode).data
        assert (answer, "are too large" in refusal, "def get_weather(" in found) == ("yes", True, True)

    def test_a_failure_beside_it_ends_it(self, mode: str, options: dict[str, Any]) -> None:
        code = "import asyncio\nawait asyncio.gather(ask_person(question='1'), get_weather(city='Atlantis'))"
        with coded(**options) as toolkit:
            result = ran(toolkit, code, mode)
            assert result.status is Status.ERROR
            assert "there is no weather in Atlantis" in result.text
            assert toolkit.pending == []


class Kept:
    """A store with one program that waits."""

    def __init__(self, folder: Path, session: str | None = None, code: str = ONE) -> None:
        self.folder = folder
        with self.toolkit() as toolkit:
            ran(toolkit.session(id=session) if session else toolkit, code, call_id="c1")

    def toolkit(self, key: bytes = KEY, tools: Tools | None = None) -> Any:
        """A fresh toolkit over the store."""
        return coded(tools, store=self.folder, key=key)

    @property
    def file(self) -> Path:
        """The only file."""
        (path,) = self.folder.iterdir()
        return path


@pytest.mark.parametrize("mode", MODES)
class TestOverARestart:
    def test_another_program_goes_on_once(self, mode: str, tmp_path: Path) -> None:
        kept = Kept(tmp_path)
        with kept.toolkit() as toolkit, kept.toolkit() as other:
            (call,) = toolkit.pending
            assert call.arguments == {"code": ONE}
            assert [each.id for each in other.pending] == ["c1"]
            assert resumed(toolkit, "c1", "yes", mode).data == "yes!"
            late = resumed(other, "c1", "yes", mode)
            assert late.status is Status.ERROR
            assert "taken up already" in late.text
            assert list(tmp_path.iterdir()) == []

    def test_only_a_session_of_the_name_does(self, mode: str, tmp_path: Path) -> None:
        kept = Kept(tmp_path, "alice")
        with kept.toolkit() as toolkit:
            for session in (toolkit, toolkit.session(id="bob")):
                with pytest.raises(PegboardError, match="no suspended call"):
                    resumed(session, "c1", "yes", mode)
            assert resumed(toolkit.session(id="alice"), "c1", "yes", mode).data == "yes!"

    def test_a_changed_one_is_refused(self, mode: str, tmp_path: Path) -> None:
        kept = Kept(tmp_path)
        whole = kept.file.read_bytes()
        for place in (0, 100, len(whole) // 2, len(whole) - 2):
            changed = bytearray(whole)
            changed[place] ^= 1
            kept.file.write_bytes(changed)
            with kept.toolkit() as toolkit, suppress(PegboardError):
                result = resumed(toolkit, "c1", "yes", mode)
                assert result.status is Status.ERROR
                assert "nothing was run" in result.text
        kept.file.write_bytes(whole)
        with kept.toolkit(b"another key of the right length!") as toolkit:
            assert "sealed with another key" in resumed(toolkit, "c1", "yes", mode).text
        with kept.toolkit() as toolkit:
            assert resumed(toolkit, "c1", "yes", mode).data == "yes!"

    def test_one_of_another_call_is_refused(self, mode: str, tmp_path: Path) -> None:
        kept = Kept(tmp_path, "alice")
        (tmp_path / "foreign").mkdir()
        other = Kept(tmp_path / "foreign", "bob")
        other.file.write_bytes(kept.folder.joinpath(next(p.name for p in kept.folder.glob("*.snapshot"))).read_bytes())
        with other.toolkit() as toolkit:
            result = resumed(toolkit.session(id="bob"), "c1", "yes", mode)
        assert result.status is Status.ERROR
        assert "belongs to another call" in result.text

    def test_one_that_was_begun_and_not_ended_says_so(self, mode: str, tmp_path: Path) -> None:
        kept, tools = Kept(tmp_path), Tools()
        kept.file.rename(kept.file.with_suffix(".used"))
        with kept.toolkit(tools=tools) as toolkit:
            result = resumed(toolkit, "c1", "yes", mode)
        assert result.status is Status.ERROR
        assert "taken up before, by a program that did not end it" in result.text
        assert list(tmp_path.iterdir()) == []

    def test_a_lifted_limit_is_given_again(self, mode: str, tmp_path: Path) -> None:
        code = "await ask_person(question='1')\nwhile True:\n    pass"
        kept = Kept(tmp_path, code=code)
        with coded(store=tmp_path, key=KEY, timeout=0.3) as toolkit:
            assert kept.folder == tmp_path
            began = time.monotonic()
            assert resumed(toolkit, "c1", "yes", mode).status is Status.TIMEOUT
            assert time.monotonic() - began < 15  # its own limit was 30 s

    def test_files_are_private(self, mode: str, tmp_path: Path) -> None:
        kept = Kept(tmp_path / "new")
        assert mode
        assert kept.file.stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


DRIVER = """
import json, os, sys
from pegboard import Suspend, Toolkit
from pegboard_code import CodeMode

folder, log, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


def made(step: str) -> Toolkit:
    def ask(question: str) -> str:
        raise Suspend(question)

    def act(name: str, what: str) -> str:
        with open(log, "a") as file:
            file.write(f"{name} {what}\\n")
        if step == "killed":
            os.kill(os.getpid(), 9)
        return what

    toolkit = Toolkit(plugins=())
    toolkit.register(ask, act)
    toolkit.register(CodeMode(toolkit, store=folder, key=b"k" * 32, check=False))
    return toolkit


def taken(step: str, numbers: list[int], out: int) -> None:
    toolkit = made(step)
    for number in numbers:
        name = f"c{number}"
        code = f"x = await ask(question='go?')\\nawait act(name='{name}', what=x)"
        try:
            if step == "begin":
                text = str(toolkit.call_sync("run_code", {"code": code}, call_id=name).status)
            else:
                result = toolkit.resume(name, "now")
                text = f"{result.status} {result.text}"
        except Exception as error:
            text = str(error)
        os.write(out, f"{json.dumps([number, step, text])}\\n".encode())
    if step == "begin":
        os.kill(os.getpid(), 9)
    os._exit(0)


def forked(step: str, *numbers: int) -> None:
    # A process, in which the sandbox was not begun: only what was imported is shared.
    reader, writer = os.pipe()
    if os.fork() == 0:
        taken(step, list(numbers), writer)
    os.close(writer)
    with os.fdopen(reader) as said:
        print(said.read(), end="", flush=True)
    os.wait()


import asyncio, pydantic_monty
made("").prepare("run_code", {"code": "1"})
for number in range(count):
    forked("begin", number)
for number in range(1, count, 2):
    forked("killed", number)
forked("resume", *range(count))
forked("again", *range(count))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("half", [1, 2])
def test_200_programs_go_on_exactly_once_or_say_why_not_over_kills(half: int, tmp_path: Path) -> None:
    script, log, count = tmp_path / "driver.py", tmp_path / "log", 100
    script.write_text(DRIVER)
    arguments = [sys.executable, str(script), str(tmp_path / "store"), str(log), str(count)]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=280, check=True)
    steps = [json.loads(line) for line in run.stdout.splitlines()]
    expected = {"begin": "suspended", "again": "no suspended call has the id"}
    for number, step, text in steps:  # a killed one says nothing
        wanted = expected.get(step, "taken up before" if number % 2 else "success now")
        assert wanted in text, (number, step, text)
    assert len(steps) == 3 * count, half
    assert sorted(log.read_text().splitlines()) == sorted(f"c{number} now" for number in range(count))
    assert list((tmp_path / "store").iterdir()) == []


def test_a_store_needs_a_source_of_the_same_toolkit(tmp_path: Path) -> None:
    with coded(store=tmp_path, key=KEY) as toolkit, Toolkit(plugins=()) as other:
        ran(toolkit, ONE, call_id="c1")
        other.register(CodeMode(toolkit.view(), name="run_elsewhere"))
        assert other.pending == []
