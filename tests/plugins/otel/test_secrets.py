"""No secret reaches an exporter, whatever is called and however it ends."""

import asyncio
import io
import random
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, InMemoryMetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.trace.export import ConsoleSpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pegboard import Computed, ExecutionPolicy, Secret, Suspend, ToolError, Toolkit, ToolOutput, tool
from tests.plugins.otel.conftest import Receiver, Scraped, provide, traces_to

Board = Callable[..., Toolkit]
SECRETS = ("s3cr3t-of-the-board", 's3cr3t with "quotes" and \\', "s3cr3t/that+is=computed", "s3cr3t-geheim-für-später")
ONCE = ExecutionPolicy(max_attempts=2, initial_backoff=0.0)


def returns(word: str, key: str) -> dict[str, Any]:
    """Return it, in several forms."""
    return {"key": key, key: word, "hex": key.encode().hex(), "nested": [[f"{word} {key}"]]}


def raises(word: str, key: str) -> NoReturn:
    """Raise it."""
    raise ValueError(f"{word}: {key}")


@tool(policy=ONCE)
def retries(word: str, key: str) -> NoReturn:
    """Raise it twice."""
    raise ValueError(key)


def says(word: str, key: str) -> NoReturn:
    """Say it to the model."""
    raise ToolError(f"{word}: {key}")


def suspends(word: str, key: str) -> NoReturn:
    """Suspend with it."""
    raise Suspend(key)


def outputs(word: str, key: str) -> ToolOutput:
    """Put it into metadata."""
    return ToolOutput(word, metadata={"key": key, "retries": [{"type": key, "error": key, "attempt": 1, "wait": 0}]})


async def awaited(word: str, key: str) -> str:
    """Return it later."""
    await asyncio.sleep(0)
    return key


def yields(word: str, key: str) -> Any:
    """Yield it."""
    yield word
    yield key


@tool(requires_approval=lambda arguments: f"because of {arguments}")
def asks(word: str, key: str) -> str:
    """Ask first."""
    return key


TOOLS = (returns, raises, retries, says, suspends, outputs, awaited, yields, asks)


def forms(secret: str) -> set[str]:
    """How a secret may be written."""
    escaped = secret.encode("unicode_escape").decode()
    return {secret, secret.encode().hex(), escaped, secret.replace("\\", "\\\\").replace('"', '\\"')}


@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("number", [100, pytest.param(1_000, marks=pytest.mark.slow)])
def test_random_calls(
    board: Board, monkeypatch: pytest.MonkeyPatch, receiver: Receiver, scraped: Scraped, content: bool, number: int
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    memory, printed, reader = InMemorySpanExporter(), io.StringIO(), InMemoryMetricReader()
    traces: TracerProvider = traces_to(memory, ConsoleSpanExporter(out=printed))
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{receiver.url}/v1/traces")))
    told = ConsoleMetricExporter(out=printed), OTLPMetricExporter(f"{receiver.url}/v1/metrics")
    readers = [PeriodicExportingMetricReader(each, export_interval_millis=600_000) for each in told]
    metrics = MeterProvider([reader, *readers, scraped.reader()])
    provide(monkeypatch, traces, metrics)
    draw = random.Random(11)
    toolkit = board(content=content, approver=lambda asked: draw.random() < 0.5)
    values: list[Any] = [Secret(secret) for secret in SECRETS]
    values[2] = Secret(Computed(lambda call: SECRETS[2]))
    for index, value in enumerate(values):
        renamed = {each.__name__: f"{each.__name__}_{index}" for each in TOOLS}
        presets = {name: {"key": value} for name in renamed}
        toolkit.register(*TOOLS, presets=presets, rename=renamed)
    names = [*(tool.name for tool in toolkit.tools), "made_up"]
    words: list[Any] = ["word", 7, None, *(secret for secret in SECRETS if "computed" not in secret)]
    for _ in range(number):
        name = draw.choice(names)
        sent = {"word": draw.choice(words[:3])}
        if not name.endswith("_2"):  # a model that knows what it should not
            own = int(name[-1]) if name[-1].isdigit() else 0
            sent["word"] = draw.choice([sent["word"], SECRETS[own]]) if name != "made_up" else sent["word"]
        if draw.random() < 0.5:
            toolkit.call_sync(name, sent)
        else:
            asyncio.run(toolkit.call(name, sent))
    traces.shutdown()
    metrics.force_flush()
    exported = [
        printed.getvalue(),
        *(span.to_json() for span in memory.get_finished_spans()),
        str(reader.get_metrics_data()),
    ]
    exported += [body.decode("utf-8", "replace") for _, body in receiver.bodies]
    exported += [receiver.spans_as_json(), receiver.metrics_as_json(), page := scraped.text()]
    metrics.shutdown()
    assert len(memory.get_finished_spans()) == len(receiver.spans) == number
    assert receiver.metrics
    assert "gen_ai_execute_tool_duration_seconds_count{" in page
    everything = "\n".join(exported)
    assert not [form for secret in SECRETS for form in forms(secret) if form in everything]
    assert ("gen_ai.tool.call.result" in everything) is content
