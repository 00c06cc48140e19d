"""What the files of a release must hold, and what is written beside them."""

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.release.artifacts import differences, faults, write_hashes

ABOUT = """Metadata-Version: 2.4
Name: pegboard-dice
Version: 0.1.0
Summary: Dice
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.11
Requires-Dist: attrs>=25.4
Requires-Dist: pegboard<0.2,>=0.1
Requires-Dist: rich>=13; extra == 'colour'
Description-Content-Type: text/markdown

# pegboard-dice
"""
VERSIONS = {"pegboard-dice": "0.1.0"}
STEM = "pegboard_dice-0.1.0"
INFO = f"{STEM}.dist-info"


def write_wheel(folder: Path, about: str = ABOUT, **more: str) -> None:
    files = {"pegboard_dice/__init__.py": "", "pegboard_dice/py.typed": "", f"{INFO}/METADATA": about} | more
    with zipfile.ZipFile(folder / f"{STEM}-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)


def write_sdist(folder: Path, *names: str) -> None:
    with tarfile.open(folder / f"{STEM}.tar.gz", "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"{STEM}/{name}"), io.BytesIO())


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A folder with a wheel and an sdist without a fault."""
    folder = tmp_path / "dist"
    folder.mkdir()
    write_wheel(folder)
    write_sdist(folder, "LICENSE", "PKG-INFO", "README.md", "pyproject.toml")
    return folder


def test_complete_files_have_no_fault(dist: Path) -> None:
    assert list(faults(dist, VERSIONS)) == []


@pytest.mark.parametrize(
    ("about", "more", "reason"),
    [
        (ABOUT.replace("0.1.0", "0.2.0"), {}, "says that it is pegboard-dice 0.2.0"),
        (ABOUT.replace("License-Expression: MIT\n", ""), {}, "has no License-Expression"),
        (ABOUT, {"tests/test_it.py": ""}, "has other folders than its package: pegboard_dice, "),
    ],
)
def test_a_fault_of_a_wheel_is_named(dist: Path, about: str, more: dict[str, str], reason: str) -> None:
    write_wheel(dist, about, **more)
    assert reason in "\n".join(faults(dist, VERSIONS))


def test_files_that_are_missing_or_too_many_are_named(dist: Path) -> None:
    write_sdist(dist, "LICENSE", "PKG-INFO", "pyproject.toml")
    assert list(faults(dist, VERSIONS)) == [f"{STEM}.tar.gz has no README.md"]
    assert sorted(faults(dist, {"pegboard-dice": "0.1.1"})) == [
        f"{STEM}-py3-none-any.whl is not part of this release",
        f"{STEM}.tar.gz is not part of this release",
        "pegboard_dice-0.1.1-py3-none-any.whl was not built",
        "pegboard_dice-0.1.1.tar.gz was not built",
    ]


def test_two_builds_are_compared_bit_by_bit(dist: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    assert len(differences(dist, again)) == 2
    for path in dist.iterdir():
        (again / path.name).write_bytes(path.read_bytes())
    (again / "other-1.whl").write_bytes(b"")
    assert differences(dist, again) == []
    (again / f"{STEM}.tar.gz").write_bytes(b"other")
    (told,) = differences(dist, again)
    assert told.startswith(f"{STEM}.tar.gz is not the same in a second build")


def test_hashes_are_in_the_form_of_sha256sum(dist: Path) -> None:
    lines = write_hashes(dist).read_text("utf-8").splitlines()
    assert [line.split("  ") for line in lines] == [
        [hashlib.sha256((dist / name).read_bytes()).hexdigest(), name]
        for name in (f"{STEM}-py3-none-any.whl", f"{STEM}.tar.gz")
    ]


@pytest.mark.slow
def test_the_bill_of_materials_is_valid_and_the_same_for_the_same_wheels(dist: Path) -> None:
    pytest.importorskip("cyclonedx")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    from tests.release.bom import write_bom

    text = write_bom(dist, "2027-01-02", 1_800_000_000).read_text("utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert write_bom(dist, "2027-01-02", 1_800_000_000).read_text("utf-8") == text
    bill = json.loads(text)
    found = {each["name"]: each for each in bill["components"]}
    assert sorted(found) == ["attrs", "pegboard", "pegboard-dice", "rich"]
    digest = hashlib.sha256((dist / f"{STEM}-py3-none-any.whl").read_bytes()).hexdigest()
    assert found["pegboard-dice"]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert found["pegboard-dice"]["licenses"] == [{"expression": "MIT"}]
    assert found["attrs"]["properties"] == [{"name": "python:requires", "value": ">=25.4"}]
    assert (found["attrs"]["scope"], found["rich"]["scope"]) == ("required", "optional")
    needed = {each["ref"]: each.get("dependsOn") for each in bill["dependencies"]}
    assert needed["pegboard-dice"] == ["attrs", "pegboard"]
