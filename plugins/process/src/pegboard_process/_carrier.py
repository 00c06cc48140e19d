"""The context of OpenTelemetry, on its way to a tool's process: what its propagators say, where the program uses it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["carried", "within"]


def carried() -> dict[str, str]:
    """What has to travel with a job that is sent from here; nothing if OpenTelemetry is not loaded."""
    api = sys.modules.get("opentelemetry.context")
    carrier: dict[str, str] = {}
    if api is not None and api.get_current():
        with suppress(Exception):  # of propagators that the program has chosen; a job goes without
            from opentelemetry.propagate import inject

            inject(carrier)
    return carrier


@contextmanager
def within(carrier: dict[str, str]) -> Iterator[None]:
    """The context that was carried is the current one."""
    token = None
    if carrier:
        with suppress(Exception):  # as above; or the process has other packages
            from opentelemetry.context import attach
            from opentelemetry.propagate import extract

            token = attach(extract(carrier))
    try:
        yield
    finally:
        if token is not None:
            from opentelemetry.context import detach

            detach(token)
