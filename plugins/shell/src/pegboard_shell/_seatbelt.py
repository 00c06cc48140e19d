"""Seatbelt: confinement by the kernel of macOS."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pegboard_shell._places import Places

__all__ = ["SEATBELT", "seatbelt_arguments"]

SEATBELT: Final = "/usr/bin/sandbox-exec"


def seatbelt_arguments(places: Places, executable: str, *, network: bool) -> list[str]:
    """The command line that goes before a command. Of several rules about a path the last one counts."""
    rules = ["(version 1)", "(allow default)", "(deny file-write*)", '(allow file-write* (subpath "/dev"))']
    rules += [f"(deny file-read-data {_below(path)})" for path in places.private]
    rules += [f"(allow file-read-data {_below(path)})" for path in places.shown(executable)[0]]
    if places.writable is not None:
        rules.append(f"(allow file-read* file-write* {_below(places.writable)})")
    there = [path for name in places.protected if (path := Path(places.workspace, name)).exists()]
    anchored = {folder: None for path in there for folder in path.parents if folder.is_relative_to(places.workspace)}
    rules += [f"(deny file-write* {_below(str(path))})" for path in there]
    rules += [f"(deny file-write* {_just(str(path))})" for path in anchored if str(path) != places.workspace]
    rules += [] if network else ["(deny network*)"]
    return [SEATBELT, "-p", "\n".join(rules), executable]


def _below(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _just(path: str) -> str:
    return f"(literal {_quoted(path)})"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
