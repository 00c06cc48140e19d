"""What holds for each tool, and why."""

import json
from pathlib import Path

import pytest

from pegboard import Toolkit, tool
from pegboard_policy import Explanation, Policy
from pegboard_policy._explain import run


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


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def board() -> Toolkit:
        toolkit = Toolkit(plugins=[Policy(permissions=path)])
        toolkit.register(look)
        return toolkit

    path = tmp_path / "permissions.json"
    path.write_text('{"look": "never"}', encoding="utf-8")
    monkeypatch.setattr("pegboard_policy._explain.Toolkit", board)
    assert run(["check"]) == 0
    assert capsys.readouterr().out == "look: never (the guard 'permissions' of Policy)\n"
    assert run(["check", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    reason = "the guard 'permissions' of Policy"
    assert found == {"tool": "look", "offered": True, "permission": "never", "reason": reason}
