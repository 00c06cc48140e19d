"""`pegboard completion`: what is written for a shell, and what real shells complete then."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.cli.command import Installation, Outcome, tool

Run = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


class TestInstall:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_a_second_run_changes_nothing(self, run: Run, home: Path, shell: str) -> None:
        assert run("completion", "install", "--shell", shell).code == 0
        written = files(home)
        assert any("_PEGBOARD_COMPLETE" in text for text in written.values())
        again = run("completion", "install", "--shell", shell)
        assert files(home) == written
        assert {line.partition(" ")[0] for line in again.out.splitlines()[:-1]} == {"unchanged:"}

    def test_the_start_up_file_keeps_what_it_said(self, run: Run, home: Path) -> None:
        (home / ".bashrc").write_bytes(b"alias l=ls # \xff, and no line feed")
        run("completion", "install", "--shell", "bash")
        before, mine = (home / ".bashrc").read_bytes().splitlines()
        assert before == b"alias l=ls # \xff, and no line feed"
        assert mine.endswith(b"# pegboard completion")

    def test_shell_of_the_environment(self, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHELL", "/bin/bash")
        assert "complete -o" in run("completion", "show").out
        monkeypatch.setenv("SHELL", "/bin/csh")
        ended = run("completion", "show")
        assert (ended.code, ended.out) == (2, "")
        assert "SHELL says 'csh'; choose one with --shell: bash, zsh, fish" in ended.complaint


class TestCompletes:
    @pytest.mark.parametrize(
        ("words", "completions"),
        [
            (["se"], ["search", "settings"]),
            (["show", "ro"], ["roll"]),
            pytest.param(["call", ""], ["draw", "roll"], marks=pytest.mark.slow),
            pytest.param(["tools", "--pack", ""], ["dice", "paint"], marks=pytest.mark.slow),
            pytest.param(["tools", "--tag", "g"], ["games"], marks=pytest.mark.slow),
            pytest.param(["--plugins", "dice,p"], ["dice,paint"], marks=pytest.mark.slow),
            pytest.param(["--plugins", "paint", "show", ""], ["draw"], marks=pytest.mark.slow),
            pytest.param(["show", "zz"], [], marks=pytest.mark.slow),
        ],
    )
    def test_names_of_the_board(self, installation: Installation, words: list[str], completions: list[str]) -> None:
        installation.add("dice", tool("roll", tags=("games",)))
        installation.add("paint", tool("draw"))
        told = installation.run(
            _PEGBOARD_COMPLETE="bash_complete", COMP_WORDS=" ".join(["pegboard", *words]), COMP_CWORD=str(len(words))
        )
        found = [line.partition(",")[2] for line in told.out.split()]
        assert completions == [each for each in found if each in completions]  # packs of the environment are there too
        assert completions or not found

    def test_a_broken_board_completes_nothing(self, installation: Installation) -> None:
        (installation.cwd / "pegboard.toml").write_text("no toml")
        told = installation.run(_PEGBOARD_COMPLETE="bash_complete", COMP_WORDS="pegboard show ", COMP_CWORD="2")
        assert told.out.strip() == ""
        assert "Traceback" not in told.err

    @pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed here")
    def test_a_real_shell(self, run: Run, home: Path) -> None:
        assert run("completion", "install", "--shell", "bash").code == 0
        script = (
            '. "$HOME/.bashrc"; COMP_WORDS=(pegboard compl); COMP_CWORD=1; '
            'complete -p pegboard >/dev/null && _pegboard_completion pegboard && echo "${COMPREPLY[@]}"'
        )
        environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "--norc", "-c", script], env=environ, capture_output=True, text=True, check=True, timeout=120
        )
        assert done.stdout == "completion\n"
