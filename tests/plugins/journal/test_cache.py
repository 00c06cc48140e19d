"""Cache: kept answers of read-only tools, and one flight for equal calls at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from pegboard import Inject, Injected, ToolCall, Toolkit, tool
from pegboard_journal._cache import MOST, Cache
from tests.plugins.journal.desk import Tools, entries, journaled


class User:
    """Who asks."""


class Asking(Tools):
    @tool(read_only=True)
    def mine(self, user: Injected[User], what: str) -> str:
        """What a user has."""
        self.ran.append(f"mine {what}")
        return f"{what} of {id(user)}"

    @tool(read_only=True)
    def echo(self, value: Any) -> str:
        """Give a value back."""
        self.ran.append(f"echo {value!r}")
        return "done"

    @tool(read_only=True)
    def owned(self, user: Annotated[User, Inject("owner")]) -> str:
        """What an owner has."""
        self.ran.append(f"owned {id(user)}")
        return "done"

    @tool(read_only=True)
    def paths(self) -> dict[str, list[str]]:
        """Something that can be changed."""
        self.ran.append("paths")
        return {"paths": ["a"]}


SINCE = "the answer comes from the cache"
NESTED = "echo {'a': 1, 'b': 2}"


@pytest.fixture
def tools() -> Asking:
    """Tools that count their runs."""
    return Asking()


@pytest.fixture
def toolkit(tmp_path: Path, tools: Asking) -> Iterator[Toolkit]:
    """A toolkit that keeps the answers of all tools that it may."""
    with journaled(tmp_path, tools, cache={"*": 60.0}) as made:
        yield made


def kinds(result: Any) -> list[str]:
    return [note.kind for note in result.notes]


def noted(result: Any) -> list[str]:
    return [str(note) for note in result.notes]


class TestAnswers:
    def test_the_second_call_does_not_run(self, toolkit: Toolkit, tools: Asking) -> None:
        one, other = (toolkit.call_sync("weather", {"city": "Bern"}) for _ in range(2))
        assert (kinds(one), kinds(other)) == ([], ["cached"])
        assert str(other.notes[0]) == "the answer comes from the cache, 0 s old"
        assert (one.data, one.text, one.value) == (other.data, other.text, other.value)
        assert one.call_id != other.call_id
        assert tools.ran == ["weather Bern 1"]
        assert [entry.attempts for entry in entries(toolkit)] == [1, 0]

    def test_awaited_as_well(self, toolkit: Toolkit, tools: Asking) -> None:
        async def main() -> list[Any]:
            return [await toolkit.call("slow", {"city": "Bern"}) for _ in range(2)]

        assert [kinds(each) for each in asyncio.run(main())] == [[], ["cached"]]
        assert len(tools.ran) == 1

    def test_arguments_are_compared_as_data(self, toolkit: Toolkit, tools: Asking) -> None:
        for arguments in ('{"days": 1, "city": "Bern"}', {"city": "Bern", "days": 1}, b'{"city":"Bern","days":1}'):
            toolkit.call_sync("weather", arguments)
        toolkit.call_sync("weather", {"city": "Bern", "days": 2})
        assert tools.ran == ["weather Bern 1", "weather Bern 2"]

    def test_values_that_only_python_calls_equal(self, toolkit: Toolkit, tools: Asking) -> None:
        for value in (1, 1.0, True, "1", [1], [True], {"a": 1, "b": 2}):
            for sent in (value, value):
                toolkit.call_sync("echo", {"value": sent})
        assert tools.ran == ["echo 1", "echo 1.0", "echo True", "echo '1'", "echo [1]", "echo [True]", NESTED]
        assert kinds(toolkit.call_sync("echo", {"value": {"b": 2, "a": 1}})) == ["cached"]

    def test_an_answer_is_recorded_with_the_arguments_that_ran(self, tmp_path: Path, tools: Asking) -> None:
        with journaled(tmp_path, tools, cache={"*": 60.0}, content="redacted") as toolkit:
            for sent in ('{"city": "Bern"}', b'{"city":"Bern"}'):
                toolkit.call_sync("weather", sent)
            assert [entry.arguments for entry in entries(toolkit)] == ['{"city":"Bern"}'] * 2

    def test_only_what_is_read_only(self, toolkit: Toolkit, tools: Asking) -> None:
        for _ in range(2):
            toolkit.call_sync("put", {"value": 1})
            toolkit.call_sync("pay", {"amount": 1})
        assert len(tools.ran) == 4

    def test_only_what_the_settings_name(self, tmp_path: Path, tools: Asking) -> None:
        with journaled(tmp_path, tools, cache={"pa*": 60.0}) as toolkit:
            for _ in range(2):
                toolkit.call_sync("weather", {"city": "Bern"})
                toolkit.call_sync("paths", {})
        assert tools.ran == ["weather Bern 1", "paths", "weather Bern 1"]

    def test_errors_are_not_kept(self, toolkit: Toolkit, tools: Asking) -> None:
        for _ in range(2):
            assert toolkit.call_sync("flaky", {}).status == "error"
        assert tools.ran == ["flaky"] * 6

    def test_who_changes_an_answer_changes_his_own(self, toolkit: Toolkit) -> None:
        for _ in range(3):
            result = toolkit.call_sync("paths", {})
            assert result.data == {"paths": ["a"]}
            result.data["paths"].append("b")
            if kinds(result):
                result.value["paths"].append("c")

    def test_without_a_url(self, tools: Asking) -> None:
        settings = {"journal": {"cache": {"weather": 60.0}}}
        with Toolkit(plugins=["journal"], settings=settings) as toolkit:
            toolkit.register(tools)
            for _ in range(2):
                toolkit.call_sync("weather", {"city": "Bern"})
        assert len(tools.ran) == 1

    def test_permission_comes_first(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("weather", {"city": "Bern"})
        toolkit.set_permission("weather", "never")
        assert toolkit.call_sync("weather", {"city": "Bern"}).status == "denied"


class TestScope:
    def test_sessions_do_not_share(self, toolkit: Toolkit, tools: Asking) -> None:
        ann, bob = toolkit.session(id="ann"), toolkit.session(id="bob")
        for session in (ann, bob, toolkit.session(), toolkit.session(), toolkit, toolkit.session(id="ann")):
            session.call_sync("weather", {"city": "Bern"})
        assert len(tools.ran) == 5

    def test_but_those_of_one_board_may(self, tmp_path: Path, tools: Asking) -> None:
        with journaled(tmp_path, tools, cache={"*": 60.0}, cache_scope="board") as toolkit:
            for session in (toolkit.session(id="ann"), toolkit.session(id="bob"), toolkit):
                session.call_sync("weather", {"city": "Bern"})
        assert len(tools.ran) == 1

    def test_presets_count(self, toolkit: Toolkit, tools: Asking) -> None:
        session = toolkit.session(id="ann")
        for days in (2, 3, 3):
            session.set_presets("weather", {"days": days})
            session.call_sync("weather", {"city": "Bern"})
        assert tools.ran[:2] == ["weather Bern 2", "weather Bern 3"]

    def test_what_a_call_brings_counts(self, toolkit: Toolkit, tools: Asking) -> None:
        ann, bob = User(), User()
        texts = [toolkit.call_sync("mine", {"what": "x"}, context=user).text for user in (ann, bob, ann)]
        assert texts == [f"x of {id(ann)}", f"x of {id(bob)}", f"x of {id(ann)}"]
        assert len(tools.ran) == 2

    def test_the_names_in_a_context_count(self, toolkit: Toolkit, tools: Asking) -> None:
        ann, bob = User(), User()
        session = toolkit.session(id="desk", context={"owner": ann})
        for context in ({"owner": bob}, {"guest": bob}, {"owner": bob}):
            session.call_sync("owned", {}, context=context)
        assert tools.ran == [f"owned {id(bob)}", f"owned {id(ann)}"]

    def test_what_is_passed_on_counts_by_what_is_in_it(self, toolkit: Toolkit, tools: Asking) -> None:
        @tool
        def outer(call: ToolCall) -> str:
            """Look."""
            return toolkit.call_sync("mine", {"what": "x"}, context=call.context).text

        toolkit.register(outer)
        ann, bob = User(), User()
        for user in (ann, bob, ann):
            assert toolkit.call_sync("outer", {}, context=user).text == f"x of {id(user)}"
        assert len(tools.ran) == 2

    def test_a_view_has_its_own_names(self, toolkit: Toolkit, tools: Asking) -> None:
        view = toolkit.view(rename={"weather": "forecast"})
        for _ in range(2):
            assert view.call_sync("forecast", {"city": "Bern"}).data == {"city": "Bern", "days": 1}
        assert len(tools.ran) == 1


class TestFlights:
    def test_a_hundred_at_once_on_a_loop(self, toolkit: Toolkit, tools: Asking) -> None:
        async def main() -> list[Any]:
            return await toolkit.call_many([("slow", {"city": "Bern"})] * 100)

        results = asyncio.run(main())
        assert {result.text for result in results} == {"BERN"}
        assert tools.ran == ["slow Bern"]
        assert sum(kinds(result) == ["cached"] for result in results) == 99

    def test_a_hundred_threads(self, tmp_path: Path) -> None:
        ran: list[str] = []
        begin = threading.Barrier(100)

        @tool(read_only=True)
        def look(city: str) -> str:
            """Look."""
            ran.append(city)
            threading.Event().wait(0.1)
            return city.upper()

        with journaled(tmp_path, look, cache={"look": 60.0}) as toolkit:
            found: list[str] = []

            def work() -> None:
                begin.wait(30)
                found.append(toolkit.call_sync("look", {"city": "Bern"}).text)

            threads = [threading.Thread(target=work) for _ in range(100)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        assert found == ["BERN"] * 100
        assert ran == ["Bern"]

    def test_a_flight_that_fails_is_everyones(self, tmp_path: Path) -> None:
        ran: list[int] = []

        @tool(read_only=True)
        async def look() -> str:
            """Look."""
            ran.append(1)
            await asyncio.sleep(0.05)
            raise OSError("not now")

        with journaled(tmp_path, look, cache={"look": 60.0}) as toolkit:

            async def main() -> list[Any]:
                return await toolkit.call_many([("look", {})] * 10)

            assert {result.status for result in asyncio.run(main())} == {"error"}
            assert len(ran) == 1

    def test_a_flight_that_is_cancelled_goes_to_another(self, toolkit: Toolkit, tools: Asking) -> None:
        async def main() -> str:
            first = asyncio.ensure_future(toolkit.call("slow", {"city": "Bern"}))
            await asyncio.sleep(0.01)
            second = asyncio.ensure_future(toolkit.call("slow", {"city": "Bern"}))
            await asyncio.sleep(0.01)
            first.cancel()
            return (await second).text

        assert asyncio.run(main()) == "BERN"
        assert tools.ran == ["slow Bern"] * 2

    def test_who_waits_may_leave(self, toolkit: Toolkit, tools: Asking) -> None:
        async def main() -> str:
            first = asyncio.ensure_future(toolkit.call("slow", {"city": "Bern"}))
            await asyncio.sleep(0.01)
            second = asyncio.ensure_future(toolkit.call("slow", {"city": "Bern"}))
            await asyncio.sleep(0.01)
            second.cancel()
            return (await first).text

        assert asyncio.run(main()) == "BERN"
        assert len(tools.ran) == 1


class TestTime:
    def test_an_answer_grows_old(self, toolkit: Toolkit) -> None:
        now = [0.0]
        cache = Cache(lambda: now[0])
        call = toolkit.prepare("weather", {"city": "Bern"})
        result = call.execute_sync()
        assert cache.look("key", call) is None
        cache.land("key", result, 10.0)
        for age in (0, 0, 7, 9):
            now[0] = age
            assert noted(cache.kept("key")) == noted(cache.look("key", call)) == [f"{SINCE}, {age} s old"]
        now[0] = 10.0
        assert cache.look("key", call) is cache.kept("key") is None

    def test_the_oldest_are_forgotten(self, toolkit: Toolkit) -> None:
        cache = Cache()
        call = toolkit.prepare("weather", {"city": "Bern"})
        result = call.execute_sync()
        for key in range(MOST + 1):
            cache.look(key, call)
            cache.land(key, result, 60.0)
        assert cache.look(0, call) is None
        assert cache.look(1, call) is not None
