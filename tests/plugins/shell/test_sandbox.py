"""The sandbox: what a command can see, change and reach in it; and which one there is."""

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard import Status
from pegboard_shell import ShellTools, _sandbox
from pegboard_shell._bubblewrap import bubblewrap_arguments
from pegboard_shell._landlock import landlock_plan, landlock_version
from pegboard_shell._places import Places, needed_by
from pegboard_shell._sandbox import SandboxUnavailableError, available, confine
from pegboard_shell._seatbelt import seatbelt_arguments
from tests.plugins.shell.helpers import output, run, use_sandbox

PYTHON = f"'{sys.executable}'"

OpenShell = Callable[..., ShellTools]


@pytest.fixture(params=["landlock", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    use_sandbox(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with something in it that nobody else should read."""
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

    def test_other_processes_cannot_be_signalled(self, shell: OpenShell, sandbox: str) -> None:
        if sandbox == "landlock" and landlock_version() < 6:
            pytest.skip("this kernel's Landlock does not confine signals")
        assert run(shell(), f"kill -0 {os.getpid()}").data["exit_code"] != 0
        assert run(shell(), "kill -9 $PPID; echo still here").data["left_running"] == 0

    def test_programs_of_this_installation_run(self, shell: OpenShell) -> None:
        tools = shell(shell=False, allow=[sys.executable])
        assert output(run(tools, f"{PYTHON} -c 'import json; print(json.dumps([1]))'")) == "[1]\n"

    def test_shell_needs_no_approval_in_a_sandbox(self, shell: OpenShell) -> None:
        assert shell().is_command_allowed("a | b")
        assert output(run(shell(), "echo a | tr a b")) == "b\n"

    def test_sandbox_that_is_gone_when_it_is_needed_runs_nothing(
        self, shell: OpenShell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tools = shell(sandbox="auto")
        answers = iter([_sandbox._best()])
        monkeypatch.setattr(_sandbox, "_best", lambda: next(answers, "none"))
        assert run(tools, "true").status is Status.ERROR

    def test_allow_list_holds_in_it_too(self, sandbox: str, space: Path) -> None:
        tools = ShellTools(space, allow=["echo"], sandbox="required")
        assert run(tools, "ls").status is Status.DENIED
        assert output(run(tools, "echo a")) == "a\n"


class TestChoice:
    def test_required_and_not_there_runs_nothing(self, space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_sandbox, "_best", lambda: "none")
        for options in ({"allow": ["touch"]}, {"shell": True}, {"approve": lambda request: True}):
            result = run(ShellTools(space, sandbox="required", **options), "touch x")
            assert (result.status, result.error and result.error.kind) == (Status.ERROR, "sandbox")
            assert "bubblewrap" in result.text
        assert not list(space.iterdir())

    def test_auto_without_one_says_so_and_asks_for_a_shell(self, space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_sandbox, "_best", lambda: "none")
        assert run(ShellTools(space, allow=["true"]), "true").data["sandbox"] == "none"
        assert run(ShellTools(space, shell=True), "true").status is Status.DENIED

    @pytest.mark.parametrize(
        ("platform", "bubblewrap", "landlock", "expected"),
        [
            ("linux", "/bwrap", 7, "bubblewrap"),
            ("linux", None, 1, "landlock"),
            ("linux", None, 0, "none"),
            ("win32", "/bwrap", 7, "none"),
        ],
    )
    def test_best_that_there_is(
        self, monkeypatch: pytest.MonkeyPatch, platform: str, bubblewrap: str | None, landlock: int, expected: str
    ) -> None:
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(_sandbox, "find_bubblewrap", lambda: bubblewrap)
        monkeypatch.setattr(_sandbox, "landlock_version", lambda: landlock)
        assert available("auto") == expected
        assert available("none") == "none"
        if expected == "none":
            with pytest.raises(SandboxUnavailableError):
                available("required")

    def test_macos_has_seatbelt(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr(_sandbox, "SEATBELT", sys.executable)
        assert available("required") == "seatbelt"
        confined = confine(["/bin/ls", "-l"], Places(str(tmp_path), ()), mode="auto", network=False)
        assert confined.argv[:2] == ("/usr/bin/sandbox-exec", "-p")
        assert confined.argv[-2:] == ("/bin/ls", "-l")
        assert not confined.monitor

    def test_unknown_mode_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="auto, required, none"):
            ShellTools(tmp_path, sandbox="maybe")  # type: ignore[arg-type]


class TestCommandLines:
    """What the sandboxes are told, for those that are not here too."""

    PLACES = Places("/w", ("/p", "/tmp"), readable=("/p/r",))

    def test_bubblewrap(self) -> None:
        told = " ".join(bubblewrap_arguments("/bwrap", self.PLACES, "/usr/bin/x", network=False))
        assert told == (
            "/bwrap --unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind / / --dev /dev --proc /proc "
            "--tmpfs /p --tmpfs /tmp --ro-bind /p/r /p/r --bind /w /w --chdir /w -- /usr/bin/x"
        )

    def test_bubblewrap_with_network(self) -> None:
        assert "--share-net" in bubblewrap_arguments("/bwrap", self.PLACES, "/x", network=True)

    def test_workspace_that_is_everything_is_read_only(self) -> None:
        assert "--bind" not in bubblewrap_arguments("/bwrap", Places("/", ()), "/x", network=False)

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

    @pytest.mark.parametrize(
        ("version", "size", "network", "scopes", "rights"),
        [(1, 8, 0, 0, 13), (2, 8, 0, 0, 14), (3, 8, 0, 0, 15), (4, 16, 3, 0, 15), (5, 16, 3, 0, 16), (7, 24, 3, 3, 16)],
    )
    def test_landlock_asks_for_what_its_version_knows(
        self, version: int, size: int, network: int, scopes: int, rights: int
    ) -> None:
        plan = landlock_plan(version, ["/usr"], ["/tmp"], network=False)
        assert (plan["size"], plan["network"], plan["scopes"]) == (size, network, scopes)
        assert plan["files"] == 2**rights - 1
        assert all(access & ~plan["files"] == 0 for _, access in plan["rules"])
        assert json.loads(json.dumps(plan))["rules"]

    def test_landlock_with_network(self) -> None:
        assert landlock_plan(7, [], [], network=True)["network"] == 0


class TestPlaces:
    def test_hidden_place_in_a_hidden_place_counts_once(self, tmp_path: Path) -> None:
        (tmp_path / "ada").mkdir()
        private = Places.of("/w", str(tmp_path / "ada")).private
        assert not [
            path for path in private if any(other != path and path.startswith(f"{other}/") for other in private)
        ]

    def test_program_in_a_home_is_shown_alone(self, tmp_path: Path) -> None:
        home = tmp_path / "ada"
        (home / "bin").mkdir(parents=True)
        tool = home / "bin" / "tool"
        tool.touch()
        assert needed_by(str(tool), [str(home)]) == [str(tool)]

    def test_installation_in_a_home_is_shown_whole(self, tmp_path: Path) -> None:
        home = tmp_path / "ada"
        real = home / "versions" / "bin" / "python"
        link = home / "venv" / "bin" / "python"
        for path in (real, link):
            path.parent.mkdir(parents=True)
        real.touch()
        link.symlink_to(real)
        assert needed_by(str(link), [str(home)]) == [str(home / "venv"), str(home / "versions")]
