"""The set-ups of the page run as they stand: each as if nothing were set up yet, with a receiver of its own."""

import io
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import export as measurements
from opentelemetry.sdk.trace import export as spans
from opentelemetry.util._once import Once

from pegboard import Toolkit
from tests.plugins.otel.conftest import Receiver, Scraped, provide
from tests.plugins.otel.test_spans import add

ROOT: Final = Path(__file__).parents[3]


def blocks(path: str) -> list[str]:
    """The examples of a page."""
    return re.findall("^```py\n(.*?)^```", (ROOT / path).read_text("utf-8"), re.DOTALL | re.MULTILINE)


SETUPS: Final = blocks("docs/packs/otel.md")


@pytest.fixture(autouse=True)
def nobody_has_set_up_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    provide(monkeypatch, None)
    internal: Any = sys.modules["opentelemetry.metrics._internal"]
    for module, name in ((trace, "_TRACER_PROVIDER_SET_ONCE"), (internal, "_METER_PROVIDER_SET_ONCE")):
        monkeypatch.setattr(module, name, Once())


def run(setup: str) -> None:
    """Run a set-up, with a call after it."""
    exec(setup, {})
    with Toolkit(plugins=["otel"]) as toolkit:
        toolkit.register(add)
        toolkit.call_sync("add", {"a": 1})


def end() -> None:
    """Let the providers send what they have."""
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        getattr(provider, "shutdown", int)()


def setup(word: str) -> str:
    """The only set-up that has a word."""
    (found,) = (each for each in SETUPS if word in each)
    return str(found)


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the exporters for the console print: they keep the `sys.stdout` that there was when they were imported."""
    found = io.StringIO()
    for module, name in ((spans, "ConsoleSpanExporter"), (measurements, "ConsoleMetricExporter")):
        monkeypatch.setattr(module, name, partial(getattr(module, name), out=found))
    return found


def test_first_example(printed: io.StringIO) -> None:
    scope: dict[str, Any] = {"__name__": "first_example"}
    exec(setup("@tool"), scope)
    scope["toolkit"].close()
    end()
    assert printed.getvalue() == "execute_tool add\nexecute_tool\n"


def test_readme(printed: io.StringIO) -> None:
    (example,) = blocks("plugins/otel/README.md")
    exec(example, {"__name__": "readme"})
    end()
    assert printed.getvalue() == "execute_tool add\n"


def test_console(printed: io.StringIO) -> None:
    run(setup("ConsoleMetricExporter"))
    end()
    assert '"name": "execute_tool add"' in printed.getvalue()
    assert '"name": "gen_ai.execute_tool.duration"' in printed.getvalue()


def test_jaeger(receiver: Receiver) -> None:
    run(setup("OTLPSpanExporter").replace("http://localhost:4318", receiver.url))
    end()
    assert [span.name for span in receiver.spans] == ["execute_tool add"]


def test_prometheus(scraped: Scraped) -> None:
    run(setup("PrometheusMetricReader"))
    page = scraped.text()
    end()
    (line,) = (line for line in page.splitlines() if line.startswith("gen_ai_execute_tool_duration_seconds_count{"))
    assert 'gen_ai_tool_name="add"' in line
    assert line.endswith(" 1.0")


def test_all_set_ups_are_run() -> None:
    assert len(SETUPS) == 4
