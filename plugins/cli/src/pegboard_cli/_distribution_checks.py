"""Checks of distributions that require Pegboard and are no plugin: an entry point is missing, or in another group."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from difflib import SequenceMatcher
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pegboard_cli._finding import Finding

__all__ = ["check_distributions"]

GROUP: Final = "pegboard"
"""The group of entry points, and the distribution that a pack requires."""

_REQUIRED: Final = re.compile(rf"\s*{GROUP}\s*(?:\[[^]]*\])?\s*(?:[^\w.;\s-][^;]*)?(;.*)?", re.IGNORECASE)
_ALIKE: Final = 0.85
# Distributions of this project that are libraries or programs, and no plugins.
_NO_PLUGINS: Final = ("pegboard-cli", "pegboard-schemas", "pegboard-testing")
# Of one distribution; a pack has its hooks in one of its first modules.
_MOST_MODULES: Final = 300
_LARGEST: Final = 1_000_000


def check_distributions() -> Iterator[Finding]:
    """Findings about what requires Pegboard without an entry point of its group, sorted. Nothing is imported."""
    found: dict[str, Distribution] = {}
    for distribution in distributions():
        with suppress(Exception):  # damaged metadata may raise anything; what it hides of plugins is said elsewhere
            found.setdefault(distribution.name.lower(), distribution)
    for name, distribution in sorted(found.items()):
        with suppress(Exception):
            if _requires_pegboard(distribution) and name not in _NO_PLUGINS:
                yield from _check(distribution)


def _requires_pegboard(distribution: Distribution) -> bool:
    matches = map(_REQUIRED.fullmatch, distribution.requires or ())
    return any(match and "extra" not in (match[1] or "") for match in matches)


def _check(distribution: Distribution) -> Iterator[Finding]:
    points = list(distribution.entry_points)
    if any(point.group == GROUP for point in points):
        return
    subject = f"{distribution.name} {distribution.version}"
    meant = [point for point in points if _means_ours(point.group)]
    for point in meant:
        message = f"its entry point {point.name!r} is in the group {point.group!r}, which is never looked at"
        yield Finding("warning", "entry-point-group", subject, message, _to_write(point.name, point.value))
    if meant:
        return
    module = _module_with_hooks(distribution)
    if module is None:
        fix = f"nothing, if it only uses Pegboard; a pack declares its module below [project.entry-points.{GROUP}]"
        yield Finding("note", "no-entry-point", subject, f"it requires {GROUP} and offers no plugin", fix)
    else:
        message = f"its module {module} implements hooks and no entry point names it, so it is never loaded"
        name = module.rpartition(".")[2].removeprefix(f"{GROUP}_")
        yield Finding("warning", "no-entry-point", subject, message, _to_write(name, module))


def _means_ours(group: str) -> bool:
    first = re.split(r"[._-]", group.lower())[0]
    return SequenceMatcher(None, first, GROUP).ratio() >= _ALIKE


def _to_write(name: str, value: str) -> str:
    return f'its pyproject.toml needs, below [project.entry-points.{GROUP}]: {name} = "{value}"; then reinstall it'


def _module_with_hooks(distribution: Distribution) -> str | None:
    for root, path in _modules(distribution):
        with suppress(OSError):
            if path.stat().st_size <= _LARGEST and "hookimpl" in path.read_text(encoding="utf-8", errors="replace"):
                parts = path.relative_to(root).with_suffix("").parts
                return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
    return None


def _modules(distribution: Distribution) -> Iterator[tuple[Path, Path]]:
    """Modules with the folder that they are imported from, those nearest to it first; the source of an editable one."""
    folder = Path(str(distribution.locate_file("")))
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or () if file.suffix == ".py"]
    source = _source(distribution)
    if source is not None:
        folder = source / "src" if (source / "src").is_dir() else source
        files = [path for each in sorted(folder.glob("*")) if _is_importable(each) for path in _python_files(each)]
    # An editable one of some build tools has a finder of its own beside it.
    inside = [path for path in files if path.is_relative_to(folder) and not path.name.startswith("__editable__")]
    for path in sorted(inside, key=lambda path: (len(path.parts), path))[:_MOST_MODULES]:
        yield folder, path


def _is_importable(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").is_file()


def _python_files(path: Path) -> list[Path]:
    return [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))


def _source(distribution: Distribution) -> Path | None:
    """The folder of an editable installation, after `direct_url.json` (PEP 610)."""
    text = distribution.read_text("direct_url.json")
    found = json.loads(text) if text else {}
    if not found.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlsplit(found["url"]).path))
