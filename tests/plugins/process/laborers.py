"""Tools that run in processes of their own: they have to lie in a module that such a process can import."""

import contextvars
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

from attrs import define

from pegboard import CancelToken, Emitter, ImageBlock, Injected, Suspend, ToolCall, ToolError, ToolOutput, tool
from pegboard._model.tool import ToolOptions
from pegboard_process import _pipe

process = tool(backend="process")
VARIABLE = contextvars.ContextVar("variable", default="the child's")


@process
def add(a: int, b: int = 10) -> int:
    """Add."""
    return a + b


@process
def pid(seconds: float = 0.0) -> int:
    """Say which process this is."""
    time.sleep(seconds)
    return os.getpid()


@process
def spin(place: Path) -> NoReturn:
    """Never stop."""
    place.write_text(str(os.getpid()))
    while True:
        pass


@process
def spin_once(place: Path) -> str:
    """Never stop the first time."""
    if place.exists():
        return "done"
    spin(place)


@process
def stop_when_told(place: Path, token: CancelToken) -> None:
    """Stop when the token says so."""
    place.with_suffix(".began").touch()
    token.wait()
    place.write_text(token.reason)


@process
def tidy(place: Path) -> Iterator[str]:
    """Yield until stopped."""
    try:
        while True:
            yield "tick"
            time.sleep(0.01)
    finally:
        place.write_text("tidied")


@process
def flood(emitter: Emitter) -> NoReturn:
    """Never stop talking."""
    while True:
        emitter.emit("x")


@process
def parent_of(place: Path) -> NoReturn:
    """Start another process, and never stop."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    place.write_text(str(child.pid))
    while True:
        child.wait()


@process
def swarm(place: Path, helpers: int) -> NoReturn:
    """Start helpers, write down who is there, and never stop."""
    there = [subprocess.Popen(["sleep", "600"]).pid for _ in range(helpers)]
    place.with_suffix(".part").write_text(" ".join(map(str, [os.getpid(), *there])))
    place.with_suffix(".part").rename(place)
    while True:
        pass


@process
def end(code: int) -> None:
    """End the process."""
    os._exit(code)


@tool(backend="process", idempotent=True)
def end_once(place: Path) -> str:
    """End the process the first time."""
    if place.exists():
        return "done"
    place.touch()
    os._exit(7)


@process
def fork_and_end() -> None:
    """End the process, and leave another one behind that has all of its files."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        time.sleep(20)
        os._exit(0)
    os._exit(4)


@process
def kill(signal_name: str) -> None:
    """Be killed."""
    os.kill(os.getpid(), signal.Signals[signal_name])
    time.sleep(60)


class Rude(Exception):
    """Can be pickled."""


class TwoPartsError(Exception):
    """Can be pickled but not be read back."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


class LockedError(Exception):
    """Cannot be pickled."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()


class LaterError(Exception):
    """Asks for an hour."""

    retry_after = 3600


ERRORS: dict[str, Callable[[str], BaseException]] = {
    "rude": Rude,
    "two": lambda text: TwoPartsError(text, text),
    "locked": LockedError,
    "key": KeyError,
    "disk": lambda text: FileNotFoundError(2, text),
    "later": LaterError,
    "tool": ToolError,
    "suspend": lambda text: Suspend(text, ticket=7),
    "exit": lambda text: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "stop": StopIteration,
}


@process
def fail(kind: str, text: str = "no") -> None:
    """Raise."""
    error = ERRORS[kind](text)
    error.add_note("a note")
    raise error


@process
def count(n: int, emitter: Emitter) -> Iterator[str]:
    """Yield and emit."""
    for index in range(n):
        emitter.emit(f"e{index}")
        yield f"y{index} "


@process
def conclude(n: int, value: str | None) -> Generator[int, None, Any]:
    """Yield, then return."""
    yield from range(n)
    return value


@process
def break_off(n: int) -> Iterator[str]:
    """Yield, then fail."""
    for index in range(n):
        yield f"y{index} "
    raise Rude("no more")


@process
def stream_locks() -> Iterator[Any]:
    """Yield what cannot be sent."""
    yield threading.Lock()


@process
def flow() -> Iterator[str]:
    """Yield without end."""
    while True:
        yield "x"


@process
def paint(emitter: Emitter) -> list[Any]:
    """Emit and return blocks."""
    emitter.emit(ImageBlock.from_bytes(b"draft", "image/png"))
    return ["a picture", ImageBlock.from_bytes(b"done", "image/png")]


@process
def describe(call: ToolCall, a: int) -> ToolOutput:
    """Say what the call is, and leave something with it."""
    call.log("logged")
    call.attach(ImageBlock.from_bytes(b"attached", "image/png"))
    return ToolOutput({"id": call.id, "name": call.name, "sent": call.arguments, "typed": dict(call.typed)})


@process
def speak_later(emitter: Emitter, seconds: float) -> str:
    """Leave a thread behind that goes on talking."""

    def talk() -> None:
        for _ in range(int(seconds / 0.005)):
            emitter.emit("late")
            time.sleep(0.005)

    threading.Thread(target=talk, daemon=True).start()
    return "left"


@process
def listen(emitter: Emitter, seconds: float) -> str:
    """Emit a little."""
    emitter.emit("now")
    time.sleep(seconds)
    return "heard"


@define
class Account:
    """An object of the context."""

    balance: int
    lock: Any = None


@process
def pay(amount: int, account: Injected[Account], key: str) -> str:
    """Use the context and a preset."""
    account.balance -= amount
    return f"{account.balance} {key}"


class Hue(Enum):
    """Cannot be found by its name."""

    RED = "red"


NAMELESS = Hue
del Hue


@process
def colour(hue: NAMELESS) -> str:
    """Name a colour."""
    return str(hue)


@process
def unsendable() -> Any:
    """Return what cannot be sent."""
    return threading.Lock()


@process
def leave_traces(place: Path) -> int:
    """Change what belongs to the whole process."""
    os.chdir(place)
    os.environ["LEFT_BEHIND"] = "1"
    os.environ["HOME"] = "elsewhere"
    os.environ.pop("PATH")
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.alarm(1)
    return os.getpid()


@process
def find_traces(seconds: float) -> dict[str, Any]:
    """Say what there is of the process, after some time."""
    time.sleep(seconds)
    return {
        "pid": os.getpid(),
        "folder": str(Path.cwd()),
        "variables": [os.environ.get(name) for name in ("LEFT_BEHIND", "HOME", "PATH")],
        "handler": str(signal.getsignal(signal.SIGUSR1)),
    }


@process
def give_too_much(limit: int, size: int, how: str) -> Any:
    """Give more than a message may have, which is `limit` from now on."""
    _pipe.MAX_CONTENT = limit  # type: ignore[misc]
    if how == "raised":
        raise ValueError("x" * size)
    return b"x" * size if how == "returned" else (each * size for each in "xy")


@process
def variable() -> str:
    """Read a context variable."""
    return VARIABLE.get()


@process
def shout(text: str) -> None:
    """Print."""
    print(text)


@process
def square_all(numbers: list[int]) -> list[int]:
    """Use processes in the process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(abs, numbers)


class Shop:
    """Has a tool as a method."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.visits = 0

    @process
    def visit(self, times: int) -> str:
        """Visit."""
        self.visits += times
        return f"{self.name} {self.visits}"


def noisy(function: Any) -> Any:
    """Wrap."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) + "!"

    return wrapper


@process
@noisy
def greet(name: str, *rest: str, mark: str = ".") -> str:
    """Greet."""
    return " ".join(["Hello", name, *rest]) + mark


@process
def eclipsed() -> None:
    """Be hidden by another of the same name."""


ECLIPSED = eclipsed
eclipsed = None  # type: ignore[assignment]


@tool(backend="proces")
def misplaced() -> None:
    """Name a backend that is not there."""


class Telltale:
    """Says too much when it is pickled."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {self.key}")


@tool(backend="process")
def spend(key: Injected[Telltale]) -> None:
    """Take a secret object."""


PROCESS = ToolOptions(backend="process")


class ByHand:
    """A tool by hand."""

    name = "by_hand"
    description = "Say a word."
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}  # noqa: RUF012

    def call(self, call: ToolCall) -> Any:
        """Answer."""
        call.log("by hand")
        return {"word": call.arguments["word"], "pid": os.getpid()}


def reporting(n: int, emitter: Emitter) -> str:
    """Tells how far it has come."""
    for done in range(1, n + 1):
        emitter.progress(done, n, "part")
    emitter.progress(0.5)
    emitter.emit("nearly")
    return "done"
