"""llm: a chain, with a model that says what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import pytest

pytest.importorskip("llm")

import llm

from pegboard import ImageBlock, Session, ToolCall, Toolkit
from pegboard_bridges.llm import ApprovalNeeded, from_llm, to_llm
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.desk import PNG, board, call_of
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown, native_later, native_sum


class Scripted(llm.Model):
    """Asks for calls, then stops; remembers what it is shown, and what it gets."""

    model_id = "scripted"
    supports_tools = True
    attachment_types: ClassVar = {"image/png"}

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        self.calls = [llm.ToolCall(call.name, dict(call.arguments), call.id) for call in calls]
        self.shown: tuple[Shown, ...] = ()
        self.got: list[Any] = []

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any = None) -> Iterator[str]:
        self.shown = tuple(Shown(tool.name, tool.description or "", tool.input_schema) for tool in prompt.tools)
        self.got = list(prompt.tool_results)
        if not prompt.tool_results:
            for call in self.calls:
                response.add_tool_call(call)
        yield "done"


class Stage(frameworks.Stage):
    framework = "llm"
    distribution = "llm"
    losses: ClassVar = {
        "progress": "llm has no channel for it",
        "status": "an error is a text like any other",
    }

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model, tools = Scripted(calls), self.outwards(source)
        asked: list[str] = []
        chain: Any = model.chain("go", tools=tools)
        while True:
            try:
                chain.text()
                break
            except ApprovalNeeded as pause:
                asked.append(pause.request.tool.name)
                pause.answer(approve)
                last = chain._responses[-1]
                chain = model.chain(messages=[*last.prompt.messages, *last.messages()], tools=tools)
        return Run(model.shown, {each.tool_call_id: _answer(each) for each in model.got}, asked=tuple(asked))

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [llm.Tool.function(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_llm(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_llm(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        return Scripted(calls).chain("go", tools=tools).text()


def _answer(result: Any) -> Answer:
    return Answer(result.output, tuple(each.content_bytes() for each in result.attachments))


class TestLlm(FrameworkTests):
    stage = Stage()


class Desk(llm.Toolbox):
    """Two tools and a tool that knows its call."""

    def add(self, first: int, second: int) -> str:
        """Add."""
        return native_sum(first, second)

    async def later(self, word: str) -> str:
        """Later."""
        return await native_later(word)

    def whose(self, llm_tool_call: llm.ToolCall) -> str:
        """Whose call it is."""
        return str(llm_tool_call.tool_call_id)


def test_toolboxes_are_registered() -> None:
    with Toolkit(plugins=["bridges"]) as toolkit:
        toolkit.register(Desk())
        assert toolkit.call_sync("Desk_add", {"first": 2, "second": 3}).text == "5"
        assert toolkit.call_sync("Desk_later", {"word": "rain"}).text == "later rain"
        assert toolkit["Desk_whose"].parameters["properties"] == {}
        assert toolkit.call_sync("Desk_whose", {}, call_id="call_9").text == "call_9"


def test_a_text_of_nothing_beside_an_image_is_no_text() -> None:
    def plot() -> list[Any]:
        return ["", ImageBlock.from_bytes(PNG, "image/png")]

    def draw() -> llm.ToolOutput:
        """Draw."""
        return llm.ToolOutput("", [llm.Attachment("image/png", content=PNG)])

    with Toolkit(plugins=["bridges"]) as toolkit, Toolkit(plugins=["bridges"]) as other:
        toolkit.register(plot)
        answer = Stage().run(toolkit, [call_of(0, ("plot", {}))]).answers["call_0"]
        assert (answer.text, answer.images) == ("", (PNG,))
        other.register(llm.Tool.function(draw), *to_llm(toolkit))
        for name in ("draw", "plot"):
            assert [block.kind for block in other.call_sync(name).content] == ["image"]


def test_a_parameter_whose_name_is_the_frameworks_own_reaches_the_tool() -> None:
    def whose(llm_tool_call: str) -> str:
        """Whose call it is."""
        return llm_tool_call

    with Toolkit(plugins=["bridges"]) as toolkit:
        toolkit.register(whose)
        assert Stage().run(toolkit, [call_of(0, ("whose", {"llm_tool_call": "mine"}))]).answers["call_0"].text == "mine"


def test_does_not_wait_where_the_program_says_so() -> None:
    with board() as toolkit:
        model = Scripted([call_of(0, ("wipe", {"disk": "a"}))])
        model.chain("go", tools=to_llm(toolkit, wait=False)).text()
    assert "cannot be given here" in model.got[0].output


def test_async_models_get_async_tools() -> None:
    import asyncio

    with board() as toolkit:
        tool = next(each for each in to_llm(toolkit, later=True) if each.name == "forecast")
        call = llm.ToolCall("forecast", {"city": "Oslo"}, "call_0")
        assert asyncio.run(tool.implementation(llm_tool_call=call)) == "Oslo/1/True/0.5"
