"""Middleware: code around calls, in order, planned once for each tool, and kept apart from the tools."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve

from pegboard import (
    ExecutionPolicy,
    Locked,
    Middleware,
    Note,
    Secret,
    Status,
    Suspend,
    Tool,
    Toolkit,
    ToolResult,
    hookimpl,
    tool,
)
from tests.support.calls import CALLERS, both, each_caller
from tests.support.waiting import PATIENCE, eventually, given_time, until, within


def board(*middleware: Middleware | Callable[..., Any], **options: Any) -> Toolkit:
    class Plugin:
        @hookimpl
        def provide_middleware(self) -> list[Middleware]:
            return [each if isinstance(each, Middleware) else Middleware(each) for each in middleware]

    toolkit = Toolkit(plugins=[Plugin()], **options)
    toolkit.register(lambda: "ran", name="sync")

    @tool(name="later")
    async def later() -> str:
        await asyncio.sleep(0)
        return "ran"

    @tool
    def drawn() -> Iterator[str]:
        yield "ra"
        yield "n"

    toolkit.register(later, drawn)
    return toolkit


def noting(seen: list[str], word: str, *, is_async: bool) -> Callable[..., Any]:
    def around(call: Any, proceed: Any) -> Any:
        seen.append(f"{word} in")
        result = proceed()
        seen.append(f"{word} out {result.text}")
        return result

    async def around_later(call: Any, proceed: Any) -> Any:
        seen.append(f"{word} in")
        result = await proceed()
        seen.append(f"{word} out {result.text}")
        return result

    return around_later if is_async else around


class TestOrder:
    @each_caller
    @pytest.mark.parametrize("name", ["sync", "later", "drawn"])
    @pytest.mark.parametrize("kinds", [(False, False), (False, True), (True, False), (True, True)])
    def test_lower_is_further_out(self, caller: str, name: str, kinds: tuple[bool, bool]) -> None:
        seen: list[str] = []
        inner = Middleware(noting(seen, "inner", is_async=kinds[0]), order=2)
        outer = Middleware(noting(seen, "outer", is_async=kinds[1]), order=-1)
        with board(inner, outer) as toolkit:
            assert CALLERS[caller](toolkit, name).text == "ran"
        assert seen == ["outer in", "inner in", "inner out ran", "outer out ran"]

    def test_of_equal_rank_as_they_came(self) -> None:
        seen: list[str] = []
        with board(*(noting(seen, word, is_async=False) for word in "abc")) as toolkit:
            toolkit.call_sync("sync")
        assert seen[:3] == ["a in", "b in", "c in"]


class TestPlannedOnce:
    def test_for_each_tool(self) -> None:
        asked: list[str] = []

        def applies(each: Tool) -> bool:
            asked.append(each.name)
            return each.name == "later"

        seen: list[str] = []
        with board(Middleware(noting(seen, "x", is_async=False), applies=applies)) as toolkit:
            for _ in range(3):
                toolkit.call_sync("sync")
                toolkit.call_sync("later")
            assert asked == ["sync", "later"]
            assert seen == ["x in", "x out ran"] * 3

    def test_a_tool_that_it_does_not_apply_to_goes_straight(self) -> None:
        with board(Middleware(lambda call, proceed: proceed(), applies=lambda each: False)) as toolkit:
            assert toolkit.call_sync("sync").text == "ran"
            assert toolkit.stats["tools"]["sync"]["calls"] == 1

    def test_one_that_cannot_say_is_the_tools_misfortune_alone(self) -> None:
        def applies(each: Tool) -> bool:
            if each.name == "sync":
                raise KeyError("tags")
            return False

        with board(Middleware(lambda call, proceed: proceed(), applies=applies)) as toolkit:
            result = toolkit.call_sync("sync")
            assert result.error is not None
            assert (result.status, result.error.details) == (Status.ERROR, {"reason": "KeyError: 'tags'"})
            assert toolkit.call_sync("later").text == "ran"


class TestAnswer:
    """What middleware answers at once, without being run around the call."""

    @staticmethod
    def answering(kept: Any, asked: list[Any]) -> Middleware:
        def answer(tool: Tool, arguments: dict[str, Any], session: Any) -> Any:
            asked.append((tool.name, arguments, session))
            if isinstance(kept, Exception):
                raise kept
            return kept

        return Middleware(lambda call, proceed: proceed(), applies=lambda each: each.name != "add", answer=answer)

    @each_caller
    @pytest.mark.parametrize("name", ["sync", "later", "drawn"])
    def test_the_call_comes_to_the_same(self, caller: str, name: str) -> None:
        asked: list[Any] = []
        kept = ToolResult("old", "other", data=[1], notes=(Note("kept", kind="cached"),), metadata={"a": 1}, value=1)
        with board(self.answering(kept, asked)) as toolkit:
            result = CALLERS[caller](toolkit, name, {}, call_id="new")
            assert asked == [(name, {}, toolkit)]
            assert (result.call_id, result.name, result.attempts) == ("new", name, 0)
            assert (result.data, result.value, result.notes, result.metadata) == ([1], 1, ("kept",), {"a": 1})
            stats = toolkit.stats["tools"][name]
            assert (stats["calls"], stats["statuses"], toolkit.stats["running"]) == (1, {"success": 1}, 0)

    @each_caller
    @pytest.mark.parametrize("kept", [None, "text", OSError("no cache"), ToolResult("old", "sync", Status.ERROR)])
    def test_without_an_answer_it_runs(self, caller: str, kept: Any) -> None:
        asked: list[Any] = []
        with board(self.answering(kept, asked)) as toolkit:
            assert CALLERS[caller](toolkit, "sync").text == "ran"
        assert len(asked) == 1

    def test_not_where_more_comes_before_the_tool(self) -> None:
        def add(a: int, b: int = 0) -> str:
            return "ran"

        asked: list[Any] = []
        answering = evolve(self.answering(ToolResult("old", "sync", content="kept"), asked), applies=None)
        with board(answering, approver=lambda request: True) as toolkit, board(answering, Middleware(passing)) as two:
            for name in ("asking", "locked", "limited", "secret", "plain"):
                options: Any = {"asking": {"requires_approval": True}, "limited": {"locks": ("x",)}}.get(name, {})
                toolkit.register(tool(name=name, **options)(add))
            toolkit.set_presets("secret", {"b": Secret(1)})
            toolkit.set_presets("locked", {"b": Locked(1)})
            texts = {name: toolkit.call_sync(name, {"a": 1}).text for name in ("asking", "limited", "secret")}
            assert texts == dict.fromkeys(texts, "ran")
            assert toolkit.call_sync("plain", {"a": 1}, context=object()).text == "ran"
            assert toolkit.call_sync("plain", {"a": "1"}).text == "ran"  # a repair, which has its note
            assert toolkit.prepare("plain", {"a": 1}).execute_sync().text == "ran"
            assert toolkit.call_sync("plain", {"a": []}).status is Status.INVALID
            toolkit.set_permission("plain", "never")
            assert toolkit.call_sync("plain", {"a": 1}).status is Status.DENIED
            assert two.call_sync("sync").text == "ran"
            assert asked == []
            assert toolkit.call_sync("locked", {"a": 1}).text == "kept"

    def test_what_it_is_given_is_not_the_callers(self) -> None:
        asked: list[Any] = []
        with board(self.answering(None, asked)) as toolkit:
            toolkit.register(lambda items: "ran", name="listing")
            toolkit.call_sync("listing", sent := {"items": [1]})
        assert asked[0][1] == sent
        assert asked[0][1]["items"] is not sent["items"]


def passing(call: Any, proceed: Any) -> Any:
    return proceed()


class TestKeptApart:
    @each_caller
    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize("error", [ValueError("bad day"), SystemExit(3), StopIteration(), asyncio.CancelledError()])
    def test_one_that_raises(self, caller: str, is_async: bool, error: BaseException) -> None:
        def around(call: Any, proceed: Any) -> Any:
            raise error

        async def around_later(call: Any, proceed: Any) -> Any:
            raise error

        with board(Middleware(around_later if is_async else around, applies=lambda each: each.name == "sync")) as kit:
            result = CALLERS[caller](kit, "sync")
            assert result.status in (Status.ERROR, Status.CANCELLED)
            assert (result.name, bool(result.call_id)) == ("sync", True)
            assert CALLERS[caller](kit, "later").text == "ran"

    @each_caller
    @pytest.mark.parametrize("wrong", [None, "text", 7, ValueError("returned"), object()])
    def test_one_that_returns_no_result(self, caller: str, wrong: Any) -> None:
        def forgetful(call: Any, proceed: Any) -> Any:
            proceed()
            return wrong

        with board(Middleware(forgetful, name="forgetful")) as toolkit:
            result = CALLERS[caller](toolkit, "sync")
            assert result.error is not None
            assert (result.status, result.error.kind) == (Status.ERROR, "middleware")
            assert "'forgetful'" in result.error.details["remedy"]
            assert type(wrong).__name__ in result.error.details["remedy"]

    @each_caller
    @pytest.mark.parametrize("is_async", [False, True])
    def test_one_that_goes_no_further(self, caller: str, is_async: bool) -> None:
        ran: list[int] = []
        answer = ToolResult(status=Status.DENIED, content="not on Sundays")

        def around(call: Any, proceed: Any) -> ToolResult:
            return answer

        async def around_later(call: Any, proceed: Any) -> ToolResult:
            return answer

        with board(around_later if is_async else around) as toolkit:
            toolkit.register(lambda: ran.append(1), name="work")
            result = CALLERS[caller](toolkit, "work", call_id="c1")
            assert (result.status, result.text, result.call_id, ran) == (Status.DENIED, "not on Sundays", "c1", [])
            assert toolkit.stats["tools"]["work"]["statuses"] == {"denied": 1}
        assert answer.call_id == ""

    @each_caller
    @pytest.mark.parametrize("is_async", [False, True])
    def test_one_that_goes_on_twice(self, caller: str, is_async: bool) -> None:
        ran: list[int] = []

        def around(call: Any, proceed: Any) -> ToolResult:
            first = proceed()
            return proceed() if first.is_error else first  # type: ignore[no-any-return]

        async def around_later(call: Any, proceed: Any) -> ToolResult:
            first = await proceed()
            return await proceed() if first.is_error else first  # type: ignore[no-any-return]

        def work() -> str:
            ran.append(1)
            if len(ran) % 3:
                raise ConnectionError(f"down {len(ran)}")
            return "up"

        with board(around_later if is_async else around) as toolkit:
            toolkit.register(work)
            result = CALLERS[caller](toolkit, "work", policy=ExecutionPolicy(max_attempts=2, initial_backoff=0))
            assert (result.text, result.attempts, len(ran)) == ("up", 3, 3)
            assert [each["error"] for each in result.metadata["retries"]] == ["down 1"]

    @each_caller
    def test_each_round_has_all_attempts(self, caller: str) -> None:
        ran: list[int] = []

        def work() -> None:
            ran.append(1)
            raise ConnectionError("down")

        def twice(call: Any, proceed: Any) -> Any:
            proceed()
            return proceed()

        with board(twice) as toolkit:
            toolkit.register(work)
            result = CALLERS[caller](toolkit, "work", policy=ExecutionPolicy(max_attempts=3, initial_backoff=0))
            assert (result.attempts, len(ran)) == (6, 6)

    def test_a_message_without_secrets(self) -> None:
        def around(call: Any, proceed: Any) -> Any:
            raise ValueError("refused s3cr3t-value")

        with board(around) as toolkit:
            toolkit.register(lambda key: key, name="use", presets={"key": Secret("s3cr3t-value")})
            assert toolkit.call_sync("use").text == "Error: refused ***"

    def test_one_that_changes_the_call_changes_nothing_that_was_checked(self) -> None:
        def around(call: Any, proceed: Any) -> Any:
            call.arguments["n"] = "many"
            call.typed["n"] = "many"
            return proceed()

        def double(n: int) -> int:
            return n * 2

        with board(around) as toolkit:
            toolkit.register(double)
            assert toolkit.call_sync("double", {"n": 2}).value == 4


class TestMayDoWhatToolsMay:
    @each_caller
    def test_suspend(self, caller: str) -> None:
        def around(call: Any, proceed: Any) -> Any:
            raise Suspend("after lunch")

        with board(around) as toolkit:
            assert CALLERS[caller](toolkit, "sync", call_id="c1").status is Status.SUSPENDED
            assert toolkit.resume("c1", "late").text == "late"

    @each_caller
    @pytest.mark.parametrize("is_async", [False, True])
    def test_set_what_the_tool_sees(self, caller: str, is_async: bool) -> None:
        user = contextvars.ContextVar("user", default="nobody")

        def around(call: Any, proceed: Any) -> Any:
            user.set("ann")
            return proceed()

        async def around_later(call: Any, proceed: Any) -> Any:
            user.set("ann")
            return await proceed()

        async def who_later() -> str:
            return user.get()

        with board(around_later if is_async else around) as toolkit:
            toolkit.register(lambda: user.get(), name="who")  # noqa: PLW0108 - a method would bring its own signature
            toolkit.register(who_later)
            for name in ("who", "who_later"):
                assert contextvars.copy_context().run(CALLERS[caller], toolkit, name).text == "ann"

    @each_caller
    def test_call_the_toolkit(self, caller: str) -> None:
        def around(call: Any, proceed: Any) -> Any:
            audit.append(toolkit.call_sync("later").text)
            return proceed()

        audit: list[str] = []
        with board(Middleware(around, applies=lambda each: each.name == "sync")) as toolkit:
            assert CALLERS[caller](toolkit, "sync").text == "ran"
        assert audit == ["ran"]

    @each_caller
    def test_take_as_long_as_they_like(self, caller: str) -> None:
        def found(timeout: float) -> tuple[str, bool]:
            def around(call: Any, proceed: Any) -> Any:
                time.sleep(2 * timeout)
                return proceed()

            with board(around) as toolkit:
                result = CALLERS[caller](toolkit, "sync", policy=ExecutionPolicy(timeout=timeout))
                return result.text, result.duration >= 2 * timeout

        assert given_time(found, lambda each: each[0] == "ran", 0.05) == ("ran", True)

    @each_caller
    @pytest.mark.parametrize("is_async", [False, True])
    def test_hear_of_a_timeout(self, caller: str, is_async: bool) -> None:
        heard: list[Status] = []

        async def hang() -> None:
            await asyncio.Event().wait()

        def around(call: Any, proceed: Any) -> Any:
            heard.append((result := proceed()).status)
            return result

        async def around_later(call: Any, proceed: Any) -> Any:
            heard.append((result := await proceed()).status)
            return result

        with board(around_later if is_async else around) as toolkit:
            toolkit.register(hang)
            assert CALLERS[caller](toolkit, "hang", policy=ExecutionPolicy(timeout=0.02)).status is Status.TIMEOUT
        assert heard == [Status.TIMEOUT]

    def test_sync_middleware_needs_no_second_thread(self) -> None:
        with board(lambda call, proceed: proceed(), max_threads=1) as toolkit:
            results = within(lambda: asyncio.run(toolkit.call_many([("sync", {})] * 4)))
            assert [each.value for each in results] == ["ran"] * 4

    def test_a_cached_result_becomes_one_of_the_call(self) -> None:
        cached = ToolResult("old", "other", content="from the cache")
        with board(lambda call, proceed: cached) as toolkit:
            for result in both(toolkit, "sync", call_id="new"):
                assert (result.call_id, result.name, result.text) == ("new", "sync", "from the cache")
        assert (cached.call_id, cached.duration) == ("old", 0.0)


class TestStopping:
    """Middleware does not stand between a call and the code that stops it."""

    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize("on_a_loop", [False, True])
    @pytest.mark.parametrize("retrying", [False, True])
    def test_a_call(self, is_async: bool, on_a_loop: bool, retrying: bool) -> None:
        begun, cleaned = threading.Event(), list[str]()

        async def wait() -> None:
            begun.set()
            if retrying:
                raise ConnectionError("down")
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append("cleaned")

        async def around_later(call: Any, proceed: Any) -> Any:
            return await proceed()

        with board(around_later if is_async else lambda call, proceed: proceed()) as toolkit:
            toolkit.register(wait)
            call = toolkit.prepare("wait")
            policy = ExecutionPolicy(max_attempts=2, initial_backoff=3600, max_backoff=3600, jitter=False)
            box: list[ToolResult] = []

            def run() -> None:
                coroutine = on_a_loop and call.execute(policy=policy)
                box.append(asyncio.run(coroutine) if coroutine else call.execute_sync(policy=policy))

            caller = threading.Thread(target=run, daemon=True)
            caller.start()
            assert begun.wait(PATIENCE)
            time.sleep(0.05)
            call.stop()
            caller.join(PATIENCE)
            assert [result.status for result in box] == [Status.CANCELLED]
            assert cleaned == ([] if retrying else ["cleaned"])

    @pytest.mark.parametrize("is_async", [False, True])
    def test_the_callers_task(self, is_async: bool) -> None:
        begun: list[str] = []
        cleaned: list[str] = []

        async def wait() -> None:
            begun.append("tool")
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append("tool")

        async def around_later(call: Any, proceed: Any) -> Any:
            try:
                return await proceed()
            finally:
                cleaned.append("middleware")

        def around(call: Any, proceed: Any) -> Any:
            try:
                return proceed()
            finally:
                cleaned.append("middleware")

        async def main() -> None:
            task = asyncio.create_task(toolkit.call("wait"))
            await until(lambda: begun)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        with board(around_later if is_async else around) as toolkit:
            toolkit.register(wait)
            asyncio.run(main())
            assert eventually(lambda: sorted(cleaned) == ["middleware", "tool"])
            assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)
