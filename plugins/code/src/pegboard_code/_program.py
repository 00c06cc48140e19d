"""Programs: one run of a program in a worker, turn by turn; a turn ends where the program waits for tools."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeAlias, final

from attrs import field, frozen

from pegboard import Status
from pegboard_code._catalog import Catalog
from pegboard_code._values import Handles, TooLargeError, as_data
from pegboard_code._workers import Worker, workers

__all__ = ["Answer", "CallRequest", "Ended", "Limits", "Program", "StoppedError"]

PRELUDE: Final = "ToolError = RuntimeError\n"
MAX_DEPTH: Final = 200
MAX_PRINTED: Final = 1_000_000
MAX_MESSAGE: Final = 4_000
_UNSUPPORTED: Final = "The monty syntax parser does not yet support "

Answer: TypeAlias = dict[str, Any]


@final
@frozen
class Limits:
    """What bounds a program: its calls, its seconds, bytes of memory, characters of code."""

    calls: int
    seconds: float
    memory: int
    code: int


@final
@frozen
class CallRequest:
    """A call that a program waits for: `number` there, the name in the catalog, the arguments, the line."""

    number: int
    name: str
    arguments: Mapping[str, Any] = field(repr=False)
    line: int = 0


@final
@frozen
class Ended:
    """The value that a program has come to, as data."""

    value: Any


Turn: TypeAlias = list[CallRequest] | Ended


class StoppedError(Exception):
    """A program did not come to its end: the status, the kind and the message of its result."""

    def __init__(self, status: Status, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


@final
class Program:
    """One program. `start` or `take_up` begins it, `go_on` answers what it requested; `close` in any case."""

    def __init__(
        self,
        code: str,
        catalog: Catalog,
        limits: Limits,
        left: float,
        handles: Handles,
        moment: str,
        calls: int = 0,
        printed: str = "",
    ) -> None:
        self.code = code
        self.moment = moment
        self.calls = calls
        self.handles = handles
        self._catalog = catalog
        self._limits = limits
        self._left = left  # of its seconds
        self._before = printed
        self._print: Any = None
        self._worker: Worker | None = None
        self._snapshot: Any = None
        self._requests: dict[int, CallRequest] = {}
        self.known: dict[int, Answer] = {}  # answers of the host that it has not been given
        self._failures: set[str] = set()

    @property
    def printed(self) -> str:
        """What it has printed so far."""
        return self._before + (self._print.output if self._print is not None else "")

    # Turns -------------------------------------------------------------------------------------------------------

    def start(self) -> Turn:
        """Run the program until it waits for tools or ends. Raises `StoppedError`."""
        session = self._checked_out()
        begin = {"external_lookup": self._catalog.lookup, "print_callback": self._print}
        return self._turn(lambda: session.feed_start(PRELUDE + self.code, **begin))

    def take_up(self, dump: bytes, answers: Mapping[int, Answer]) -> Turn:
        """Go on with a program that waited for tools. Raises `StoppedError`."""
        session = self._checked_out()
        begin = {"external_lookup": self._catalog.lookup, "print_callback": self._print}
        try:
            self._snapshot = session.load_snapshot(dump, **begin)
        except Exception as error:  # whatever the sandbox says of it
            message = f"the program cannot go on, for its snapshot cannot be loaded: {type(error).__name__}"
            raise StoppedError(Status.ERROR, "snapshot", message) from error
        return self.go_on(answers)

    def go_on(self, answers: Mapping[int, Answer]) -> Turn:
        """Answer calls, and run until the next ones or the end. Raises `StoppedError`."""
        for number, answer in answers.items():
            self._requests.pop(number, None)
            if "message" in answer:
                self._failures.add(answer["message"])
        snapshot = self._snapshot
        known = {number: self.known.pop(number) for number in snapshot.pending_call_ids if number in self.known}
        return self._turn(lambda: snapshot.resume({**known, **answers}))

    def dump(self) -> bytes:
        """The program as it waits."""
        dumped: bytes = self._snapshot.dump()
        return dumped

    def kill(self) -> None:
        """End the program at once, from any thread."""
        worker = self._worker
        if worker is not None:
            worker.kill()

    def close(self) -> None:
        """Give the worker back."""
        worker, self._worker, self._snapshot = self._worker, None, None
        if worker is not None:
            worker.close()

    def _checked_out(self) -> Any:
        limits = self._limits
        self._print = workers.library.CollectString(max_bytes=MAX_PRINTED)
        self._worker = workers.checkout(
            limits={
                "max_feed_duration_secs": self._left,
                "max_memory": limits.memory,
                "max_recursion_depth": MAX_DEPTH,
                "max_suspensions": 4 * limits.calls + 400,
            },
            os_policy={
                "datetime": dt.datetime.fromisoformat(self.moment),
                "sleep": "zero",
                "random_start": {"seed": hashlib.sha256(self.code.encode()).hexdigest()},
            },
        )
        return self._worker.session

    def _turn(self, begin: Any) -> Turn:
        library = workers.library
        try:
            snapshot = begin()
            while not isinstance(snapshot, library.MontyComplete):
                if isinstance(snapshot, library.FunctionSnapshot):
                    snapshot = self._called(snapshot)
                elif isinstance(snapshot, library.FutureSnapshot):
                    waited = sorted(snapshot.pending_call_ids)
                    self._snapshot = snapshot
                    if requests := [self._requests[number] for number in waited if number in self._requests]:
                        return requests
                    snapshot = snapshot.resume({number: self.known.pop(number) for number in waited})
                else:
                    snapshot = snapshot.resume_auto()
            return self._ended(snapshot.output)
        except StoppedError:
            raise
        except library.MontyError as error:
            self._failed(error)
        except Exception as error:  # a value that the host cannot hold, or a worker that makes no sense
            message = f"its value, or that of an argument, cannot leave the program: {str(error)[:200]}"
            raise StoppedError(Status.ERROR, "program", message) from error

    # Questions ---------------------------------------------------------------------------------------------------

    def _called(self, snapshot: Any) -> Any:
        name, args, arguments = snapshot.function_name, snapshot.args, snapshot.kwargs
        if snapshot.is_os_function:
            return snapshot.resume_not_handled()
        if name == "show":
            wrong = self.handles.show(*[*args, *arguments.values()][:1] or [None])
            return snapshot.resume(self._raised(wrong) if wrong else {"return_value": None})
        if name in ("find_tools", "describe_tool"):
            query = str([*args, *arguments.values(), ""][0])
            answer = self._catalog.find(query) if name == "find_tools" else self._catalog.describe(query)
            self.known[snapshot.call_id] = {"return_value": answer}
            return snapshot.resume({"future": ...})
        if name not in self._catalog.stubs:
            return snapshot.resume({"exc_type": "NameError", "message": f"name {name!r} is not defined"})
        if args:
            message = f"{name}() takes its arguments by keyword"
            return snapshot.resume({"exc_type": "TypeError", "message": message})
        self._ask(snapshot, name, arguments)
        return snapshot.resume({"future": ...})

    def _ask(self, snapshot: Any, name: str, arguments: Mapping[str, Any]) -> None:
        stub, number = self._catalog.stubs[name], snapshot.call_id
        self.calls += 1
        if self.calls > self._limits.calls:
            message = f"the program made more than {self._limits.calls} calls"
            raise StoppedError(Status.ERROR, "max_calls", message)
        given = {key: each for key, each in arguments.items() if each is not None or key not in stub.optional}
        line = (PRELUDE + self.code).encode()[: snapshot.position.start].count(b"\n")
        try:
            self._requests[number] = CallRequest(number, name, as_data(given), line)
        except TooLargeError as error:
            self.known[number] = self._raised(f"the arguments of {name} are too large: {error}")

    def _raised(self, message: str) -> Answer:
        self._failures.add(message)
        return {"exc_type": "RuntimeError", "message": message}

    # Ends --------------------------------------------------------------------------------------------------------

    def _ended(self, value: Any) -> Ended:
        for each in self._requests.values():
            message = f"{each.name}(...) in line {each.line} was not awaited, so it did not run"
            raise StoppedError(Status.ERROR, "not_awaited", f"{message}; write: {self._awaited(each)}")
        try:
            return Ended(as_data(value))
        except TooLargeError as error:
            message = f"the value of the program is too large: {error}; return less"
            raise StoppedError(Status.ERROR, "max_value", message) from None

    def _awaited(self, request: CallRequest) -> str:
        line = self.code.split("\n")[request.line - 1].strip()
        return re.sub(rf"\b{re.escape(request.name)}\(", f"await {request.name}(", line, count=1)

    def _failed(self, error: Any) -> NoReturn:
        """Raise what an exception of the sandbox means."""
        limits, text = self._limits, str(error)
        if type(error).__name__ == "MontyCrashedError":
            if "time" in text or error.timed_out:
                raise StoppedError(Status.TIMEOUT, "timeout", f"the program ran longer than {limits.seconds:g} s")
            raise StoppedError(Status.ERROR, "crashed", "the sandbox ended before the program did")
        frames = error.traceback() if hasattr(error, "traceback") else []
        kind, _, message = error.display("type-msg").partition(": ")
        if kind == "TimeoutError" and not frames:
            raise StoppedError(Status.TIMEOUT, "timeout", f"the program ran longer than {limits.seconds:g} s")
        if kind == "MemoryError" and message.endswith(f"> {MAX_PRINTED} bytes"):
            raise StoppedError(Status.ERROR, "max_printed", f"the program printed more than {MAX_PRINTED:,} characters")
        if kind == "MemoryError":
            size = f"{limits.memory / 2**20:g} MB"
            raise StoppedError(Status.ERROR, "memory", f"the program used more than {size} of memory")
        if kind == "RecursionError":
            message = f"more than {MAX_DEPTH} calls of functions inside one another"
        status = Status.ERROR
        if kind == "NotImplementedError" and message.startswith(_UNSUPPORTED):
            status, kind, message = Status.INVALID, "", f"{message.removeprefix(_UNSUPPORTED)} are not supported here"
        elif type(error).__name__ == "MontySyntaxError":
            status = Status.INVALID
        elif message in self._failures:
            kind = "ToolError"
        self._stop(status, kind, message, frames)

    def _stop(self, status: Status, kind: str, message: str, frames: list[Any]) -> NoReturn:
        message = f"{kind}: {message}" if kind and message else kind or message
        message = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}..."
        where = [frame for frame in frames if frame.line > 1]
        verb = "was not run" if status is Status.INVALID else "failed"
        if not where:
            raise StoppedError(status, "program", f"the program {verb}: {message}")
        frame = where[-1]
        source = f"\n    {frame.source_line.strip()}" if (frame.source_line or "").strip() else ""
        at = f"line {frame.line - 1}, column {frame.column}"
        raise StoppedError(status, "program", f"the program {verb}: {at}: {message}{source}")
