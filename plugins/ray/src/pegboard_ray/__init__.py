"""A backend for tools that need another machine: they run on a Ray cluster, where their resources are."""

from collections.abc import Iterable

from pegboard import Backend, hookimpl
from pegboard_ray._backend import RayBackend
from pegboard_ray._errors import MismatchError, NoResourcesError, OutOfMemoryError, WorkerLostError
from pegboard_ray._places import PLACES
from pegboard_ray._settings import Settings

__all__ = [
    "MismatchError",
    "NoResourcesError",
    "OutOfMemoryError",
    "RayBackend",
    "Settings",
    "WorkerLostError",
    "provide_backends",
    "settings_type",
]


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_backends(settings: Settings) -> Iterable[Backend]:
    """The backend `ray`. It starts nothing, and imports no Ray, until a tool is called."""
    return PLACES.get() or [RayBackend(settings)]
