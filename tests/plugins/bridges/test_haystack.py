"""Haystack: an `Agent`, with its own mock of a chat generator."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import pytest

pytest.importorskip("haystack")

from haystack.components.agents import Agent
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage, ImageContent, TextContent
from haystack.dataclasses import ToolCall as HaystackCall
from haystack.hooks.human_in_the_loop import ToolExecutionDecision
from haystack.tools import create_tool_from_function

from pegboard import Session, ToolCall, Toolkit
from pegboard_bridges.haystack import from_haystack, to_haystack
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.desk import board, call_of
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown


class Script:
    """Asks for calls, then stops; remembers what it is shown, and what it gets."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self.calls = [HaystackCall(call.name, dict(call.arguments), call.id) for call in calls]
        self.shown: tuple[Shown, ...] = ()
        self.got: list[Any] = []

    def __call__(self, messages: list[ChatMessage], tools: Any) -> ChatMessage:
        self.shown = tuple(Shown(tool.name, tool.description, tool.parameters) for tool in tools)
        self.got = [result for message in messages for result in message.tool_call_results]
        return ChatMessage.from_assistant("done") if self.got else ChatMessage.from_assistant(tool_calls=self.calls)


class Decides:
    """A strategy that asks for nothing."""

    def __init__(self, approve: bool) -> None:
        self.approve = approve
        self.asked: list[str] = []

    def run(self, *, tool_name: str, tool_params: Any, tool_call_id: Any = None, **_: Any) -> ToolExecutionDecision:
        self.asked.append(tool_name)
        return ToolExecutionDecision(tool_name, self.approve, tool_call_id, "no", tool_params)


class Stage(frameworks.Stage):
    framework = "haystack"
    distribution = "haystack-ai"
    losses: ClassVar = {
        "names": "a parameter `streaming_callback` gets the model's value, and its tool reports no progress",
        "status": "an error is a text like any other",
    }

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        script, strategy, tools = Script(calls), Decides(approve), self.outwards(source)
        progress: list[str] = []

        def hear(chunk: Any) -> None:
            progress.extend([chunk.meta["text"]] if "text" in chunk.meta else [])

        agent = Agent(
            chat_generator=MockChatGenerator(response_fn=script),
            tools=tools,
            hooks={"before_tool": [tools.confirmed_by(strategy)]},
            streaming_callback=hear,
            tool_streaming_callback_passthrough=True,
        )
        agent.run([ChatMessage.from_user("go")])
        answers = {str(result.origin.id): _answer(result) for result in script.got}
        return Run(script.shown, answers, tuple(progress), tuple(strategy.asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [create_tool_from_function(function, description=function.__doc__) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_haystack(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_haystack(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        agent = Agent(chat_generator=MockChatGenerator(response_fn=Script(calls)), tools=tools)
        return agent.run([ChatMessage.from_user("go")])


def _answer(result: Any) -> Answer:
    parts = [TextContent(result.result)] if isinstance(result.result, str) else result.result
    text = "".join(part.text for part in parts if isinstance(part, TextContent))
    images = tuple(base64.b64decode(part.base64_image) for part in parts if isinstance(part, ImageContent))
    return Answer(text, images)


class TestHaystack(FrameworkTests):
    stage = Stage()


def test_without_a_hook_nothing_is_approved() -> None:
    script = Script([call_of(0, ("wipe", {"disk": "a"}))])
    with board() as toolkit:
        agent = Agent(chat_generator=MockChatGenerator(response_fn=script), tools=to_haystack(toolkit))
        agent.run([ChatMessage.from_user("go")])
    assert "cannot be given here" in script.got[0].result


class Refuses:
    """A hook that ends the run after the consent: the call never runs."""

    allowed_hook_points = ("before_tool",)

    def run(self, state: Any) -> None:
        raise ConnectionError("the run ends here")


@pytest.mark.parametrize("hooked", [True, False], ids=["a hook that says no", "no hook"])
def test_consent_to_a_call_that_never_ran_is_nothing_to_another_conversation(hooked: bool) -> None:
    calls = [call_of(0, ("wipe", {"disk": "a"}))]
    with board() as toolkit:
        tools = to_haystack(toolkit)

        def run(*hooks: Any) -> Script:
            script = Script(calls)
            options: Any = {"hooks": {"before_tool": list(hooks)}} if hooks else {}
            Agent(chat_generator=MockChatGenerator(response_fn=script), tools=list(tools), **options).run(
                [ChatMessage.from_user("go")]
            )
            return script

        with pytest.raises(ConnectionError):
            run(tools.confirmed_by(Decides(True)), Refuses())
        asked = Decides(False)
        script = run(tools.confirmed_by(asked)) if hooked else run()
    assert asked.asked == (["wipe"] if hooked else [])
    assert not any("wiped" in result.result for result in script.got)


def test_consent_is_for_one_call_in_one_step() -> None:
    class Once(Decides):
        def run(self, **asked: Any) -> ToolExecutionDecision:
            decision = super().run(**asked)
            self.approve = False
            return decision

    script = Script([call_of(number, ("wipe", {"disk": "a"})) for number in range(2)])
    with board() as toolkit:
        tools = to_haystack(toolkit)
        agent = Agent(
            chat_generator=MockChatGenerator(response_fn=script),
            tools=tools,
            hooks={"before_tool": [tools.confirmed_by(Once(True))]},
        )
        agent.run([ChatMessage.from_user("go")])
    assert sorted("wiped a" in result.result for result in script.got) == [False, True]


def test_consent_in_an_agent_on_an_event_loop() -> None:
    class Later(Decides):
        async def run_async(self, **asked: Any) -> ToolExecutionDecision:
            return self.run(**asked)

    async def go(strategy: Decides) -> str:
        script = Script([call_of(0, ("wipe", {"disk": "a"}))])
        hooks: Any = {"before_tool": [tools.confirmed_by(strategy)]}
        agent = Agent(chat_generator=MockChatGenerator(response_fn=script), tools=tools, hooks=hooks)
        await agent.run_async([ChatMessage.from_user("go")])
        return str(script.got[0].result)

    async def both() -> tuple[str, str]:
        return await asyncio.gather(go(Later(True)), go(Later(False)))

    with board() as toolkit:
        tools = to_haystack(toolkit)
        yes, no = asyncio.run(both())
    assert yes == "wiped a"
    assert "wiped" not in no


def test_a_parameter_whose_name_is_the_frameworks_own_reaches_the_tool_both_ways() -> None:
    def play(song: str, streaming_callback: str = "none") -> str:
        """Play a song."""
        return f"{song} {streaming_callback}"

    def calls() -> list[ToolCall]:
        return [
            call_of(0, ("play", {"song": "a", "streaming_callback": "loud"})),
            call_of(1, ("play", {"song": "b"})),  # the agent has a callback, and passes it through
        ]

    with Toolkit(plugins=["bridges"]) as toolkit, Toolkit(plugins=["bridges"]) as other:
        toolkit.register(play)
        run = Stage().run(toolkit, calls())
        assert [answer.text for answer in run.answers.values()] == ["a loud", "b none"]
        assert list(run.shown[0].parameters["properties"]) == ["song", "streaming_callback"]
        other.register(create_tool_from_function(play))
        assert [other.call_sync(call).text for call in calls()] == ["a loud", "b none"]


def test_tools_are_those_of_the_session_at_each_step() -> None:
    seen = []
    with board() as toolkit:
        toolkit.create_group("extra", active=False)
        toolkit.register(lambda: "here", name="extra", description="In a group.", group="extra")
        toolkit.register(lambda: toolkit.update_groups("extra", True), name="open", description="Open it.")
        script = Script([call_of(0, ("open", {}))])

        def spied(messages: list[ChatMessage], tools: Any) -> ChatMessage:
            answer = script(messages, tools)
            seen.append("extra" in [tool.name for tool in script.shown])
            return answer

        agent = Agent(chat_generator=MockChatGenerator(response_fn=spied), tools=to_haystack(toolkit))
        agent.run([ChatMessage.from_user("go")])
    assert seen == [False, True]


def test_what_comes_from_the_state_is_nothing_that_a_model_sets() -> None:
    def greet(name: str, user: str = "nobody") -> str:
        """Greet a person."""
        return f"{name} by {user}"

    with Toolkit(plugins=["bridges"]) as toolkit:
        toolkit.register(create_tool_from_function(greet, inputs_from_state={"user": "user"}))
        refused = toolkit.call_sync("greet", {"name": "Ada", "user": "root"})
        assert "user: unknown argument (known: name)" in refused.text
        assert toolkit.call_sync("greet", {"name": "Ada"}).text == "Ada by nobody"
