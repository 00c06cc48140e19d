"""What the place that hosts the repository reads: workflows, forms, policies."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.workspace.project import ROOT, sessions

yaml = pytest.importorskip("yaml")

FORGE = ROOT / ".github"
WORKFLOWS = sorted(FORGE.glob("workflows/*.yml"))
FORMS = [path for path in sorted(FORGE.glob("ISSUE_TEMPLATE/*.yml")) if path.stem != "config"]
NEW_PACKS = ROOT / "plugins/cli/src/pegboard_cli/template/.github/workflows/ci.yml.in"
CHECKS = (ROOT / ".ci" / "run").read_text("utf-8")
# What a job may have besides: the right to sign, and to prove who publishes.
GRANTS = {"attestations": "write", "contents": "read", "id-token": "write"}

each_workflow = pytest.mark.parametrize("path", [*WORKFLOWS, NEW_PACKS], ids=lambda path: path.name)


def read(path: Path) -> dict[Any, Any]:
    loaded = yaml.safe_load(path.read_text("utf-8").replace("$$", "$"))
    assert isinstance(loaded, dict)
    return loaded


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def commands(path: Path) -> list[str]:
    """The commands of a workflow, once for each row of its matrix."""
    found = []
    for job in read(path)["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            command = step.get("run", "")
            names = re.findall(r"\$\{\{ matrix\.(\w+) \}\}", command)
            rows = [command] if not names else [re.sub(r"\$\{\{[^}]*\}\}", each, command) for each in matrix[names[0]]]
            found += [row for row in rows if row]
    return found


def ran(path: Path) -> list[str]:
    return [name.strip('"') for row in commands(path) for name in re.findall(r'^nox -s ("[^"]+"|\S+)$', row)]


@each_workflow
class TestWorkflows:
    def test_may_read_alone_but_for_jobs_that_sign(self, path: Path) -> None:
        assert read(path)["permissions"] == {"contents": "read"}
        for name, job in read(path)["jobs"].items():
            granted = job.get("permissions", {})
            assert granted.items() <= GRANTS.items(), name
            signs = any(step.get("uses", "").startswith(("actions/attest@", "pypa/")) for step in job["steps"])
            assert ("id-token" in granted) == signs, name

    def test_keeps_no_credentials_in_a_checkout(self, path: Path) -> None:
        checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)

    def test_puts_nothing_into_a_command_that_others_write(self, path: Path) -> None:
        names = {name for step in steps(path) for name in re.findall(r"\$\{\{ *([\w.]+)", step.get("run", ""))}
        assert {name for name in names if not name.startswith("matrix.")} == set()

    def test_names_no_secret(self, path: Path) -> None:
        assert "secrets." not in path.read_text("utf-8")


def test_each_action_has_one_version_in_all_workflows_and_in_new_packs() -> None:
    versions: dict[str, set[str]] = {}
    for path in [*WORKFLOWS, NEW_PACKS]:
        for step in steps(path):
            action, _, version = step.get("uses", "").partition("@")
            versions.setdefault(action, set()).add(version)
    assert {action: found for action, found in versions.items() if len(found) > 1} == {}


def test_commands_are_sessions_or_all_checks() -> None:
    for path in WORKFLOWS:
        for command in commands(path):
            is_known = command in {'pip install "nox[uv]"', ".ci/run"} or command.startswith(("nox -s ", "sha256sum "))
            assert is_known, command
        assert sorted(set(ran(path)) - sessions()) == []


def test_changes_are_checked_with_what_all_checks_run() -> None:
    listed = re.search(r"^for session in (.*); do$", CHECKS, re.MULTILINE)
    pythons = re.search(r"^for version in (.*); do$", CHECKS, re.MULTILINE)
    assert listed
    assert pythons
    wanted = [*(f"tests-{each}" for each in pythons[1].split()), *listed[1].split(), "release"]
    assert ran(FORGE / "workflows" / "ci.yml") == wanted


def test_a_tag_is_built_then_attested_then_published() -> None:
    jobs = read(FORGE / "workflows" / "release.yml")["jobs"]
    assert [(name, job.get("needs")) for name, job in jobs.items()] == [
        ("build", None),
        ("attest", "build"),
        ("publish", "attest"),
    ]
    assert ran(FORGE / "workflows" / "release.yml") == ["release"]
    assert jobs["publish"]["environment"] == "release"
    # PyYAML reads the key `on` as a truth value.
    assert read(FORGE / "workflows" / "release.yml")[True] == {"push": {"tags": ["release-*"]}}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_form_asks_for_what_is_needed(path: Path) -> None:
    form = read(path)
    assert {"name", "description", "body"} <= form.keys() <= {"name", "description", "labels", "body"}
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] and field["id"] for field in asked)
    assert len({field["id"] for field in asked}) == len(asked)
    assert any(field.get("validations", {}).get("required") for field in asked)
    assert {field["type"] for field in form["body"]} <= {"dropdown", "input", "markdown", "textarea"}


def test_there_is_a_form_for_bugs_packs_and_questions() -> None:
    assert [path.stem for path in FORMS] == ["bug", "pack", "question"]
    assert read(FORGE / "ISSUE_TEMPLATE" / "config.yml") == {"blank_issues_enabled": False}


def test_the_security_policy_is_where_it_is_looked_for() -> None:
    places = [ROOT / "SECURITY.md", FORGE / "SECURITY.md", ROOT / "docs" / "SECURITY.md"]
    (policy,) = [path for path in places if path.is_file()]
    assert "\n## Reporting\n" in policy.read_text("utf-8")


def test_files_that_forms_and_pages_of_the_forge_name_are_there() -> None:
    texts = "\n".join(path.read_text("utf-8") for path in sorted(FORGE.rglob("*")) if path.is_file())
    named = set(re.findall(r"\b(?:docs/[\w./-]+\.md|CHANGELOG\.md)", texts))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
