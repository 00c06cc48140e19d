"""Tools as they were when somebody looked at them, and the files that say so: of permissions, and the lock file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias, cast

from attrs import asdict

from pegboard._base.errors import PegboardError, SettingsError
from pegboard._base.jsonable import digest
from pegboard._base.names import OWN
from pegboard._model.policy import Permission
from pegboard._model.tool import Tool

_ALLOWED: Final = "$allowed"  # no name of a tool

# A hash of each fact about a tool, by the fact's name.
Prints: TypeAlias = Mapping[str, str]


def facts_of(tool: Tool) -> dict[str, Any]:
    """What whoever allows a tool goes by, as JSON-able data. Raises `PegboardError` for one that cannot be read."""
    requires = tool.options.requires_approval
    approval = "sometimes" if callable(requires) else "always" if requires else "never"
    said = {"approval": approval, "description": tool.description, "hints": asdict(tool.hints)}
    return {**said, "origin": asdict(tool.origin), "parameters": tool.parameters, "returns": tool.returns}


def prints_of(tool: Tool) -> Prints:
    """A hash of each fact; nothing of a tool that cannot be read, and of the core's own."""
    try:
        return cast("Prints", {} if _is_own(tool) else tool._remember("prints", lambda: _prints(facts_of(tool))))
    except PegboardError:
        return {}


def allowed(tool: Tool) -> Prints:
    """What a permission goes by: not whether the tool asks, for it decides that whatever the tool says."""
    return {name: print_ for name, print_ in prints_of(tool).items() if name != "approval"}


def changed(before: Prints, now: Prints) -> str:
    """The names of the facts that are not as they were; empty if all are."""
    return ", ".join(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))


class PermissionFile:
    """Permissions by the names of tools, as JSON, and hashes of what is always allowed under the member `$allowed`.

    Raises `SettingsError` for a file that cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # The file of now: the program may change its directory later, and a link stays one when the file is replaced.
        self._path = Path(path).resolve()

    def read(self) -> tuple[dict[str, Permission], dict[str, Prints]]:
        """What is saved there, and the hashes of what is allowed, unless by hand; nothing if there is no file."""
        try:
            with open(self._path, encoding="utf-8-sig", opener=regular) as file:
                saved = dict(json.load(file, object_pairs_hook=_without_doubles).items())
            allowed: dict[str, Prints] = {
                name: dict(prints.items()) for name, prints in saved.pop(_ALLOWED, {}).items()
            }
            return {name: Permission(value) for name, value in saved.items()}, allowed
        except FileNotFoundError:
            return {}, {}
        except (ValueError, AttributeError, OSError, RecursionError) as error:
            words = 'a JSON object of tool names and "always", "prompt" or "never"'
            raise SettingsError(f"{self._path}: permissions are {words}: {error}") from error

    def write(self, permissions: Mapping[str, Permission], allowed: Mapping[str, Prints]) -> None:
        """Write all of them. Raises `SettingsError`."""
        values: dict[str, Any] = {name: permission.value for name, permission in sorted(permissions.items())}
        if kept := {name: allowed[name] for name, said in values.items() if said == "always" and name in allowed}:
            values[_ALLOWED] = kept
        write_file(self._path, json.dumps(values, indent=2, ensure_ascii=False) + "\n", "the permissions")


class Lock:
    """What a lock file pins: `distributions` with their versions, and by name the facts of `tools` and their hashes.

    Where `enforced` is False, `Toolkit(lock=)` holds nobody to it: for whoever is to write it. Raises `SettingsError`
    for a file that is missing, damaged, or was edited by hand.
    """

    enforced: ClassVar[ContextVar[bool]] = ContextVar("pegboard_lock_enforced", default=True)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            with open(path, encoding="utf-8", opener=regular) as file:
                content = json.load(file)
            self.distributions, self.tools = dict(content["distributions"]), dict(content["tools"])
            facts = {name: self.facts(pinned) for name, pinned in self.tools.items()}
            intact = content["format"] == 1 and all(self.tools[name]["hash"] == digest(facts[name]) for name in facts)
        except FileNotFoundError:
            raise SettingsError(f"there is no {path}; write one with: pegboard lock") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"{path} cannot be read as a lock file ({error!r}); restore it, do not repair it"
            raise SettingsError(message) from error
        if not intact:
            raise SettingsError(f"{path} does not agree with itself: a hash is wrong")
        self._path = path
        self._prints = {name: _prints(each) for name, each in facts.items()}

    @staticmethod
    def facts(pinned: Mapping[str, Any]) -> dict[str, Any]:
        """What is pinned of a tool, without the hashes."""
        return {name: fact for name, fact in pinned.items() if name not in ("hash", "schema_hash")}

    @staticmethod
    def pinned(tool: Tool) -> dict[str, Any]:
        """What a lock file holds of a tool. Raises `PegboardError` for one that cannot be read."""
        facts = facts_of(tool)
        return {"hash": digest(facts), "schema_hash": tool.schema_hash, **facts}

    def drift(self, tool: Tool) -> str:
        """Why a tool, by its name on the board, is not what is pinned, and what mends it; empty if it is."""
        before, now = self._prints.get(tool.name), prints_of(tool)
        if before == now or _is_own(tool):
            return ""
        why = f"its {changed(before, now)} changed since" if before else "it was not there when"
        return f"{tool.name!r} is not offered: {why} {self._path} was written; to accept it: pegboard lock"


def regular(path: str, flags: int, mode: int = 0o666) -> int:
    """An `opener=` of `open()` for files of our own: it follows no link, waits for no FIFO and opens no device.

    Raises OSError for what is no regular file.
    """
    odd = OSError(0, "it is no regular file but a link, a FIFO, a device or a folder", path)
    if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113, PTH114
        raise odd
    # What is there may be exchanged in between.
    descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), mode)
    if not os.path.isfile(descriptor):  # noqa: PTH113 - it is no path
        os.close(descriptor)
        raise odd
    return descriptor


def write_file(path: Path, text: str, what: str) -> None:
    """Write a file of our own in one step: whoever reads it meanwhile, or after a crash, sees the old text or the new.

    The text is written beside it, under a name that nobody can guess; a link, a FIFO or a device is not written to.
    Raises `SettingsError`, naming `what` it is; then nothing has changed.
    """
    beside = path.with_name(f".pegboard-{os.urandom(8).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "xb", buffering=0, opener=regular) as file:
            with suppress(FileNotFoundError), open(path, opener=regular) as before:
                beside.chmod(os.fstat(before.fileno()).st_mode & 0o777)
            file.write(text.encode("utf-8", "backslashreplace"))
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise SettingsError(f"{path}: {what} cannot be saved: {error.strerror}; nothing was changed") from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _is_own(tool: Tool) -> bool:
    return tool.face is not None or (tool.pack is None and tool.origin.plugin == OWN)


def _prints(facts: Mapping[str, Any]) -> Prints:
    return {name: digest(fact) for name, fact in facts.items()}
