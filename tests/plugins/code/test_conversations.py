"""Programs in the conversation of an agent, which another process goes on with."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import Approval, Suspend
from tests.plugins.code.desk import MODES, Tools, coded, ran
from tests.plugins.code.test_suspension import KEY, resumed

SCRIPT = """
import json, os, sys
from pathlib import Path
from pegboard import Suspend, Toolkit, tool
from pegboard_agent import Agent, Memory, OpenAIChat
from pegboard_code import CodeMode
from pegboard_testing import ScriptedServer

folder, step = Path(sys.argv[1]), ""


def note(text: str) -> str:
    with open(folder / "log", "a") as file:
        file.write(f"{text}\\n")
    if step == "killed" and text.startswith("paid bob"):
        os.kill(os.getpid(), 9)
    return text


@tool(requires_approval=True)
def pay(to: str) -> str:
    return note(f"paid {to}")


def approver(request):
    raise Suspend("the person decides later")


def said(*texts):
    print(json.dumps(texts), flush=True)


def made():
    toolkit = Toolkit(plugins=["dialects"], approver=approver)
    toolkit.register(note, pay)
    toolkit.register(CodeMode(toolkit.view(), store=folder / "programs", key=b"k" * 32, check=False))
    return toolkit


def ask(toolkit, name, message, *replies):
    with ScriptedServer(*replies) as server:
        model = OpenAIChat("scripted", base_url=server.url, api_key="none")
        agent = Agent("clerk", model, toolkit.view(include="run_code"), memory=Memory(folder / "talks"))
        if message is not None:
            return agent.call_sync(message, session_id=name).parked
        (call,) = [call for call in toolkit.pending if call.session.id == name]
        said(name, toolkit.resume(call, True).text)
        return agent.call_sync(session_id=name).text


def taken(names):
    toolkit = made()
    for name in names:
        if step == "begin":
            code = f"await note(text='began {name}')\\nx = await pay(to='{name}')\\nawait note(text=x + '!')\\nx"
            said(name, ask(toolkit, name, "Pay.", [("run_code", {"code": code})]), len(toolkit.pending))
        else:
            said(name, ask(toolkit, name, None, f"{name} was paid."))
    os.kill(os.getpid(), 9)


# Processes that share nothing but what was imported.
made().prepare("run_code", {"code": "1"})
for step in ("begin", "killed"):
    if os.fork() == 0:
        taken([None, "ann", "bob"])
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fresh_process_goes_on_with_parked_programs(tmp_path: Path) -> None:
    for pack in ("pegboard_agent", "pegboard_testing", "pegboard_dialects"):
        pytest.importorskip(pack)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert list(map(json.loads, run.stdout.splitlines())) == [
        # Three conversations whose calls have the same id.
        [None, ["call_1_1"], 1],
        ["ann", ["call_1_1"], 2],
        ["bob", ["call_1_1"], 3],
        # Another process goes on, and is killed in the program of the last one.
        [None, "paid None"],
        [None, "None was paid."],
        ["ann", "paid ann"],
        ["ann", "ann was paid."],
    ]
    with coded(store=tmp_path / "programs", key=b"k" * 32) as toolkit:
        again = toolkit.session(id="bob").resume("call_1_1", True)
    assert "taken up before, by a program that did not end it; nothing was run now" in again.text
    log = (tmp_path / "log").read_text().splitlines()
    expected = [f"{word} {name}" for name in (None, "ann", "bob") for word in ("began", "paid")]
    assert sorted(log) == sorted([*expected, "paid None!", "paid ann!"])
    assert list((tmp_path / "programs").iterdir()) == []


def undecided(request: Any) -> bool:
    raise Suspend("the person decides later")


DECIDED: list[tuple[list[Any], str]] = [
    ([True], "sent to ann"),
    ([None, None, True], "sent to ann"),
    ([Approval.edit({"to": "bob"})], "sent to bob"),
    ([False], "Error: send_mail was not run: it was not approved"),
    ([Approval.deny("no mails today")], "Error: send_mail was not run: no mails today"),
    (["yes"], "Error: send_mail was not run: asking brought no answer"),
]


@pytest.mark.parametrize("mode", MODES)
def test_an_approver_that_cannot_decide_parks_the_program(mode: str, tmp_path: Path) -> None:
    code = (
        "import asyncio\nasync def mail():\n    try:\n        return await send_mail(to='ann')\n"
        "    except ToolError as e:\n        return str(e)\n"
        "a, b = await asyncio.gather(get_weather(city='Oslo'), mail())\n[a['city'], b]"
    )
    tools = Tools()
    with coded(tools, undecided, store=tmp_path, key=KEY) as toolkit:
        for answers, told in DECIDED:
            result = ran(toolkit, code, mode, call_id="c1")
            for answer in answers:
                assert (result.status, result.text) == ("suspended", "send_mail: the person decides later")
                assert [call.id for call in toolkit.pending] == ["c1"]
                result = resumed(toolkit, "c1", answer, mode)
            assert result.data == ["Oslo", told]
            assert toolkit.pending == []
    assert len(tools.calls) == len(DECIDED)
    assert tools.sent == ["ann", "ann", "bob"]


def test_an_answer_and_an_approval_are_asked_for_in_order() -> None:
    code = "import asyncio\nawait asyncio.gather(send_mail(to='ann'), ask_person(question='1'), send_mail(to='bob'))"
    with coded(None, undecided) as toolkit:
        results = [ran(toolkit, code, call_id="c1"), *(toolkit.resume("c1", each) for each in (True, "yes", True))]
    assert [result.text.partition(":")[0] for result in results[:3]] == ["send_mail", "ask_person", "send_mail"]
    assert results[3].data == ["sent to ann", "yes", "sent to bob"]


def test_of_two_that_share_a_call_the_second_waits_for_the_first(tmp_path: Path) -> None:
    class Shared:
        def __init__(self) -> None:
            self.answers: list[Any] = []

        def refresh(self) -> None: ...

        def answer(self, session: Any, call: Any, result: Any) -> bool:
            self.answers.append(result.data)
            return True

    with coded(store=tmp_path, key=KEY) as toolkit:
        ran(toolkit.session(id="ann"), "await ask_person(question='1')", call_id="c1")
    shared = Shared()
    with coded(store=tmp_path, key=KEY) as one, coded(store=tmp_path, key=KEY) as two:
        sessions = [toolkit.session(id="ann") for toolkit in (one, two)]
        for session in sessions:
            session.share_suspended(shared)
            call = session.prepare("run_code", {"code": "await ask_person(question='1')"}, call_id="c1")
            session.suspend(call, "asked")
        assert sessions[0].resume("c1", "yes").data == "yes"
        late = sessions[1].resume("c1", "yes")
        assert (late.status, late.text) == (
            "suspended",
            "the program was taken up already, by another program; nothing was run now",
        )
        assert shared.answers == ["yes"]


def test_a_program_that_is_kept_nowhere_says_so() -> None:
    with coded() as toolkit:
        call = toolkit.prepare("run_code", {"code": "1"}, call_id="c1")
        toolkit.suspend(call, "of an earlier process")
        result = toolkit.resume("c1", "yes")
    assert result.is_error
    assert "was lost with its process; nothing was run now" in result.text
