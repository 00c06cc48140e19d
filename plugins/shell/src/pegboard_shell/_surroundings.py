"""Surroundings: everything that a command runs with, except the command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from pegboard_shell._sandbox.places import Places
from pegboard_shell._sandbox.sandboxes import SandboxMode

__all__ = ["Surroundings", "minimal_environment", "shell_arguments"]

_WINDOWS: Final = ("COMSPEC", "PATHEXT", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE")
"""Without these few programs start on Windows."""


@frozen
class Surroundings:
    """What `ShellTools` is set up with: `grace` is in seconds, `max_output` in bytes of each output.

    `limits` has the names of the `resource` module.
    """

    directory: str
    environment: Mapping[str, str] = field(repr=False)
    places: Places
    sandbox: SandboxMode
    network: bool
    limits: Mapping[str, int]
    grace: float
    max_output: int


def minimal_environment(
    host: Mapping[str, str],
    directories: Iterable[str],
    *,
    passed: Iterable[str] = (),
    variables: Mapping[str, str] | None = None,
    windows: bool = os.name == "nt",
) -> dict[str, str]:
    """The few variables that a command sees, each of them named.

    They are PATH (`directories`), HOME, LANG and TERM, the variables of `host` whose names are `passed`, and
    `variables`.
    """
    environment = {"PATH": os.pathsep.join(directories), "LANG": host.get("LANG") or "C.UTF-8", "TERM": "dumb"}
    for name in ("HOME", *(_WINDOWS if windows else ()), *passed):
        if name in host:
            environment[name] = host[name]
    return {**environment, **(variables or {})}


def shell_arguments(environment: Mapping[str, str], *, windows: bool = os.name == "nt") -> Sequence[str]:
    """What a shell proper is started with; the command follows as one argument."""
    if windows:
        return (environment.get("COMSPEC", r"C:\Windows\System32\cmd.exe"), "/d", "/s", "/c")
    return ("/bin/sh", "-c")
