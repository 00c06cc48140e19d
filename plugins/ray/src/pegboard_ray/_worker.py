"""The worker's side: a toolkit of its own, of the packs that are installed there, which runs one call at a time."""

from __future__ import annotations

import importlib
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final, final

from pegboard import Chunk, ExecutionPolicy, Job, PegboardError, Tool, Toolkit
from pegboard_process.wire import (
    BEGUN,
    CHUNK,
    RETURNED,
    UNREADABLE,
    Answers,
    Surroundings,
    encoded,
    performed,
    reason_of,
    reported,
    within,
)
from pegboard_ray._checks import listens, path_of
from pegboard_ray._order import LATE, MISMATCH, PUT_OFF, TOOK, Order, Wanted, framed, schema_digest, unpacked
from pegboard_ray._places import PLACES
from pegboard_ray._watchdog import Watchdog

__all__ = ["release_of", "run_calls", "stream_call"]

_ROOM: Final = 16
"""Messages that may wait for Ray to take them; a tool that sends one more waits."""
_PIECE: Final = 1 << 20
"""Bytes that are sent at once, if more messages wait."""
_LONG: Final = 0.05
"""Seconds after which the remaining calls of a task go to other tasks."""
_POLICY: Final = ExecutionPolicy(timeout=None, max_attempts=1)
_PLACES: Final = ("inline", "process", "ray", "thread")

_watchdog: Final = Watchdog()


def run_calls(parcel: bytes) -> bytes:
    """Run calls to their ends, one after another: their answers. What the tool reports meanwhile is dropped."""
    opened = unpacked(parcel)
    if opened is None:
        return _refusal()
    wanted, orders = opened
    with suppress(Exception):  # each call tells what is wrong; to assemble a toolkit is none of their time
        _found(wanted)
    answers, begun = [], time.monotonic()
    for order in orders:
        if time.monotonic() - begun > _LONG:
            answers.append(framed(PUT_OFF, b""))
        else:
            answers.append(_Work(wanted, order, lambda kind, content: None).run())
    return b"".join((*answers, framed(TOOK, repr(time.monotonic() - begun).encode())))


def stream_call(parcel: bytes) -> Iterator[bytes]:
    """Run a call, and yield its messages; its answer is the last."""
    opened = unpacked(parcel)
    if opened is None:
        yield _refusal()
        return
    wanted, (order,) = opened
    outgoing: queue.Queue[bytes | None] = queue.Queue(_ROOM)
    work = _Work(wanted, order, lambda kind, content: outgoing.put(framed(kind, content)))

    def run() -> None:
        outgoing.put(work.run())
        outgoing.put(None)

    # In a thread of its own, so that it can say something while it runs.
    threading.Thread(target=run, name="pegboard-ray", daemon=True).start()
    more = True
    while more:
        try:
            piece, more = _piece(outgoing)
        except KeyboardInterrupt:  # so Ray tells that the call was cancelled; if that is not enough, it kills
            work.stop("the call was cancelled")
            continue
        if piece:
            yield piece


def _piece(outgoing: queue.Queue[bytes | None]) -> tuple[bytes, bool]:
    """What there is to send now, and whether more may come."""
    piece = b""
    with suppress(queue.Empty):
        # Not for ever: a main thread that waits for a lock hears of no interrupt.
        next_one = outgoing.get(timeout=0.1)
        while next_one is not None:
            piece += next_one
            if len(piece) >= _PIECE:
                return piece, True
            next_one = outgoing.get_nowait()
        return piece, False
    return piece, True


def release_of(distribution: str | None) -> str:
    """A distribution and its version, for messages."""
    with suppress(Exception):
        return f"{distribution} {version(distribution)}" if distribution else "the program"
    return f"{distribution} (not installed)"


def _refusal() -> bytes:
    message = f"its worker has pegboard {version('pegboard')}, whose pegboard-ray speaks otherwise"
    return framed(MISMATCH, message.encode())


@final
class _Work:
    """One call in a worker."""

    def __init__(self, wanted: str, order: Order, say: Callable[[bytes, bytes], object]) -> None:
        self._wanted = wanted
        self._order = order
        self._say = say
        self._job: Job | None = None
        self._reason = ""
        self._kind, self._content = UNREADABLE, encoded("it did not run")

    def stop(self, reason: str) -> None:
        """Let the tool know that its call is over."""
        self._reason = reason
        if self._job is not None:
            self._job.token.cancel(reason)

    def run(self) -> bytes:
        """Run it: its answer."""
        order = self._order
        try:
            board, name = _found(self._wanted)
            shown = {key: value for key, value in order.presets.items() if key in board.parameters(name)}
            with within(order.carrier):
                board.call(name, {**order.arguments, **shown}, self)
        except _MismatchError as error:
            return framed(MISMATCH, str(error).encode())
        except BaseException as error:  # noqa: BLE001 - the packs of this worker, and modules of the program
            return framed(UNREADABLE, encoded(reason_of(error)))
        return framed(self._kind, self._content)

    @property
    def order(self) -> Order:
        """What to do."""
        return self._order

    def listen(self, chunk: Chunk) -> None:
        """Pass on what the tool emits."""
        self._say(CHUNK, reported(chunk))

    def perform(self, job: Job, types: tuple[str, ...]) -> None:
        """Run the function of a job, and keep what it comes to."""
        self._job = job
        if self._reason:
            job.token.cancel(self._reason)
        args, kwargs = job.arguments()
        answers = Answers(job.function, types)
        self._say(BEGUN, b"")

        def collected() -> Any:
            return job.call.logs, job.call.attachments

        grace = self._order.grace if listens(job.tool) else 0.0
        surroundings = _surroundings()
        surroundings.note()
        with _watchdog.watching(self._order.timeout, self._order.key, job.token, grace) as is_late:
            self._kind, self._content = performed(
                partial(job.function, *args, **kwargs), answers, job.token, self._say, collected
            )
        surroundings.restore()
        if is_late():
            self._kind, self._content = LATE, b""

    def settle(self, result: Any) -> None:
        """A call that did not come as far as its function has a result all the same."""
        if self._job is None:
            self._kind, self._content = RETURNED, encoded([result, [], []])


@cache
def _surroundings() -> Surroundings:
    """Those that every call of this worker finds."""
    return Surroundings()


class _MismatchError(Exception):
    """The tool here is another one."""


@final
class _Here:
    """Runs everything in the worker's own thread."""

    def __init__(self, types: tuple[str, ...]) -> None:
        self._types = types
        self.works = threading.local()
        self.places = [_Place(name, self) for name in _PLACES]  # wherever a tool would run in the program

    def run_here(self, job: Job) -> None:
        """Run a job to its end."""
        self.works.now.perform(job, self._types)

    def submit(self, job: Job) -> Future[Any]:
        """The same, for a call from a loop."""
        self.run_here(job)
        future: Future[Any] = Future()
        future.set_result(None)
        return future


@final
class _Place:
    """A backend of a worker: it runs what it gets."""

    keeps_time = True

    def __init__(self, name: str, here: _Here) -> None:
        self.name = name
        self.submit = here.submit
        self.run_here = here.run_here

    def close(self) -> None:
        """There is nothing to release."""


@final
class _Board:
    """A worker's toolkit."""

    def __init__(self, packs: tuple[str, ...], types: tuple[str, ...], targets: list[str], groups: list[str]) -> None:
        self._here = _Here(types)
        # By its name, for who lists the packs that may be loaded lists this one.
        given = PLACES.set(self._here.places)
        try:
            self._toolkit = Toolkit(plugins=[*packs, "ray"], approver=lambda request: True)
        finally:
            PLACES.reset(given)
        for group in sorted({*groups} - {each.name for each in self._toolkit.groups}):
            self._toolkit.create_group(group)
        for target in targets:
            found = _imported(target)
            self._toolkit.register(*(found if isinstance(found, list | tuple) else (found,)))

    def tool(self, wanted: Wanted) -> Tool:
        """The tool that is wanted. Raises `PegboardError` where it is not there, and `_MismatchError`."""
        tools = [each for each in self._toolkit.all_tools if each.origin.plugin == wanted.plugin]
        tests: list[Callable[[Tool], bool]] = [
            lambda each: wanted.name in (each.name, each.source_name),
            lambda each: each.function is not None and path_of(each.function) == wanted.path,
        ]
        tool = next((each for test in tests for each in tools if test(each)), None)
        if tool is None:
            problems = "".join(f"; {problem}" for problem in self._toolkit.problems)
            raise PegboardError(f"no tool of {wanted.release} here is {wanted.name!r}, nor {wanted.path}{problems}")
        ours = version("pegboard")
        if ours != wanted.pegboard or schema_digest(tool) != wanted.schema:
            release = release_of(tool.origin.distribution)
            raise _MismatchError(
                f"its worker has {release} and pegboard {ours}, while the program has {wanted.release} and pegboard "
                f"{wanted.pegboard}, and the parameters of the tool are other ones"
            )
        return tool

    @cache  # noqa: B019 - a worker keeps its toolkits
    def parameters(self, name: str) -> frozenset[str]:
        """Those that can be given."""
        tool = next(each for each in self._toolkit.all_tools if each.name == name)
        return frozenset(tool.parameters.get("properties", ()))

    def call(self, name: str, arguments: dict[str, Any], work: _Work) -> None:
        """Call a tool, whose outcome `work` keeps."""
        order = work.order
        self._here.works.now = work
        on_chunk = work.listen if order.heard else None
        result = self._toolkit.call_sync(name, arguments, call_id=order.call_id, on_chunk=on_chunk, policy=_POLICY)
        work.settle(result)


@cache
def _found(wanted: str) -> tuple[_Board, str]:
    """The toolkit that has a tool, and the tool's name there. Raises what `_Board` does."""
    order = Wanted(*json.loads(wanted))
    board = _board(tuple(order.packs), tuple(order.types), tuple(order.targets), tuple(order.groups))
    return board, board.tool(order).name


@cache
def _board(*parts: tuple[str, ...]) -> _Board:
    packs, types, targets, groups = parts
    return _Board(packs, types, list(targets), list(groups))


def _imported(target: str) -> Any:
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found
