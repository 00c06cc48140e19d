"""The distributions' metadata agree with each other and with the workspace."""

import ast

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.workspace.project import CORE, MEMBERS, PACKS, ROOT, WORKSPACE, Member, each_member, each_pack

PYTHONS = (ROOT / ".python-version").read_text(encoding="utf-8").split()


def noxfile_constant(name: str) -> object:
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    values = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    )
    return ast.literal_eval(next(values))


class TestWorkspace:
    def test_root_is_no_package(self) -> None:
        assert "build-system" not in WORKSPACE
        assert WORKSPACE["tool"]["uv"]["package"] is False

    def test_root_depends_on_every_member(self) -> None:
        assert sorted(WORKSPACE["project"]["dependencies"]) == sorted(member.name for member in MEMBERS)

    def test_every_member_is_taken_from_the_checkout(self) -> None:
        # Outside of the workspace as uv has it, which resolves all extras of all members together: no two of some
        # frameworks can be installed beside each other.
        apart = {"pegboard-bridges": {"path": "plugins/bridges", "editable": True}}
        assert WORKSPACE["tool"]["uv"]["sources"] == {member.name: {"workspace": True} for member in MEMBERS} | apart
        assert WORKSPACE["tool"]["uv"]["workspace"]["exclude"] == ["plugins/bridges"]

    def test_types_are_checked_in_every_member(self) -> None:
        paths = WORKSPACE["tool"]["mypy"]["mypy_path"].split(":")
        assert sorted(paths) == sorted(f"{member.folder}/src" for member in MEMBERS)

    def test_coverage_measures_every_member(self) -> None:
        assert sorted(WORKSPACE["tool"]["coverage"]["run"]["source_pkgs"]) == sorted(m.package for m in MEMBERS)

    def test_imports_of_every_member_are_sorted_as_ours(self) -> None:
        ours = WORKSPACE["tool"]["ruff"]["lint"]["isort"]["known-first-party"]
        assert sorted(ours) == sorted(["tests", *(member.package for member in MEMBERS)])

    def test_nox_offers_every_python(self) -> None:
        assert noxfile_constant("PYTHONS") == tuple(PYTHONS)


@each_member
class TestMember:
    def test_requires_the_same_python_as_the_workspace(self, member: Member) -> None:
        assert member.project["requires-python"] == WORKSPACE["project"]["requires-python"] == f">={PYTHONS[0]}"

    def test_classifiers_name_the_tested_pythons(self, member: Member) -> None:
        prefix = "Programming Language :: Python :: "
        named = [c.removeprefix(prefix) for c in member.project["classifiers"] if c.startswith(f"{prefix}3.")]
        assert named == PYTHONS

    def test_license_is_a_real_copy(self, member: Member) -> None:
        copy = member.path / "LICENSE"
        assert not copy.is_symlink(), "uv refuses to build a distribution whose LICENSE is a link out of it"
        assert copy.read_bytes() == (ROOT / "LICENSE").read_bytes()

    def test_license_is_declared(self, member: Member) -> None:
        assert (member.project["license"], member.project["license-files"]) == ("MIT", ["LICENSE"])

    def test_readme_is_its_own(self, member: Member) -> None:
        assert member.project["readme"] == "README.md"
        assert (member.path / "README.md").read_text(encoding="utf-8").startswith(f"# {member.name}\n")

    def test_ships_its_types(self, member: Member) -> None:
        assert (member.path / "src" / member.package / "py.typed").is_file()

    def test_holds_one_package(self, member: Member) -> None:
        assert [path.parent.name for path in member.path.glob("src/*/__init__.py")] == [member.package]

    def test_carries_no_tool_configuration(self, member: Member) -> None:
        assert set(member.pyproject["tool"]) == {"hatch"}

    def test_version_is_in_the_changelog(self, member: Member) -> None:
        entry = f"`{member.name}` {member.project['version']}"
        assert entry in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    def test_dependencies_are_sorted_and_have_a_floor(self, member: Member) -> None:
        requirements = [Requirement(text) for text in member.project["dependencies"]]
        assert [r.name for r in requirements] == sorted(canonicalize_name(r.name) for r in requirements)
        assert all(any(s.operator == ">=" for s in r.specifier) for r in requirements)


class TestCore:
    def test_depends_on_five_distributions(self) -> None:
        names = [Requirement(text).name for text in CORE.project["dependencies"]]
        assert names == ["attrs", "cattrs", "importlib-metadata", "jsonschema", "pluggy"]

    def test_is_no_plugin_itself(self) -> None:
        assert "entry-points" not in CORE.project

    def test_has_one_extra_per_pack_and_one_for_all(self) -> None:
        extras = CORE.project["optional-dependencies"]
        folders = [pack.path.name for pack in PACKS]
        assert sorted(extras) == sorted(["all", *folders])
        assert extras["all"] == [f"pegboard[{','.join(folders)}]"]

    def test_extras_admit_the_packs_of_the_checkout(self) -> None:
        for pack in PACKS:
            (requirement,) = map(Requirement, CORE.project["optional-dependencies"][pack.path.name])
            assert requirement.name == pack.name
            assert pack.project["version"] in requirement.specifier


@each_pack
class TestPack:
    def test_is_named_after_its_folder(self, pack: Member) -> None:
        assert pack.name == f"pegboard-{pack.path.name}"

    def test_has_one_entry_point(self, pack: Member) -> None:
        # The command is no plugin: it must work where every plugin is blocked. The test kit is one of pytest's, and a
        # library is none.
        own = {"cli": {}, "net": {}, "schemas": {}, "testing": {"pytest11": {"pegboard": f"{pack.package}.fixtures"}}}
        journal = {"pegboard_journal": "pegboard_journal.cassettes"}
        own["journal"] = {"pegboard": {"journal": "pegboard_journal"}, "pytest11": journal}
        assert pack.project.get("entry-points", {}) == own.get(
            pack.path.name, {"pegboard": {pack.path.name: pack.package}}
        )

    def test_admits_the_core_of_the_checkout_and_no_next_minor(self, pack: Member) -> None:
        specifier = next(r.specifier for r in map(Requirement, pack.project["dependencies"]) if r.name == "pegboard")
        core = Version(CORE.project["version"])
        assert core in specifier
        assert Version(f"{core.major}.{core.minor + 1}") not in specifier

    def test_depends_on_no_other_pack(self, pack: Member) -> None:
        # But for a part of one that its documentation calls a library: the agent speaks a dialect on boards without it,
        # files of media are confined as all files are, workers far away answer as processes do, the command line writes
        # the lock that policy reads. The records of skills have their output schemas from the pack for records.
        libraries = {
            "agent": {"pegboard-dialects", "pegboard-net"},
            "cli": {"pegboard-policy"},
            "bridges": {"pegboard-schemas"},
            "dialects": {"pegboard-schemas"},
            "documents": {"pegboard-dataclasses", "pegboard-files", "pegboard-process"},
            "files": {"pegboard-schemas"},
            "mcp": {"pegboard-schemas"},
            "multimodal": {"pegboard-files", "pegboard-net"},
            "openapi": {"pegboard-net", "pegboard-schemas"},
            "ray": {"pegboard-process"},
            "skills": {"pegboard-dataclasses", "pegboard-files"},
            "sql": {"pegboard-dataclasses", "pegboard-process"},
            "web": {"pegboard-dataclasses", "pegboard-net", "pegboard-process"},
        }
        needed = {canonicalize_name(Requirement(text).name) for text in pack.project["dependencies"]}
        assert needed & {other.name for other in PACKS} == libraries.get(pack.path.name, set())
