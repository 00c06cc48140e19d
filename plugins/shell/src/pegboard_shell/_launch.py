"""Launch: how a command is started on this platform."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from pegboard_shell._confined import Confined
from pegboard_shell._limits import Limits

__all__ = ["Launch", "can_supervise", "supervisor_arguments"]

SUPERVISOR: Final = str(Path(__file__).parent)
"""Where the supervisor is. It is imported there, not run as a script, which would be compiled for each command."""
_BEGIN: Final = "import sys; sys.path.append(sys.argv.pop(1)); import _supervisor; _supervisor.main()"

# By their values: the names are there on Windows only.
_NEW_GROUP: Final = 0x0000_0200
_NO_WINDOW: Final = 0x0800_0000


@frozen
class Launch:
    """A command with everything that it starts with: `grace` is in seconds."""

    confined: Confined
    directory: str
    environment: Mapping[str, str] = field(repr=False)
    limits: Limits = field(factory=Limits)
    grace: float = 0.5

    def options(self, *, windows: bool = os.name == "nt") -> dict[str, Any]:
        """What `subprocess.Popen` is told: pipes for the output, a session or group of its own, no console."""
        options: dict[str, Any] = {
            "cwd": self.directory,
            "env": dict(self.environment),
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "bufsize": 0,
            "close_fds": True,
        }
        return options | ({"creationflags": _NEW_GROUP | _NO_WINDOW} if windows else {"start_new_session": True})


def can_supervise() -> bool:
    """Whether commands run under a supervisor: on POSIX, where this program's interpreter can run a script."""
    return os.name == "posix" and bool(sys.executable) and not getattr(sys, "frozen", False)


def supervisor_arguments(launch: Launch) -> list[str]:
    """The command line of the supervisor of a command."""
    config: dict[str, Any] = {
        "grace": launch.grace,
        "limits": launch.limits.by_resource(),
        "confinement": launch.confined.confinement,
        "monitor": launch.confined.monitor,
    }
    return [sys.executable, "-I", "-S", "-c", _BEGIN, SUPERVISOR, marshal.dumps(config).hex(), *launch.confined.argv]
