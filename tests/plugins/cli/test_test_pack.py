"""`pegboard test-pack`: fresh environments, made from wheels that the tests write, without a package index."""

import base64
import hashlib
import os
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import pytest

from pegboard_cli._trials.environment import Environment, Installer
from pegboard_cli._trials.pythons import Python, find_pythons
from pegboard_cli._trials.trial import Trials
from pegboard_cli._trials.wheel import admits, read_wheel
from tests.docs.places import Piece, run_by
from tests.plugins.cli.command import Outcome

Run = Callable[..., Outcome]

# A build backend that needs no index: it puts the package and the metadata that the folder has into a wheel.
BACKEND = """
import zipfile
from pathlib import Path


def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(Path(folder, "acme_dice-1.0-py3-none-any.whl"), "w") as archive:
        for path in [*Path("src").rglob("*.py"), *Path("info").rglob("*")]:
            if path.is_file():
                archive.write(path, path.relative_to(path.parts[0]).as_posix())
    return "acme_dice-1.0-py3-none-any.whl"
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "acme-dice"
version = "1.0"
"""
# What stands for the packages of the index: a kit whose conformance looks at what is imported, and a test runner.
KIT = """
from types import SimpleNamespace

def conformance(name):
    import acme_dice
    if acme_dice.WELL:
        return []
    return [SimpleNamespace(check="names", what=f"{name} is bad in {acme_dice.__file__}", remedy="mend it")]
"""
RUNNER = """
import runpy
import sys
from pathlib import Path

sys.path.insert(0, "")
for path in sorted(Path("tests").glob("test_*.py")):
    runpy.run_path(str(path))
"""


def metadata(name: str, version: str, *lines: str) -> str:
    return "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines]) + "\n"


def wheel(folder: Path, name: str, version: str, modules: dict[str, str], *lines: str) -> Path:
    """Write a wheel."""
    label = f"{name.replace('-', '_')}-{version}"
    files = {**modules, f"{label}.dist-info/METADATA": metadata(name, version, *lines)}
    files[f"{label}.dist-info/WHEEL"] = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{path},{hashed(text)},{len(text)}" for path, text in files.items()]
    files[f"{label}.dist-info/RECORD"] = "\n".join([*record, f"{label}.dist-info/RECORD,,"]) + "\n"
    folder.mkdir(exist_ok=True)
    path = folder / f"{label}-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for inner, text in files.items():
            archive.writestr(inner, text)
    return path


def hashed(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def write_pack(folder: Path, test: str = "", *, plugin: str = "dice", well: bool = True) -> Path:
    """A pack that can be built without an index; with no tests unless there is one."""
    files = {
        "pyproject.toml": PROJECT,
        "backend.py": BACKEND,
        "src/acme_dice/__init__.py": f"WELL = {well}\n",
        "info/acme_dice-1.0.dist-info/METADATA": metadata(
            "acme-dice", "1.0", "Requires-Python: >=3.11", "Requires-Dist: pegboard<0.3,>=0.1", "Provides-Extra: test"
        ),
        "info/acme_dice-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "info/acme_dice-1.0.dist-info/RECORD": "",
        "info/acme_dice-1.0.dist-info/entry_points.txt": f"[pegboard]\n{plugin} = acme_dice\n" if plugin else "",
    }
    if test:
        files["tests/test_dice.py"] = textwrap.dedent(test)
        # Named as what is left out at the top, and copied here.
        files["tests/src/acme_dice.py"] = "SIDES = 6\n"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def python_with_pip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Made once: the command would make one each time, where its own Python has no pip."""
    folder = tmp_path_factory.mktemp("installer")
    return str(Environment.make(sys.executable, folder / "env", with_pip=True).python)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python_with_pip: str) -> Path:
    """A folder of wheels in the place of the index, named by pip's own variables; no checkout is looked at."""
    installer = partial(Installer, python=python_with_pip)
    monkeypatch.setattr("pegboard_cli._commands.test_pack.Installer", installer)
    folder = tmp_path / "index"
    for version in ("0.1", "0.2.4"):
        wheel(folder, "pegboard", version, {"pegboard.py": ""})
    wheel(
        folder, "pegboard-testing", "0.1", {"pegboard_testing.py": KIT, "pytest.py": RUNNER}, "Provides-Extra: pytest"
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr("pegboard_cli._commands.test_pack.checkout_of", lambda source: None)
    return folder


HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"

TEST = """
from tests.src import acme_dice as helper
assert helper.SIDES == 6
import acme_dice
assert "site-packages" in acme_dice.__file__, acme_dice.__file__
from pathlib import Path
assert not Path("src").exists()
"""


@pytest.mark.slow
def test_table_of_environments(index: Path, here: Path, run: Run) -> None:
    write_pack(here / "dice", TEST)
    told = run("test-pack", "dice", "--python", f"{HERE},3.99", "--core", "lowest,newest,0.9", "--json")
    rows = [(each["python"], each["core"], each["installed"], each["passed"]) for each in told.data["environments"]]
    assert rows == [
        (HERE, "0.1", "passed", True),
        ("3.99", "lowest", "failed", False),
        (HERE, "0.2.4", "passed", True),
        ("3.99", "newest", "failed", False),
        # The pack does not admit it, so the environment cannot be made.
        (HERE, "0.9", "failed", False),
        ("3.99", "0.9", "failed", False),
    ]
    reasons = [each["reason"] for each in told.data["environments"]]
    assert reasons[:2] == ["", "there is no Python 3.99 on this machine"]
    assert "pegboard" in reasons[4]
    assert (told.code, told.data["wheel"]) == (1, "acme_dice-1.0-py3-none-any.whl")


@pytest.mark.slow
@pytest.mark.parametrize("piece", run_by("tests/plugins/cli/test_test_pack.py"), ids=lambda piece: piece.label)
def test_commands_of_the_page_run_in_the_folder_of_a_pack(
    index: Path, here: Path, run: Run, monkeypatch: pytest.MonkeyPatch, piece: Piece
) -> None:
    """As printed, with the Pythons of this machine."""
    write_pack(here / "dice", TEST)
    monkeypatch.chdir(here / "dice")
    rows = run(*piece.words[1:], "--json").data["environments"]
    passed = {(row["python"], row["core"]) for row in rows if row["passed"]}
    absent = [row for row in rows if "there is no Python" in row["reason"]]
    assert len(passed) + len(absent) == len(rows)
    # None where a machine has neither of the Pythons that the page names.
    assert {core for _, core in passed} in (({"0.1", "0.2.4"}, set()) if "--core" in piece.words else ({"0.2.4"},))


@pytest.mark.slow
def test_what_fails_is_said(index: Path, here: Path, run: Run) -> None:
    write_pack(here / "dice", "raise SystemExit('five dice')", well=False)
    told = run("test-pack", "dice", "--python", HERE)
    assert told.code == 1
    row = told.out.splitlines()[2].split()
    assert row[:5] == [HERE, "0.2.4", "passed", "failed", "failed"]
    assert "five dice" in told.out
    assert "names: dice is bad in " in told.out
    assert "mend it" in told.out


def test_an_environment_that_cannot_be_made_is_a_row(here: Path) -> None:
    path = wheel(here, "acme-dice", "1", {}, "Requires-Dist: pegboard")
    trials = Trials(read_wheel(path), here, {}, here, Installer(here), here)
    absent = trials.run("3.99", ("newest", ()))
    assert (absent.to_dict()["passed"], absent.reason) == (False, "there is no Python 3.99 on this machine")
    broken = trials.run(Python("3.12", "3.12.1", sys.executable + "-gone"), ("newest", ()))
    assert (broken.passed, broken.installed, "-gone" in broken.reason) == (False, "failed", True)


class TestCannotBegin:
    def test_no_project(self, here: Path, run: Run) -> None:
        told = run("test-pack")
        assert (told.code, "there is no pyproject.toml in" in told.complaint) == (2, True)

    def test_damaged_project(self, here: Path, run: Run) -> None:
        (here / "pyproject.toml").write_text("[project")
        told = run("test-pack")
        assert (told.code, "pyproject.toml cannot be read" in told.complaint) == (2, True)

    @pytest.mark.slow
    def test_no_wheel_of_a_pack(self, index: Path, here: Path, run: Run) -> None:
        write_pack(here, plugin="")
        told = run("test-pack")
        assert (told.code, "acme-dice has no entry point in the group pegboard" in told.err) == (2, True)
        (here / "backend.py").write_text("raise RuntimeError('no dice')")
        told = run("test-pack")
        assert (told.code, "no dice" in told.err, "cannot be built" in told.err) == (2, True, True)


class TestParts:
    def test_pythons_are_really_there(self) -> None:
        found = find_pythons()
        assert found[HERE].path == sys.executable
        assert all(Path(each.path).exists() and each.release.startswith(each.version) for each in found.values())

    @pytest.mark.parametrize(
        ("requires", "fits"),
        [
            ("", "yyy"),
            (">=3.11", "yyy"),
            (">=3.12,<3.13", "nyn"),
            ("!=3.12.*", "yny"),
            ("~=3.12", "nyy"),
            (">3.11", "nyy"),
        ],
    )
    def test_pythons_that_a_pack_admits(self, requires: str, fits: str) -> None:
        assert [admits(requires, each) for each in ("3.11.7", "3.12.1", "3.13.0")] == [each == "y" for each in fits]

    @pytest.mark.parametrize(
        ("requires", "lowest"),
        [
            ("pegboard>=0.1,<0.2", "0.1"),
            ("pegboard (<0.3,>=0.2.1)", "0.2.1"),
            ("Pegboard ~= 0.4", "0.4"),
            ("pegboard", None),
        ],
    )
    def test_the_lowest_core(self, tmp_path: Path, requires: str, lowest: str | None) -> None:
        others = ("Requires-Dist: pegboard-net>=9", "Requires-Dist: pegboard>=8; extra == 'x'")
        path = wheel(tmp_path, "acme-dice", "1", {}, *others, f"Requires-Dist: {requires}")
        assert read_wheel(path).lowest_core == lowest
