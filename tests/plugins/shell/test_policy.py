"""The policy: what runs at once, what asks, what never runs, and what cannot be run."""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pegboard_shell import ShellTools, Verdict
from pegboard_shell._policy.programs import UNCLEAR, Programs, objection, same_place, target, trusted_directories

MakeProgram = Callable[[str], Path]


@pytest.fixture
def make(tmp_path: Path) -> MakeProgram:
    """Writes a program into the directory `bin`, beside the workspace."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "space").mkdir()

    def make(name: str) -> Path:
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\necho I am $0\n", encoding="utf-8")
        program.chmod(0o755)
        return program

    return make


@pytest.fixture
def shell(tmp_path: Path, make: MakeProgram) -> Callable[..., ShellTools]:
    for name in ("ls", "rm", "git", "find", "env", "nice", "timeout", "xargs", "tar"):
        make(name)
    return lambda **options: ShellTools(tmp_path / "space", **{"path": str(tmp_path / "bin"), **options})


class TestAllow:
    def test_listed_program_runs_by_its_absolute_path(self, shell: Callable[..., ShellTools], tmp_path: Path) -> None:
        decision = shell(allow=["ls"]).decide("ls -l x")
        assert (decision.verdict, decision.argv) == (Verdict.ALLOW, (str(tmp_path / "bin" / "ls"), "-l", "x"))

    def test_everything_else_asks(self, shell: Callable[..., ShellTools]) -> None:
        decision = shell(allow=["ls"]).decide("rm x")
        assert decision.verdict is Verdict.ASK
        assert "'rm'" in decision.reason
        assert "allowed: ls" in decision.reason

    def test_empty_list_asks_and_never_allows(self, shell: Callable[..., ShellTools]) -> None:
        decision = shell().decide("ls")
        assert decision.verdict is Verdict.ASK
        assert "empty" in decision.reason

    def test_name_that_leads_nowhere_is_invalid(self, shell: Callable[..., ShellTools]) -> None:
        assert shell().decide("no-such-program").verdict is Verdict.INVALID
        assert shell(allow=["no-such-program"]).decide("no-such-program").verdict is Verdict.INVALID

    def test_name_is_looked_up_once(self, shell: Callable[..., ShellTools], make: MakeProgram) -> None:
        tools = shell(allow=["late"])
        make("late")
        assert tools.decide("late").verdict is Verdict.INVALID
        tools.add_allowed_command("late")
        assert tools.decide("late").verdict is Verdict.ALLOW

    def test_absolute_path_of_a_listed_program(self, shell: Callable[..., ShellTools], tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "bin")
        tools = shell(allow=["ls"])
        assert tools.decide(f"{tmp_path}/bin/ls").verdict is Verdict.ALLOW
        assert tools.decide(f"{tmp_path}/link/ls").argv == (f"{tmp_path}/bin/ls",)

    @pytest.mark.parametrize("word", ["./ls", "../space/ls", "{tmp}/space/ls", "{tmp}/space/../space/ls", "bin/../ls"])
    def test_other_program_of_the_same_name(self, shell: Callable[..., ShellTools], tmp_path: Path, word: str) -> None:
        tools = shell(allow=["ls"])
        (tmp_path / "space" / "bin").mkdir()
        (tmp_path / "space" / "ls").write_bytes((tmp_path / "bin" / "ls").read_bytes())
        (tmp_path / "space" / "ls").chmod(0o755)
        assert tools.decide(word.format(tmp=tmp_path)).verdict is Verdict.ASK

    def test_link_to_a_listed_program_is_another_program(
        self, shell: Callable[..., ShellTools], tmp_path: Path
    ) -> None:
        """A file may be many programs, by the name that it is called by."""
        (tmp_path / "space" / "other").symlink_to(tmp_path / "bin" / "ls")
        assert shell(allow=["ls"]).decide("./other").verdict is Verdict.ASK

    def test_program_listed_by_its_path(self, shell: Callable[..., ShellTools], tmp_path: Path) -> None:
        tools = shell(allow=[str(tmp_path / "bin" / "git")])
        assert tools.decide(f"{tmp_path}/bin/git").verdict is Verdict.ALLOW
        assert tools.decide("git").verdict is Verdict.ALLOW

    @pytest.mark.parametrize(
        "way", ["link", "link to a link", "through the workspace", "interpreter", "relative interpreter", "path"]
    )
    def test_listed_program_that_commands_can_change_asks(
        self, shell: Callable[..., ShellTools], make: MakeProgram, tmp_path: Path, way: str
    ) -> None:
        space, program = tmp_path / "space", make("tool")
        mine = space / "mine"
        mine.write_text("#!/bin/sh\n", encoding="utf-8")
        mine.chmod(0o755)
        (space / "back").symlink_to(tmp_path / "bin" / "ls")
        name = str(mine) if way == "path" else "tool"
        if way.endswith("interpreter"):
            program.write_text(f"#!{'mine' if way.startswith('relative') else mine}\n", encoding="utf-8")
        elif way != "path":
            program.unlink()
            program.symlink_to({"link": mine, "link to a link": tmp_path / "bin" / "second"}.get(way, space / "back"))
            (tmp_path / "bin" / "second").symlink_to("../space/mine")
        tools = shell(allow=[name, "ls"], arguments={name: lambda arguments: True})
        decision = tools.decide(f"{name} x")
        assert decision.verdict is Verdict.ASK
        assert "workspace" in decision.reason
        assert tools.decide("ls").verdict is Verdict.ALLOW

    @pytest.mark.parametrize("name", ["", "./ls", "bin/ls", "git status"])
    def test_what_is_no_name_cannot_be_listed(self, shell: Callable[..., ShellTools], name: str) -> None:
        with pytest.raises(ValueError, match=r"allowed by its name|no name of a program"):
            shell(allow=[name])

    @pytest.mark.parametrize("option", ["allow", "deny"])
    def test_a_single_string_is_no_list(self, shell: Callable[..., ShellTools], option: str) -> None:
        with pytest.raises(ValueError, match="several names"):
            shell(**{option: "ls"})


class TestDeny:
    def test_goes_before_everything(self, shell: Callable[..., ShellTools]) -> None:
        tools = shell(allow=["rm", "ls"], deny=["rm"], approve=lambda _: True)
        assert tools.decide("rm x").verdict is Verdict.DENY
        assert tools.decide("ls").verdict is Verdict.ALLOW

    @pytest.mark.parametrize("word", ["{tmp}/bin/rm", "../bin/rm", "./rm", "./innocent"])
    def test_other_ways_to_the_program(self, shell: Callable[..., ShellTools], tmp_path: Path, word: str) -> None:
        for name in ("rm", "innocent"):
            (tmp_path / "space" / name).symlink_to(tmp_path / "bin" / "rm")
        assert shell(deny=["rm"]).decide(word.format(tmp=tmp_path)).verdict is Verdict.DENY

    def test_program_behind_a_launcher(self, shell: Callable[..., ShellTools]) -> None:
        assert shell(allow=["env", "nice"], deny=["rm"]).decide("nice -n 5 env rm x").verdict is Verdict.DENY


class TestArguments:
    @staticmethod
    def reads_only(arguments: Sequence[str]) -> bool:
        return arguments[:1] in (("status",), ("log",))

    def test_predicate_decides(self, shell: Callable[..., ShellTools]) -> None:
        tools = shell(allow=["git"], arguments={"git": self.reads_only})
        assert tools.decide("git status -s").verdict is Verdict.ALLOW
        assert tools.decide("git push").verdict is Verdict.ASK
        assert tools.decide("git -c x status").verdict is Verdict.ASK

    def test_predicate_that_raises_lets_nothing_through(self, shell: Callable[..., ShellTools]) -> None:
        decision = shell(allow=["git"], arguments={"git": lambda arguments: bool(arguments[7])}).decide("git x")
        assert decision.verdict is Verdict.ASK
        assert "could not be checked" in decision.reason

    def test_only_true_is_a_yes(self, shell: Callable[..., ShellTools]) -> None:
        predicate: Callable[[Sequence[str]], bool] = lambda _: "no"  # type: ignore[assignment,return-value]  # noqa: E731
        assert shell(allow=["git"], arguments={"git": predicate}).decide("git x").verdict is Verdict.ASK

    def test_predicate_for_an_unlisted_program_is_a_mistake(self, shell: Callable[..., ShellTools]) -> None:
        with pytest.raises(ValueError, match="'git'"):
            shell(allow=["ls"], arguments={"git": self.reads_only})

    def test_predicate_stands_in_for_what_is_known_of_launchers(self, shell: Callable[..., ShellTools]) -> None:
        assert shell(allow=["find"]).decide("find . -exec ls ;").verdict is Verdict.INVALID
        assert shell(allow=["find"]).decide(r"find . -exec ls \;").verdict is Verdict.ASK
        tools = shell(allow=["find"], arguments={"find": lambda _: True})
        assert tools.decide(r"find . -exec ls \;").verdict is Verdict.ALLOW


class TestLaunchers:
    @pytest.mark.parametrize(
        ("program", "arguments", "position"),
        [
            ("env", "", None),
            ("env", "-i -u A", None),
            ("env", "-u A ls", 2),
            ("env", "A=b ls", UNCLEAR),
            ("env", "-S ls", UNCLEAR),
            ("env", "-Sls", UNCLEAR),
            ("env", "--split-string=ls", UNCLEAR),
            ("env", "-C / ls", UNCLEAR),
            ("env", "- ls", UNCLEAR),
            ("nice", "ls", 0),
            ("nice", "-n 5 ls", 2),
            ("nice", "-n5 ls", 1),
            ("nice", "-5 ls", UNCLEAR),
            ("nice", "--adjustment 5 ls", UNCLEAR),
            ("timeout", "5 ls", 1),
            ("timeout", "-k 1 -s KILL 5 ls", 5),
            ("timeout", "5", None),
            ("nohup", "-- ls", 1),
            ("setsid", "-fw ls", 1),
            ("xargs", "-n 1 ls", 2),
            ("xargs", "-I{} ls {}", UNCLEAR),
            ("ls", "-l", None),
        ],
    )
    def test_where_the_program_stands(self, program: str, arguments: str, position: int | None) -> None:
        assert target(program, arguments.split()) == position

    @pytest.mark.parametrize(
        ("program", "arguments", "guilty"),
        [
            ("find", ". -name x -exec ls", "-exec"),
            ("find", ". -name -x -print", None),
            ("tar", "-cf x y", None),
            ("tar", "cIf ls x", "cIf"),
            ("tar", "-cf x --checkpoint-action=exec=ls", "--checkpoint-action=exec=ls"),
            ("tar", "-cf x --checkpoint-a=exec=ls", "--checkpoint-a=exec=ls"),
            ("tar", "-xf x --to-com ls", "--to-com"),
            ("tar", "-Fls -xf x", "-Fls"),
            ("sort", "--compress-prog=ls", "--compress-prog=ls"),
            ("sort", "-k 2 x", None),
            ("rg", "--pre ls x", "--pre"),
            ("rsync", "-e ls a b", "-e"),
            ("fd", "-x ls", "-x"),
            ("zip", "-TT ls", "-TT"),
            ("ls", "--exec", None),
        ],
    )
    def test_arguments_that_start_a_program(self, program: str, arguments: str, guilty: str | None) -> None:
        assert objection(program, arguments.split()) == guilty

    def test_both_programs_have_to_be_allowed(self, shell: Callable[..., ShellTools], tmp_path: Path) -> None:
        assert shell(allow=["nice"]).decide("nice ls").verdict is Verdict.ASK
        assert shell(allow=["ls"]).decide("nice ls").verdict is Verdict.ASK
        decision = shell(allow=["ls", "nice"]).decide("nice ls -l")
        assert decision.verdict is Verdict.ALLOW
        assert decision.argv == (f"{tmp_path}/bin/nice", f"{tmp_path}/bin/ls", "-l")

    def test_launchers_of_launchers(self, shell: Callable[..., ShellTools]) -> None:
        tools = shell(allow=["env", "nice", "timeout", "ls"])
        assert tools.decide("env nice -n 1 timeout 5 ls").verdict is Verdict.ALLOW
        assert tools.decide("env nice -n 1 timeout 5 rm x").verdict is Verdict.ASK
        assert tools.decide("env " * 5000 + "ls").verdict is Verdict.ASK


class TestRunTime:
    def test_query_and_decision_are_one(self, shell: Callable[..., ShellTools]) -> None:
        tools = shell()
        assert not tools.is_command_allowed("ls")
        tools.add_allowed_command("ls", "git")
        assert tools.is_command_allowed("ls")
        assert tools.allowed_commands == ["git", "ls"]
        tools.remove_allowed_command("ls")
        assert not tools.is_command_allowed("ls")
        tools.clear_allowed_commands()
        assert tools.allowed_commands == []
        assert not tools.is_command_allowed("git")

    def test_removal_is_all_or_none(self, shell: Callable[..., ShellTools]) -> None:
        tools = shell(allow=["ls", "git"])
        with pytest.raises(KeyError, match="'rm' is not on the allow-list"):
            tools.remove_allowed_command("ls", "rm")
        assert tools.allowed_commands == ["git", "ls"]

    def test_changes_from_many_threads(self, shell: Callable[..., ShellTools]) -> None:
        tools = shell(allow=["ls"])

        def change() -> None:
            for _ in range(200):
                tools.add_allowed_command("git")
                tools.decide("git x")
                tools.clear_allowed_commands()

        threads = [threading.Thread(target=change) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert tools.allowed_commands == []


class TestShell:
    @pytest.mark.parametrize("lists", [{"allow": ["ls"]}, {"deny": ["rm"]}])
    def test_no_list_holds_beside_it(self, shell: Callable[..., ShellTools], lists: dict[str, list[str]]) -> None:
        with pytest.raises(ValueError, match="shell=True"):
            shell(shell=True, **lists)

    def test_nor_can_one_be_made_later(self, shell: Callable[..., ShellTools]) -> None:
        with pytest.raises(ValueError, match="shell=True"):
            shell(shell=True).add_allowed_command("ls")

    def test_it_asks_without_a_sandbox(self, shell: Callable[..., ShellTools]) -> None:
        decision = shell(shell=True, sandbox="none").decide("a | b")
        assert decision.verdict is Verdict.ASK
        assert decision.argv[-1] == "a | b"

    def test_what_no_argument_can_hold_is_refused(self, shell: Callable[..., ShellTools]) -> None:
        assert shell(shell=True, sandbox="none").decide("a\0b").verdict is Verdict.INVALID


class TestNoApproval:
    def test_what_would_ask_is_denied(self, shell: Callable[..., ShellTools]) -> None:
        tools = shell(allow=["ls"], approve=False)
        assert tools.decide("ls").verdict is Verdict.ALLOW
        assert tools.decide("rm x").verdict is Verdict.DENY

    def test_yes_to_everything_is_no_approver(self, shell: Callable[..., ShellTools]) -> None:
        with pytest.raises(ValueError, match="approve"):
            shell(approve=True)


class TestPrograms:
    def test_directory_that_is_found_through_the_workspace_is_not_trusted(self, tmp_path: Path) -> None:
        for folder in ("space", "bin"):
            (tmp_path / folder).mkdir()
        (tmp_path / "space" / "back").symlink_to(tmp_path / "bin")
        (tmp_path / "link").symlink_to(tmp_path / "space" / "back")
        assert trusted_directories(str(tmp_path / "link"), str(tmp_path / "space")) == ()

    def test_directories_in_the_workspace_are_not_trusted(self, tmp_path: Path) -> None:
        inner, outer, link = tmp_path / "space" / "bin", tmp_path / "bin", tmp_path / "link"
        inner.mkdir(parents=True)
        outer.mkdir()
        link.symlink_to(inner)
        path = os.pathsep.join(map(str, ["", ".", "bin", inner, link, outer, outer, tmp_path / "space"]))
        assert trusted_directories(path, str(tmp_path / "space")) == (str(outer),)

    def test_directories_and_plain_files_are_no_programs(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").write_text("", encoding="utf-8")
        programs = Programs([str(tmp_path)], str(tmp_path))
        assert programs.find("folder") is programs.find("file") is programs.find("a" * 5000) is None

    def test_one_file_under_two_names_is_two_places(self, tmp_path: Path) -> None:
        (tmp_path / "one").write_text("", encoding="utf-8")
        (tmp_path / "two").symlink_to("one")
        assert not same_place(str(tmp_path / "one"), str(tmp_path / "two"))
        assert same_place(str(tmp_path / "one"), f"{tmp_path}/../{tmp_path.name}/one")

    def test_windows_runs_no_batch_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("a.bat", "b.cmd", "c.exe"):
            (tmp_path / name).write_text("", encoding="utf-8")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setattr("pegboard_shell._policy.programs._is_windows", lambda: True)
        programs = Programs([str(tmp_path)], str(tmp_path))
        assert [programs.find(name) for name in ("a", "a.bat", "b", "b.cmd")] == [None] * 4
        assert programs.find("c") == programs.find("c.exe") == str(tmp_path / "c.exe")


def test_interpreter_of_the_tests_can_be_listed(tmp_path: Path) -> None:
    assert ShellTools(tmp_path, allow=[sys.executable]).is_command_allowed(f"'{sys.executable}' -c 'print(1)'")
