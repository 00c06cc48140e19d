"""What the installed pack costs, as ratios of processor time in one run: the best of many short rounds."""

import gc
import sys
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from pegboard import Toolkit
from pegboard_otel._record import BUCKETS
from tests.benchmarks.floors import FORECAST, by_hand, forecast
from tests.plugins.otel.conftest import provide, traces_to
from tests.support.measuring import least

ATTRIBUTES = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.description": "Forecast.",
    "gen_ai.tool.name": "forecast",
    "gen_ai.tool.type": "function",
}
POINT = {"gen_ai.tool.name": "forecast", "gen_ai.tool.type": "function"}


class Nowhere(SpanExporter):
    """Exports nothing."""

    def export(self, spans: Any) -> SpanExportResult:
        """Say that it went well."""
        return SpanExportResult.SUCCESS


@pytest.fixture
def still() -> Iterator[None]:
    """No collector comes between."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def best(*works: Callable[[], Any], rounds: int = 60) -> list[float]:
    """Seconds of each, one after another, the least of all rounds."""
    found = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            begun = process_time()
            for _ in range(60):
                work()
            found[index] = min(found[index], process_time() - begun)
    return found


def boards() -> tuple[Toolkit, Toolkit]:
    """A toolkit without the pack, and one with it."""
    bare, full = Toolkit(plugins=()), Toolkit(plugins=["otel"])
    for each in (bare, full):
        each.register(forecast)
    return bare, full


def costs(bare: Toolkit, full: Toolkit, work: Callable[[], Any], *, enough: float) -> float:
    """What the pack adds to a call, in multiples of some work."""

    def added() -> float:
        floor, without, within = best(
            work,
            lambda: bare.call_sync("forecast", FORECAST),
            lambda: full.call_sync("forecast", FORECAST),
        )
        return (within - without) / floor

    return least(added, enough=enough)


@pytest.mark.usefixtures("still")
@pytest.mark.slow
def test_without_an_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    provide(monkeypatch, None)
    bare, full = boards()
    with bare, full:
        assert costs(bare, full, by_hand(forecast, FORECAST), enough=1) <= 1.5  # on a machine that others use too


@pytest.mark.usefixtures("still")
@pytest.mark.skipif(sys.gettrace() is not None, reason="what watches the lines of the pack does not watch the SDK's")
@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.slow
def test_with_an_sdk_that_exports_nothing(monkeypatch: pytest.MonkeyPatch, measured: bool) -> None:
    """Beside the SDK's own span, and its own recording of the same measurement where there is a meter."""
    provide(monkeypatch, traces_to(Nowhere()), MeterProvider([InMemoryMetricReader()]) if measured else None)
    tracer = trace.get_tracer("bare")
    histogram = metrics.get_meter("bare").create_histogram("bare", "s", explicit_bucket_boundaries_advisory=BUCKETS)

    def span() -> None:
        with tracer.start_as_current_span("execute_tool forecast", attributes=ATTRIBUTES) as current:
            if measured:
                histogram.record(0.001, POINT)
            current.set_attribute("gen_ai.tool.call.id", "call_1")

    bare, full = boards()
    with bare, full:
        assert costs(bare, full, span, enough=1.5) <= 2  # as above
