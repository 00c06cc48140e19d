"""The extract of the conventions, beside the names that their project publishes as a package."""

from typing import Any

import pytest

from tests.plugins.otel import conventions

NAMES: Any = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
ERRORS: Any = pytest.importorskip("opentelemetry.semconv.attributes.error_attributes")
METRICS: Any = pytest.importorskip("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")

if not hasattr(NAMES, "GEN_AI_TOOL_CALL_ARGUMENTS"):
    pytest.skip("the package is older than the conventions' names for arguments and results", allow_module_level=True)


def texts(module: Any) -> set[str]:
    """The names that a module of the package defines."""
    return {value for key, value in vars(module).items() if key.isupper() and isinstance(value, str)}


@pytest.mark.parametrize("name", sorted({*conventions.SPAN["attributes"], *conventions.METRIC["attributes"]}))
def test_attributes_are_published(name: str) -> None:
    assert name in texts(NAMES) | texts(ERRORS)


def test_the_operation_is_published() -> None:
    assert NAMES.GenAiOperationNameValues.EXECUTE_TOOL.value == conventions.OPERATION


def test_durations_are_measured_as_the_published_ones() -> None:
    """The package ends before the metric of tools was named: what it says of the others' unit and prefix holds."""
    units = {}

    class Meter:
        def create_histogram(self, name: str, unit: str, **_: object) -> None:
            units[name] = unit

    for key, create in vars(METRICS).items():
        if key.startswith("create_gen_ai_"):
            create(Meter())
    durations = {unit for name, unit in units.items() if name.startswith("gen_ai.") and name.endswith(".duration")}
    assert durations == {conventions.METRIC["unit"]}
    assert units.get(conventions.METRIC["name"], conventions.METRIC["unit"]) == conventions.METRIC["unit"]
