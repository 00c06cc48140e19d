"""The span of a call, and what it holds."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace import ReadableSpan

import pegboard_otel
from pegboard import Approval, Computed, ExecutionPolicy, Secret, Suspend, ToolError, Toolkit, tool
from tests.plugins.otel import conventions
from tests.plugins.otel.conftest import Collected, provide
from tests.support.calls import call_and_cancel

Board = Callable[..., Toolkit]


def add(a: int, b: int = 0) -> int:
    """Add."""
    return a + b


def fail(word: str) -> str:
    """Fail."""
    raise ValueError(f"no {word}")


async def later(seconds: float = 0.0) -> str:
    """Take its time."""
    await asyncio.sleep(seconds)
    return "late"


class Ann:
    """An agent."""

    name = "Ann"


def check(span: ReadableSpan, *, content: bool = False) -> None:
    """Check a span against the conventions."""
    attributes = dict(span.attributes or {})
    wrong = span.status.status_code.name == "ERROR"
    assert span.kind.name == conventions.SPAN["kind"].upper()
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.schema_url == conventions.SCHEMA_URL
    named = conventions.SPAN["name"].replace("{gen_ai.tool.name}", str(attributes["gen_ai.tool.name"]))
    assert span.name in (conventions.OPERATION, named)
    assert attributes["gen_ai.operation.name"] == conventions.OPERATION
    conventions.check(conventions.SPAN, attributes, failed=wrong, content=content)
    # All that is recommended is there; a description, where the tool has one.
    assert conventions.names(conventions.SPAN, "recommended") - {"gen_ai.tool.description"} <= attributes.keys()


class TestConventions:
    def test_are_those_that_the_pack_names(self) -> None:
        assert (pegboard_otel.COMMIT, pegboard_otel.SCHEMA_URL) == (conventions.COMMIT, conventions.SCHEMA_URL)

    def test_every_outcome(self, board: Board, collected: Collected) -> None:
        @tool(requires_approval=True)
        def ask() -> int:
            return 1

        @tool(timeout=0.01)
        async def slow() -> None:
            await asyncio.sleep(60)

        def suspend() -> None:
            raise Suspend("later")

        toolkit = board(add, fail, ask, slow, suspend, later)
        toolkit.create_group("away", active=False)
        toolkit.register(later, name="inactive", group="away")
        calls = [("add", {"a": 1}), ("add", {"a": "x"}), ("fail", {"word": "x"}), ("ask", {}), ("slow", {})]
        calls += [("suspend", {}), ("later", {}), ("inactive", {}), ("made_up", {}), ("add", "{")]
        statuses = [toolkit.call_sync(name, sent).status.value for name, sent in calls]
        assert [toolkit.prepare(name, sent).execute_sync().status.value for name, sent in calls] == statuses
        assert [each.status.value for each in asyncio.run(toolkit.call_many(calls))] == statuses
        assert len(collected.spans) == 3 * len(calls)
        for span in collected.spans:
            check(span)
        named = {(span.name, (span.attributes or {}).get("error.type")) for span in collected.spans}
        assert named == {
            ("execute_tool add", None),
            ("execute_tool add", "invalid"),
            ("execute_tool fail", "ValueError"),
            ("execute_tool ask", "denied"),
            ("execute_tool slow", "timeout"),
            ("execute_tool suspend", None),
            ("execute_tool later", None),
            ("execute_tool inactive", "inactive"),
            ("execute_tool", "not_found"),
        }

    def test_what_samplers_need_is_there_when_a_span_begins(
        self, board: Board, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult

        seen: list[dict[str, Any]] = []

        class Sampling(Sampler):
            def should_sample(self, *given: Any, **named: Any) -> SamplingResult:
                seen.append(dict(named.get("attributes") or given[4]))
                return SamplingResult(Decision.DROP)

            def get_description(self) -> str:
                return ALWAYS_OFF.get_description()

        provide(monkeypatch, TracerProvider(sampler=Sampling()))
        assert board(add, content=True).call_sync("add", {"a": 1}).value == 1
        described = conventions.SPAN["attributes"]
        assert seen[0].keys() >= {name for name, each in described.items() if each.get("sampling_relevant")}


class TestSpans:
    def test_nested(self, board: Board, collected: Collected) -> None:
        async def outer() -> str:
            inner = await toolkit.call_many([("middle", {}), ("add", {"a": 1})])
            return inner[0].text

        def middle() -> str:
            return toolkit.call_sync("add", {"a": 2}).text

        toolkit = board(outer, middle, add)
        assert asyncio.run(toolkit.call("outer")).text == "2"
        spans = {span.context.span_id: span for span in collected.spans if span.context}
        above = sorted((span.name, spans[span.parent.span_id].name) for span in spans.values() if span.parent)
        assert above == [
            ("execute_tool add", "execute_tool middle"),
            ("execute_tool add", "execute_tool outer"),
            ("execute_tool middle", "execute_tool outer"),
        ]
        assert len({span.context.trace_id for span in collected.spans if span.context}) == 1

    def test_no_span_is_left_behind(self, board: Board, collected: Collected) -> None:
        toolkit = board(add, fail, later)
        toolkit.call_sync("add", {"a": 1})
        toolkit.call_sync("fail", {"word": "x"})
        toolkit.call_sync("later")
        assert trace.get_current_span() is trace.INVALID_SPAN
        assert all(span.parent is None for span in collected.spans)

    def test_cancelled_caller(self, board: Board, collected: Collected) -> None:
        call_and_cancel(board(later), "later", {"seconds": 60})
        assert dict(collected.one().attributes or {})["error.type"] == "cancelled"
        assert [point.count for _, point in collected.points] == [1]

    def test_one_for_a_call_that_many_wait_for(self, board: Board, collected: Collected) -> None:
        call = board(later).prepare("later")

        async def both() -> None:
            await asyncio.gather(call.execute(), call.execute())
            await call.execute()

        asyncio.run(both())
        assert collected.one().name == "execute_tool later"

    def test_agent(self, board: Board, collected: Collected) -> None:
        toolkit = board(add)
        toolkit.call_sync("add", {"a": 1}, agent=Ann())
        toolkit.session(agent=Ann()).call_sync("add", {"a": 1})
        assert [(span.attributes or {})["gen_ai.agent.name"] for span in collected.spans] == ["Ann", "Ann"]

    def test_baggage_is_left_alone(self, board: Board, collected: Collected) -> None:
        def bag() -> str:
            return str(baggage.get_all())

        token = attach(baggage.set_baggage("user", "ann"))
        try:
            assert board(bag).call_sync("bag").text == "{'user': 'ann'}"
        finally:
            detach(token)
        assert "ann" not in collected.one().to_json()


class TestEvents:
    def test_repair(self, board: Board, collected: Collected) -> None:
        assert board(add).call_sync("add", {"a": "1"}).value == 1
        assert [event.name for event in collected.one().events] == ["pegboard.repair"]

    def test_the_answer_of_another_call(self, collected: Collected) -> None:
        pytest.importorskip("pegboard_journal")
        with Toolkit(plugins=["otel", "journal"], settings={"journal": {"cache": {"add": 60.0}}}) as toolkit:
            toolkit.register(tool(read_only=True)(lambda a, b: a + b), name="add", description="Add.")
            for _ in range(2):
                toolkit.call_sync("add", {"a": 1, "b": 2})
        events = [[(event.name, dict(event.attributes or {})) for event in span.events] for span in collected.spans]
        assert events == [[], [("pegboard.answer", {"pegboard.answer.from": "cached"})]]

    @pytest.mark.parametrize("run", [asyncio.run, None])
    def test_retries(self, board: Board, collected: Collected, run: Any) -> None:
        left = [ToolError("not yet"), ValueError("nor now")]

        @tool(policy=ExecutionPolicy(max_attempts=3, initial_backoff=0.001, retry_on=(ToolError, ValueError)))
        def fetch() -> str:
            if left:
                raise left.pop()
            return "here"

        toolkit = board(fetch)
        result = run(toolkit.call("fetch")) if run else toolkit.call_sync("fetch")
        assert result.text == "here"
        events = [(event.name, dict(event.attributes or {})) for event in collected.one().events]
        assert [(name, each["error.type"], each["pegboard.retry.attempt"]) for name, each in events] == [
            ("pegboard.retry", "ValueError", 1),
            ("pegboard.retry", "ToolError", 2),
        ]

    @pytest.mark.parametrize(
        ("answer", "expected"), [(True, "approved"), (False, "denied"), (Approval.edit({"a": "x"}), "invalid")]
    )
    def test_approval(self, board: Board, collected: Collected, answer: Any, expected: str) -> None:
        @tool(requires_approval=True)
        def ask(a: int) -> int:
            return a

        toolkit = board(ask, approver=lambda request: answer)
        toolkit.call_sync("ask", {"a": 1})
        (event,) = collected.one().events
        assert (event.name, dict(event.attributes or {})) == (
            "pegboard.approval",
            {"pegboard.approval.answer": expected},
        )


class TestContent:
    def test_none_unless_asked_for(self, board: Board, collected: Collected) -> None:
        toolkit = board(add, fail)
        toolkit.call_sync("add", {"a": 123456})
        toolkit.call_sync("add", {"a": "word123456"})
        toolkit.call_sync("fail", '{"word": "word123456"}')
        toolkit.call_sync("add", '{"a": "123456"}')
        assert not [span.name for span in collected.spans if "123456" in span.to_json()]

    def test_asked_for(self, board: Board, collected: Collected) -> None:
        toolkit = board(add, fail, content=True)
        toolkit.call_sync("add", {"a": 1, "b": 2})
        toolkit.call_sync("fail", b'{"word": "x"}')
        first, second = (dict(span.attributes or {}) for span in collected.spans)
        assert json.loads(str(first["gen_ai.tool.call.arguments"])) == {"a": 1, "b": 2}
        assert first["gen_ai.tool.call.result"] == "3"
        assert second["gen_ai.tool.call.arguments"] == '{"word": "x"}'
        assert "gen_ai.tool.call.result" not in second
        assert collected.spans[1].status.description == "no x"
        for span in collected.spans:
            check(span, content=True)

    def test_secrets_are_taken_out(self, board: Board, collected: Collected) -> None:
        def tell(word: str, key: str) -> dict[str, str]:
            return {"key": key, "word": word}

        toolkit = board(content=True)
        toolkit.register(tell, presets={"tell": {"key": Secret("s3cr3t-value")}})
        toolkit.call_sync("tell", {"word": "s3cr3t-value?"})
        assert "s3cr3t" not in collected.one().to_json()
        assert "gen_ai.tool.call.result" in (collected.one().attributes or {})

    def test_nothing_is_told_where_a_secret_is_computed(self, board: Board, collected: Collected) -> None:
        def tell(key: str) -> str:
            return key

        toolkit = board(content=True)
        toolkit.register(tell, presets={"tell": {"key": Secret(Computed(lambda call: "s3cr3t-value"))}})
        assert toolkit.call_sync("tell").text == "s3cr3t-value"
        assert "s3cr3t" not in collected.one().to_json()


class TestLongTexts:
    """Exporters refuse requests of a few megabytes, and with one span all others in them."""

    def test_names_and_ids(self, board: Board, collected: Collected) -> None:
        class Long:
            name = "a" * 1_000_000

        def fail_long() -> None:
            raise type("E" * 1_000_000, (Exception,), {})

        toolkit = board(fail_long)
        toolkit.call_sync("fail_long", call_id="c" * 1_000_000, agent=Long())
        toolkit.call_sync("m" * 1_000_000)
        first, second = (dict(span.attributes or {}) for span in collected.spans)
        assert first["gen_ai.tool.call.id"] == "c" * 200 + "... (1,000,000 characters, cut after 200)"
        assert str(first["gen_ai.agent.name"]).startswith("a" * 200 + "... (")
        assert str(first["error.type"]).startswith("E" * 200 + "... (")
        assert all(len(span.to_json()) < 5_000 for span in collected.spans)
        assert len(str(second["gen_ai.tool.name"])) == 200

    def test_content(self, board: Board, collected: Collected) -> None:
        def repeat(text: str, times: int) -> str:
            if times < 0:
                raise ValueError(text)
            return text * times

        toolkit = board(content=True)
        # The secret stands where the text is cut: no part of it may remain.
        toolkit.register(repeat, presets={"text": Secret("s3cr3t-value")}, name="tell")
        toolkit.register(repeat)
        toolkit.call_sync("repeat", {"text": "x" * 5_000_000, "times": 1})
        toolkit.call_sync("repeat", {"text": "x" * 5_000_000, "times": -1})
        toolkit.call_sync("tell", {"times": 10_000})
        span, failed, secret = collected.spans
        attributes = dict(span.attributes or {})
        assert str(attributes["gen_ai.tool.call.arguments"]).endswith("... (5,000,024 characters, cut after 32,768)")
        assert len(str(attributes["gen_ai.tool.call.result"])) < 33_000
        assert len(span.to_json()) < 100_000
        assert len(failed.status.description or "") < 40_000
        assert "s3cr3t" not in secret.to_json()

    def test_descriptions(self, board: Board, collected: Collected) -> None:
        toolkit = board()
        toolkit.register(add, description="d" * 1_000_000)
        toolkit.call_sync("add", {"a": 1})
        assert len(collected.one().to_json()) < 50_000


class TestProviders:
    def test_none(self, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
        provide(monkeypatch, None)

        def current() -> bool:
            return trace.get_current_span() is trace.INVALID_SPAN

        assert board(current).call_sync("current").value is True

    def test_exchanged(self, board: Board, collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
        toolkit = board(add)
        with monkeypatch.context() as patch:
            provide(patch, None)
            toolkit.call_sync("add", {"a": 1})
            provide(patch, trace.NoOpTracerProvider())
            toolkit.call_sync("add", {"a": 1})
        toolkit.call_sync("add", {"a": 1})
        assert collected.one().name == "execute_tool add"

    def test_the_callers_span_is_the_parent_without_a_provider(
        self, board: Board, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        provide(monkeypatch, None)
        remote = trace.SpanContext(7, 9, is_remote=True, trace_flags=trace.TraceFlags(1))

        def current() -> int:
            return trace.get_current_span().get_span_context().trace_id

        toolkit = board(current)
        with trace.use_span(trace.NonRecordingSpan(remote)):
            assert toolkit.call_sync("current").value == 7
            assert asyncio.run(toolkit.call("current")).value == 7
