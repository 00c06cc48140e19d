"""What holds for each tool, and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit, tool
from pegboard_policy import Explanation, FlowRule, Limit, Policy
from pegboard_policy._explain import run

from .desk import board


@tool(requires_approval=True)
def refund(order: str) -> str:
    """Pay an order back."""
    return order


@tool
def look() -> str:
    """Look."""
    return ""


def test_names_the_guard_or_says_that_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    path.write_text('{"look": "never"}', encoding="utf-8")
    with Toolkit(plugins=[Policy(permissions=path)]) as toolkit:
        toolkit.register(refund, look)
        look_, refund_ = Policy.explain(toolkit.session())
        assert look_ == Explanation("look", True, "never", "the guard 'permissions' of Policy")
        assert refund_ == Explanation("refund", True, "prompt", "no guard: the program and the tool decide")


def test_a_tool_that_is_kept_back_has_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.lock"
    path.write_text('{"format": 1, "distributions": {}, "tools": {}}', encoding="utf-8")
    with Toolkit(plugins=[Policy(lock=path)]) as toolkit:
        toolkit.register(look)
        (found,) = Policy.explain(toolkit)
        assert (found.offered, "it was not there when" in found.reason) == (False, True)


def test_says_which_limits_and_rules_hold_a_tool() -> None:
    with board(limits={"s*": Limit(1), "*": Limit(9, "hour")}, flow=["trifecta", FlowRule("fetch", "send")]) as toolkit:
        fetch, look_, send = Policy.explain(toolkit.session())
        assert send.limits == ("1 call per session of s*", "9 calls per hour of *")
        assert (send.flow, send.begins) == (("ask after fetch",), ())
        assert (look_.limits, look_.flow, look_.begins) == (("9 calls per hour of *",), (), ("private data",))
        assert fetch.flow == ("ask after private data and untrusted content",)
        assert fetch.begins == ("untrusted content", "fetch")
        with board() as other:  # what holds is that of the toolkit
            assert [each.limits for each in Policy.explain(other)] == [()] * 3


PROGRAM = """
from pegboard import Toolkit, tool
from pegboard_policy import Policy

@tool
def look() -> str:
    "Look."
    return ""

toolkit = Toolkit(plugins=[Policy(permissions={permissions!r}, limits={limits!r}, flow="trifecta")])
toolkit.register(look)
"""


def program(folder: Path, **limits: Any) -> str:
    permissions = folder / "permissions.json"
    permissions.write_text('{"look": "never"}', encoding="utf-8")
    path = folder / "program.py"
    path.write_text(PROGRAM.format(permissions=str(permissions), limits=limits), encoding="utf-8")
    return f"{path}:toolkit"


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--toolkit", program(tmp_path, look={"calls": 2})]) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "tool  permission  why",
        "look  never       the guard 'permissions' of Policy",
        "                  at most 2 calls per session of look",
    ]


def test_the_command_gives_data_and_names_limits_without_a_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "--json", "--toolkit", program(tmp_path, lock={"calls": 2})]) == 1
    printed = capsys.readouterr()
    (found,) = json.loads(printed.out)
    reason = "the guard 'permissions' of Policy"
    assert found == {
        "tool": "look",
        "offered": True,
        "permission": "never",
        "reason": reason,
        "limits": [],
        "flow": [],
        "begins": [],
    }
    assert printed.err == "'lock' fits no tool: a limit or a rule names it in vain\n"


def test_the_command_without_a_toolkit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PEGBOARD_LOCK", str(tmp_path / "missing.lock"))
    assert run(["check"]) == 2
    assert "PEGBOARD_LOCK: there is no" in capsys.readouterr().err
