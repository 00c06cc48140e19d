"""Telemetry around calls: it checks whether anything is collected, which is the whole cost for most calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from pegboard import EnteredCall
    from pegboard_otel._record import Recorder

__all__ = ["Telemetry"]

_PROVIDERS: Final = ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER")


@final
class Telemetry:
    """Reports calls to OpenTelemetry, if the program has given it a provider of tracers or of meters."""

    def __init__(self, schema_url: str, *, content: bool) -> None:
        self._schema_url = schema_url
        self._content = content
        self._recorder: Recorder | None = None
        self._named = any(name in os.environ for name in _PROVIDERS)

    def around(self, call: EnteredCall, proceed: Callable[[], Any]) -> Any:
        """Run a call, within a span if spans are collected."""
        recorder = self._recorder
        if recorder is None:
            # Until the API is loaded, no program can have given it a provider.
            if "opentelemetry.trace" not in sys.modules and not self._named:
                return proceed()
            from pegboard_otel._record import Recorder

            self._recorder = recorder = Recorder(self._schema_url, content=self._content)
        return recorder.around(call, proceed)

    def told(self, what: str, details: Mapping[str, Any]) -> None:
        """Record an event of the call that runs here."""
        if self._recorder is not None:
            self._recorder.told(what, details)
