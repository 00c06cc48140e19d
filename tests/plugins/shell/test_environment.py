"""A command sees the variables that are named, and no others."""

import json
import os
import sys
from pathlib import Path

import pytest

from pegboard_shell import ShellTools
from pegboard_shell._surroundings import minimal_environment
from tests.plugins.shell.helpers import SANDBOXES, output, run, use_sandbox

SECRETS = {
    "OPENAI_API_KEY": "sk-seeded-1",
    "AWS_SECRET_ACCESS_KEY": "seeded-2",
    "GITHUB_TOKEN": "seeded-3",
    "PASSWORD": "seeded-4",
    "LD_PRELOAD_NOT": "seeded-5",
    "PYTHONSTARTUP": "seeded-6",
    "BASH_FUNC_echo%%": "() { echo seeded-7; }",
    "pegboard": "seeded-8",
}


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_secrets_are_never_seen(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_sandbox(sandbox, monkeypatch)
    tools = ShellTools(tmp_path, shell=True, approve=lambda request: True)
    look = f"env; set; cat /proc/self/environ /proc/$PPID/environ; '{sys.executable}' -c 'import os; print(os.environ)'"
    result = run(tools, look)
    assert "PATH=" in result.data["stdout"]
    assert "seeded" not in str(result.data)


def test_what_there_is(tmp_path: Path) -> None:
    tools = ShellTools(tmp_path, allow=["env"], sandbox="none", path="/usr/bin:/bin")
    found = dict(line.split("=", 1) for line in output(run(tools, "env")).splitlines())
    assert sorted(found) == ["HOME", "LANG", "PATH", "TERM"]
    assert found["PATH"] == "/usr/bin:/bin"
    assert found["TERM"] == "dumb"


def test_named_variables_are_passed_and_others_set(tmp_path: Path) -> None:
    tools = ShellTools(
        tmp_path, allow=[sys.executable], environment=["PASSWORD", "NOT_SET"], variables={"MODE": "test", "LANG": "C"}
    )
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    found = json.loads(output(run(tools, f"'{sys.executable}' -c '{script}'")))
    assert (found["PASSWORD"], found["MODE"], found["LANG"]) == ("seeded-4", "test", "C")
    assert "NOT_SET" not in found
    assert "GITHUB_TOKEN" not in found


def test_windows_needs_a_few_more() -> None:
    host = {"SYSTEMROOT": r"C:\Windows", "COMSPEC": r"C:\Windows\cmd.exe", "SECRET": "x", "HOME": "/h"}
    found = minimal_environment(host, [r"C:\bin"], windows=True)
    assert sorted(found) == ["COMSPEC", "HOME", "LANG", "PATH", "SYSTEMROOT", "TERM"]
    assert "COMSPEC" not in minimal_environment(host, [], windows=False)


def test_later_changes_are_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = ShellTools(tmp_path, allow=["env"], sandbox="none")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert f"PATH={tmp_path}" not in output(run(tools, "env"))
