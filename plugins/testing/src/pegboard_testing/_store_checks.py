"""Conformance of stores of conversations: what every one of them owes to an agent, checked in one go."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, TypeAlias, final
from uuid import uuid4

from pegboard_testing._findings import Finding, message

__all__ = ["STORE_CHECKS", "assert_store_conforms", "store_conformance"]

STORE_CHECKS: Final = ("records", "ids", "expected", "refused", "writers", "waiting", "turns", "cancelling", "loops")
"""Everything that is looked at, in this order."""


class Store(Protocol):
    """`pegboard_agent.ConversationStore`, which only those have installed that have a store."""

    def load(self, session_id: str | None, after: int = 0, /) -> list[dict[str, Any]]: ...

    def append(self, session_id: str | None, records: Sequence[Mapping[str, Any]], expected: int, /) -> None: ...

    def lock(self, session_id: str | None, /) -> AbstractAsyncContextManager[None]: ...

    def waiting(self) -> Mapping[str | None, int]: ...


Make: TypeAlias = Callable[[], Store]
CONFLICT: Final = "ConversationConflictError"

_CALL: Final = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
_RECORDS: Final[tuple[dict[str, Any], ...]] = (
    {"role": "user", "content": 'text of all kinds: é 漢字 \U0001f600 \u0000 \u2028 \ud83d "quoted" \\u0041\n'},
    {"role": "assistant", "content": None, "reasoning_content": "", "tool_calls": [_CALL, {**_CALL, "id": "c2"}]},
    {"parked": 0, "reason": "asked"},
    {"begun": "another", "agent": "Helper"},
    {"answers": 0, "messages": [{"role": "tool", "tool_call_id": "c1", "content": "[1.5, null]"}]},
    {"shown": ["pay", "add"]},
    {"system_prompt": "Be brief."},
    {"trimmed": 2, "summary": "They paid."},
    {"role": "user", "content": [{"type": "text", "text": "x" * 300_000}], "name": "ann"},
)
_NO_RECORDS: Final[tuple[dict[str, Any], ...]] = ({}, {"answers": 0}, {"role": "user", "content": 5}, {"parked": "0"})
_IDS: Final = (None, "", "null", "ann", "Ann", "ann ", "a/../b", "é\u0301", 'it\'s "quoted" %s', "\u0000", "x" * 500)


def assert_store_conforms(make_store: Make, *, only: Iterable[str] = STORE_CHECKS, patience: float = 60.0) -> None:
    """Raise AssertionError with everything that this store of conversations should do otherwise, with its remedy.

    Nothing in the store is removed, and ids of its own are used. All checks together take some two seconds:

    - `records`: each record comes back unchanged, from each worker; `load(id, after)` returns the end.
    - `ids`: None and texts of all kinds have a conversation each.
    - `expected`: another number of records is a `ConversationConflictError`, and nothing is written.
    - `refused`: what is no record is a ValueError, and nothing of the same `append` is written.
    - `writers`: of six threads that write at once none loses a record; what is appended together stays together.
    - `waiting`: a conversation is named from its parked call to its next message.
    - `turns`: over four event loops one at a time has the turn, and those of one loop come in their order.
    - `cancelling`: if one that waits is cancelled, or a turn raises, the next one begins.
    - `loops`: waiting blocks no event loop.

    What happens to the turn of a process that is killed is for tests of your own.

    Raises ValueError for an unknown check.

    Args:
        make_store: Makes a store of one and the same place each time, as several workers would have it; one that lives
            in the program alone gives the same object.
        only: Names of the checks to run. All by default.
        patience: Seconds that anything may take.
    """
    found = store_conformance(make_store, only=only, patience=patience)
    if found:
        raise AssertionError(message(f"the store {type(make_store()).__name__}", found))


def store_conformance(make_store: Make, *, only: Iterable[str] = STORE_CHECKS, patience: float = 60.0) -> list[Finding]:
    """What `assert_store_conforms` complains about, as data.

    Args:
        make_store: As in `assert_store_conforms`; so are the others.
        only: Names of the checks to run. All by default.
        patience: Seconds that anything may take.
    """
    chosen = list(only)
    unknown = sorted({*chosen} - {*STORE_CHECKS})
    if unknown:
        raise ValueError(f"there is no check {', '.join(unknown)}; there are: {', '.join(STORE_CHECKS)}")
    suite = _Suite(make_store, patience)
    return [finding for check in STORE_CHECKS if check in chosen for finding in suite.findings(check)]


@final
class _Suite:
    """The checks, on two objects of one place."""

    def __init__(self, make_store: Make, patience: float) -> None:
        self._one, self._other = make_store(), make_store()
        self._patience = patience

    def findings(self, check: str) -> list[Finding]:
        """What is wrong; a check that does not return or raises is wrong too."""
        run = getattr(self, f"_{check}")
        with _threads(1) as pool:
            try:
                return list(pool.submit(lambda: list(run())).result(self._patience))
            except TimeoutError:
                remedy = "bound what you wait for, and release each turn"
                return [Finding(check, f"no return after {self._patience:g} s", remedy)]
            except Exception:  # noqa: BLE001 - whatever a store does is a finding
                return [Finding(check, f"the check itself failed:\n{traceback.format_exc()}", "see what it says")]

    def _records(self) -> Iterator[Finding]:
        name, given = _new(), list(_RECORDS)
        if self._one.load(name) != []:
            yield Finding("records", "a conversation that is not there has records", "give an empty list")
        self._one.append(name, given[:3], 0)
        self._one.append(name, given[3:], 3)
        for store in (self._one, self._other):
            kept = store.load(name)
            for before, after in zip(given, kept, strict=False):
                if before != after:
                    what = f"a record came back changed: {str(before)[:200]} as {str(after)[:200]}"
                    yield Finding("records", what, "keep JSON as text, with every character escaped if need be")
            if len(kept) != len(given):
                what = f"{len(kept)} records came back of {len(given)}"
                yield Finding("records", what, "let every object read what any of them wrote")
            if store.load(name, 5) != kept[5:] or store.load(name, len(given)) != []:
                yield Finding("records", "load(id, after) is not the end of load(id)", "leave out the first `after`")
            kept.clear()
        if len(self._one.load(name)) != len(given):
            yield Finding("records", "what load gave is the store's own list", "give a new list")

    def _ids(self) -> Iterator[Finding]:
        begun = {name: len(self._one.load(name)) for name in _IDS}
        marks = {name: {"role": "user", "content": _new()} for name in _IDS}
        for name in _IDS:
            self._one.append(name, [marks[name]], begun[name])
        for name in _IDS:
            if self._other.load(name, begun[name]) != [marks[name]]:
                what = (
                    f"the conversation {name!r:.40} does not have what was added to it, or has what others were given"
                )
                yield Finding("ids", what, "take any text and None as ids, and tell all of them apart")

    def _expected(self) -> Iterator[Finding]:
        name = _new()
        self._one.append(name, _RECORDS[:2], 0)
        for store in (self._one, self._other):
            for expected in (0, 1, 3, 100):
                for records in (_RECORDS[:1], ()):
                    error = _raised(store, name, records, expected)
                    if not _is_conflict(error):
                        what = f"append with expected={expected} where there are 2 records ended with {error!r}"
                        yield Finding("expected", what, "raise ConversationConflictError")
                    elif [getattr(error, each, None) for each in ("session_id", "expected", "found")] != [
                        name,
                        expected,
                        2,
                    ]:
                        yield Finding("expected", f"the error does not say what happened: {error}", "give it all three")
        if len(self._other.load(name)) != 2:
            yield Finding("expected", "a refused append was written", "look and write in one step")

    def _refused(self) -> Iterator[Finding]:
        name = _new()
        for none in _NO_RECORDS:
            if not isinstance(_raised(self._one, name, [_RECORDS[0], none], 0), ValueError):
                yield Finding("refused", f"{none} was taken for a record", "raise ValueError")
        if self._other.load(name) != []:
            yield Finding("refused", "a part of what was refused was written", "write all records or none")

    def _writers(self) -> Iterator[Finding]:
        name, each, writers = _new(), 20, 6

        def write(writer: int) -> None:
            store = (self._one, self._other)[writer % 2]
            for number in range(each):
                pair = [{"role": "user", "content": f"{writer}.{number}.{part}"} for part in "ab"]
                while (error := _raised(store, name, pair, len(store.load(name)))) is not None:
                    if not _is_conflict(error):
                        raise error

        with _threads(writers) as pool:
            for done in [pool.submit(write, writer) for writer in range(writers)]:
                done.result(self._patience)
        kept = [record["content"] for record in self._other.load(name)]
        if sorted(kept) != sorted(f"{w}.{n}.{part}" for w in range(writers) for n in range(each) for part in "ab"):
            what = f"{writers * each * 2} records of {writers} writers became {len(kept)}, {len(set(kept))} of them new"
            yield Finding("writers", what, "let one writer at a time look at the number and write")
        if any(second != f"{first[:-1]}b" for first, second in zip(kept[::2], kept[1::2], strict=False)):
            yield Finding("writers", "records of one append are apart", "write all of them in one step")

    def _waiting(self) -> Iterator[Finding]:
        name = _new()
        steps: list[tuple[Mapping[str, Any], bool]] = [
            ({"role": "user", "content": "go"}, False),
            ({"role": "assistant", "content": None, "tool_calls": [_CALL]}, False),
            ({"parked": 0, "reason": "asked"}, True),
            ({"begun": "another", "agent": "Helper"}, True),
            ({"role": "user", "content": "never mind"}, False),
        ]
        for number, (record, waits) in enumerate(steps):
            self._one.append(name, [record], number)
            for store in (self._one, self._other):
                expected = number + 1 if waits else None
                if store.waiting().get(name) != expected:
                    what = f"after {record} waiting() says {store.waiting().get(name)!r}, not {expected!r}"
                    remedy = (
                        "name the conversations whose last message has a parked call, with their numbers of records"
                    )
                    yield Finding("waiting", what, remedy)

    # Turns -----------------------------------------------------------------------------------------------------

    def _turns(self) -> Iterator[Finding]:
        name, running, most, served = _new(), 0, 0, []
        guard = threading.Lock()

        async def turn(store: Store, worker: int, number: int) -> None:
            nonlocal running, most
            await asyncio.sleep(number * 0.02)  # they come one after the other
            async with store.lock(name):
                with guard:
                    running += 1
                    most = max(most, running)
                    served.append((worker, number))
                await asyncio.sleep(0.005)
                with guard:
                    running -= 1

        async def work(store: Store, worker: int) -> None:
            await asyncio.gather(*(turn(store, worker, number) for number in range(6)))

        with _threads(4) as pool:
            stores = (self._one, self._other, self._one, self._other)
            begun = [pool.submit(asyncio.run, work(store, worker)) for worker, store in enumerate(stores)]
            for done in begun:
                done.result(self._patience)
        if most > 1:
            yield Finding("turns", f"{most} turns of one conversation were held at once", "let one at a time have it")
        for worker in range(4):
            order = [number for which, number in served if which == worker]
            if order != sorted(order):
                yield Finding("turns", f"turns came in the order {order}", "serve those that wait as they came")

    def _cancelling(self) -> Iterator[Finding]:
        name = _new()

        async def play() -> Iterable[Finding]:
            found = []
            async with self._one.lock(name), self._other.lock(_new()):  # another conversation does not wait for it
                for store in (self._one, self._other):
                    try:
                        async with asyncio.timeout(0.2), store.lock(name):
                            found.append(Finding("cancelling", "a turn was held twice", "let one at a time have it"))
                    except TimeoutError:
                        pass
            error = await _raised_in(self._other, name)
            if not isinstance(error, ZeroDivisionError):
                found.append(Finding("cancelling", f"an error in a turn became {error!r}", "let it pass"))
            for store in (self._one, self._other):
                async with asyncio.timeout(self._patience / 4), store.lock(name):
                    pass
            return found

        try:
            yield from asyncio.run(play())
        except TimeoutError:
            remedy = "release it in a finally, and leave nothing behind where one that waits is cancelled"
            yield Finding("cancelling", "a turn is held although nothing has it", remedy)

    def _loops(self) -> Iterator[Finding]:
        name, held, done = _new(), threading.Event(), threading.Event()

        async def hold() -> None:
            async with self._one.lock(name):
                held.set()
                while not done.is_set():  # noqa: ASYNC110 - an event of a thread cannot be awaited
                    await asyncio.sleep(0.01)

        async def wait() -> float:
            """The longest time for which this loop did not come round."""
            waiting = asyncio.ensure_future(_enter(self._other, name))
            longest, before = 0.0, time.monotonic()
            end = before + 0.5
            while (now := time.monotonic()) < end:
                longest, before = max(longest, now - before), now
                await asyncio.sleep(0.01)
            done.set()
            await waiting
            return longest

        with _threads(2) as pool:
            holding = pool.submit(asyncio.run, hold())
            held.wait(self._patience)
            try:
                longest = pool.submit(asyncio.run, wait()).result(self._patience)
            finally:
                done.set()
            holding.result(self._patience)
        if longest > 0.4:
            yield Finding(
                "loops", f"waiting for a turn blocked the event loop for {longest:.1f} s", "await what you wait for"
            )


def _is_conflict(error: BaseException | None) -> bool:
    return CONFLICT in [each.__name__ for each in type(error).__mro__]


def _new() -> str:
    return f"conformance-{uuid4()}"


def _threads(number: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(number, thread_name_prefix="store-conformance")


def _raised(store: Store, name: str, records: Sequence[Mapping[str, Any]], expected: int) -> Exception | None:
    """What appending raises."""
    try:
        store.append(name, records, expected)
    except Exception as error:  # noqa: BLE001 - it is looked at
        return error
    return None


async def _enter(store: Store, name: str) -> None:
    async with store.lock(name):
        pass


async def _raised_in(store: Store, name: str) -> Exception | None:
    try:
        async with store.lock(name):
            raise ZeroDivisionError
    except Exception as error:  # noqa: BLE001 - it is looked at
        return error
