#!/usr/bin/env python
# /// script
# requires-python = ">=3.11"
# dependencies = ["nox>=2025.10.16"]
# ///
"""How this workspace is run, tested and built. `nox --list` shows what there is.

Every session but `lowest` works with pip alone; uv makes them faster where it is installed.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nox

nox.needs_version = ">=2025.10.16"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests", "packs", "docs", "build"]

ROOT = Path(__file__).parent
DIST = ROOT / "dist"
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
PYTHONS = ("3.11", "3.12", "3.13")
# The core comes first: the packs need it, and it is on no index while it is developed.
MEMBERS = ("core", *sorted(f"plugins/{pack.parent.name}" for pack in ROOT.glob("plugins/*/pyproject.toml")))
EXAMPLES = Path("docs", "examples")
# Extras without which a module of a distribution cannot be imported: fixtures for pytest alone, parsers, and engines.
NEEDED_EXTRAS = {
    "plugins/documents": "[pictures,slides,tables]",
    "plugins/journal": "[pytest]",
    "plugins/sql": "[duckdb,postgres]",
    "plugins/testing": "[pytest]",
}
# Members that another one uses as a library; like the core they are on no index.
LIBRARIES = {
    "plugins/agent": ("plugins/dialects", "plugins/net", "plugins/schemas"),
    "plugins/bridges": ("plugins/schemas",),
    "plugins/cli": ("plugins/policy",),
    "plugins/dialects": ("plugins/schemas",),
    "plugins/documents": ("plugins/dataclasses", "plugins/files", "plugins/process", "plugins/schemas"),
    "plugins/files": ("plugins/schemas",),
    "plugins/mcp": ("plugins/schemas",),
    "plugins/multimodal": ("plugins/files", "plugins/net", "plugins/schemas"),
    "plugins/openapi": ("plugins/net", "plugins/schemas"),
    "plugins/ray": ("plugins/process",),
    "plugins/skills": ("plugins/dataclasses", "plugins/files", "plugins/schemas"),
    "plugins/sql": ("plugins/dataclasses", "plugins/process"),
    "plugins/web": ("plugins/dataclasses", "plugins/net", "plugins/process"),
}
# Ray takes 300 MB, and a cluster 700 MB of memory: its tests have a session of their own.
LIGHT = tuple(member for member in MEMBERS if member != "plugins/ray")
# Groups of what a program brings to a distribution, which declares none of it, and its tests as well.
BROUGHT = {"plugins/otel": ("telemetry",)}
# Members whose tools a distribution is there to call: its tests call some, and it declares none of them.
CALLED = {"plugins/code": ("plugins/cli", "plugins/dataclasses", "plugins/files", "plugins/process")}
# A bridge each.
FRAMEWORKS = sorted(path.stem for path in ROOT.glob("plugins/bridges/src/pegboard_bridges/[a-z]*.py"))
# What the agents of frameworks need in the tests of bridges, beside the tools themselves.
AGENTS = {"langchain": ("langchain>=1.4",), "pydantic_ai": ("pydantic-ai-slim[openai]>=2.68",)}
# The tests of the core that need no pack, each folder named after a room.
CORE_TESTS = ("arguments", "base", "injection", "loading", "results", "schema", "toolkit", "tools")


def group(*names: str) -> list[str]:
    """Requirements of dependency groups of the workspace."""
    return list(nox.project.dependency_groups(PROJECT, *names))


def editable(*members: str) -> list[str]:
    """Installer arguments for members as they stand in the checkout, and for the members that they need as libraries.

    Editable even where nothing is edited: uv would take a member that it has built before from its cache.
    """
    needed = (each for member in members for each in (*LIBRARIES.get(member.partition("[")[0], ()), member))
    return [argument for member in dict.fromkeys(needed) for argument in ("-e", member)]


# In a process more than there are processors, since a good part of the time is spent waiting, and in four at most: each
# more collects all tests, and where there are more processors, they are there for the programs that tests start. Files
# begin as whole parts, so that their fixtures are made once.
IN_PARALLEL = ("--numprocesses", str(min((os.cpu_count() or 1) + 1, 4)), "--dist", "worksteal")


def pytest(session: nox.Session, *args: str, success_codes: tuple[int, ...] = (0,)) -> None:
    """Run pytest in the session's environment.

    Bytecode is kept there: uv compiles nothing that it installs and a workplace may forbid it in the checkout, so that
    each process and each interpreter that a test starts would compile everything again.
    """
    bytecode = Path(session.virtualenv.location, "bytecode")
    # What the last run's tests wrote and imported, which is not imported again.
    shutil.rmtree(bytecode.joinpath(*Path(tempfile.gettempdir()).parts[1:]), ignore_errors=True)
    environment = {"PYTHONDONTWRITEBYTECODE": None, "PYTHONPYCACHEPREFIX": str(bytecode)}
    session.run("python", "-m", "pytest", *args, env=environment, success_codes=success_codes)


@nox.session
def demo(session: nox.Session) -> None:
    """Install the core and all packs but Ray, which is 280 MB, and run the quickstart.

    `nox -s demo -- --model NAME --base-url URL` lets its agent ask a real model.
    """
    session.install(*editable(*LIGHT))
    session.run("python", str(EXAMPLES / "quickstart.py"), *session.posargs)


# With all cases of tests that have many: `tests` runs some of each, by chance the same ones every time.
EVERY_CASE = ("-m", "not slow and not network and not ray and not real_model")


def run_tests(session: nox.Session) -> None:
    """Run the tests, in several processes; arguments after `--` go to pytest (`-n 0` keeps to one).

    Of a test with many cases `tests` runs some, the sessions of one Python (`tests-3.13`) run all.
    """
    session.install(*editable(*LIGHT), *group("test"))
    pytest(session, *IN_PARALLEL, *(() if session.name == "tests" else EVERY_CASE), *session.posargs)


# `tests` takes the interpreter that runs nox, so that it needs no other; the others are asked for by name.
nox.session(name="tests")(run_tests)
for version in PYTHONS:
    nox.session(name=f"tests-{version}", python=version, default=False, tags=["pythons"])(run_tests)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that `tests` leaves out, and those of properties with more examples."""
    session.install(*editable(*LIGHT), *group("test", "engines", "hooks", "lint", "release", "types"))
    thorough = ("-m", "slow or network or hypothesis", "--hypothesis-profile", "thorough")
    # A test that takes two minutes alone may take ten on a busy machine, and is not blocked.
    patient = ("-o", "faulthandler_timeout=900")
    pytest(session, *IN_PARALLEL, *thorough, *patient, *session.posargs)


@nox.session(default=False)
def ray(session: nox.Session) -> None:
    """Run the tests of the pack for Ray in a cluster of two nodes on this machine."""
    session.install(*editable("core", "plugins/process", "plugins/otel", "plugins/ray"), *group("runner", "telemetry"))
    session.install(*editable("plugins/testing", "plugins/cli", "plugins/code"))
    pytest(session, "-m", "ray", str(Path("tests", "plugins", "ray")), *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests and report the lines that none of them reached."""
    session.install(*editable(*LIGHT), *group("test"))
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine")
    session.run("coverage", "report")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style; `nox -s lint -- --fix` fixes what it can."""
    session.install(*group("lint"))
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []))
    session.run("ruff", "format", *([] if fix else ["--check"]))


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly, in the sources, the tests and the examples."""
    session.install(*editable(*LIGHT), *group("types"))
    session.run("mypy", *session.posargs)


@nox.session(default=False)
def rooms(session: nox.Session) -> None:
    """Print code lines and modules of the core by room, and how many files an action enters; `--files` names them."""
    session.install(*editable("core"), *group("runner"))
    session.run("python", "-m", "tests.architecture", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/.site; a broken link or anchor fails. Models find `llms.txt` there.

    Then print how many words each page of users has, and how hard it is to read.
    """
    session.install(*group("docs"))
    core = nox.project.load_toml(ROOT / "core" / "pyproject.toml")["project"]
    shown = {
        "PEGBOARD_SITE_NAME": f"Pegboard {core['version']}",
        "PEGBOARD_REPOSITORY": str(session.run("python", "-m", "tests.docs.repository", silent=True)).strip(),
    }
    command = ("zensical", "build", "--strict", "--clean", "--config-file", str(Path("docs", "mkdocs.yml")))
    session.run(*command, env=shown)
    session.run("python", "-m", "tests.docs.llms", str(Path("docs", ".site")))
    session.run("python", "-m", "tests.docs.words")


@nox.session(reuse_venv=False)
@nox.parametrize("member", MEMBERS, ids=[Path(member).name for member in MEMBERS])
def packs(session: nox.Session, member: str) -> None:
    """Prove that a distribution works with only what it declares: import all of it, then run its tests."""
    session.install(*editable("core", f"{member}{NEEDED_EXTRAS.get(member, '')}"))
    package = next(Path(member, "src").glob("*/__init__.py")).parent.name
    # Before anything else is installed: the test runner's own dependencies must not help.
    session.run("python", str(Path("tests", "workspace", "import_all.py")), package)
    # The core's tests use the kit of `pegboard-testing`, which depends on no more than the core does.
    needed = editable("plugins/testing", *CALLED.get(member, ()))
    session.install(*group("runner", *BROUGHT.get(member, ())), *needed)
    folders = CORE_TESTS if member == "core" else (member,)
    pytest(session, *IN_PARALLEL, *(str(Path("tests", folder)) for folder in folders), *session.posargs)


@nox.session(reuse_venv=False)
def build(session: nox.Session) -> None:
    """Build every wheel and sdist into dist/, then run the quickstart from the wheels, outside the checkout."""
    build_all(session, DIST, ROOT, (*MEMBERS, *published_examples()))
    with tempfile.TemporaryDirectory(prefix="pegboard-build-") as outside:
        run_quickstart_from_wheels(session, sorted(DIST.glob("*.whl")), Path(outside))


@nox.session(default=False, reuse_venv=False)
def release(session: nox.Session) -> None:
    """Make in dist/ all that is published, checked, with hashes and a bill of materials: everything but the upload.

    The page on contributing says when. Each file is built twice, the second time from a copy of what git tracks.
    """
    session.install(*group("release"))
    plan = json.loads(session.run("python", "-m", "tests.release", "plan", silent=True, stderr=None) or "{}")
    session.env["SOURCE_DATE_EPOCH"] = str(plan["time"])
    with tempfile.TemporaryDirectory(prefix="pegboard-release-") as outside:
        copy, again = Path(outside, "copy"), Path(outside, "again")
        for name in plan["files"]:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        build_all(session, DIST, ROOT, plan["folders"])
        build_all(session, again, copy, MEMBERS)
        session.run("python", "-m", "tests.release", "finish", str(DIST), str(again))
        session.run("twine", "check", "--strict", *map(str, sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])))
        # What is released works with all others as they stand here.
        run_quickstart_from_wheels(session, sorted(again.glob("*.whl")), Path(outside))


def build_all(session: nox.Session, dist: Path, root: Path, folders: Sequence[str]) -> None:
    """Build wheels and sdists of folders of a checkout into an empty folder."""
    shutil.rmtree(dist, ignore_errors=True)
    command = build_command(session)
    with session.chdir(root):
        for folder in folders:
            session.run(*command, str(dist), folder)


def build_command(session: nox.Session) -> list[str]:
    """Begin a command: what follows is the output folder and the member. uv is ten times as fast as build."""
    if session.venv_backend == "uv":
        # Without the workspace's sources: a member builds as it would for a user.
        return ["uv", "build", "--no-sources", "--out-dir"]
    session.install(*group("build"))
    return ["python", "-m", "build", "--outdir"]


def published_examples() -> list[str]:
    """Examples that are distributions of their own, as a third party would publish them."""
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
    session.install("--resolution", "lowest-direct", *editable(*LIGHT), *group("test"))
    pytest(session, *IN_PARALLEL, *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure; arguments after `--` go to `python -m tests.benchmarks`.

    `--help` shows them: rows, `--compare REV`, `--peers`, `--imports`, `--packs`, `--write` for the pages of docs.
    Peers are installed into the folder that `PEGBOARD_PEERS` names.
    """
    session.install(*editable(*LIGHT), *group("bench", "runner"))
    session.run("python", "-m", "tests.benchmarks", *session.posargs)


@nox.session(default=False)
def conformance(session: nox.Session) -> None:
    """Run the public MCP conformance suite in both eras of the protocol; Node comes from the Python index.

    What cannot be installed is a reason to skip, which it prints. `PEGBOARD_PEERS` names the folder to install into.
    """
    session.install(*editable("core", "plugins/mcp"), *group("runner"))
    session.run("python", "-m", "tests.plugins.mcp.conformance", *session.posargs)


@nox.session(default=False)
def sdks(session: nox.Session) -> None:
    """Check what speaks to providers against their own SDKs: types, helpers and clients."""
    session.install(*editable(*LIGHT), *group("sdks"))
    # Without one of them its tests would be left out, as they are everywhere else.
    session.run("python", "-c", "import anthropic, dashscope, google.genai, openai")
    pytest(session, *map(str, sorted(Path("tests", "plugins").glob("*/sdks"))), *session.posargs)


@nox.session(default=False)
@nox.parametrize("framework", FRAMEWORKS, ids=FRAMEWORKS)
def bridges(session: nox.Session, framework: str) -> None:
    """Run a framework's own agent with tools over its bridge, in an environment of its own.

    What is kept is compared with the table in docs/packs/bridges.md; `--write` writes it, with what a call costs.
    """
    needed = ("core", "plugins/testing", "plugins/dataclasses", f"plugins/bridges[{framework}]")
    session.install(*editable(*needed), *group("runner"), *AGENTS.get(framework, ()))
    write = "--write" in session.posargs
    found = Path(session.create_tmp()) / framework
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir()
    # Without it, the tests would be left out, as they are everywhere else.
    session.run("python", "-c", f"import pegboard_bridges.{framework}")
    session.env["PEGBOARD_BRIDGES"] = str(found.resolve())
    chosen = ("-m", "slow or not slow") if write else ()
    # And the framework's code on the pages, where there is some.
    pages = str(Path("tests", "docs", "test_framework_blocks.py"))
    pytest(session, *chosen, str(Path("tests", "plugins", "bridges", f"test_{framework}.py")), pages)
    session.run("python", "-m", "tests.plugins.bridges.page", str(found), *(["--write"] if write else []))


@nox.session(default=False)
def inspector(session: nox.Session) -> None:
    """Use the inspector and the documentation in a headless Chromium, Debian's or Playwright's, or skip it without one.

    `PEGBOARD_PICTURES` names a folder for the pictures of the documentation, which are taken anew then.
    """
    session.install(*editable(*LIGHT), *group("runner", "browser", "docs"))
    folders = (Path("tests", "plugins", "inspector"), Path("tests", "docs", "browser"))
    pytest(session, *IN_PARALLEL, "-m", "slow", *map(str, folders), *session.posargs)


@nox.session(name="real-model", default=False)
def real_model(session: nox.Session) -> None:
    """Let a real model of 1.5 billion parameters use tools; 1.2 GB are installed into `PEGBOARD_PEERS` once.

    `PEGBOARD_MODEL_URL` names another OpenAI-compatible server, `PEGBOARD_MODEL` its model. What cannot be installed is
    a reason to skip.
    """
    session.install(*editable("core", "plugins/dialects", "plugins/agent"), *group("runner"))
    pytest(session, "-m", "real_model", "-s", str(Path("tests", "real_model")), *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Change each structuring check in turn and print what no test noticed (a quarter of an hour).

    Arguments after `--` go to `python -m tests.mutants`.
    """
    session.install(*editable(*LIGHT), *group("test"))
    session.run("python", "-m", "tests.mutants", *session.posargs)


if __name__ == "__main__":
    nox.main()
