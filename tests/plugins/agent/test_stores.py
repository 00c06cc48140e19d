"""Stores of conversations: one suite for all, and what only one of them can get wrong."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pegboard import PegboardError
from pegboard_agent import (
    ConversationConflictError,
    ConversationStore,
    ConversationStoreError,
    Memory,
    PostgresMemory,
)
from pegboard_testing import assert_store_conforms, store_conformance
from tests.support.postgres import PostgresServer
from tests.support.thinning import first

Make: TypeAlias = Callable[[], ConversationStore]
HELLO = {"role": "user", "content": "hello"}


@pytest.fixture(params=["program", "file", pytest.param("postgres", marks=pytest.mark.slow)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes stores of one place."""
    if request.param == "program":
        memory = Memory()
        return lambda: memory
    if request.param == "file":
        return lambda: Memory(tmp_path / "talk.jsonl")
    running: PostgresServer = request.getfixturevalue("server")
    running.empty()
    return lambda: PostgresMemory(running.url())


class TestConformance:
    def test_each_store_conforms(self, make: Make) -> None:
        assert_store_conforms(make)

    def test_a_check_that_there_is_not_is_named(self) -> None:
        with pytest.raises(ValueError, match="there is no check speed; there are: records, ids"):
            assert_store_conforms(Memory, only=["speed"])

    @pytest.mark.parametrize("check", ["records", "ids", "expected", "writers", "waiting", "turns", "cancelling"])
    def test_two_places_are_no_store(self, check: str) -> None:
        found = store_conformance(Memory, only=[check], patience=10)
        assert {each.check for each in found} == {check}

    @pytest.mark.parametrize("check", ["expected", "refused", "writers", "turns"])
    def test_one_that_does_not_look_is_found(self, check: str) -> None:
        memory = Careless()
        found = store_conformance(lambda: memory, only=[check], patience=10)
        assert {each.check for each in found} == {check}

    @pytest.mark.parametrize("check", first(1, ["loops", "cancelling"]))
    def test_one_that_waits_on_the_loop_is_found(self, check: str) -> None:
        memory = Blocking()
        with pytest.raises(AssertionError, match=rf"the store Blocking does not conform, .* to fix:\n  {check}: "):
            assert_store_conforms(lambda: memory, only=[check], patience=10)


class Careless:
    """Takes whatever it is given."""

    def __init__(self) -> None:
        self._kept: dict[str | None, list[dict[str, Any]]] = {}

    def load(self, session_id: str | None, after: int = 0) -> list[dict[str, Any]]:
        return self._kept.get(session_id, [])[after:]

    def append(self, session_id: str | None, records: Any, expected: int) -> None:
        kept = self.load(session_id)
        for record in records:
            threading.Event().wait(0.0001)
            kept.append(record)
        self._kept[session_id] = kept

    def waiting(self) -> dict[str | None, int]:
        return {}

    def lock(self, session_id: str | None) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class Blocking(Careless):
    """Holds turns with a lock for threads."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    @asynccontextmanager
    async def _turn(self) -> Any:
        has_it = self._lock.acquire(timeout=0.45)
        yield
        if has_it:
            self._lock.release()

    def lock(self, session_id: str | None) -> AbstractAsyncContextManager[None]:
        return self._turn()


class TestFiles:
    def test_what_another_object_added_is_read_without_reading_all_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "talk.jsonl"
        one, other = Memory(path), Memory(path)
        for number in range(1000):
            one.append("a", [{"role": "user", "content": "x" * 1000}], number)
        assert len(other.load("a")) == 1000
        lines = Counter[bytes]()
        loads = json.loads

        def counted(line: bytes) -> Any:
            lines[line] += 1
            return loads(line)

        monkeypatch.setattr("pegboard_agent._stores.file.json.loads", counted)
        one.append("a", [HELLO], 1000)
        assert other.load("a", 1000) == [HELLO]
        assert lines.total() == 1

    def test_a_line_that_is_being_written_waits_for_its_end(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        memory = Memory(path)
        line = json.dumps({"session_id": "a", "record": HELLO}).encode()
        for part, expected in ((line[:20], 0), (line[20:], 1), (b"\n", 1), (line + b"\n", 2)):
            with path.open("ab") as file:
                file.write(part)
            assert len(memory.load("a")) == expected
        memory.append("a", [HELLO], 2)
        assert len(Memory(path).load("a")) == 3

    def test_a_torn_line_keeps_no_writer_out(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        path = tmp_path / "talk.jsonl"
        one, other = Memory(path), Memory(path)
        one.append("a", [HELLO], 0)
        with path.open("ab") as file:
            file.write(b'{"session_id": "a", "rec')
        other.append("a", [HELLO], 1)
        assert len(one.load("a")) == len(other.load("a")) == 2
        assert "1 of 3 lines cannot be read" in caplog.text

    @pytest.mark.parametrize("content", [None, b"", b'{"session_id": "b", "record": {"parked": 0}}\n'])
    def test_another_file_of_the_name_is_read_from_its_beginning(self, tmp_path: Path, content: bytes | None) -> None:
        path = tmp_path / "talk.jsonl"
        memory = Memory(path)
        memory.append("a", [HELLO, HELLO], 0)
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        assert memory.load("a") == []
        assert memory.session_ids == (["b"] if content else [])
        memory.append("a", [HELLO], 0)
        assert len(Memory(path).load("a")) == 1

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_what_cannot_be_written_is_not_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        memory = Memory(tmp_path / "talk.jsonl")
        memory.append("a", [HELLO], 0)
        monkeypatch.setattr("pegboard_agent._stores.file._private", lambda path, flags: os.open("/dev/full", os.O_RDWR))
        with pytest.raises(OSError, match="No space left"):
            memory.append("a", [HELLO], 1)
        monkeypatch.undo()
        assert memory.load("a") == [HELLO]

    def test_others_cannot_read_what_is_made(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        Memory(path).append("a", [HELLO], 0)
        assert {each.name: each.stat().st_mode & 0o077 for each in tmp_path.iterdir()} == {
            "talk.jsonl": 0,
            "talk.jsonl.lock": 0,
        }

    def test_shows_its_path(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        assert (repr(Memory()), repr(Memory(path))) == ("Memory()", f"Memory({str(path)!r})")


HOLDS = """
import asyncio, sys
from tests.plugins.agent.workers import store_at

async def hold():
    async with store_at(sys.argv[1]).lock("a"):
        print("held", flush=True)
        await asyncio.sleep(600)

asyncio.run(hold())
"""


class TestProcesses:
    @pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.slow)])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> str:
        if request.param == "file":
            return str(tmp_path / "talk.jsonl")
        running: PostgresServer = request.getfixturevalue("server")
        running.empty()
        return running.url()

    @staticmethod
    def store(place: str) -> ConversationStore:
        from tests.plugins.agent.workers import store_at

        return store_at(place)

    def test_a_turn_ends_with_the_process_that_holds_it(self, place: str) -> None:
        with subprocess.Popen([sys.executable, "-c", HOLDS, place], stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            store = self.store(place)

            async def enter(seconds: float) -> None:
                async with asyncio.timeout(seconds), store.lock("a"):
                    pass

            with pytest.raises(TimeoutError):
                asyncio.run(enter(0.3))
            holder.send_signal(signal.SIGKILL)
            asyncio.run(enter(60))

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_fork_begins_anew_and_leaves_its_parent_what_it_has(self, place: str) -> None:
        """Run in a process without threads of its own, which is what forks."""
        code = f"""
import asyncio, os, sys
from tests.plugins.agent.workers import store_at
HELLO = {HELLO!r}

async def enter(seconds):
    async with asyncio.timeout(seconds), store.lock("a"):
        return store.append("a", [HELLO], len(store.load("a")))

def child():
    try:
        asyncio.run(enter(0.3))
    except TimeoutError:
        store.append("b", [HELLO], 0)
        os._exit(len(store.load("a")))
    os._exit(100)

async def parent():
    async with store.lock("a"):
        store.append("a", [HELLO], 0)
        forked = os.fork()
        if not forked:
            asyncio.events._set_running_loop(None)
            child()
        return os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1])

store = store_at(sys.argv[1])
assert asyncio.run(parent()) == 1
asyncio.run(enter(60))
print(len(store.load("a")), len(store.load("b")))
"""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", code, place],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("2 1\n", "")


@pytest.mark.slow
class TestPostgres:
    def test_survives_a_server_that_was_stopped(self, server: PostgresServer) -> None:
        server.empty()
        store = PostgresMemory(server.url())
        store.append("a", [HELLO], 0)

        async def turn() -> None:
            async with store.lock("a"):
                server.stop()
                with pytest.raises(ConversationStoreError, match="the next use connects again"):
                    store.append("a", [HELLO], 1)
                server.start()
                assert len(store.load("a")) == 1

        try:
            asyncio.run(turn())
        finally:
            server.stop()
            server.start()
        assert store.load("a") == [HELLO]  # at once: it held no turn, and the connection was only found to be lost
        store.append("a", [HELLO], 1)
        assert len(PostgresMemory(server.url()).load("a")) == 2

    def test_the_role_needs_no_more_than_to_read_and_to_add(self, server: PostgresServer) -> None:
        server.empty()
        PostgresMemory(server.url()).append("a", [HELLO], 0)
        server.execute("DROP ROLE IF EXISTS clerk")
        server.execute("CREATE ROLE clerk LOGIN")
        with pytest.raises(ConversationStoreError, match="permission denied for table pegboard_conversations"):
            PostgresMemory(server.url("clerk")).load("a")
        server.execute("GRANT SELECT, INSERT ON pegboard_conversations TO clerk")
        assert_store_conforms(lambda: PostgresMemory(server.url("clerk")))
        server.execute("DROP OWNED BY clerk")

    def test_the_table_may_be_made_by_many_at_once(self, server: PostgresServer) -> None:
        server.empty()
        stores = [PostgresMemory(server.url()) for _ in range(8)]
        barrier = threading.Barrier(len(stores))

        def load(store: PostgresMemory) -> list[Any]:
            barrier.wait(30)
            return store.load("a")

        with ThreadPoolExecutor(len(stores)) as pool:
            assert list(pool.map(load, stores, timeout=60)) == [[]] * len(stores)
        for store in stores:
            store.close()

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://hunter:swordfish@127.0.0.1:1/treasure",
            "postgresql://hunter:sword fish@[treasure",
            "host=127.0.0.1 port=1 user=hunter password=swordfish dbname=treasure",
            "hunter swordfish treasure",
        ],
    )
    def test_the_url_shows_nowhere(self, url: str) -> None:
        pytest.importorskip("psycopg")
        store = PostgresMemory(url)
        with pytest.raises(ConversationStoreError) as raised:
            store.load("a")
        shown = "".join(traceback.format_exception(raised.value)) + repr(store) + str(raised.value)
        assert not [part for part in ("hunter", "sword", "treasure", "127.0.0.1") if part in shown]

    def test_a_row_that_is_no_record_is_named(self, server: PostgresServer) -> None:
        server.empty()
        store = PostgresMemory(server.url())
        store.load("a")
        server.execute("""INSERT INTO pegboard_conversations VALUES ('"a"', 0, 'message', '{"role": 5}')""")
        with pytest.raises(ConversationStoreError, match="a row of 'a' is no record"):
            store.load("a")

    def test_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(PegboardError, match=r'pip install "pegboard-agent\[postgres\]"'):
            PostgresMemory("postgresql://")


def test_a_conflict_says_what_happened() -> None:
    memory = Memory()
    memory.append(None, [HELLO], 0)
    with pytest.raises(ConversationConflictError) as raised:
        memory.append(None, [HELLO], 0)
    assert (raised.value.session_id, raised.value.expected, raised.value.found) == (None, 0, 1)
    assert str(raised.value).startswith("the conversation without a session_id has 1 records, not 0")
