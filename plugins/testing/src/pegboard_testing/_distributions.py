"""Distributions for tests: a real `.dist-info` and real modules in a directory."""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["fake_distribution"]

_GROUP = "pegboard"

EntryPoints = Mapping[str, str | Mapping[str, str]]


def fake_distribution(
    path: str | os.PathLike[str],
    name: str,
    version: str = "1.0",
    *,
    entry_points: EntryPoints | str = "",
    requires: Iterable[str] = (),
    modules: Mapping[str, str] = {},
) -> Path:
    r"""Write a distribution into the directory `path`, as an installer would, and return its `.dist-info`.

    `entry_points` maps names to `module[:attribute]` in Pegboard's group, or group names to such mappings; text is
    written as it is, for what is malformed. `requires` are requirements such as `pegboard>=0.1`. `modules` maps
    dotted module names (`acme.tools`) to source; packages on the way are made. The directory has to be on `sys.path`:

        def test_dice(tmp_path, monkeypatch):
            source = "import pegboard\n@pegboard.hookimpl\ndef provide_tools(settings): return []"
            fake_distribution(tmp_path, "acme-dice", entry_points={"dice": "acme_dice"}, modules={"acme_dice": source})
            monkeypatch.syspath_prepend(tmp_path)

    Python remembers imported modules: two tests should not share a module's name. Raises OSError.

    Args:
        path: Directory to write into. It has to be on `sys.path`.
        name: Name of the distribution.
        version: Its version.
        entry_points: Names mapped to `module[:attribute]` in Pegboard's group, or group names mapped to such mappings;
            text is written as it is.
        requires: Requirements such as `pegboard>=0.1`.
        modules: Source by dotted module name (`acme.tools`); packages on the way are made.
    """
    root = Path(path)
    info = root / f"{re.sub(r'[-_.]+', '_', name).lower()}-{version}.dist-info"
    files = {
        info / "METADATA": _metadata(name, version, requires),
        info / "WHEEL": "Wheel-Version: 1.0\nGenerator: pegboard_testing\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        info / "INSTALLER": "pegboard_testing\n",
        **_modules(root, modules),
    }
    (info / "entry_points.txt").unlink(missing_ok=True)
    if entry_points:
        files[info / "entry_points.txt"] = entry_points if isinstance(entry_points, str) else _sections(entry_points)
    record = [*(_write(root, file, text) for file, text in sorted(files.items())), f"{info.name}/RECORD,,"]
    (info / "RECORD").write_text("\n".join(record) + "\n", encoding="utf-8")
    # Finders remember directories, and this one may just have been listed.
    importlib.invalidate_caches()
    return info


def _metadata(name: str, version: str, requires: Iterable[str]) -> str:
    headers = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    return "\n".join([*headers, *(f"Requires-Dist: {requirement}" for requirement in requires)]) + "\n"


def _sections(entry_points: EntryPoints) -> str:
    sections: dict[str, dict[str, str]] = {}
    for key, value in entry_points.items():
        if isinstance(value, str):
            sections.setdefault(_GROUP, {})[key] = value
        else:
            sections.setdefault(key, {}).update(value)
    return "\n".join(
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]) + "\n"
        for group, names in sections.items()
    )


def _modules(root: Path, modules: Mapping[str, str]) -> dict[Path, str]:
    files: dict[Path, str] = {}
    packages = {name[:position] for name in modules for position, char in enumerate(name) if char == "."}
    for name in sorted({*modules, *packages}):
        base = root.joinpath(*name.split("."))
        files[base / "__init__.py" if name in packages else base.with_suffix(".py")] = modules.get(name, "")
    return files


def _write(root: Path, file: Path, text: str) -> str:
    """Write a file, and return its line in RECORD."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode("utf-8")
    file.write_bytes(content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode("ascii")
    return f"{file.relative_to(root).as_posix()},sha256={digest},{len(content)}"
