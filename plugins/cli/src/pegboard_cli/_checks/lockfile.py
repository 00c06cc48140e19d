"""`pegboard.lock`: names, texts and schemas of all tools, and the versions that they come from, as they once were."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, Self

import attrs

from pegboard import PegboardError, Toolkit
from pegboard.inspection import board_of, plugins_of, regular, write_file
from pegboard_cli._checks.finding import Finding
from pegboard_cli._output.printing import dumps
from pegboard_policy import LockFile

__all__ = ["LOCK", "Lock", "differences"]

LOCK: Final = "pegboard.lock"


@attrs.frozen
class Lock:
    """What is pinned: `distributions` by name, and each tool by its name, as `Policy(lock=)` reads them."""

    distributions: Mapping[str, str]
    tools: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> Self:
        """A lock file. Raises `PegboardError` for one that is missing, damaged, or was edited by hand."""
        found = LockFile(path)
        return cls(found.distributions, found.tools)

    @classmethod
    def of(cls, toolkit: Toolkit, *, only: Collection[str] | None = None) -> Self:
        """The tools as they are now, all or `only` these. Raises `PegboardError` for a tool that cannot be read."""
        plugins_of(toolkit).contributions("provide_commands")  # a plugin that fails there is not active
        # As they are registered: what a session sees of them changes with its presets.
        tools = [tool for name, tool in sorted(board_of(toolkit).tools.items()) if only is None or name in only]
        origins = [record.origin for record in toolkit.plugins if record.state == "active"]
        versions = {origin.distribution: origin.version or "" for origin in origins if origin.distribution}
        return cls(dict(sorted(versions.items())), {tool.name: LockFile.pinned(tool) for tool in tools})

    def write(self, path: Path) -> Path | None:
        """Write the file; the same tools give the same bytes. Raises `PegboardError`.

        What stood there and could not be read as a lock file is kept beside it; where it is now, None if nothing did.
        """
        content = {"format": 1, "distributions": dict(self.distributions), "tools": dict(self.tools)}
        text = dumps(content, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        kept = None
        try:
            Lock.read(path)
        except PegboardError:
            kept = _kept(path)
        write_file(path, text, "the lock")
        return kept


def _kept(path: Path) -> Path | None:
    """A copy of what is no lock file; None where there is none, or it is empty."""
    try:
        with open(path, "rb", opener=regular) as file:
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PegboardError(f"{path}: the lock cannot be saved: {error.strerror}; nothing was changed") from error
    if not content.strip():
        return None
    aside = path.with_name(f"{path.name}.damaged-{os.urandom(4).hex()}")
    with open(aside, "xb", opener=regular) as copy:
        copy.write(content)
    return aside


def differences(locked: Lock, now: Lock, path: Path) -> list[Finding]:
    """What has changed since, a finding for each tool and distribution; a change of a tool is shown as a diff."""
    option = "" if path == Path(LOCK) else f" --lock-file {path}"
    fix = f"look at it; to accept all that has changed: pegboard lock{option}"
    found = [
        Finding("error", "lock-version", name, _moved(locked.distributions.get(name), now.distributions.get(name)), fix)
        for name in sorted({*locked.distributions, *now.distributions})
        if locked.distributions.get(name) != now.distributions.get(name)
    ]
    for name in sorted({*locked.tools, *now.tools}):
        before, after = locked.tools.get(name), now.tools.get(name)
        if _compared(before) != _compared(after):
            found.append(Finding("error", "lock-tool", name, _diff(name, before, after), fix))
    return found


def _compared(pinned: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What is compared of a tool: the version of its distribution is a finding of its own."""
    origin = dict((pinned or {}).get("origin", {}))
    if origin.get("distribution"):
        del origin["version"]
    return pinned and {**LockFile.parts(pinned), "origin": origin}


def _moved(before: str | None, after: str | None) -> str:
    if before is None:
        return f"{after} is installed, and the lock does not know it"
    return f"{before} is locked, and it is not there" if after is None else f"{before} is locked, {after} is installed"


def _diff(name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    if before is None:
        return "this tool is new since the lock"
    if after is None:
        return "this tool is locked, and it is not there"
    lines = difflib.unified_diff(_lines(before), _lines(after), f"{name} (locked)", f"{name} (now)", n=1, lineterm="")
    return "\n".join(lines)


def _lines(pinned: Mapping[str, Any]) -> list[str]:
    return dumps(LockFile.parts(pinned), ensure_ascii=False, indent=2, sort_keys=True).splitlines()
