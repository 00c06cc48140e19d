"""Command lines of the pages can be typed: their options, arguments, distributions, sessions and files are there."""

import os
import re
import shlex
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pegboard_cli import main
from pegboard_cli._options import ToolkitOptions
from pegboard_testing import fake_distribution
from tests.benchmarks.__main__ import parser as bench_parser
from tests.docs.blocks import Block, blocks, pages
from tests.docs.places import CHEAP, commands, run_by
from tests.workspace.project import MEMBERS, ROOT, WORKSPACE, Member, sessions

DISTRIBUTIONS = {member.name: member for member in MEMBERS}
FOLDERS = {f"./{member.folder}": member for member in MEMBERS}
# The examples, as their own pages have them installed.
EXAMPLES = {path.parent.name for path in ROOT.glob("docs/examples/*/pyproject.toml")}
# Of the shell, or of every machine; programs such as ruff are distributions that the workspace names.
SHELL = {".", "cat", "cd", "cp", "echo", "export", "git", "ls", "mkdir", "python"}
# Options of pip that take a word.
VALUED = {"--find-links", "--wheel-dir", "-e"}


class Parsed(BaseException):
    """The command's own parser has taken all arguments: nothing runs after that."""


def in_sentences() -> dict[str, Path]:
    """The commands in the sentences of pages, without those in which something stands for something else."""
    found = {
        " ".join(code.split()): path
        for path in pages()
        for code in re.findall(r"`((?:pegboard|nox -s|pip install) [^`<>|]+)`", path.read_text("utf-8"))
    }
    return {code: path for code, path in found.items() if not re.search(r"\.\.\.|…|\b[A-Z]{2,}\b", code)}


def declared() -> set[str]:
    """What a distribution, an extra or a group of the workspace names."""
    tables = [*(member.project.get("optional-dependencies", {}) for member in MEMBERS), WORKSPACE["dependency-groups"]]
    texts = [text for table in tables for several in table.values() for text in several if isinstance(text, str)]
    texts += [text for member in MEMBERS for text in member.project["dependencies"]]
    # nox runs the sessions, uvicorn serves the applications of examples, json-repair is for `repair="max"` alone.
    return {canonicalize_name(Requirement(text).name) for text in texts} | {"json-repair", "nox", "uvicorn"}


DECLARED = declared()


def check_extras(member: Member, extras: set[str]) -> None:
    assert extras <= set(member.project.get("optional-dependencies", {})), f"{member.name} has no such extra: {extras}"


def check_pip(arguments: list[str]) -> None:
    words = iter(arguments[1:])
    assert arguments[0] in {"install", "wheel", "list"}, arguments
    for word in words:
        if word in VALUED - {"-e"}:
            next(words)
        elif word.startswith((".", "-")):
            folder, _, extras = word.rstrip("]").partition("[")
            if folder not in {".", "./plugins/*"} and not folder.startswith("-"):
                check_extras(FOLDERS[folder], set(filter(None, extras.split(","))))
        else:
            requirement = Requirement(word)
            if requirement.name in DISTRIBUTIONS:
                check_extras(DISTRIBUTIONS[requirement.name], requirement.extras)
            else:
                assert requirement.name in EXAMPLES or canonicalize_name(requirement.name) in DECLARED, word


def check_nox(arguments: list[str]) -> None:
    assert arguments[0] == "-s"
    named = arguments[1 : arguments.index("--")] if "--" in arguments else arguments[1:]
    assert named
    assert [name for name in named if name.partition("(")[0] not in sessions()] == []
    if named == ["bench"]:
        given = [word for word in arguments[3:] if word != "--help"]  # which ends the process
        assert bench_parser().parse_known_args(given)[1] == []


def parsed(invoke: Callable[[], Any]) -> list[str] | None:
    """The arguments that the command's parser does not know; None if it was not asked."""
    try:
        invoke()
    except Parsed as end:
        unknown: list[str] = end.args[0]
        return unknown
    return None


def check_pegboard(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the arguments read by the parser of the command, ours or a pack's."""

    def parse_args(self: ArgumentParser, given: Any = None, namespace: Any = None) -> Any:
        _, unknown = self.parse_known_args(given, namespace)
        raise Parsed(unknown)

    monkeypatch.setattr(ArgumentParser, "parse_args", parse_args)
    with main.make_context("pegboard", list(arguments), obj=ToolkitOptions()) as context:
        _, behind, _ = main.make_parser(context).parse_args(list(arguments))
        name, command, rest = main.resolve_command(context, behind)
        assert command is not None
        with command.make_context(name, rest, parent=context) as inner:
            if type(command) is click.Command:  # of a pack, which reads its arguments itself
                assert parsed(lambda: command.invoke(inner)) == []


def check(command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a command as far as that goes without running it. Raises AssertionError, or what its parser raises."""
    for word in command:  # files that it reads
        if re.fullmatch(r"[\w-]+\.(?:json|lock|py|toml|txt)", word):
            (folder / word).touch()
    monkeypatch.chdir(folder)
    program, arguments = command[0].removeprefix(".venv/bin/"), command[1:]
    if program == "pip":
        check_pip(arguments)
    elif program == "nox":
        check_nox(arguments)
    elif program == "pegboard":
        check_pegboard(arguments, monkeypatch)
    elif program == "pre-commit":
        assert arguments == ["install"]
    else:
        assert program in SHELL | DECLARED, f"no test knows {program}"


def test_commands_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = []
    for block in blocks("sh", "console"):
        for command in commands(block):
            try:
                check(command, tmp_path, monkeypatch)
                check_files(command, block.path.read_text("utf-8"))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - each is named, with the others
                wrong.append((block.place, command, repr(error)))
    assert wrong == []


def check_files(command: list[str], page: str) -> None:
    """Check that a page says what the files of a command are."""
    if command[0] in {"python", "pytest"}:
        assert [word for word in command if word.endswith(".py") and f"`{word}`" not in page] == []
    if command[0] == "cd" and "/" in command[1]:
        assert (ROOT / command[1]).is_dir()


def test_commands_in_sentences_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence may leave out what a command needs besides."""
    wrong = []
    for code, page in in_sentences().items():
        for command in commands(Block(page, 0, "sh", code)):
            try:
                check(command, tmp_path, monkeypatch)
            except (click.MissingParameter, click.exceptions.Exit):
                continue
            except (Exception, SystemExit) as error:  # noqa: BLE001 - each is named, with the others
                if "arguments are required" not in capsys.readouterr().err and "requires an argument" not in str(error):
                    wrong.append((page.relative_to(ROOT).as_posix(), code, repr(error)))
    assert wrong == []


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a file, two lock files, and the example pack installed."""
    fake_distribution(tmp_path / "site", "acme-weather", "0.1.0", entry_points={"pegboard": {"acme": "acme_weather"}})
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples" / "acme-weather" / "src")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "a.txt").write_text("hello\n", "utf-8")
    run(["lock"])
    for name in ("old.lock", "new.lock"):
        shutil.copy("pegboard.lock", name)
    yield folder
    sys.modules.pop("acme_weather", None)


def run(arguments: list[str], stdin: str = "") -> str:
    """Run the command in this process; return what it prints. It must end well."""
    before = dict(os.environ)
    done = CliRunner().invoke(main, arguments, input=stdin)
    os.environ.clear()  # a command hands options on in there
    os.environ.update(before)
    assert done.exit_code == 0, (arguments, done.output)
    return done.output


@pytest.mark.slow
def test_cheap_commands_run(workplace: Path) -> None:
    echoed = ""
    for piece in run_by(CHEAP):
        command = piece.words
        if command[0] == "pegboard":
            run(list(command[1:]), echoed)
        echoed = " ".join(command[1:]) if command[0] == "echo" else ""


def test_commands_in_comments_name_distributions() -> None:
    for block in blocks("sh"):
        for line in re.findall(r"#.*?pip install (.*)$", block.text, re.MULTILINE):
            for word in re.findall(r"pegboard[\w-]*(?:\[[\w,]+\])?", line):
                check_pip(["install", word])


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("pip install pegboard-ufo", AssertionError),
        ("pip install ./plugins/ufo", KeyError),
        ('pip install "pegboard-sql[ufo]"', AssertionError),
        ("pip install 'a b'", InvalidRequirement),
        ("nox -s ufo", AssertionError),
        ("nox -s bench -- --ufo", AssertionError),
        ("pegboard tools --ufo", click.UsageError),
        ("pegboard ufo", click.UsageError),
        ("pegboard serve --ufo", AssertionError),
        ("pegboard call", click.MissingParameter),
        ("curl x", AssertionError),
    ],
)
def test_a_command_that_there_is_not_is_found(
    code: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(error):
        check(shlex.split(code), tmp_path, monkeypatch)
