"""Settings: the configuration of the shell tool, and the limits of commands."""

from __future__ import annotations

from typing import Final, Literal

import attrs
from attrs.validators import ge, optional

__all__ = ["DEFAULT_MAX_OUTPUT", "DEFAULT_TIMEOUT", "Limits", "Settings"]

DEFAULT_TIMEOUT: Final = 300.0
DEFAULT_MAX_OUTPUT: Final = 64 * 1024


def _amount(default: int | None = None) -> int | None:
    amount: int | None = attrs.field(default=default, validator=optional(ge(0)))
    return amount


@attrs.frozen(kw_only=True)
class Limits:
    """Limits of each process that a command starts; None for none but the system's own.

    Core dumps are never written. On Windows none of them holds.

    Args:
        cpu: Seconds of processor time.
        memory: Bytes of address space.
        file_size: Bytes of a file that is written; 2 GiB by default.
        open_files: Most open files.
        processes: Most processes of the user, not only those of the command.
    """

    cpu: int | None = _amount()
    memory: int | None = _amount()
    file_size: int | None = _amount(2 * 1024**3)
    open_files: int | None = _amount()
    processes: int | None = _amount()

    def by_resource(self) -> dict[str, int]:
        """The limits by the names that the `resource` module gives them."""
        names = {
            "cpu": "RLIMIT_CPU",
            "memory": "RLIMIT_AS",
            "file_size": "RLIMIT_FSIZE",
            "open_files": "RLIMIT_NOFILE",
            "processes": "RLIMIT_NPROC",
        }
        given = {names[name]: value for name, value in attrs.asdict(self).items() if value is not None}
        return {"RLIMIT_CORE": 0, **given}


@attrs.frozen
class Settings:
    """The section `shell` of the settings: what `ShellTools` takes, but for functions.

    Args:
        base_dir: Where commands run, and what a sandbox lets them change.
        allow: Programs that run at once; all others need approval.
        deny: Programs that never run.
        shell: Whether a shell reads the commands.
        sandbox: `"auto"` takes what there is, `"required"` runs nothing without one, `"none"` takes none.
        network: Whether the sandbox has the network.
        readable: Private places that the sandbox may read.
        environment: Variables of the program that commands see.
        variables: Other variables with their values. They are secret.
        path: Where programs are looked up. None: the PATH of the program, without what lies in `base_dir`.
        limits: Limits of each process: `cpu`, `memory`, `file_size`, `open_files`, `processes`.
        timeout: Seconds for a call that says none; 300 by default.
        max_timeout: Most seconds that a call may ask for.
        grace: Seconds between TERM and KILL.
        max_output: Bytes of each output that are kept; 65,536 by default.
    """

    base_dir: str = "."
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    shell: bool = False
    sandbox: Literal["auto", "required", "none"] = "auto"
    network: bool = False
    readable: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    variables: dict[str, str] = attrs.field(factory=dict, repr=False, metadata={"secret": True})
    path: str | None = None
    limits: dict[str, int] = attrs.field(factory=dict)
    timeout: float = DEFAULT_TIMEOUT
    max_timeout: float = 24 * 3600.0
    grace: float = 0.5
    max_output: int = DEFAULT_MAX_OUTPUT
