"""A backend for tools that may block, crash or eat all memory: processes that are killed when a call has to end."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from pegboard import Backend, hookimpl
from pegboard_process._backend import ProcessBackend
from pegboard_process._errors import ProcessDiedError, RemoteError, UnexpectedAnswerError

if TYPE_CHECKING:
    from pegboard_process._limited import LimitError, limited

__all__ = [
    "LimitError",
    "ProcessBackend",
    "ProcessDiedError",
    "RemoteError",
    "Settings",
    "UnexpectedAnswerError",
    "limited",
    "provide_backends",
    "settings_type",
]


def __getattr__(name: str) -> Any:
    if name not in ("LimitError", "limited"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pegboard_process import _limited

    found = globals()[name] = getattr(_limited, name)
    return found


@attrs.frozen
class Settings:
    """The section `process` of the settings.

    Args:
        processes: Most processes at once. None: as many as the machine has CPUs, two at least.
        keep_warm: Seconds that an idle process is kept for the next call; 0 gives each call a process of its own, so
            that nothing that a tool leaves in one meets another call. None keeps it as long as the toolkit is open.
        grace: Seconds in which a tool that takes its token, or yields, may end by itself. Then it is killed.
        patience: Seconds that a process may take until it is ready, and again until it has imported what the job needs.
    """

    processes: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    keep_warm: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(0)))
    grace: float = attrs.field(default=0.5, validator=attrs.validators.ge(0))
    patience: float = attrs.field(default=60.0, validator=attrs.validators.gt(0))


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_backends(settings: Settings) -> Iterable[Backend]:
    """The backend `process`. It starts nothing, and imports no multiprocessing, until a tool is called."""
    return [ProcessBackend(settings.processes, settings.keep_warm, settings.grace, settings.patience)]
