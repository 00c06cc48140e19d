"""Several processes with one store: no turn is lost or there twice, and each approval is answered once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from pegboard_agent import ConversationStore
from tests.plugins.agent.workers import store_at
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually

WORKERS = 3
CONVERSATIONS = 10


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "talk.jsonl")
    running: PostgresServer = request.getfixturevalue("server")
    running.empty()
    return running.url()


class Worker:
    """A process that is given orders and says what came of them."""

    def __init__(self, place: str) -> None:
        self.came: dict[int, str] = {}
        command = [sys.executable, "-W", "error", "-m", "tests.plugins.agent.workers", place]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            number, came = json.loads(line)
            self.came[number] = came

    def tell(self, number: int, *order: str) -> None:
        """Give an order. A worker that was killed takes none."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps([number, *order]) + "\n")
            self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def finish(self) -> None:
        """Let it do all that it was told."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._end()

    def _end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.wait(300)
        self._reader.join(60)
        self.process.stdout.close()
        with suppress(BrokenPipeError):
            self.process.stdin.close()


class Office:
    """Workers, one of which is killed now and then, and another one takes its place."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.workers = [Worker(place) for _ in range(WORKERS)]
        self._ended: list[Worker] = []
        self._number = 0
        assert eventually(lambda: all(worker.came for worker in self.workers))

    def tell(self, *order: str, worker: int | None = None) -> int:
        """Give an order to any worker; its number."""
        self._number += 1
        self.workers[self._number % WORKERS if worker is None else worker].tell(self._number, *order)
        return self._number

    def kill_one(self) -> None:
        killed = self.workers.pop(0)
        killed.kill()
        self._ended.append(killed)
        self.workers.append(Worker(self._place))

    @property
    def killed(self) -> bool:
        """Whether any worker was."""
        return bool(self._ended)

    def came(self) -> dict[int, str]:
        return {number: came for worker in (*self._ended, *self.workers) for number, came in worker.came.items()}

    def settled(self, numbers: list[int]) -> bool:
        """Whether all orders are done that no worker has taken to its grave."""
        return all(number in self.came() for number in numbers)

    def close(self) -> None:
        for worker in self.workers:
            worker.finish()


def turns_of(store: ConversationStore, conversation: str) -> Counter[str]:
    """What users said in a conversation, and how often; each has one answer to each call, in order."""
    said: Counter[str] = Counter()
    owed: set[int] = set()
    for record in store.load(conversation):
        if "role" in record:
            assert not owed, (conversation, record)
            owed = set(range(len(record.get("tool_calls") or ())))
            said[record["content"] or ""] += record["role"] == "user"
        elif "answers" in record:
            assert record["answers"] in owed, (conversation, record)
            owed.remove(record["answers"])
    return +said


def approvals(place: str, number: int) -> tuple[Office, dict[str, str]]:
    """Workers, and as many parked calls, each in a conversation of its own: its id and the id of the call."""
    office = Office(place)
    parked = {f"approval {each}": f"approve {each}" for each in range(number)}
    numbers = [office.tell("ask", conversation, text) for conversation, text in parked.items()]
    assert eventually(lambda: office.settled(numbers))
    assert {office.came()[each] for each in numbers} == {"parked 1"}
    return office, {conversation: f"call {text}" for conversation, text in parked.items()}


def check_approvals(place: str, number: int, kills: int) -> None:
    """Each approval is given to all workers at once: one of them takes it, and any of them goes on."""
    office, parked = approvals(place, number)
    told: dict[str, list[int]] = {}
    for each, (conversation, call) in enumerate(parked.items()):
        told[conversation] = [
            office.tell("answer", conversation, call, f"by {who}", worker=who) for who in range(WORKERS)
        ]
        if each % (number // (kills + 1)) == number // (kills + 1) - 1 and kills:
            office.kill_one()
            kills -= 1
    if office.killed:
        office.close()  # what was told is done, but by those that were killed
    else:
        assert eventually(lambda: office.settled([each for numbers in told.values() for each in numbers]))
    store, came = store_at(place), office.came()
    for conversation, numbers in told.items():
        (answer,) = [record["messages"][0]["content"] for record in store.load(conversation) if "answers" in record]
        heard = {who: came[each] for who, each in enumerate(numbers) if each in came}
        accepted = [f"by {who}" for who, what in heard.items() if what == "accepted"]
        assert accepted in ([answer], []), (conversation, heard, answer)
        assert accepted or len(heard) < WORKERS  # if none says so, it was one that was killed
        refused = [what for what in heard.values() if what != "accepted"]
        assert all("answered meanwhile" in why or "no suspended call" in why for why in refused), refused
    if office.killed:
        office = Office(place)
    going = {office.tell("go", conversation): conversation for conversation in told}
    office.close()
    assert {office.came()[each][:9] for each in going} == {"done: by "}
    assert store.waiting() == {}
    assert all(sum(turns_of(store, conversation).values()) == 1 for conversation in parked)


def check_turns(place: str, number: int, kills: int) -> None:
    """Turns are given to all workers, some of which are killed meanwhile. What did not begin then is told once more."""
    todo = {f"turn {each}": f"talk {each % CONVERSATIONS}" for each in range(number)}
    killed_at = set(random.Random(5).sample(range(number), kills))
    store = store_at(place)
    missing, said = list(todo), Counter[str]()
    for _ in range(2):
        office = Office(place)
        given = {}
        for each, text in enumerate(missing):
            given[office.tell("turn", todo[text], text)] = text
            if each in killed_at:
                office.kill_one()
        office.close()
        came = office.came()
        for each in given.keys() & came.keys():
            assert came[each] == f"done: {given[each] * 2}", came[each]
        said = sum((turns_of(store, conversation) for conversation in sorted(set(todo.values()))), Counter[str]())
        assert {given[each] for each in given.keys() & came.keys()} <= said.keys()  # none is lost
        assert max(said.values()) == 1  # and none is there twice
        assert given.keys() == came.keys() - {-1} or killed_at
        missing = [text for text in missing if text not in said]
        if not missing:
            break
        killed_at = set()
    assert said.keys() == todo.keys()


def test_turns(place: str) -> None:
    check_turns(place, 9, 0)


@pytest.mark.slow
def test_approvals(place: str) -> None:
    check_approvals(place, 6, 0)


@pytest.mark.slow
def test_a_thousand_turns_while_workers_are_killed(place: str) -> None:
    check_turns(place, 1_000, 12)


@pytest.mark.slow
def test_two_hundred_approvals_while_workers_are_killed(place: str) -> None:
    check_approvals(place, 200, 2)  # so one of those that were told is not killed
