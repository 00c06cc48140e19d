"""CrewAI: an agent at a task of its own, with a model that says what it is told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any, ClassVar

import pytest

if find_spec("crewai") is None:  # before the switches below, which concern no other test
    pytest.skip("could not import 'crewai'", allow_module_level=True)
os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")
pytest.importorskip("crewai")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.events import crewai_event_bus
from crewai.tools import tool as native_tool

from pegboard import Session, ToolCall, Toolkit
from pegboard_bridges.crewai import BoardProgress, from_crewai, to_crewai
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.desk import board, call_of
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Scripted(BaseLLM):
    """Asks for calls, then gives its answer; remembers what it is shown, and what it gets."""

    calls: Any = ()
    shown: Any = ()
    got: Any = ()

    def call(self, messages: Any, tools: Any = None, *_: Any, **__: Any) -> Any:
        described = [each["function"] for each in tools or ()]
        self.shown = tuple(Shown(each["name"], each["description"], each["parameters"]) for each in described)
        self.got = [each for each in messages if isinstance(each, dict) and each.get("role") == "tool"]
        return "done" if self.got or not tools else list(self.calls)

    def supports_function_calling(self) -> bool:
        return True


class Stage(frameworks.Stage):
    framework = "crewai"
    distribution = "crewai"
    batch = 4  # of one agent, which stops where the same call comes five times
    losses: ClassVar = {
        "required": "schemas are strict: every parameter is required, and the model has to repeat defaults",
        "images": "a result is text",
        "approval": "only the session's approver decides on single calls",
    }

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model = _model(calls)
        progress: list[str] = []
        with crewai_event_bus.scoped_handlers():
            crewai_event_bus.on(BoardProgress)(lambda _, event: progress.append(event.text))
            _kick_off(model, self.outwards(source))
            crewai_event_bus.flush()
        answers = {each["tool_call_id"]: Answer(each["content"]) for each in model.got}
        return Run(model.shown, answers, tuple(sorted(progress)))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [native_tool(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_crewai(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_crewai(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        return _kick_off(_model(calls), tools)


def _model(calls: Iterable[ToolCall]) -> Scripted:
    made = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in calls
    ]
    return Scripted(model="scripted", calls=made)


def _kick_off(model: Scripted, tools: Any) -> Any:
    agent = Agent(role="caller", goal="call tools", backstory="You call tools.", llm=model, tools=tools)
    task = Task(description="go", expected_output="done", agent=agent)
    return Crew(agents=[agent], tasks=[task], verbose=False).kickoff()


class TestCrewai(FrameworkTests):
    stage = Stage()


def test_no_call_is_answered_from_a_cache() -> None:
    seen: list[int] = []

    def tick() -> str:
        """Tick."""
        seen.append(1)
        return str(len(seen))

    with board() as toolkit:
        toolkit.register(tick)
        model = _model([call_of(number, ("tick", {})) for number in range(2)])
        _kick_off(model, to_crewai(toolkit))
    assert len(seen) == 2
