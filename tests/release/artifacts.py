"""The wheels and sdists of a release: what they must hold, and their hashes."""

import hashlib
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path


def artifacts(folder: Path) -> list[Path]:
    """The wheels and sdists in a folder, in a fixed order."""
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in artifacts(folder)}


def differences(folder: Path, again: Path) -> list[str]:
    """Say which files of a build a second one of the same commit, which may have more, does not have bit by bit."""
    second = hashes(again)
    return [
        f"{name} is not the same in a second build: {digest} and {second.get(name)}"
        for name, digest in hashes(folder).items()
        if digest != second.get(name)
    ]


def metadata(wheel: Path) -> Message:
    """What a wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode())


def faults(folder: Path, versions: Mapping[str, str]) -> Iterator[str]:
    """Say what is wrong with the files of a release of these versions."""
    stems = {f"{name.replace('-', '_')}-{version}": name for name, version in versions.items()}
    expected = {f"{stem}{end}" for stem in stems for end in ("-py3-none-any.whl", ".tar.gz")}
    found = {path.name for path in artifacts(folder)}
    yield from (f"{name} was not built" for name in sorted(expected - found))
    yield from (f"{name} is not part of this release" for name in sorted(found - expected))
    for stem, name in stems.items():
        if expected & found >= {f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"}:
            yield from _wheel_faults(folder / f"{stem}-py3-none-any.whl", name, versions[name])
            yield from _sdist_faults(folder / f"{stem}.tar.gz", stem)


def _wheel_faults(wheel: Path, name: str, version: str) -> Iterator[str]:
    about = metadata(wheel)
    if (about["Name"], about["Version"]) != (name, version):
        yield f"{wheel.name} says that it is {about['Name']} {about['Version']}"
    for field in ("Summary", "License-Expression", "License-File", "Requires-Python", "Description-Content-Type"):
        if not about[field]:
            yield f"{wheel.name} has no {field}"
    package = name.replace("-", "_")
    with zipfile.ZipFile(wheel) as archive:
        tops = {each.partition("/")[0] for each in archive.namelist()}
        if f"{package}/py.typed" not in archive.namelist():
            yield f"{wheel.name} has no {package}/py.typed"
    if tops != {package, f"{package}-{version}.dist-info"}:
        yield f"{wheel.name} has other folders than its package: {', '.join(sorted(tops))}"


def _sdist_faults(sdist: Path, stem: str) -> Iterator[str]:
    with tarfile.open(sdist) as archive:
        names = set(archive.getnames())
    for needed in ("LICENSE", "PKG-INFO", "README.md", "pyproject.toml"):
        if f"{stem}/{needed}" not in names:
            yield f"{sdist.name} has no {needed}"


def write_hashes(folder: Path) -> Path:
    """Write SHA256SUMS, which `sha256sum --check` reads."""
    path = folder / "SHA256SUMS"
    path.write_text("".join(f"{digest}  {name}\n" for name, digest in hashes(folder).items()), encoding="utf-8")
    return path
