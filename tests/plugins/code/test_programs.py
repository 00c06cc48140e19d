"""Programs: what they come to, and that their calls are calls of the session."""

import asyncio
import threading
import time
from typing import Any, TypedDict

import pytest

from pegboard import (
    Chunk,
    EnteredCall,
    ImageBlock,
    Injected,
    Locked,
    Middleware,
    Status,
    ToolCall,
    ToolError,
    Toolkit,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard_code import CodeMode
from tests.plugins.code.desk import MODES, Tools, coded, ran
from tests.support.thinning import first

pytestmark = pytest.mark.parametrize("mode", first(1, MODES))


class TestValues:
    @pytest.mark.parametrize(
        ("code", "data"),
        [
            ("1 + 1", 2),
            ("return {'a': [1, None, True]}", {"a": [1, None, True]}),
            ("(1, 2)", [1, 2]),
            ("{1: 'a', (1, 2): 'b'}", {"1": "a", "(1, 2)": "b"}),
            ("sorted({3, 1})", [1, 3]),
            ("b'abc'", "YWJj"),
            ("import datetime\ndatetime.date(2026, 1, 2)", "2026-01-02"),
            ("import decimal\ndecimal.Decimal('1.50')", "1.50"),
            ("float('inf')", "inf"),
            ("class P:\n    def __init__(self):\n        self.x = 1\nP()", {"x": 1}),
            ("if True:\n    return 'early'\n'late'", "early"),
        ],
    )
    def test_the_last_expression_or_a_return_is_the_data(self, mode: str, code: str, data: Any) -> None:
        with coded() as toolkit:
            result = ran(toolkit, code, mode)
        assert result.status is Status.SUCCESS, result.text
        assert result.data == data

    def test_printed_text_stands_before_the_value(self, mode: str) -> None:
        with coded() as toolkit:
            result = ran(toolkit, "print('a', 1)\nprint('b')\n[2]", mode)
        assert [block.text for block in result.content] == ["a 1\nb", "[2]"]
        assert result.data == [2]

    def test_a_program_without_value_and_output_says_so(self, mode: str) -> None:
        with coded() as toolkit:
            result = ran(toolkit, "total = sum([1, 2])", mode)
            assert not result.is_error
            assert "without a value" in result.text
            assert result.text.endswith("write after it: total")
            assert "write" not in ran(toolkit, "for i in [1]:\n    pass", mode).text

    def test_long_output_is_cut_as_ever(self, mode: str) -> None:
        with Toolkit(plugins=(), max_output=200) as toolkit:
            toolkit.register(CodeMode(toolkit))
            result = ran(toolkit, "'x' * 5000", mode)
        assert "cut here" in result.text
        assert len(result.data) == 5000

    def test_the_same_program_does_the_same(self, mode: str) -> None:
        code = "import random\n[random.random(), random.randint(0, 1000000)]"
        with coded() as toolkit:
            first, second = ran(toolkit, code, mode), ran(toolkit, code, mode)
            other = ran(toolkit, code + "  # other", mode)
        assert first.data == second.data != other.data

    def test_time_stands_still_at_the_start(self, mode: str) -> None:
        code = (
            "import datetime, time\na = datetime.datetime.now()\ntime.sleep(5)\nb = datetime.datetime.now()\n"
            "[a == b, a.isoformat()[:4]]"
        )
        with coded() as toolkit:
            began = time.monotonic()
            same, year = ran(toolkit, code, mode).data
        assert same
        assert int(year) >= 2026
        assert time.monotonic() - began < 4


class TestCalls:
    def test_they_are_calls_of_the_session(self, mode: str) -> None:
        tools = Tools()
        with coded(tools) as toolkit:
            result = ran(toolkit, "(await get_weather(city='Oslo'))['temp_c']", mode, call_id="outer")
        assert result.data == 4.0
        (call,) = tools.calls
        assert call.provider_meta["parent"] == "outer"
        assert call.id != "outer"

    def test_in_plain_code_they_run_in_the_callers_thread(self, mode: str) -> None:
        tools = Tools()
        with coded(tools) as toolkit:
            ran(toolkit, "await get_weather(city='Oslo')", mode)
        assert (tools.threads == [threading.current_thread().name]) is (mode == "plain")

    def test_several_run_at_once(self, mode: str) -> None:
        tools = Tools()
        with coded(tools) as toolkit:
            ran(toolkit, "1", mode)
            began = time.monotonic()
            code = "import asyncio\nsum(await asyncio.gather(*[wait(seconds=0.2) for _ in range(20)]))"
            result = ran(toolkit, code, mode)
        assert result.data == pytest.approx(4.0)
        assert time.monotonic() - began < 2
        assert tools.most == 20

    def test_the_first_failure_ends_the_rest(self, mode: str) -> None:
        tools = Tools()
        code = (
            "import asyncio\ntry:\n    await asyncio.gather(wait(seconds=30), wait(seconds=0.01, fail=True))\n"
            "except ToolError as error:\n    print(error)\n(await get_weather(city='Oslo'))['city']"
        )
        with coded(tools) as toolkit:
            began = time.monotonic()
            result = ran(toolkit, code, mode)
        assert result.data == "Oslo"
        assert result.text.startswith("it failed")
        assert time.monotonic() - began < 10
        assert tools.open == 0

    def test_a_failure_is_a_tool_error_with_the_text_for_models(self, mode: str) -> None:
        with coded() as toolkit:
            caught = ran(
                toolkit, "try:\n    await get_weather(city='Atlantis')\nexcept ToolError as e:\n    x = str(e)\nx", mode
            )
            uncaught = ran(toolkit, "x = 1\nawait get_weather(city='Atlantis')", mode)
        assert caught.data == "there is no weather in Atlantis"
        assert uncaught.status is Status.ERROR
        assert "line 2, column 1: ToolError: there is no weather in Atlantis" in uncaught.text

    def test_middleware_presets_and_context_hold_for_them(self, mode: str) -> None:
        class Place:
            def __init__(self, name: str) -> None:
                self.name = name

        heard: list[str] = []

        def around(call: ToolCall, proceed: Any) -> ToolResult:
            heard.append(call.name)
            result: ToolResult = proceed()
            return result

        class Audit:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                return [Middleware(around, applies=lambda tool: tool.name == "look")]

        def look(what: str, where: str, place: Injected[Place]) -> str:
            return f"{what} {where} {place.name}"

        with Toolkit(plugins=[Audit()]) as toolkit:
            toolkit.register(look, presets={"where": Locked("here")})
            toolkit.register(CodeMode(toolkit))
            session = toolkit.session(presets={"look": {"where": Locked("there")}}, context=Place("home"))
            assert ran(session, "await look(what='a')", mode).data == "a there home"
            assert ran(toolkit, "await look(what='a')", mode, context=Place("call")).data == "a here call"
            assert "where" not in session["run_code"].description
        assert heard == ["look", "look"]

    def test_whole_calls_see_parent_and_children(self, mode: str) -> None:
        entered: list[str] = []

        def around(call: EnteredCall, proceed: Any) -> Any:
            entered.append(call.tool.name if call.tool else "")
            return proceed()

        class Watch:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                return [Middleware(around, whole=True)]

        with Toolkit(plugins=[Watch()]) as toolkit:
            toolkit.register(Tools())
            toolkit.register(CodeMode(toolkit))
            ran(toolkit, "await get_weather(city='Oslo')", mode)
        assert entered == ["run_code", "get_weather"]

    def test_functions_may_be_values(self, mode: str) -> None:
        with coded() as toolkit:
            code = "tools = [get_weather]\n[(await f(city='Oslo'))['city'] for f in tools]"
            assert ran(toolkit, code, mode).data == ["Oslo"]

    def test_a_none_for_what_takes_none_is_left_out(self, mode: str) -> None:
        def pick(name: str | None, colour: str = "red", size: int | None = None) -> list[Any]:
            return [name, colour, size]

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(pick)
            toolkit.register(CodeMode(toolkit, check=False))
            assert ran(toolkit, "await pick(name=None, colour=None, size=None)", mode).data == [None, "red", None]

    def test_what_was_never_awaited_did_not_run(self, mode: str) -> None:
        tools = Tools()
        with coded(tools) as toolkit:
            result = ran(toolkit, "x = get_weather(city='Oslo')\nprint('done')", mode)
        assert result.status is Status.ERROR
        assert result.text.startswith("done\n")
        assert "line 1 was not awaited, so it did not run; write: x = await get_weather(city='Oslo')" in result.text
        assert tools.calls == []

    def test_progress_of_calls_reaches_the_listener(self, mode: str) -> None:
        chunks: list[Chunk] = []
        with coded() as toolkit:
            result = ran(toolkit, "await report()", mode, on_chunk=chunks.append)
        assert result.data == "done"
        if mode == "loop":
            assert [chunk.text for chunk in chunks] == ["half"]

    def test_too_many_calls_end_the_program(self, mode: str) -> None:
        tools = Tools()
        with coded(tools, max_calls=3) as toolkit:
            result = ran(toolkit, "while True:\n    await get_weather(city='Oslo')", mode)
        assert result.status is Status.ERROR
        assert "more than 3 calls" in result.text
        assert len(tools.calls) == 3


class TestHandles:
    def test_what_is_no_json_is_a_handle_that_can_be_shown(self, mode: str) -> None:
        with coded() as toolkit:
            result = ran(toolkit, "a = await draw(what='a')\nb = await page()\nshow(b[1])\n[a, b]", mode)
        assert result.data[0] == {"handle": "image_1", "kind": "image", "media_type": "image/png"}
        assert result.data[1][0] == "Figure 1"
        assert [block.kind for block in result.content] == ["text", "image"]
        assert isinstance(result.content[1], ImageBlock)

    def test_a_handle_of_no_tool_is_refused(self, mode: str) -> None:
        with coded() as toolkit:
            result = ran(toolkit, "show({'handle': 'image_7'})", mode)
        assert result.is_error
        assert "show() takes a handle that a tool gave to this program" in result.text

    def test_a_result_that_is_too_large_is_an_error_in_the_program(self, mode: str) -> None:
        with coded(max_memory=16 * 2**20) as toolkit:
            result = ran(toolkit, "await text(length=5000000)", mode)
            assert "the result of text is too large for a program" in result.text
            assert ran(toolkit, "len(await text(length=500000))", mode).data == 500000


class TestTools:
    def test_the_view_decides_which_there_are_and_their_names(self, mode: str) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(Tools())
            toolkit.register(CodeMode(toolkit.view(include="get_*", prefix="w_")))
            model = toolkit.view(include="run_code")
            assert [each.name for each in model.tools] == ["run_code"]
            assert "async def w_get_weather" in model["run_code"].description
            assert "send_mail" not in model["run_code"].description
            assert ran(model, "(await w_get_weather(city='Oslo'))['city']", mode).data == "Oslo"
            assert ran(model, "await get_weather(city='Oslo')", mode).status is Status.INVALID

    def test_never_and_inactive_count_in_view_and_session(self, mode: str) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.create_group("extra", active=False)
            toolkit.register(Tools())
            toolkit.register(lambda: 1, name="one", group="extra")
            view = toolkit.view()
            view.set_permission("draw", "never")
            toolkit.register(CodeMode(view, check=False))
            session = toolkit.session()
            session.set_permission("page", "never")
            text = session["run_code"].description
            assert "def draw(" not in text
            assert "def page(" not in text
            assert "def one(" not in text
            assert "def page(" in toolkit["run_code"].description
            for code in ("await draw(what='a')", "await page()", "await one()"):
                assert "NameError" in ran(session, code, mode).text
            toolkit.update_groups(["extra"], active=True)
            assert "def one(" in session["run_code"].description
            assert ran(session, "await one()", mode).data == 1

    def test_code_mode_does_not_call_itself(self, mode: str) -> None:
        with coded(check=False) as toolkit:
            assert "NameError" in ran(toolkit, "await run_code(code='1')", mode).text

    def test_an_approval_that_is_denied_is_a_tool_error(self, mode: str) -> None:
        tools = Tools()
        with coded(tools, approver=lambda request: False) as toolkit:
            assert "was not approved" in ran(toolkit, "await send_mail(to='a')", mode).text
        with coded(tools) as toolkit:
            assert "needs approval" in ran(toolkit, "await send_mail(to='a')", mode).text
        assert tools.sent == []


class TestEnding:
    def test_a_timeout_of_the_program_is_a_timeout(self, mode: str) -> None:
        with coded(timeout=0.5) as toolkit:
            began = time.monotonic()
            result = ran(toolkit, "print('on')\nwhile True:\n    pass", mode)
        assert result.status is Status.TIMEOUT
        assert "ran longer than 0.5 s" in result.text
        assert result.text.startswith("on\n")
        assert time.monotonic() - began < 5

    def test_waiting_for_approval_does_not_count(self, mode: str) -> None:
        def approve(request: Any) -> bool:
            time.sleep(0.9)
            return True

        with coded(approver=approve, timeout=0.6) as toolkit:
            assert ran(toolkit, "await send_mail(to='a')", mode).data == "sent to a"

    def test_memory_is_named(self, mode: str) -> None:
        with coded() as toolkit:
            result = ran(toolkit, "x = 'a' * 10 ** 9", mode)
        assert result.status is Status.ERROR
        assert "64 MB of memory" in result.text

    def test_arguments_of_code_mode_are_checked(self, mode: str) -> None:
        toolkit = Toolkit(plugins=())
        for wrong in ({"catalog": "some"}, {"approve": "never"}, {"max_calls": 0}, {"timeout": True}, {"store": "a"}):
            with pytest.raises(ValueError, match=next(iter(wrong)).replace("store", "store= and key=")):
                CodeMode(toolkit, **wrong)
        with pytest.raises(ValueError, match="at least 16 bytes"):
            CodeMode(toolkit, store="a", key="short")


def test_calls_that_take_too_long_end_the_program(mode: str) -> None:
    tools = Tools()
    with coded(tools, timeout=0.6) as toolkit:
        began = time.monotonic()
        result = ran(toolkit, "import asyncio\nawait asyncio.gather(wait(seconds=30), wait(seconds=30))", mode)
        assert result.status is Status.TIMEOUT, result.text
        assert time.monotonic() - began < 8


def test_cancelling_ends_the_program(mode: str) -> None:
    if mode == "plain":
        pytest.skip("plain code has no task that could be cancelled")

    async def main(toolkit: Toolkit, code: str) -> None:
        task = asyncio.create_task(toolkit.call("run_code", {"code": code}))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 2

    tools = Tools()
    with coded(tools) as toolkit:
        ran(toolkit, "1")
        asyncio.run(main(toolkit, "while True:\n    pass"))
        asyncio.run(main(toolkit, "await wait(seconds=30)"))
        assert tools.open == 0
        assert ran(toolkit, "2").data == 2


def test_errors_of_other_kinds_do_not_show_the_host(mode: str) -> None:
    @tool
    def broken() -> str:
        raise KeyError("secret-name")

    with Toolkit(plugins=(), expose_errors="redacted") as toolkit:
        toolkit.register(broken)
        toolkit.register(CodeMode(toolkit))
        result = ran(toolkit, "try:\n    await broken()\nexcept Exception as e:\n    x = str(e)\nx", mode)
    assert "secret-name" not in result.text


def test_a_tool_error_is_a_runtime_error_inside(mode: str) -> None:
    def fail() -> str:
        raise ToolError("no")

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(fail)
        toolkit.register(CodeMode(toolkit))
        assert ran(toolkit, "try:\n    await fail()\nexcept RuntimeError as e:\n    x = str(e)\nx", mode).data == "no"


class Size(TypedDict):
    name: str
    size: int | None


def test_values_that_come_back_fit_the_stub(mode: str) -> None:
    good: list[Any] = [{"name": "a", "size": 1}, {"name": "b", "size": None}]
    wrong: list[Any] = [{"name": 3, "size": 1}, {"name": "a"}, {"name": "a", "size": "1"}, None, "a"]

    def give(number: int, bad: bool = False) -> list[Size]:
        return [(wrong if bad else good)[number]]

    with Toolkit(plugins=["dataclasses"]) as toolkit:
        toolkit.register(give)
        toolkit.register(CodeMode(toolkit))
        for number in range(len(good)):
            assert ran(toolkit, f"await give(number={number})", mode).data == [good[number]]
        for number in range(len(wrong)):
            result = ran(toolkit, f"await give(number={number}, bad=True)", mode)
            assert "the result of give is not what its signature says: async def give(" in result.text
