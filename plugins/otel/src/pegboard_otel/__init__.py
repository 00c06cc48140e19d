"""Telemetry: a span and a measurement of every tool call, by OpenTelemetry's conventions for generative AI."""

from collections.abc import Iterable

import attrs

from pegboard import Middleware, hookimpl
from pegboard_otel._telemetry import Telemetry

__all__ = ["COMMIT", "SCHEMA_URL", "Settings", "provide_middleware", "settings_type"]

COMMIT = "fe5608e249d64bc5961329a82f8915fe95ced51a"
"""Of the repository `open-telemetry/semantic-conventions-genai`: by what it says spans and metrics are made."""
SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""What `model/manifest.yaml` says there; nothing of these conventions has been released yet."""


@attrs.frozen
class Settings:
    """The section `otel` of the settings."""

    content: bool = attrs.field(default=False, validator=attrs.validators.instance_of(bool))
    """Whether spans hold the arguments, the result and the messages of errors. They may be private.

    `Secret` values are taken out of them; for a tool with a secret that is computed for each call, spans hold none of
    these.
    """


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_middleware(settings: Settings) -> Iterable[Middleware]:
    """What runs around whole calls. It loads nothing of OpenTelemetry until the program has."""
    telemetry = Telemetry(SCHEMA_URL, content=settings.content)
    return [Middleware(telemetry.around, "otel", whole=True, told=telemetry.told)]
