"""Conformance of backends: what every backend has to do for a toolkit, checked in one call."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, final

from pegboard import Backend, ExecutionPolicy, RegistrationError, Secret, Status, Toolkit, ToolResult, hookimpl, tool
from pegboard.inspection import plugins_of
from pegboard_testing import _backend_tools as tools
from pegboard_testing._findings import Finding, message
from pegboard_testing._toolkits import without_environment

__all__ = ["CHECKS", "assert_backend_conforms", "backend_conformance"]

CHECKS: Final = (
    "results",
    "errors",
    "chunks",
    "back-pressure",
    "cancelling",
    "queue",
    "timeout",
    "crash",
    "size",
    "context",
    "secrets",
    "closing",
    "leftovers",
)
"""All checks, in their order."""

_CROWD: Final = 80
"""Calls at once that should leave some waiting; a backend that runs them all has no queue to look at."""
_FLOOD: Final = 400, 100_000
"""Chunks, and characters of each: more than pipes hold."""
_BIG: Final = 8_000_000
_SECRET: Final = "conformance-secret-0123456789abcdef"  # noqa: S105 - made up
_STILL: Final = 0.5
"""Seconds in which work that still goes on would show."""


def assert_backend_conforms(
    backend: str | Backend | Callable[[], Backend],
    *,
    plugins: Iterable[Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    only: Iterable[str] = CHECKS,
    patience: float = 60.0,
) -> None:
    """Raise AssertionError with everything that is wrong with this backend, each with its remedy.

    All checks together take some ten seconds:

    - `results`: data, text, content, attachments and metadata are as from a thread; across processes `value` is None.
    - `errors`: type, message and traceback of an exception arrive; a `ToolError` keeps its message.
    - `chunks`: they arrive in order, and those that are yielded are the result.
    - `back-pressure`: a tool waits while its chunks are not read, and none is lost.
    - `cancelling`: a call that is stopped while it runs is `cancelled`.
    - `queue`: of many calls none is lost, and one that is stopped while it waits never runs.
    - `timeout`: a call ends in time; with `keeps_time` nothing of it continues.
    - `crash`: if a worker dies, the call is an error; only an idempotent tool is tried again; the next call works.
    - `size`: eight million characters are sent and returned.
    - `context`: a tool that needs the context or the session gets it, or is refused with a remedy.
    - `secrets`: no `Secret` is in the result of a tool that raises, or in a worker's arguments or environment.
    - `closing`: closing ends a running call, and later calls are errors.
    - `leftovers`: afterwards there are no more threads, processes and open files than before.

    Raises ValueError for an unknown check.

    Args:
        backend: A backend, what makes one, or the name of one: a toolkit's own, or that of the plugin of that name or
            of `plugins`.
        plugins: Plugins of the toolkit. None: the backend's own.
        settings: Settings of the toolkit.
        only: Names of the checks to run. All by default.
        patience: Seconds that anything may take.
    """
    found = backend_conformance(backend, plugins=plugins, settings=settings, only=only, patience=patience)
    if found:
        raise AssertionError(message(f"the backend {_name(backend)!r}", found))


def backend_conformance(
    backend: str | Backend | Callable[[], Backend],
    *,
    plugins: Iterable[Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    only: Iterable[str] = CHECKS,
    patience: float = 60.0,
) -> list[Finding]:
    """What `assert_backend_conforms` complains about, as data.

    Args:
        backend: As in `assert_backend_conforms`; so are the others.
        plugins: Plugins of the toolkit. None: the backend's own.
        settings: Settings of the toolkit.
        only: Names of the checks to run. All by default.
        patience: Seconds that anything may take.
    """
    chosen = list(only)
    unknown = sorted({*chosen} - {*CHECKS})
    if unknown:
        raise ValueError(f"there is no check {', '.join(unknown)}; there are: {', '.join(CHECKS)}")
    before = _Resources()
    is_made = not isinstance(backend, type) and (isinstance(backend, str) or hasattr(backend, "submit"))
    made: Any = backend if is_made else backend()  # type: ignore[operator]
    if plugins is None:
        own = made in ("thread", "inline")
        plugins = () if own else [made if isinstance(made, str) else _Plugin(made)]
    with without_environment(), tempfile.TemporaryDirectory() as folder:
        toolkit = Toolkit(plugins=list(plugins), settings=_settings_for(made, plugins, settings or {}))
        suite = _Suite(toolkit, _name(made), Path(folder), patience)
        try:
            found = list(suite.findings(chosen))
        finally:
            toolkit.close()
    left = before.left(patience, files=not suite.is_remote) if "leftovers" in chosen else []
    if left:
        remedy = "release in close() all that was taken, and wait until it has ended"
        found.append(Finding("leftovers", f"after close() there is still: {', '.join(left)}", remedy))
    return found


def _settings_for(backend: Any, plugins: Iterable[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings. A backend whose workers find tools by import paths gets the paths of the checks' tools."""
    found = {name: dict(section) for name, section in settings.items()}
    if backend in plugins and isinstance(backend, str):
        with Toolkit(plugins=[backend]) as probe:
            cls: Any = plugins_of(probe).settings_type(backend) if backend in plugins_of(probe).active_packs else None
        if any(each.name == "tools" for each in getattr(cls, "__attrs_attrs__", ())):
            section = found.setdefault(backend, {})
            section["tools"] = [*section.get("tools", ()), *tools.TARGETS]
    return found


def _name(backend: Any) -> str:
    return backend if isinstance(backend, str) else str(getattr(backend, "name", type(backend).__name__))


@final
class _Plugin:
    """Brings one backend."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    @hookimpl
    def provide_backends(self) -> list[Any]:
        return [self._backend]


@final
class _Suite:
    """The checks on one toolkit; the last one closes it."""

    def __init__(self, toolkit: Toolkit, backend: str, folder: Path, patience: float) -> None:
        self._toolkit = toolkit
        self._backend = backend
        self._folder = folder
        self._patience = patience
        # Given explicitly, so that no toolkit runs a tool in the caller's own thread.
        self._policy = ExecutionPolicy(timeout=patience)
        self._here = Toolkit(plugins=())
        self._elsewhere = self._inline = False
        self._files = iter(range(10**6))

    @property
    def is_remote(self) -> bool:
        """Whether jobs leave this machine: then a third-party library speaks to it, whose files are its own."""
        return bool(getattr(self._toolkit_backend(), "remote", False))

    def findings(self, only: Iterable[str]) -> Iterator[Finding]:
        """What is wrong. A check that does not return, or that raises, is a finding too."""
        self._here.register(tool(backend="thread")(tools.give))  # marked anew each time
        try:
            self._toolkit.register(*(tool(backend=self._backend)(each) for each in tools.TOOLS))
        except RegistrationError as error:
            yield Finding("registration", f"plain tools are refused: {error}", "refuse only what cannot run there")
            return
        for check in ("place", *(check for check in CHECKS if check in only and check != "leftovers")):
            run = getattr(self, f"_{check.replace('-', '_')}")
            try:
                yield from self._bounded(lambda run=run: list(run()))  # type: ignore[misc]
            except TimeoutError:
                yield Finding(check, f"no return after {self._patience:g} s", "end every job, and tell its future")
            except Exception:  # noqa: BLE001 - whatever a backend does is a finding
                yield Finding(check, f"the check itself failed:\n{traceback.format_exc()}", "see what it says")
        self._here.close()

    # What each needs -------------------------------------------------------------------------------------------

    def _bounded(self, function: Callable[[], Any]) -> Any:
        return _begun(function).result(self._patience)

    def _call(self, name: str, /, *, on_chunk: Any = None, context: Any = (), **arguments: Any) -> ToolResult:
        return self._toolkit.call_sync(name, arguments, on_chunk=on_chunk, policy=self._policy, context=context)

    def _file(self) -> Path:
        return self._folder / str(next(self._files))

    def _until(self, condition: Callable[[], Any]) -> bool:
        end = time.monotonic() + self._patience / 2
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    # The checks ------------------------------------------------------------------------------------------------

    def _place(self) -> Iterator[Finding]:
        found = self._call("where")
        if not isinstance(found.data, dict):
            yield Finding("results", f"a tool that says where it runs gave {found!r}", "give what the tool returns")
            return
        self._elsewhere = found.data["process"] != os.getpid()
        self._inline = not self._elsewhere and found.data["thread"] == threading.get_ident()

    def _results(self) -> Iterator[Finding]:
        for name in tools.GIVEN:
            there, here = self._call("give", name=name), self._here.call_sync("give", {"name": name})
            for member in ("status", "data", "text", "content", "attachments", "metadata"):
                gave, wanted = getattr(there, member), getattr(here, member)
                if gave != wanted:
                    remedy = "give the value itself, or job.result(value) for one that came as data"
                    yield Finding("results", f"{member} of {name!r} is {gave!r}, not {wanted!r}", remedy)
            if self._elsewhere and there.value is not None:
                remedy = "give job.result(value), or a ToolResult"
                yield Finding("results", f"value of {name!r} is {there.value!r}; across processes it is None", remedy)

    def _errors(self) -> Iterator[Finding]:
        text = "broken: 世界 🌍"
        result = self._call("fail", text=text)
        fault = result.error
        if result.status is not Status.ERROR or fault is None or fault.exception is None:
            yield Finding("errors", f"a tool that raises gave {result!r}", "end the future with the exception")
            return
        if result.text != f"Error: {text}":
            yield Finding("errors", f"the text is {result.text!r}, not {f'Error: {text}'!r}", "keep str(error)")
        if fault.details.get("type") != tools.OddError.__name__:
            remedy = "name the class of what stands for it as its own was named"
            yield Finding("errors", f"the type is {fault.details.get('type')!r}, not 'OddError'", remedy)
        trace = "".join(traceback.format_exception(fault.exception))
        if "raise OddError(text)" not in trace:
            remedy = "bring the traceback along as text, for instance as the cause"
            yield Finding("errors", "the traceback does not show where the tool raised", remedy)
        refused = self._call("refuse", text=text)
        if (refused.status, refused.text) != (Status.ERROR, text):
            yield Finding(
                "errors", f"a ToolError reads {refused.text!r}, not {text!r}", "end the future with a ToolError"
            )

    def _chunks(self) -> Iterator[Finding]:
        heard: list[str] = []
        result = self._call("count", n=20, on_chunk=lambda chunk: heard.append(chunk.text))
        wanted = [f"{kind}{number}{end}" for number in range(20) for kind, end in (("e", ""), ("y", " "))]
        if heard != wanted:
            remedy = "hand them to job.emit and job.draw as they come"
            yield Finding("chunks", f"20 chunks each of emit and yield came as {heard!r}", remedy)
        if result.text != "".join(f"y{number} " for number in range(20)):
            yield Finding("chunks", f"what was yielded came to {result.text!r}", "return what job.draw returns")

    def _back_pressure(self) -> Iterator[Finding]:
        place, come, go, heard = self._file(), threading.Event(), threading.Event(), []
        number, size = _FLOOD

        def listen(chunk: Any) -> None:
            come.set()
            go.wait(self._patience)
            heard.append(chunk.text.partition(":")[0])

        call = _begun(lambda: self._call("flood", place=str(place), n=number, size=size, on_chunk=listen))
        try:
            self._until(lambda: call.done() or (come.is_set() and _is_still(place)))
            emitted = _size_of(place)
        finally:
            go.set()
        result = call.result(self._patience)
        if emitted >= number:
            what = f"a tool emitted {number} chunks of {size} characters while none was taken"
            yield Finding("back-pressure", what, "let a tool wait while its chunks are not taken")
        if heard != [str(each) for each in range(number)] or result.data != number:
            yield Finding("back-pressure", f"of {number} chunks {len(heard)} came, or out of order", "lose none")

    def _cancelling(self) -> Iterator[Finding]:
        begun = self._file()
        if self._inline:
            return  # the caller's own thread cannot be left
        call = self._toolkit.prepare("wait_for", {"place": str(self._file()), "begun": str(begun)})
        running = _begun(lambda: call.execute_sync(policy=self._policy))
        if not self._until(begun.exists):
            yield Finding("cancelling", "a call never began", "run every job")
        call.stop()
        result = running.result(self._patience)
        if result.status is not Status.CANCELLED:
            remedy = "end the future when it is cancelled, or when job.token is"
            yield Finding("cancelling", f"a call that was stopped while it ran is {result.status.value}", remedy)

    def _queue(self) -> Iterator[Finding]:
        if self._inline:
            return
        go, mark = self._file(), self._file()
        begun = [self._file() for _ in range(_CROWD)]

        def began() -> int:
            return sum(each.exists() for each in begun)

        async def crowd() -> tuple[list[ToolResult], ToolResult, bool]:
            calls = [("wait_for", {"place": str(go), "begun": str(each)}) for each in begun]
            crowd = asyncio.create_task(self._toolkit.call_many(calls))
            try:
                known = -1
                while known != began() or not known:  # until no more of them begin
                    known = began()
                    await asyncio.sleep(_STILL)
                last = self._toolkit.prepare("touch", {"place": str(mark)})
                waiting = asyncio.create_task(last.execute())
                await asyncio.sleep(_STILL)
                last.stop()
                stopped = await waiting
            finally:
                go.touch()
            return await crowd, stopped, known < _CROWD

        results, stopped, queued = asyncio.run(crowd())
        time.sleep(_STILL)  # one that runs all the same is the last
        bad = [each for each in results if each.text != "waited"]
        if bad:
            yield Finding("queue", f"{len(bad)} of {_CROWD} calls at once failed, such as {bad[0]!r}", "let them wait")
        if queued and stopped.status is not Status.CANCELLED:
            remedy = "let cancel() of a future that waits be True"
            yield Finding("queue", f"a call that was stopped while it waited is {stopped.status.value}", remedy)
        if queued and mark.exists():
            remedy = "look at the future before a job begins: set_running_or_notify_cancel()"
            yield Finding("queue", "a call that was stopped while it waited ran all the same", remedy)

    def _timeout(self) -> Iterator[Finding]:
        if self._inline:
            return  # the caller's own thread cannot be left
        policy, begun, place, end = ExecutionPolicy(timeout=1.0), self._file(), self._file(), self._file()
        arguments = {"place": str(self._file()), "begun": str(begun)}
        result = self._toolkit.call_sync("wait_for", arguments, policy=policy)
        if result.status is not Status.TIMEOUT:
            remedy = "end the future with job.timed_out(), or leave the time to the engine"
            yield Finding("timeout", f"a call of which the time is up is {result.status.value}", remedy)
        if not getattr(self._toolkit_backend(), "keeps_time", False):
            return
        result = self._toolkit.call_sync("beat", {"place": str(place), "end": str(end)}, policy=policy)
        goes_on = not _is_still(place)
        end.touch()
        if result.status is not Status.TIMEOUT or not place.exists():
            yield Finding("timeout", f"a tool that does not end by itself gave {result!r}", "kill it at its deadline")
        elif goes_on:
            remedy = "kill it before its future ends, or say keeps_time = False"
            yield Finding("timeout", "a tool goes on after its time, though the backend keeps time", remedy)

    def _toolkit_backend(self) -> Any:
        found = [each.value for each in plugins_of(self._toolkit).contributions("provide_backends")]
        return next((each for each in found if each.name == self._backend), None)

    def _crash(self) -> Iterator[Finding]:
        if not self._elsewhere:
            return  # it would end the process that runs the checks
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=0, retry_on=(BaseException,))
        for idempotent in (False, True):
            name = f"end_process_{idempotent}".lower()
            made = tool(backend=self._backend, name=name, idempotent=idempotent or None)(tools.end_process)
            self._toolkit.register(made)
            result = self._toolkit.call_sync(name, {"place": str(self._file())}, policy=policy)
            wanted = (Status.SUCCESS, 2) if idempotent else (Status.ERROR, 1)
            if (result.status, result.attempts) != wanted:
                kind = "idempotent" if idempotent else "other"
                what = f"an {kind} tool whose worker dies is {result.status.value} after {result.attempts} attempts"
                remedy = "end the future with an error whose attribute `abandoned` is true: one attempt, if it was not"
                yield Finding("crash", f"{what}; {wanted[0].value} after {wanted[1]} was wanted", remedy)
        if self._call("echo", text="again").text != "again":
            yield Finding("crash", "after the death of a worker the next call fails", "take another worker")

    def _size(self) -> Iterator[Finding]:
        text = "ä" * _BIG
        result = self._call("echo", text=text)
        if result.text != text:
            yield Finding(
                "size", f"a text of {_BIG} characters comes back as {result!r}", "carry arguments of any size"
            )

    def _context(self) -> Iterator[Finding]:
        for made, needs in ((tools.use_context, "Thing"), (tools.use_session, "Session")):
            name = made.__name__
            try:
                self._toolkit.register(tool(backend=self._backend)(made))
            except RegistrationError as error:
                if needs not in str(error) or ";" not in str(error):
                    remedy = "name the parameter, its type and the remedy"
                    yield Finding("context", f"{name} is refused without saying why: {error}", remedy)
                continue
            result = self._call(name, context=tools.Thing())
            if result.status is Status.ERROR and result.error is not None and "remedy" in result.error.details:
                continue
            if result.status is not Status.SUCCESS:
                remedy = "refuse it in check(tool), or end the future with a TransferError and details['remedy']"
                yield Finding("context", f"{name}, which needs a {needs}, gave {result!r} and no remedy", remedy)

    def _secrets(self) -> Iterator[Finding]:
        try:
            for name in ("use_secret", "tell_secret"):
                self._toolkit.set_presets(name, {"key": Secret(_SECRET)})
        except RegistrationError as error:
            if "'key'" not in str(error) or ";" not in str(error) or _SECRET in str(error):
                remedy = "name the parameter and the remedy, and nothing of the value"
                yield Finding("secrets", "a secret preset is refused without saying why", remedy)
            return
        result, ended = self._call("use_secret"), self._call("tell_secret")
        shown = f"{ended!r} {ended.text} {ended.error!r} {ended.error and ended.error.message} {ended.to_dict()}"
        if _SECRET in shown:
            yield Finding("secrets", "a secret shows in the result of a tool that raises", "keep str(error) as it is")
        if result.status is not Status.SUCCESS:
            return  # it was not let go
        if result.data["length"] != len(_SECRET):
            yield Finding("secrets", "the tool gets another value than the secret", "unwrap no preset yourself")
        for place in ("cmdline", "environ"):
            file = Path(f"/proc/{result.data['process']}/{place}")
            if self._elsewhere and file.exists() and _SECRET.encode() in file.read_bytes():
                yield Finding("secrets", f"a secret stands in the {place} of the worker", "send it through a pipe")

    def _closing(self) -> Iterator[Finding]:
        begun = self._file()
        arguments = {"place": str(self._file()), "begun": str(begun)}
        running = None if self._inline else _begun(lambda: self._call("wait_for", **arguments))
        if running is not None and not self._until(begun.exists):
            yield Finding("closing", "a call never began", "run every job")
        self._bounded(self._toolkit.close)
        if running is not None and running.result(self._patience).status is not Status.CANCELLED:
            status = running.result().status.value
            yield Finding("closing", f"a call that ran when the toolkit was closed is {status}", "cancel it in close()")
        after = self._call("echo", text="late")
        if not self._inline and after.status is not Status.ERROR:
            remedy = "let submit() raise RuntimeError"
            yield Finding("closing", f"a call after the end is {after.status.value}, not an error", remedy)


def _begun(function: Callable[[], Any]) -> Future[Any]:
    """Run something in a thread of its own, so that the checks go on if it does not return."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, name="backend-conformance", daemon=True).start()
    return future


def _is_still(place: Path) -> bool:
    """Whether a file, which may not be there yet, does not grow."""
    size = _size_of(place)
    time.sleep(_STILL)
    return _size_of(place) == size


def _size_of(place: Path) -> int:
    return place.stat().st_size if place.exists() else 0


@final
class _Resources:
    """Threads, children and open files of this process, without those that Python itself keeps."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._children = _children()
        self._files = _files()

    def left(self, patience: float, *, files: bool) -> list[str]:
        """What exists beyond that after `patience` seconds; `files` says whether open files count."""
        end = time.monotonic() + patience
        while (found := self._beyond(files=files)) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    def _beyond(self, *, files: bool) -> list[str]:
        threads = {each for each in set(threading.enumerate()) - self._threads if each.name != "backend-conformance"}
        found = [f"the thread {each.name}" for each in threads]
        found += [f"the process {each}" for each in sorted(_children() - self._children)]
        more = _files() - self._files if files else 0
        return [*found, *([f"{more} open files"] if more > 0 else [])]


def _children() -> set[int]:
    found: set[int] = set()
    for place in Path("/proc/self/task").glob("*/children"):
        found |= set(map(int, place.read_text().split()))
    return found - {_tracker("_pid")}


def _files() -> int:
    place = Path("/proc/self/fd")
    return len(list(place.iterdir())) - (_tracker("_fd") is not None) if place.is_dir() else 0


def _tracker(member: str) -> Any:
    """Of the process that `multiprocessing` starts once and keeps."""
    module = sys.modules.get("multiprocessing.resource_tracker")
    return getattr(getattr(module, "_resource_tracker", None), member, None)
