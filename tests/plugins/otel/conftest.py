"""Providers of the SDK for one test each, since the API lets a program set them once; and what exporters send to."""

import gzip
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from typing import Any
from urllib.request import urlopen

import pytest
from attrs import define, field

pytest.importorskip("opentelemetry.sdk")  # the pack itself needs the API alone

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pegboard import Toolkit


@define
class Collected:
    """What was exported."""

    exporter: InMemorySpanExporter = field(factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(factory=InMemoryMetricReader)

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that have ended, in that order."""
        return list(self.exporter.get_finished_spans())

    def one(self) -> ReadableSpan:
        """The only span."""
        (span,) = self.spans
        return span

    @property
    def points(self) -> list[tuple[Any, Any]]:
        """The metrics, each with one of its points."""
        data = self.reader.get_metrics_data()
        scopes = [] if data is None else [each for part in data.resource_metrics for each in part.scope_metrics]
        return [(metric, point) for scope in scopes for metric in scope.metrics for point in metric.data.data_points]


def provide(monkeypatch: pytest.MonkeyPatch, traces: Any, metrics: Any = None) -> None:
    """Exchange the providers of the process."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", traces)
    monkeypatch.setattr(sys.modules["opentelemetry.metrics._internal"], "_METER_PROVIDER", metrics)


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    """What is exported while the test runs."""
    found = Collected()
    traces, metrics = traces_to(found.exporter), MeterProvider([found.reader])
    provide(monkeypatch, traces, metrics)
    yield found
    traces.shutdown()
    metrics.shutdown()


def traces_to(*exporters: SpanExporter) -> TracerProvider:
    """A provider that hands each span over as it ends."""
    provider = TracerProvider()
    for exporter in exporters:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
def board() -> Iterator[Callable[..., Toolkit]]:
    """Makes toolkits with the pack, closed at the end."""
    made: list[Toolkit] = []

    def make(*tools: Any, content: bool = False, plugins: tuple[str, ...] = (), **options: Any) -> Toolkit:
        made.append(Toolkit(plugins=["otel", *plugins], settings={"otel": {"content": content}}, **options))
        if tools:
            made[-1].register(*tools)
        return made[-1]

    yield make
    for toolkit in made:
        toolkit.close()


@define
class Receiver:
    """A server that takes OTLP over HTTP, as Jaeger and others do, and reads what comes."""

    url: str = ""
    bodies: list[tuple[str, bytes]] = field(factory=list)
    """With the path that each was sent to."""

    def _read(self, path: str, kind: str) -> list[Any]:
        module: Any = import_module(f"opentelemetry.proto.collector.{kind}.v1.{kind}_service_pb2")
        request = getattr(module, f"Export{kind.capitalize()}ServiceRequest")
        return [request.FromString(body) for sent_to, body in self.bodies if sent_to == path]

    def _as_json(self, messages: list[Any]) -> str:
        written: Any = import_module("google.protobuf.json_format")
        return "\n".join(written.MessageToJson(each, ensure_ascii=False) for each in messages)

    @property
    def spans(self) -> list[Any]:
        """The spans that came."""
        parts = [part for request in self._read("/v1/traces", "trace") for part in request.resource_spans]
        return [span for part in parts for scope in part.scope_spans for span in scope.spans]

    @property
    def metrics(self) -> list[Any]:
        """The metrics that came, once for each time that they were sent."""
        parts = [part for request in self._read("/v1/metrics", "metrics") for part in request.resource_metrics]
        return [metric for part in parts for scope in part.scope_metrics for metric in scope.metrics]

    def spans_as_json(self) -> str:
        """All that came of traces, in readable form."""
        return self._as_json(self._read("/v1/traces", "trace"))

    def metrics_as_json(self) -> str:
        """All that came of metrics, in readable form."""
        return self._as_json(self._read("/v1/metrics", "metrics"))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A server for OTLP."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            found.bodies.append((self.path, plain))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()
        thread.join()


@define
class Scraped:
    """The page that Prometheus fetches."""

    start: Callable[..., Any]
    servers: list[tuple[Any, threading.Thread]] = field(factory=list)

    def serve(self, *_: Any) -> tuple[Any, threading.Thread]:
        """Serve it, on a free port whichever was asked for."""
        self.servers.append(self.start(0, "127.0.0.1"))
        return self.servers[-1]

    def reader(self) -> Any:
        """What collects for the page, which is served from now on."""
        self.serve()
        prometheus: Any = import_module("opentelemetry.exporter.prometheus")
        return prometheus.PrometheusMetricReader()

    def text(self) -> str:
        """Fetch it, as Prometheus does."""
        ((server, _),) = self.servers
        with urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=60) as answer:
            return str(answer.read(), "utf-8")


@pytest.fixture
def scraped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scraped]:
    """What `start_http_server` of the client of Prometheus serves."""
    pytest.importorskip("opentelemetry.exporter.prometheus")
    client: Any = import_module("prometheus_client")
    found = Scraped(client.start_http_server)
    monkeypatch.setattr(client, "start_http_server", found.serve)
    yield found
    for server, thread in found.servers:
        server.shutdown()
        server.server_close()
        thread.join()
