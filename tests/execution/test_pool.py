"""The pool of worker threads: slots that are lent, abandoned threads, jobs that queue when it is closed."""

import threading
from collections.abc import Iterator

import pytest

from pegboard._base.effects import Outcome
from pegboard._execution.threads import Ticket, WorkerPool, _tickets
from tests.support.waiting import PATIENCE, eventually, within


class Job:
    """Runs until it is let go."""

    def __init__(self, pool: WorkerPool, go: threading.Event, *, lends: bool = False) -> None:
        self.begun = threading.Event()
        self.outcomes: list[Outcome] = []
        self._pool = pool
        self._go = go
        self._lends = lends
        self.ticket = Ticket(pool, self._run, self.outcomes.append)
        pool.submit(self.ticket)

    def _run(self) -> str:
        if not self._lends:
            self.begun.set()
            self._go.wait(PATIENCE)
            return "done"
        with self._pool.lent():
            self.begun.set()
            self._go.wait(PATIENCE)
        return "done"


@pytest.fixture
def go() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_thread_that_is_lost_while_its_slot_is_lent_frees_no_second_one(go: threading.Event) -> None:
    pool = WorkerPool(1)
    lender = Job(pool, go, lends=True)
    assert lender.begun.wait(PATIENCE)
    assert pool.abandon(lender.ticket)
    first, second = Job(pool, go), Job(pool, go)
    assert first.begun.wait(PATIENCE)
    assert (pool.queued, pool.abandoned) == (1, 1)
    go.set()
    assert eventually(lambda: second.outcomes == [("done", None)])
    assert eventually(lambda: pool.abandoned == 0)
    pool.close()


def test_a_lost_thread_has_no_slot_to_lend(go: threading.Event) -> None:
    pool = WorkerPool(1)
    begun, lost, back = threading.Event(), threading.Event(), threading.Event()

    def late() -> None:
        begun.set()
        lost.wait(PATIENCE)
        with pool.lent():
            back.set()
            go.wait(PATIENCE)

    ticket = Ticket(pool, late)
    pool.submit(ticket)
    assert begun.wait(PATIENCE)
    assert pool.abandon(ticket)
    lost.set()
    assert back.wait(PATIENCE)
    first, _ = Job(pool, go), Job(pool, go)
    assert first.begun.wait(PATIENCE)
    assert pool.queued == 1
    go.set()
    pool.close()


def test_closing_refuses_what_queues_and_counts_what_is_blocked(go: threading.Event) -> None:
    pool = WorkerPool(1)
    blocked = Job(pool, go)
    assert blocked.begun.wait(PATIENCE)
    queued = Job(pool, go)
    within(lambda: pool.close(0.02))
    ((value, error),) = queued.outcomes
    assert value is None
    assert isinstance(error, RuntimeError)
    assert "closed" in str(error)
    assert not queued.begun.is_set()
    assert (pool.abandoned, pool.queued) == (1, 0)
    go.set()
    assert eventually(lambda: blocked.outcomes == [("done", None)])
    assert eventually(lambda: pool.abandoned == 0)


def test_closing_from_one_of_its_threads() -> None:
    before = set(threading.enumerate())
    pool = WorkerPool(2)
    outcomes: list[Outcome] = []
    pool.submit(Ticket(pool, pool.close, outcomes.append))
    assert eventually(lambda: outcomes == [(None, None)])
    assert eventually(lambda: set(threading.enumerate()) <= before)


def test_abandoned_threads_are_capped(go: threading.Event) -> None:
    pool = WorkerPool(2, max_abandoned=3)
    for _ in range(3):
        job = Job(pool, go)
        assert job.begun.wait(PATIENCE)
        assert pool.abandon(job.ticket)
    with pytest.raises(RuntimeError, match="3 threads are inside tools"):
        pool.submit(Ticket(pool, lambda: None))
    go.set()
    assert eventually(lambda: pool.abandoned == 0)
    pool.submit(Ticket(pool, lambda: None))
    pool.close()


def test_a_signal_handler_may_give_up_a_job_whatever_its_thread_is_doing(go: threading.Event) -> None:
    pool = WorkerPool(1)
    job = Job(pool, go)
    assert job.begun.wait(PATIENCE)

    def handle() -> None:
        with pool._lock, _tickets:
            assert job.ticket.give_up(TimeoutError())
            assert not job.ticket.give_up(TimeoutError())

    within(handle)
    ((_, error),) = job.outcomes
    assert isinstance(error, TimeoutError)
    go.set()
    pool.close()
