"""Spans and measurements of calls, by the semantic conventions for generative AI.

In https://github.com/open-telemetry/semantic-conventions-genai, at the commit that the pack names,
`model/gen-ai/spans.yaml` says what a span `gen_ai.execute_tool.internal` has, and `model/gen-ai/metrics.yaml` what
`gen_ai.execute_tool.duration` is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from time import perf_counter
from typing import Any, Final, TypeAlias, final
from weakref import WeakKeyDictionary

from opentelemetry import context, metrics, trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from pegboard import EnteredCall, Redaction, Status, Tool, ToolResult

__all__ = ["Recorder"]

OPERATION: Final = "execute_tool"
DURATION: Final = "gen_ai.execute_tool.duration"
# Those that the conventions advise for it, in seconds.
BUCKETS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
NAME: Final = "gen_ai.tool.name"
MAX_NAME: Final = 200
"""Characters of a name or an id: models, agents and classes bring their own."""
MAX_CONTENT: Final = 32_768
"""Characters of an argument text, a result, a description or a message."""
MAX_VALUES: Final = 100
"""How many classes of errors, and names of agents, have series of their own."""
MAX_SERIES: Final = 2_000
"""How many series there are in all; OpenTelemetry's specification of SDKs has the same limit for a metric."""
ANSWERED: Final = ("cached", "once", "replayed")
"""Kinds of notes that say that the answer of another call was given, as the journal does."""
OTHER: Final = "_OTHER"
"""What the conventions say of an error whose class is not named."""
OVERFLOW: Final = {"otel.metric.overflow": True}
"""The series of what came after the last one, as the specification of SDKs names it."""

# Where the API keeps the providers, None for none. Its `get_tracer_provider()` looks into the environment as well, and
# that takes longer than a short call.
TRACES: Final[Any] = sys.modules["opentelemetry.trace"]
METRICS: Final[Any] = sys.modules["opentelemetry.metrics._internal"]
_HERE: Final = context.create_key("pegboard-span")
_Attributes: TypeAlias = dict[str, str | float]
_STATUSES: Final = frozenset(status.value for status in Status)


@final
class _Series:
    """The attributes of measurements: a value of its own for the first classes and agents, `_OTHER` for later ones.

    Else a program that makes classes, or agents, as it runs would fill its memory and that of the backend.
    """

    def __init__(self) -> None:
        self._values: dict[str, set[str]] = {"error.type": set(), "gen_ai.agent.name": set()}
        self._known: set[tuple[str | float, ...]] = set()

    def of(self, attributes: _Attributes) -> Mapping[str, str | float]:
        """The attributes by which a call is measured."""
        key = (*attributes, *attributes.values())
        if key in self._known:
            return attributes
        found = {name: self._bounded(name, value) for name, value in attributes.items()}
        key = (*found, *found.values())
        if key not in self._known:
            if len(self._known) >= MAX_SERIES:
                return OVERFLOW
            self._known.add(key)
        return found

    def _bounded(self, name: str, value: str | float) -> str | float:
        known = self._values.get(name)
        if known is None or not isinstance(value, str) or value in known or value in _STATUSES:
            return value
        if len(known) >= MAX_VALUES:
            return OTHER
        known.add(value)
        return value


_SERIES: Final[WeakKeyDictionary[Any, _Series]] = WeakKeyDictionary()  # by provider: a program may make many toolkits


@final
class Recorder:
    """Begins spans, ends them, and measures."""

    def __init__(self, schema_url: str, *, content: bool) -> None:
        self._scope = "pegboard", version("pegboard"), schema_url
        self._content = content
        self._traced: Any = None
        self._measured: Any = None
        self._tracer: trace.Tracer | None = None
        self._histogram: metrics.Histogram | None = None
        self._series = _Series()
        # Called once: this starts the providers that the environment names.
        trace.get_tracer_provider()
        metrics.get_meter_provider()

    def _attend(self) -> None:
        """Turn to the providers that there are now."""
        self._traced, self._measured = traced, measured = TRACES._TRACER_PROVIDER, METRICS._METER_PROVIDER
        self._tracer = self._tracer_of(traced) if _collects(traced) else None
        self._histogram = self._histogram_of(measured) if _collects(measured) else None
        with suppress(TypeError):  # a provider that no reference can be made to: this toolkit's own series, then
            self._series = _SERIES.setdefault(measured, self._series)

    def _tracer_of(self, provider: trace.TracerProvider) -> trace.Tracer:
        name, release, schema_url = self._scope
        return provider.get_tracer(name, release, schema_url=schema_url)

    def _histogram_of(self, provider: metrics.MeterProvider) -> metrics.Histogram:
        name, release, schema_url = self._scope
        meter = provider.get_meter(name, release, schema_url=schema_url)
        description = "The duration of a single tool execution."
        return meter.create_histogram(DURATION, "s", description, explicit_bucket_boundaries_advisory=BUCKETS)

    def around(self, call: EnteredCall, proceed: Callable[[], Any]) -> Any:
        """Run a call within a span, and measure it: what it came to, on a loop perhaps an awaitable of it."""
        if TRACES._TRACER_PROVIDER is not self._traced or METRICS._METER_PROVIDER is not self._measured:
            self._attend()
        over = None
        if self._tracer is not None or self._histogram is not None:
            with suppress(Exception):  # of samplers, processors and exporters, which a call must not hear of
                over = partial(_quietly, self._begun(call))
        if over is None:
            return proceed()
        result = None
        try:
            result = proceed()
        finally:
            if result is None or isinstance(result, ToolResult):
                over(result)
        return result if isinstance(result, ToolResult) else _awaited(result, over)

    def _begun(self, call: EnteredCall) -> Callable[[ToolResult | None], None]:
        """Begin a span and make it the current one; what is returned ends it."""
        tool = call.tool
        started = perf_counter()
        common = _common(tool, call.agent)
        if self._tracer is None:
            return partial(self._measure, started, common)
        name = OPERATION if tool is None else f"{OPERATION} {tool.name}"
        attributes = {"gen_ai.operation.name": OPERATION, **common}
        if tool is not None and tool.description:
            attributes["gen_ai.tool.description"] = _cut(tool.description, MAX_CONTENT)
        span = self._tracer.start_span(name, kind=SpanKind.INTERNAL, attributes=attributes)
        # As it was sent: a tool may change what it is given.
        sent = _as_text(call.arguments) if self._content and span.is_recording() else None
        token = context.attach(context.set_value(_HERE, span, trace.set_span_in_context(span)))
        return partial(self._end, span, token, call, sent, started, common)

    def _measure(self, started: float, common: _Attributes, result: ToolResult | None) -> None:
        """Measure a call as `toolkit.stats` counts it: one of a name without a tool is none."""
        if self._histogram is None or (result is not None and not _is_known(result)):
            return
        seconds = perf_counter() - started if result is None else result.duration
        error = _error_of(result)
        if error or (result is not None and common.get(NAME) != result.name):
            common = {**common, **error} if result is None else {**common, NAME: result.name, **error}
        self._histogram.record(seconds, self._series.of(common))

    def _end(
        self,
        span: Span,
        token: Any,
        call: EnteredCall,
        sent: str | None,
        started: float,
        common: _Attributes,
        result: ToolResult | None,
    ) -> None:
        try:
            self._measure(started, common, result)  # while the span is the current one: an exemplar names it
            if span.is_recording():
                self._describe(span, call, sent, result, common.get(NAME))
        finally:
            context.detach(token)
            span.end()

    def _describe(
        self, span: Span, call: EnteredCall, sent: str | None, result: ToolResult | None, recorded: Any
    ) -> None:
        error, redact = _error_of(result), call.redact
        message = None
        if result is not None:
            span.set_attribute("gen_ai.tool.call.id", _cut(result.call_id, MAX_NAME))
            if result.name != recorded:  # setting an attribute again costs as much as the first time
                span.set_attribute(NAME, result.name[:MAX_NAME])
            if result.status is Status.INACTIVE:  # there is such a tool, and it was not made ready
                span.update_name(f"{OPERATION} {result.name}")
            for note in result.notes:
                if note.kind == "repair":
                    path = {"pegboard.repair.path": _cut(note.path, MAX_NAME)} if self._content else {}
                    span.add_event("pegboard.repair", path)
                elif note.kind in ANSWERED:
                    span.add_event("pegboard.answer", {"pegboard.answer.from": note.kind})
            if self._content and redact is not None:
                message = None if result.error is None else _cut(redact(result.error.message), MAX_CONTENT)
                _tell_content(span, call, sent, result, redact)
        if error:
            span.set_attributes(error)
            span.set_status(StatusCode.ERROR, message)

    def told(self, what: str, details: Mapping[str, Any]) -> None:
        """An event of the span of the call that runs here."""
        span: Any = context.get_value(_HERE)
        if span is None or not span.is_recording():
            return
        if what == "retry":
            attributes = {"pegboard.retry.attempt": details["attempt"], "pegboard.retry.wait": details["wait"]}
            span.add_event("pegboard.retry", {"error.type": _cut(details["type"], MAX_NAME), **attributes})
        elif what == "approval":
            span.add_event("pegboard.approval", {"pegboard.approval.answer": details["answer"]})


async def _awaited(result: Any, over: Callable[[ToolResult | None], None]) -> ToolResult:
    try:
        while not isinstance(result, ToolResult):
            result = await result
    except BaseException:
        over(None)  # the caller was cancelled
        raise
    over(result)
    return result


def _quietly(end: Callable[[ToolResult | None], None], result: ToolResult | None) -> None:
    with suppress(Exception):
        end(result)


def _collects(provider: Any) -> bool:
    """Whether a provider is more than one of the API's own, which stand for none."""
    return provider is not None and not type(provider).__module__.startswith(
        ("opentelemetry.trace", "opentelemetry.metrics")
    )


def _common(tool: Tool | None, agent: Any) -> _Attributes:
    """The attributes that spans and measurements share."""
    attributes: _Attributes = {"gen_ai.tool.type": "function"}
    if tool is not None:
        attributes[NAME] = tool.name
    name = None if agent is None else getattr(agent, "name", None)
    if isinstance(name, str):
        attributes["gen_ai.agent.name"] = _cut(name, MAX_NAME)
    return attributes


def _is_known(result: ToolResult) -> bool:
    """Whether the name is that of a registered tool. Models make up any number of other names."""
    return result.status is not Status.NOT_FOUND and (result.error is None or result.error.kind != "foreign")


def _error_of(result: ToolResult | None) -> dict[str, str]:
    """The kind of error that a call ended with: the class of what the tool raised, else the status."""
    if result is None:
        return {"error.type": Status.CANCELLED.value}
    if not result.is_error:
        return {}
    fault = result.error if result.status is Status.ERROR else None
    raised = None if fault is None else fault.exception
    return {"error.type": result.status.value if raised is None else _cut(type(raised).__qualname__, MAX_NAME)}


def _tell_content(span: Span, call: EnteredCall, sent: str | None, result: ToolResult, redact: Redaction) -> None:
    texts = (call.shared or {}).get("texts")
    arguments, answer = _redacted(sent, result, redact) if texts is None else texts(result)
    for name, text in (("arguments", arguments), ("result", None if result.is_error else answer)):
        if text is not None:
            span.set_attribute(f"gen_ai.tool.call.{name}", _cut(text, MAX_CONTENT))


def _redacted(sent: str | None, result: ToolResult, redact: Redaction) -> tuple[str | None, str | None]:
    """Arguments and result as text without secrets, where no journal has made it."""
    data = None if result.is_error else result.text if result.data is None else result.data
    if not redact.values:
        return sent, _as_text(data)
    answer = _as_text(redact.deep(data))
    # As text too: some forms of a secret only exist there.
    return sent and redact(sent), answer and redact(answer)


def _cut(text: str, limit: int) -> str:
    """The beginning of a long text, and how long it is. What is redacted is so before: a part of a secret is one."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters, cut after {limit:,})"


def _as_text(value: Any) -> str | None:
    """JSON text, or text as it came; None for what says nothing."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    if value is None or isinstance(value, str):
        return value or None
    return json.dumps(value, ensure_ascii=False, default=repr)
