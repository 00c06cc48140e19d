"""What the table says of a framework, found out by runs of its own agent with a scripted model.

Each `test_<framework>.py` brings a `Stage`: how its agent is run. What is asked of it is the same for all. A cell that
is not kept has to be declared, with its reason; one that is declared and kept is a mistake as well.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import pytest

from pegboard import Approval, ImageBlock, Session, TextBlock, ToolCall, Toolkit
from tests.plugins.bridges.desk import HIDDEN, NAMES, PNG, board, call_of, cheap_calls

PROPERTIES: Final = (
    "name",
    "description",
    "types",
    "defaults",
    "required",
    "errors",
    "images",
    "progress",
    "async",
    "approval",
    "hidden",
)
FOLDER: Final = "PEGBOARD_BRIDGES"
"""The variable that names the folder into which each framework writes what was found out."""
FEW, MANY = 2, 62
ROUNDS: Final = 21
TRIES: Final = 4
"""Whatever else runs on a machine takes its share."""
GOOD, MOST = 1.1, 1.5
"""What a call over a bridge is to cost, in calls of the framework's own tool in the same agent, and what fails: on a
machine that others use a measurement differs from the next one by more than a tenth."""


@attrs.frozen
class Shown:
    """A tool as the model was shown it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@attrs.frozen
class Answer:
    """What the model got for a call."""

    text: str
    images: tuple[bytes, ...] = ()
    is_error: bool | None = None
    """None where the framework does not say so to the model."""


@attrs.frozen
class Run:
    """A run of the agent: what its model was shown, what it got for its calls, and what its program heard meanwhile."""

    shown: tuple[Shown, ...]
    answers: Mapping[str, Answer]
    progress: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    """The tools for which the framework asked for approval."""


class Stage(ABC):
    """A framework's agent. `run` lets its model make calls of the tools of a source, all in one turn, then stop.

    `approve` is what the framework's own approval answers. `native` gives tools of the framework's own making for plain
    functions, `inwards` is the bridge's `from_<framework>`, and `time_native` runs the agent with such a tool alone.
    """

    framework: str
    distribution: str
    batch: ClassVar[int] = 40
    """How many calls a model makes in one turn."""
    has_async: ClassVar[bool] = True
    """Whether the framework makes tools of coroutine functions."""
    blocks: ClassVar[bool] = False
    """Whether it runs a plain function on its event loop: then a coroutine function is what can be compared."""
    losses: ClassVar[Mapping[str, str]] = {}
    """Why properties are not kept, and under other names whatever else a reader should know."""

    @abstractmethod
    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run: ...

    @abstractmethod
    def native(self, functions: Iterable[Callable[..., Any]]) -> Any: ...

    @abstractmethod
    def inwards(self, tools: Any) -> Any: ...

    @abstractmethod
    def outwards(self, source: Toolkit | Session) -> Any: ...

    @abstractmethod
    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any: ...


def one(
    stage: Stage, name: str, arguments: Mapping[str, Any], approve: bool = True, **options: Any
) -> tuple[Run, Answer]:
    """A run with one call."""
    with board(**options) as toolkit:
        run = stage.run(toolkit, [call_of(0, (name, dict(arguments)))], approve)
    return run, run.answers["call_0"]


def resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """A schema with its references written out, and without the titles that some frameworks add."""
    if isinstance(schema, list):
        return [resolved(each, root) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    if isinstance(target := schema.get("$ref"), str):
        found: Any = root
        for step in target.removeprefix("#/").split("/"):
            found = found[step]
        return resolved({**found, **{key: value for key, value in schema.items() if key != "$ref"}}, root)
    dropped = {"$defs", "title", "default", "description", "required"}
    return {key: resolved(value, root) for key, value in schema.items() if key not in dropped or _is_member(value)}


def required_in(schema: Any, root: Mapping[str, Any]) -> list[Any]:
    """What is required in a schema, and in each that is inside it."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    inside = [*(schema.get("properties") or {}).values(), *([schema["items"]] if "items" in schema else [])]
    return [sorted(schema.get("required") or ()), *(required_in(each, root) for each in inside)]


def _is_member(value: Any) -> bool:
    return isinstance(value, Mapping) and "type" in value


class Cells:
    """A check for each property; each raises AssertionError where it is not kept."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        with board() as toolkit:
            self.ours = {tool.name: tool for tool in toolkit.tools}
        run, _ = one(stage, "forecast", {"city": "Oslo"})
        self.shown = {each.name: each for each in run.shown}

    def check_name(self) -> None:
        assert [name for name in self.shown if name in NAMES] == list(NAMES)

    def check_description(self) -> None:
        assert {name: self.shown[name].description for name in NAMES} == {
            name: self.ours[name].description for name in NAMES
        }
        assert self.shown["forecast"].parameters["properties"]["city"]["description"] == "City name"

    def check_types(self) -> None:
        for name in NAMES:
            ours, theirs = self.ours[name].parameters, self.shown[name].parameters
            assert resolved(theirs["properties"], theirs) == resolved(ours["properties"], ours), name

    def check_defaults(self) -> None:
        shown = self.shown["forecast"].parameters["properties"]
        assert {name: part["default"] for name, part in shown.items() if "default" in part} == {
            "days": 1,
            "metric": True,
            "wind": 0.5,
        }
        assert one(self.stage, "forecast", {"city": "Oslo"})[1].text == "Oslo/1/True/0.5"

    def check_required(self) -> None:
        for name in NAMES:
            ours, theirs = self.ours[name].parameters, self.shown[name].parameters
            assert required_in(theirs, theirs) == required_in(ours, ours), name

    def check_errors(self) -> None:
        _, answer = one(self.stage, "break_it", {"reason": "rust"})
        assert answer.text == "broken: rust"
        assert answer.is_error in (True, None)
        _, answer = one(self.stage, "forecast", {"town": "Oslo", "days": "soon"})
        with board() as toolkit:
            assert answer.text == toolkit.call_sync("forecast", {"town": "Oslo", "days": "soon"}).text

    def check_images(self) -> None:
        _, answer = one(self.stage, "picture", {"title": "Oslo"})
        assert "a picture of Oslo" in answer.text
        assert answer.images == (PNG,)

    def check_progress(self) -> None:
        run, answer = one(self.stage, "count", {"upto": 3})
        assert answer.text == "counted to 3"
        assert [text for text in run.progress if "counted" in text] == ["counted 1", "counted 2", "counted 3"]

    def check_async(self) -> None:
        _, answer = one(self.stage, "measure", {"what": "rain"})
        assert answer.text == "a person measures rain"

    def check_approval(self) -> None:
        run, answer = one(self.stage, "wipe", {"disk": "a"}, approve=True)
        assert (run.asked, answer.text) == (("wipe",), "wiped a"), run
        run, answer = one(self.stage, "wipe", {"disk": "a"}, approve=False)
        assert run.asked == ("wipe",)
        assert "wiped" not in answer.text

    def check_hidden(self) -> None:
        said = json.dumps([attrs.asdict(each) for each in self.shown.values()])
        assert not any(f'"{name}"' in said for name in HIDDEN)
        assert "hunter2" not in said
        assert one(self.stage, "sign", {"document": "this"})[1].text == "this signed by Ada with 7 letters"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of frameworks, about others
class FrameworkTests:
    """What every `test_<framework>.py` runs: a subclass has the stage."""

    stage: Stage

    @pytest.mark.parametrize("what", PROPERTIES)
    def test_cell(self, what: str) -> None:
        check = partial(getattr(Cells, f"check_{what}"), Cells(self.stage))
        reason = self.stage.losses.get(what)
        if reason is None:
            check()
        else:
            with pytest.raises((AssertionError, KeyError)):
                check()
        note(self.stage, "cells", {what: reason})
        note(self.stage, "also", {key: said for key, said in self.stage.losses.items() if key not in PROPERTIES})

    def test_board_decides_approval_where_it_has_an_approver(self) -> None:
        decisions: Any = ((True, "wiped a"), (Approval.deny("not today"), "not today"))
        for answer, text in decisions:
            run, said = one(self.stage, "wipe", {"disk": "a"}, approver=lambda request, answer=answer: answer)
            assert run.asked == ()
            assert text in said.text

    def test_calls_are_equal(self) -> None:
        """400 calls by the agent's model and by `toolkit.call`."""
        calls = cheap_calls()
        with board() as toolkit:
            expected = [toolkit.call_sync(name, arguments) for name, arguments in calls]
            for start in range(0, len(calls), self.stage.batch):
                asked = [call_of(number, calls[number]) for number in range(start, start + self.stage.batch)]
                answers = self.stage.run(toolkit, asked).answers
                texts = {call.id: expected[int(call.id[5:])].text for call in asked}
                if "spaces" in self.stage.losses:
                    texts = {call_id: text.strip() for call_id, text in texts.items()}
                assert {call.id: answers[call.id].text for call in asked} == texts

    def test_calls_are_equal_inwards(self) -> None:
        """400 calls of the framework's tools on a board, there and back, and by `toolkit.call`."""
        calls = cheap_calls()
        with board() as toolkit, Toolkit(plugins=["bridges"]) as other:
            other.register(self.stage.inwards(self.stage.outwards(toolkit)))
            for name, arguments in calls:
                ours, theirs = toolkit.call_sync(name, arguments), other.call_sync(name, arguments)
                if ours.status == "invalid":  # each board in its own words: the other one knows the schema alone
                    assert theirs.text.startswith("Error: invalid arguments:")
                else:
                    assert (name, arguments, theirs.text) == (name, arguments, ours.text)
                assert theirs.is_error is ours.is_error or "status" in self.stage.losses

    def test_native_tools_are_registered(self) -> None:
        with Toolkit(plugins=["bridges"]) as toolkit:
            functions: list[Callable[..., Any]] = [native_sum, *([native_later] if self.stage.has_async else [])]
            (tool, *later) = toolkit.register(*self.stage.native(functions))
            assert (tool.name, tool.description.splitlines()[0]) == ("native_sum", "Add two numbers.")
            assert sorted(tool.parameters["required"]) == ["first", "second"]
            assert toolkit.call_sync("native_sum", {"first": 2, "second": 3}).text == "5"
            assert toolkit.call_sync("native_sum", '{"first": "2", "second": 3}').text == "5"
            refused = toolkit.call_sync("native_sum", {"first": "two", "second": 3})
            assert refused.status == "invalid"
            assert "first: expected integer" in refused.text
            assert [toolkit.call_sync(each.name, {"word": "rain"}).text for each in later] == ["later rain"] * len(
                later
            )

    def test_images_come_in(self) -> None:
        with board() as toolkit, Toolkit(plugins=["bridges"]) as other:
            other.register(self.stage.inwards(self.stage.outwards(toolkit)))
            result = other.call_sync("picture", {"title": "Oslo"})
        images = [block for block in result.content if isinstance(block, ImageBlock)]
        assert "a picture of Oslo" in "".join(block.text for block in result.content if isinstance(block, TextBlock))
        if "images" in self.stage.losses:
            assert f"[image, image/png, {len(PNG)} bytes]" in result.text
        else:
            assert [_bytes(block) for block in images] == [PNG]

    def test_what_is_no_tool_is_refused(self) -> None:
        from pegboard_bridges import NotNativeError

        with pytest.raises(NotNativeError, match=f"from_{self.stage.framework} takes"):
            self.stage.inwards(object())

    @pytest.mark.slow
    def test_cost(self) -> None:
        """A call through the bridge costs about as much as one of a native tool, in the same agent."""
        costs: list[float] = []
        while len(costs) < TRIES and min(costs, default=MOST) > GOOD:
            costs.append(round(_ratio(self.stage), 2))
        note(self.stage, "cost", min(costs))
        assert min(costs) <= MOST, costs


def _bytes(block: ImageBlock) -> bytes:
    import base64

    return base64.b64decode(block.url.partition(",")[2]) if block.url else block.to_bytes()


def native_sum(first: int, second: int) -> str:
    """Add two numbers.

    Args:
        first: One number.
        second: Another one.
    """
    return str(first + second)


async def native_async_sum(first: int, second: int) -> str:
    """Add two numbers.

    Args:
        first: One number.
        second: Another one.
    """
    return str(first + second)


async def native_later(word: str) -> str:
    """Say a word later.

    Args:
        word: The word.
    """
    return f"later {word}"


def _ratio(stage: Stage) -> float:
    """What a call more costs with our tool, in calls of the framework's own; the run itself is taken out of both.

    The middle of several rounds: a machine that others use is not as fast in one as in the next.
    """
    function: Callable[..., Any] = native_async_sum if stage.blocks else native_sum
    tools = {"native": stage.native([function])}
    with Toolkit(plugins=["bridges"]) as toolkit:
        toolkit.register(function)
        tools["bridged"] = stage.outwards(toolkit)
        ratios = []
        for number in range(ROUNDS):
            order = ("native", "bridged") if number % 2 else ("bridged", "native")
            cost = {name: _seconds(stage, tools[name], function.__name__) for name in order}
            ratios.append(cost["bridged"] / cost["native"])
    return statistics.median(ratios)


def _seconds(stage: Stage, tools: Any, name: str) -> float:
    """What the calls of a long turn take more than those of a short one."""
    found = []
    for calls in (FEW, MANY):
        asked = [call_of(number, (name, {"first": number, "second": 3})) for number in range(calls)]
        gc.collect()
        gc.disable()  # whose garbage it is that is collected is a matter of luck
        try:
            started = time.process_time()
            stage.run_native(tools, asked)
            found.append(time.process_time() - started)
        finally:
            gc.enable()
    return found[1] - found[0]


def note(stage: Stage, what: str, value: Any) -> None:
    """Write down what was found out, if that is requested."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    path = Path(folder, f"{stage.framework}.json")
    known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    known["version"] = f"{stage.distribution} {metadata.version(stage.distribution)}"
    known[what] = {**known.get(what, {}), **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(known), encoding="utf-8")
