"""`pegboard.lock`: names, texts and schemas of all tools, and the versions that they come from, as they once were."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, Self

import attrs

from pegboard import PegboardError, Tool, Toolkit
from pegboard.inspection import plugins_of
from pegboard_cli._facts import ordered
from pegboard_cli._finding import Finding
from pegboard_cli._json import dumps, loads

__all__ = ["LOCK", "Lock", "differences"]

LOCK: Final = "pegboard.lock"
FORMAT: Final = 1


@attrs.frozen
class Lock:
    """What is pinned: `distributions` by name, and the model's view of each tool by its name."""

    distributions: Mapping[str, str]
    tools: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, toolkit: Toolkit, *, only: Collection[str] | None = None) -> Self:
        """The board as it is now, or of its tools `only` these. Raises `PegboardError` for one that cannot be read."""
        plugins_of(toolkit).contributions("provide_commands")  # a plugin that fails there is not active
        tools = [tool for tool in ordered(toolkit) if only is None or tool.name in only]
        origins = [record.origin for record in toolkit.plugins if record.state == "active"]
        versions = {origin.distribution: origin.version or "" for origin in origins if origin.distribution}
        return cls(dict(sorted(versions.items())), {tool.name: _pinned(tool) for tool in tools})

    @classmethod
    def read(cls, path: Path) -> Self:
        """A lock file. Raises `PegboardError` for one that is missing, damaged, or was edited by hand."""
        try:
            content = loads(path.read_text(encoding="utf-8"))
            lock = cls(dict(content["distributions"]), dict(content["tools"]))
            intact = content["format"] == FORMAT and all(each["hash"] == _hash(each) for each in lock.tools.values())
        except FileNotFoundError:
            raise PegboardError(f"there is no {path}; write one with: pegboard lock") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise PegboardError(
                f"{path} cannot be read as a lock file ({error!r}); restore it, do not repair it"
            ) from error
        if not intact:
            raise PegboardError(f"{path} does not agree with itself: a hash is wrong")
        return lock

    def write(self, path: Path) -> None:
        """Write the file; the same board gives the same bytes."""
        content = {"format": FORMAT, "distributions": dict(self.distributions), "tools": dict(self.tools)}
        path.write_text(dumps(content, ensure_ascii=False, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _pinned(tool: Tool) -> dict[str, Any]:
    pinned: dict[str, Any] = {
        "description": tool.description,
        "distribution": tool.origin.distribution,
        "hints": attrs.asdict(tool.hints),
        "parameters": tool.parameters,
        "returns": tool.returns,
    }
    return {"hash": _hash(pinned), "schema_hash": tool.schema_hash, **pinned}


def _hash(pinned: Mapping[str, Any]) -> str:
    members = {name: value for name, value in pinned.items() if name not in ("hash", "schema_hash")}
    canonical = dumps(members, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


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
        if before != after:
            found.append(Finding("error", "lock-tool", name, _diff(name, before, after), fix))
    return found


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
    shown = {name: value for name, value in pinned.items() if name not in ("hash", "schema_hash")}
    return dumps(shown, ensure_ascii=False, indent=2, sort_keys=True).splitlines()
