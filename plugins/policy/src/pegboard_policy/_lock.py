"""The lock file: tools as they were when they were reviewed, and the guard that holds them to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pegboard import Guard, SettingsError, Tool, Verdict
from pegboard.inspection import digest, facts_of, is_own, regular
from pegboard_policy._prints import changed, prints, prints_of

__all__ = ["LockFile", "unenforced"]

_ENFORCED: Final[ContextVar[bool]] = ContextVar("pegboard_policy_lock", default=True)


@contextmanager
def unenforced() -> Iterator[None]:
    """Hold no tool to a lock file in this block: for the command that writes it."""
    token = _ENFORCED.set(False)
    try:
        yield
    finally:
        _ENFORCED.reset(token)


class LockFile:
    """What a lock file pins: `distributions` with their versions; by name the parts of `tools` and their hashes.

    Raises `SettingsError` for a file that is missing, damaged, or was edited by hand.

    Args:
        path: The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            with open(path, encoding="utf-8", opener=regular) as file:
                content = json.load(file)
            self.distributions, self.tools = dict(content["distributions"]), dict(content["tools"])
            parts = {name: self.parts(pinned) for name, pinned in self.tools.items()}
            intact = content["format"] == 1 and all(self.tools[name]["hash"] == digest(parts[name]) for name in parts)
        except FileNotFoundError:
            raise SettingsError(f"there is no {path}; write one with: pegboard lock") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"{path} cannot be read as a lock file ({error!r}); restore it, do not repair it"
            raise SettingsError(message) from error
        if not intact:
            raise SettingsError(f"{path} does not agree with itself: a hash is wrong")
        self._path = path
        self._prints = {name: prints(each) for name, each in parts.items()}

    @classmethod
    def guard(cls, path: str | os.PathLike[str], name: str = "lock") -> Guard:
        """The guard that holds tools to a file, or to nothing in `unenforced`. Raises as the class does."""
        return Guard(cls(path).judge if _ENFORCED.get() else lambda tool: None, name=name)

    @staticmethod
    def parts(pinned: Mapping[str, Any]) -> dict[str, Any]:
        """What is pinned of a tool, without the hashes."""
        return {name: part for name, part in pinned.items() if name not in ("hash", "schema_hash")}

    @staticmethod
    def pinned(tool: Tool) -> dict[str, Any]:
        """What a lock file holds of a tool. Raises `PegboardError` for one that cannot be read."""
        parts = facts_of(tool)
        return {"hash": digest(parts), "schema_hash": tool.schema_hash, **parts}

    def judge(self, tool: Tool) -> Verdict | None:
        """Do not offer a tool that is not as it was pinned, by its name in the toolkit."""
        before, now = self._prints.get(tool.name), prints_of(tool)
        if before == now or is_own(tool):
            return None
        why = f"its {changed(before, now)} changed since" if before else "it was not there when"
        fix = f"{self._path} was written; to accept it: pegboard lock"
        return Verdict(offered=False, reason=f"{tool.name!r} is not offered: {why} {fix}")
