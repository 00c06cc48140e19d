"""Limits: what a command may use up."""

from __future__ import annotations

from attrs import asdict, field, frozen
from attrs.validators import ge, optional

__all__ = ["Limits"]


def _amount(default: int | None = None) -> int | None:
    amount: int | None = field(default=default, validator=optional(ge(0)))
    return amount


@frozen(kw_only=True)
class Limits:
    """Limits of each process that a command starts; None means none but the system's own.

    `cpu` is in seconds; `memory` (address space) and `file_size` in bytes; `processes` counts all processes of the
    user, not only those of the command. Core dumps are never written. On Windows none of them holds.
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
        given = {names[name]: value for name, value in asdict(self).items() if value is not None}
        return {"RLIMIT_CORE": 0, **given}
