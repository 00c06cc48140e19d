"""Pools: worker threads for sync tools, bounded, which outlive tools that do not end; and the backends of plugins."""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Final, TypeAlias, final

from pegboard._base.effects import AttemptTimeoutError, ClosedError, Outcome, after_fork, cancellation, guarded

CLOSED: Final = "the toolkit is closed; its threads run nothing more"

_numbers = itertools.count(1)
# Guards the state of every ticket: it is held for an instant, and a lock for each would cost more. A signal handler may
# give up a job in between, as asyncio's does on a Ctrl-C: this lock and that of a pool can be taken again.
_tickets = threading.RLock()
guarded(_tickets)


class Ticket:
    """One job on its way through a pool; `done` is called once with what it came to, or why it was given up.

    Not where the caller has left, and abandons it.
    """

    outcome: Outcome | None = None
    thread: threading.Thread | None = None  # that it runs in, once it has begun
    _since = 0.0

    def __init__(self, pool: Pool, job: Callable[[], Any], done: Callable[[Outcome], object] | None = None) -> None:
        self.pool = pool
        self.job = job
        self.context = contextvars.copy_context()
        self._done = done

    def start(self, thread: threading.Thread | None = None) -> bool:
        """Whether the job is still wanted when a worker picks it up."""
        with _tickets:
            if self.outcome is not None:
                return False
            self._since = time.monotonic()
            self.thread = thread or threading.current_thread()
            return True

    def elapsed(self) -> float:
        """Seconds since a worker began; 0 while the job still queues."""
        return 0.0 if self.thread is None else time.monotonic() - self._since

    def end(self, outcome: Outcome) -> bool:
        """Say what it came to; only the first word counts, and who has it has to `tell`."""
        with _tickets:
            first = self.outcome is None
            if first:
                self.outcome = outcome
            return first

    def tell(self) -> None:
        """Tell the caller that the job has ended."""
        if self._done is not None and self.outcome is not None:
            self._done(self.outcome)

    def settle(self, outcome: Outcome) -> None:
        """Record what it came to, and tell the caller."""
        if self.end(outcome):
            self.tell()

    def give_up(self, error: BaseException) -> bool:
        """End with that error, unless it is over; whether it was not. From any thread."""
        ended = self.pool.abandon(self, error)
        if ended:
            self.tell()
        return ended


@final
class WorkerPool:
    """At most `size` jobs at a time. Abandoned threads do not count, but no more than `max_abandoned` pile up.

    Where they come near that, fewer jobs run at a time; then jobs are refused, those that queue too. The default
    executor of asyncio is not used: it has few threads, starves after some tools that do not return, and keeps the
    interpreter from exiting.
    """

    def __init__(self, size: int = 64, *, max_abandoned: int = 256) -> None:
        if size < 1:
            raise ValueError(f"a pool needs at least 1 thread, got {size}")
        self.size = size
        self.max_abandoned = max_abandoned
        self.closed = False
        self._begin()
        after_fork(self, WorkerPool._begin)  # its threads are those of the parent

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._left = threading.Condition(self._lock)  # told when a thread ends or is lost
        self._backlog: deque[Ticket] = deque()  # jobs that are not promised a thread
        self._jobs: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()  # those that are
        self._threads: set[threading.Thread] = set()
        self._lost: set[threading.Thread] = set()
        self._idle = 0  # threads without a job that are not promised one
        self._lending: set[threading.Thread] = set()
        self._leaving = 0  # threads that deliver their last outcome, and take no other job

    @property
    def abandoned(self) -> int:
        """How many threads are inside jobs that no caller waits for."""
        return len(self._lost)

    @property
    def queued(self) -> int:
        """How many jobs wait for a thread."""
        with self._lock:
            return sum(ticket.outcome is None for ticket in self._backlog)

    def submit(self, ticket: Ticket) -> None:
        """Queue a job. Raises `ClosedError` when the pool takes no more, RuntimeError when no thread can be started."""
        with self._lock:
            if self.closed:
                raise ClosedError(CLOSED)
            if len(self._lost) >= self.max_abandoned:
                raise self._too_many()
            self._backlog.append(ticket)
            try:
                self._promise()
            except RuntimeError:
                self._backlog.remove(ticket)
                raise

    def _too_many(self) -> ClosedError:
        return ClosedError(f"{self.abandoned} threads are inside tools that timed out; no more are started")

    def relieve(self) -> None:
        """Let jobs that queue have the threads that there are by now."""
        with self._lock, suppress(RuntimeError):  # no thread can be started: they wait for one of those that are there
            self._promise()

    def _promise(self) -> None:
        # Called under the lock: jobs get threads, as far as there is room.
        while self._backlog and self._has_room() and not self.closed:
            ticket = self._backlog[0]
            if ticket.outcome is None:  # else it was given up while it queued
                if self._idle:
                    self._idle -= 1
                else:
                    thread = threading.Thread(target=self._work, name=f"pegboard-{next(_numbers)}", daemon=True)
                    thread.start()
                    self._threads.add(thread)
                self._jobs.put(ticket)
            self._backlog.popleft()

    def _has_room(self) -> bool:
        # Called under the lock. Lent slots, leaving and abandoned threads do not count.
        busy = len(self._threads) - self._idle - len(self._lending) - self._leaving
        return busy < min(self.size, self.max_abandoned - len(self._lost))

    def _work(self) -> None:
        local.pool = self
        me, leaving = threading.current_thread(), False
        while not leaving:
            ticket = self._jobs.get()
            if ticket is None:
                break
            began = ticket.start(me)
            outcome = performed(ticket.context.run, ticket.job) if began else (None, None)
            # Before the caller hears of the outcome: its next call finds this thread idle and starts no other.
            with self._lock:
                if began and not ticket.end(outcome):
                    break  # the caller left long ago: this thread was counted as lost, and ends now that it is back
                leaving = not self._stays()
            if began:
                ticket.tell()
            del ticket, outcome
        with self._lock:
            self._threads.discard(me)
            self._lost.discard(me)
            self._leaving -= leaving
            self._left.notify_all()
            self.relieve()

    def _stays(self) -> bool:
        """Whether a worker takes another job: one that queues, or the next that comes."""
        # Called under the lock.
        if len(self._threads) - len(self._lending) - self._leaving > self.size:
            # Said under the same lock that was asked under: two that both saw one too many would both go.
            self._leaving += 1
            return False
        self._idle += 1
        self.relieve()
        return True

    def abandon(self, ticket: Ticket, error: BaseException | None = None, *, relieve: bool = True) -> bool:
        """Give up on a job that has not ended; whether it had not. One that had not begun simply never runs.

        Without `relieve` no queued job takes its place yet: its caller may be about to give up that one too.
        """
        with self._lock:
            ended = ticket.end((None, error))
            if ended and ticket.thread is not None:
                self._lose(ticket.thread)
                if relieve:
                    self.relieve()
            return ended

    def _lose(self, thread: threading.Thread) -> None:
        # Called under the lock.
        self._threads.discard(thread)
        self._lending.discard(thread)
        self._lost.add(thread)
        self._left.notify_all()
        if len(self._lost) >= self.max_abandoned:
            self._refuse(self._too_many())

    def _refuse(self, error: BaseException) -> None:
        # Called under the lock: what queues never runs.
        while self._backlog:
            self._backlog.popleft().settle((None, error))

    @contextmanager
    def lent(self) -> Iterator[None]:
        """While a worker waits for other work, its slot goes to another job: nested calls cannot exhaust the pool.

        A worker that runs an event loop may wait for several things at once; it lends its one slot as long.
        """
        local.waits = waits = local.waits + 1
        me = threading.current_thread()
        if waits == 1:
            with self._lock:
                if me in self._threads:  # one that was abandoned has no slot to lend
                    self._lending.add(me)
                    self.relieve()
        try:
            yield
        finally:
            local.waits -= 1
            if local.waits == 0:
                with self._lock:
                    self._lending.discard(me)

    def close(self, seconds: float = 5.0, stop: Callable[[], None] = lambda: None) -> None:
        """End idle threads, wait for busy ones, `seconds` at most, refuse what queues; abandon what still runs then.

        `stop` tells the calls that wait for the pool to give up, once it takes no more jobs.
        """
        with self._lock:
            if self.closed:
                return
            self.closed = True
            with suppress(queue.Empty):
                while ticket := self._jobs.get_nowait():
                    self._backlog.append(ticket)
            threads = self._threads - {threading.current_thread()}
            for _ in self._threads:
                self._jobs.put(None)
        stop()
        with self._left:
            self._left.wait_for(lambda: threads.isdisjoint(self._threads | self._lost), seconds)
            for thread in threads & self._threads:
                self._lose(thread)
            ended = threads - self._lost
        with self._lock:
            self._refuse(ClosedError(CLOSED))
        for thread in ended:  # they have said that they end
            thread.join(seconds)


@final
class BackendPool:
    """One job at a plugin's backend, dealt with as a pool of our own is. Its time runs at once."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._future: Any = None

    def submit(self, ticket: Ticket) -> None:
        """Hand the job over. Raises what the backend raises."""
        ticket.start()
        self._future = self._backend.submit(ticket.job)
        self._future.add_done_callback(lambda future: self._ended(ticket, future))

    def relieve(self) -> None:
        """The backend itself knows what queues there."""

    def _ended(self, ticket: Ticket, future: Any) -> None:
        self._future = None  # it keeps its callbacks, and the ticket by them
        error = cancellation() if future.cancelled() else future.exception()
        ticket.settle((None, error) if error is not None else (future.result(), None))

    def abandon(self, ticket: Ticket, error: BaseException | None = None, *, relieve: bool = True) -> bool:
        """Give up on a job that has not ended, and cancel its future."""
        future, ended = self._future, ticket.end((None, error))
        if ended and future and future.cancel() and isinstance(error, AttemptTimeoutError):
            error.abandoned = False
        return ended


# Where jobs run that a driver waits for.
Pool: TypeAlias = WorkerPool | BackendPool


class _Local(threading.local):
    """What the current thread knows of itself."""

    pool: WorkerPool | None = None
    waits = 0


local = _Local()


def lending() -> AbstractContextManager[None]:
    """Lends the slot of the current thread, if it is a worker's."""
    pool = local.pool
    return nullcontext() if pool is None else pool.lent()


def performed(run: Callable[..., Any], *arguments: Any) -> Outcome:
    """What a function comes to; whatever it raises is the outcome too."""
    # Not in a coroutine: there a StopIteration would become something else.
    try:
        return run(*arguments), None
    except BaseException as error:  # noqa: BLE001 - the stages decide what an exception means
        return None, error


async def performed_later(start: Callable[[], Awaitable[Any]]) -> Outcome:
    """The same of a function whose answer has to be awaited."""
    try:
        return await start(), None
    except BaseException as error:  # noqa: BLE001 - as above
        return None, error
