#!/usr/bin/env python
# /// script
# requires-python = ">=3.11"
# dependencies = ["nox>=2025.10.16"]
# ///
"""How this workspace is run, tested and built. `nox --list` shows what there is.

Every session but `lowest` works with pip alone; uv makes them faster where it is installed.
"""

import os
import shutil
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.10.16"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests", "packs", "docs", "build"]

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
PYTHONS = ("3.11", "3.12", "3.13")
# The core comes first: the packs need it, and it is on no index while it is developed.
MEMBERS = ("core", *sorted(f"plugins/{pack.parent.name}" for pack in ROOT.glob("plugins/*/pyproject.toml")))
EXAMPLES = Path("docs", "examples")
# Extras without which a module of a distribution cannot be imported: the fixtures, which only pytest loads.
NEEDED_EXTRAS = {"plugins/testing": "[pytest]"}
# The tests of the core that need no pack, each folder named after a room.
CORE_TESTS = ("arguments", "base", "injection", "loading", "results", "schema", "toolkit", "tools")


def group(*names: str) -> list[str]:
    """Requirements of dependency groups of the workspace."""
    return list(nox.project.dependency_groups(PROJECT, *names))


def editable(*members: str) -> list[str]:
    """Installer arguments for members as they stand in the checkout.

    Editable even where nothing is edited: uv would take a member that it has built before from its cache.
    """
    return [argument for member in members for argument in ("-e", member)]


# In a process per processor, four at most: what waits in one leaves room to the others, and a machine with more of them
# is still there for the programs that tests start. Files begin as whole parts, so that their fixtures are made once.
IN_PARALLEL = ("--numprocesses", "auto", "--maxprocesses", "4", "--dist", "worksteal")


def pytest(session: nox.Session, *args: str, success_codes: tuple[int, ...] = (0,)) -> None:
    """Run pytest in the session's environment."""
    session.run("python", "-m", "pytest", *args, success_codes=success_codes)


@nox.session
def demo(session: nox.Session) -> None:
    """Install the core and all packs, run the quickstart."""
    session.install(*editable(*MEMBERS))
    session.run("python", str(EXAMPLES / "quickstart.py"), *session.posargs)


def run_tests(session: nox.Session) -> None:
    """Run the tests, in several processes; arguments after `--` go to pytest (`-n 0` keeps to one)."""
    session.install(*editable(*MEMBERS), *group("test"))
    pytest(session, *IN_PARALLEL, *session.posargs)


# `tests` takes the interpreter that runs nox, so that it needs no other; the others are asked for by name.
nox.session(name="tests")(run_tests)
for version in PYTHONS:
    nox.session(name=f"tests-{version}", python=version, default=False, tags=["pythons"])(run_tests)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that `tests` leaves out."""
    session.install(*editable(*MEMBERS), *group("test"))
    # 5: there are none yet, which is no failure.
    pytest(session, "-m", "slow or network", *session.posargs, success_codes=(0, 5))


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests and report the lines that none of them reached."""
    session.install(*editable(*MEMBERS), *group("test"))
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine")
    session.run("coverage", "report")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style; `nox -s lint -- --fix` mends what it can."""
    session.install(*group("lint"))
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []))
    session.run("ruff", "format", *([] if fix else ["--check"]))


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly, in the sources, the tests and the examples."""
    session.install(*editable(*MEMBERS), *group("types"))
    session.run("mypy", *session.posargs)


@nox.session(default=False)
def rooms(session: nox.Session) -> None:
    """Print code lines and modules of the core by room, and how many files an action enters; `--files` names them."""
    session.install(*editable("core"), *group("runner"))
    session.run("python", "-m", "tests.architecture", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/.site; a broken link or anchor fails."""
    session.install(*group("docs"))
    session.run("zensical", "build", "--strict", "--clean", "--config-file", str(Path("docs", "mkdocs.yml")))


@nox.session(reuse_venv=False)
@nox.parametrize("member", MEMBERS, ids=[Path(member).name for member in MEMBERS])
def packs(session: nox.Session, member: str) -> None:
    """Prove that a distribution works with only what it declares: import all of it, then run its tests."""
    session.install(*editable(*dict.fromkeys(("core", f"{member}{NEEDED_EXTRAS.get(member, '')}"))))
    package = next(Path(member, "src").glob("*/__init__.py")).parent.name
    # Before anything else is installed: the test runner's own dependencies must not help.
    session.run("python", str(Path("tests", "workspace", "import_all.py")), package)
    # The core's tests use the kit of `pegboard-testing`, which depends on no more than the core does.
    session.install(*group("runner"), *editable("plugins/testing"))
    folders = CORE_TESTS if member == "core" else (member,)
    pytest(session, *(str(Path("tests", folder)) for folder in folders), *session.posargs)


@nox.session(reuse_venv=False)
def build(session: nox.Session) -> None:
    """Build every wheel and sdist into dist/, then run the quickstart from the wheels, outside the checkout."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    command = build_command(session)
    for member in (*MEMBERS, *published_examples()):
        session.run(*command, str(dist), member)
    with tempfile.TemporaryDirectory(prefix="pegboard-build-") as outside:
        run_quickstart_from_wheels(session, sorted(dist.glob("*.whl")), Path(outside))


def build_command(session: nox.Session) -> list[str]:
    """Begin a command: what follows is the output folder and the member. uv is ten times as fast as build."""
    if session.venv_backend == "uv":
        # Without the workspace's sources: a member builds as it would for a stranger.
        return ["uv", "build", "--no-sources", "--out-dir"]
    session.install(*group("build"))
    return ["python", "-m", "build", "--outdir"]


def published_examples() -> list[str]:
    """Examples that are distributions of their own, as a stranger would publish them."""
    return sorted(str(path.parent) for path in EXAMPLES.glob("*/pyproject.toml"))


NOT_THE_CHECKOUT = "import pegboard, sys; assert not pegboard.__file__.startswith(sys.argv[1]), pegboard.__file__"


def run_quickstart_from_wheels(session: nox.Session, wheels: list[Path], outside: Path) -> None:
    """Install wheels with plain pip into a new environment and run the quickstart there, isolated (-I)."""
    session.run("python", "-m", "venv", str(outside / "venv"))
    python = str(outside / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    session.run(python, "-m", "pip", "install", "--quiet", *map(str, wheels), external=True)
    shutil.copy(EXAMPLES / "quickstart.py", outside)
    with session.chdir(outside):
        session.run(python, "-I", "-c", NOT_THE_CHECKOUT, str(ROOT), external=True)
        session.run(python, "-I", "quickstart.py", external=True)


@nox.session(reuse_venv=False)
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions that are declared (needs uv)."""
    if session.venv_backend != "uv":
        session.error('only uv can resolve to the lowest versions: pip install "nox[uv]"')
    session.install("--resolution", "lowest-direct", *editable(*MEMBERS), *group("test"))
    pytest(session, *IN_PARALLEL, *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure; arguments after `--` go to `python -m tests.benchmarks`.

    `--help` shows them: rows, `--compare REV`, `--peers`, `--imports`, `--write` for docs/performance.md. Peers are
    installed into the folder that `PEGBOARD_PEERS` names.
    """
    session.install(*editable(*MEMBERS), *group("bench"))
    session.run("python", "-m", "tests.benchmarks", *session.posargs)


@nox.session(default=False)
def conformance(session: nox.Session) -> None:
    """Run the public MCP conformance suite in both eras of the protocol; Node comes from the Python index.

    What cannot be installed is a reason to skip, which it prints. `PEGBOARD_PEERS` names the folder to install into.
    """
    session.install(*editable("core", "plugins/mcp"), *group("runner"))
    session.run("python", "-m", "tests.plugins.mcp.conformance", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Change each structuring check in turn and print what no test noticed (a quarter of an hour).

    Arguments after `--` go to `python -m tests.mutants`.
    """
    session.install(*editable(*MEMBERS), *group("test"))
    session.run("python", "-m", "tests.mutants", *session.posargs)


if __name__ == "__main__":
    nox.main()
