"""The desk: the calls of the page and those that they make, the approvals that wait, the changes since a version."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final

from pegboard import (
    Approval,
    ApprovalRequest,
    EnteredCall,
    PegboardError,
    Status,
    Toolkit,
    ToolResult,
    UnknownNameError,
)
from pegboard_inspector._apps import Apps, page_of, read_page
from pegboard_inspector._calls import Made, masked
from pegboard_inspector._costs import Costs
from pegboard_inspector._data import board_data, board_marks
from pegboard_inspector._inner_calls import InnerCalls
from pegboard_inspector._json import dumps
from pegboard_inspector._secrecy import PRIVATE_NAMES, Secrecy, unmasked
from pegboard_inspector._sources import earlier_calls, log_counts

__all__ = ["Desk"]

KEPT: Final = 200
"""Number of calls of the page that are kept; the oldest that have ended are dropped, with the calls that they made."""
INNER: Final = 1_000
"""Number of calls made by other calls that are kept."""
LOOK: Final = 0.5
"""Seconds between two checks whether the toolkit has changed, while the page is open."""
PAGE_TIMEOUT: Final = 30.0
"""Seconds in which the page of an app has to come."""
STILL: Final = 1.0
"""Seconds after which a loop that does not answer counts as blocked by the tool that runs on it."""
PAUSE: Final = 0.05
"""Seconds in which events are collected and sent together: a tool may report faster than a page is drawn."""


@final
class Question:
    """An approval that waits for a decision."""

    def __init__(self, request: ApprovalRequest, number: int, made: Made | None) -> None:
        self.id = f"approval-{number}"
        self.request = request
        self.made = made
        self.answer: Future[Approval] = Future()

    def to_dict(self) -> dict[str, Any]:
        """What the page shows; what the call keeps secret is kept here too."""
        made = self.made
        arguments = dict(self.request.arguments)
        form = {} if self.request.form is None else {"form": self.request.form, "private_names": PRIVATE_NAMES}
        return {
            "id": self.id,
            "call": self.request.call_id if made is None else made.id,
            "tool": self.request.tool.name,
            "reason": self.request.reason,
            "arguments": arguments if made is None else made.redact.deep(arguments),
            **form,
        }


@final
class Desk:
    """Makes calls in its own session, on its own loop: a tool that blocks its loop must not block the page.

    It takes a toolkit, or a function that makes one; then it can make a new one, and closes it. It is thread-safe.
    """

    def __init__(
        self, toolkit: Toolkit | Callable[[], Toolkit], target: str | None = None, title: str | None = None
    ) -> None:
        self._make = None if isinstance(toolkit, Toolkit) else toolkit
        self.toolkit = toolkit if isinstance(toolkit, Toolkit) else toolkit()
        self.session = self.toolkit.session(approver=self._ask)
        self.target = target
        self.title = title
        """What the page calls the board where no command line names it."""
        self.calls: dict[str, Made] = {}
        self._began = time.time()
        self._inner = InnerCalls(self.calls, self._begun)
        self._inner.watch(self.toolkit)
        self.closed = False
        self.apps = Apps()
        self._questions: dict[str, Question] = {}
        self._numbers = itertools.count(1)
        self._version = 0
        self._counting = threading.Lock()
        self._news: set[Callable[[], None]] = set()
        self._board: tuple[int, Any] = (0, None)
        self._costs = Costs(self.session)
        self._probed: float | None = None
        self._holder: dict[str, str] | None = None
        self._logs: dict[str, int] = {}
        self._running: set[Future[ToolResult]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="pegboard-inspector", daemon=True)
        self._thread.start()

    # Calls -----------------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: str) -> Made:
        """Begin a call. Bad arguments and unknown names are calls too, with their result at once."""
        call = self.session.prepare(name, arguments or None, call_id=self._new_id())
        made = Made(call.id, call.name, arguments, call.arguments, self.session, self.touch, call=call)
        self._keep(made)
        running = asyncio.run_coroutine_threadsafe(made.run(call), self._loop)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return made

    def _begun(self, entered: EnteredCall, parent: Made) -> Made:
        """A call that a call of the page makes, or one that such a call makes."""
        sent = entered.arguments
        text = sent if isinstance(sent, str) else dumps(sent)
        name = "" if entered.tool is None else entered.tool.name
        made = Made(
            self._new_id(), name, text, sent, entered.session, self.touch, parent=parent, call_id=entered.call_id
        )
        if secrets := [value for value in made.redact.values if value not in parent.redact.values]:
            for each in parent.lineage:  # the text of a program has them too
                each.conceal(secrets)
        self._keep(made)
        return made

    def _new_id(self) -> str:
        return f"inspector-{next(self._numbers)}"

    def _keep(self, made: Made) -> None:
        """Keep a call for the page, and drop the oldest that have ended."""
        self.calls[made.id] = made
        alike = [each for each in list(self.calls.values()) if (each.parent is None) is (made.parent is None)]
        beyond = len(alike) - (KEPT if made.parent is None else INNER)
        dropped = [each for each in alike if each.result is not None][: max(beyond, 0)]
        if dropped:
            roots = {each for each in dropped if each.parent is None}
            for each in [*dropped, *(each for each in list(self.calls.values()) if each.root in roots)]:
                self.calls.pop(each.id, None)
        self.touch(made)

    def made(self, call_id: str) -> Made:
        """A call of the page. Raises `UnknownNameError` for an id that is unknown or no longer kept."""
        if call_id not in self.calls:
            raise UnknownNameError(f"there is no call {call_id!r}; only the last {KEPT} are kept")
        return self.calls[call_id]

    def details(self, call_id: str) -> dict[str, Any]:
        """Everything about a call, its result too."""
        made = self.made(call_id)
        copies = made.copies(self.target, has_command=self.title is None)
        more = {"copies": copies, "edit": made.editable(), "page": self._page(made)}
        return {**made.state(), "result": made.outcome(), **more}

    def earlier(self) -> list[dict[str, Any]]:
        """What a journal has of calls before these, the latest first. Raises `PegboardError` if it cannot be read."""
        return [masked(each, self.session) for each in earlier_calls(self.toolkit, self._began)]

    def _page(self, made: Made) -> str | None:
        return page_of(self.session[made.name]) if made.name in self.session else None

    def open_app(self, call_id: str) -> dict[str, Any]:
        """Read the page of the tool that was called, and open it. Raises `PegboardError` if it cannot be read."""
        tool = self.session[self.made(call_id).name]
        reading = asyncio.run_coroutine_threadsafe(read_page(tool), self._loop)
        try:
            key = self.apps.open(reading.result(PAGE_TIMEOUT), tool)
        except TimeoutError:
            reading.cancel()
            raise PegboardError(f"the page of {tool.name} did not come within {PAGE_TIMEOUT:g} seconds") from None
        described = {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
        return {"app": key, "url": f"/apps/{key}", "tool": described}

    def call_from_app(self, key: str, name: str, arguments: str) -> Made:
        """Begin a call for a page: of a tool of its own server that is for pages, with the same approvals as any.

        Raises `UnknownNameError` for any other tool.
        """
        return self.call(self.apps.callable_tool(key, name, self.session), arguments)

    def cancel(self, call_id: str) -> None:
        """Ask a call to stop; whatever approval it waits for is denied."""
        made = self._own(call_id)
        for question in list(self._questions.values()):
            if question.made is not None and question.made.root is made:
                with suppress(UnknownNameError):  # it has just been decided
                    self.decide(question.id, Approval.deny("the call was cancelled"))
        if made.call is not None:
            made.call.stop()

    def resume(self, call_id: str, value: Any) -> None:
        """Complete a suspended call. Raises `PegboardError` for one that waits for nothing."""
        made = self._own(call_id)
        with self._inner.within(made):
            made.finish(self.session.resume(made.call or call_id, value))

    def _own(self, call_id: str) -> Made:
        """A call of the page. Raises `UnknownNameError` for one that another call made: that one is decided about."""
        made = self.made(call_id)
        if made.call is None:
            raise UnknownNameError(f"{call_id} was made by {made.root.id}; cancel or answer that call")
        return made

    # Approvals -------------------------------------------------------------------------------------------------

    async def _ask(self, request: ApprovalRequest) -> Approval:
        made = self._asking(request)
        question = Question(request, next(self._numbers), made)
        self._questions[question.id] = question
        self._count_asked(made, 1)
        try:
            return (
                Approval.deny("the inspector has ended") if self.closed else await asyncio.wrap_future(question.answer)
            )
        finally:
            self._questions.pop(question.id, None)
            self._count_asked(made, -1)

    def _asking(self, request: ApprovalRequest) -> Made | None:
        """The call that asks: of those that run, the latest of that id and tool, for models give the same id twice."""
        calls = [each for each in list(self.calls.values()) if each.call_id == request.call_id and each.result is None]
        return next((each for each in reversed(calls) if each.name == request.tool.name), None)

    def _count_asked(self, made: Made | None, number: int) -> None:
        if made is not None:
            made.asks += number
        self.touch(made)

    def decide(self, question_id: str, answer: Approval) -> list[str]:
        """Answer a request for approval. Raises `UnknownNameError` for one that is not waited for any more.

        Members that do not fit the form of the request decide nothing: their problems are returned.
        """
        question = self._questions.get(question_id)
        if question is None or question.answer.done():
            raise UnknownNameError("this approval is not waited for any more")
        request = question.request
        if request.form is None or answer.decision == "deny":
            question.answer.set_result(self._unmasked(question, answer))
            return []
        members = answer.arguments or {}
        if problems := _misfits(request.form, members):
            return problems
        if question.made is not None:
            question.made.conceal(Secrecy(request.form).values(members))
        question.answer.set_result(Approval.edit(members))
        return []

    @staticmethod
    def _unmasked(question: Question, answer: Approval) -> Approval:
        """The page shows `***` for a secret. Where the answer has `***`, the secret is put back."""
        request, made = question.request, question.made
        if answer.arguments is None or made is None or not made.redact.values:
            return answer
        arguments = dict(request.arguments)
        return Approval.edit(unmasked(dict(answer.arguments), made.redact.deep(arguments), arguments))

    # The board -------------------------------------------------------------------------------------------------

    def set_group(self, name: str, active: bool) -> None:
        """Switch a group in the page's own session. A group that only tools name so far is created."""
        if name not in {group.name for group in self.toolkit.groups}:
            self.toolkit.create_group(name, active=False)
        self.session.update_groups(name, active)
        self.touch()

    def board(self) -> dict[str, Any]:
        """The tools, groups and packs as they are now."""
        return {"revision": self._look(), "target": self.title or self.target, **board_data(self.session)}

    def cost(self, dialect: str) -> dict[str, Any] | None:
        """What the last change of the tools cost in one dialect; None before the first change."""
        self._look()
        return self._costs.of(dialect)

    def renew(self) -> tuple[list[str], list[str]]:
        """Make a new toolkit, with the packs that are installed now. Returns the names of new and of removed tools.

        Groups and suspended calls of the old one end with it. Raises `PegboardError` if `inspect` got a toolkit and no
        function that makes one.
        """
        if self._make is None:
            raise PegboardError("this toolkit was made by its program: give inspect() the function that makes it")
        importlib.invalidate_caches()
        before, fresh = self.toolkit, self._make()
        names = [{tool.name for tool in toolkit.all_tools} for toolkit in (before, fresh)]
        self.toolkit, self.session = fresh, fresh.session(approver=self._ask)
        self._costs = Costs(self.session)
        self._inner.watch(fresh)
        if fresh is not before:
            before.close()
        self.touch()
        return sorted(names[1] - names[0]), sorted(names[0] - names[1])

    def _look(self) -> int:
        """The revision of the toolkit: it is higher when something has changed."""
        marks = board_marks(self.session)
        revision, before = self._board
        if before is None or marks != before:
            revision += 1
            self._costs.look()  # first: to another thread that finds the same marks, the cost is known
            self._board = revision, marks
            with self._counting:
                self._version += 1
        news = self._holder_now(), log_counts(self.toolkit)
        if news != (self._holder, self._logs):
            self._holder, self._logs = news
            with self._counting:
                self._version += 1
        return revision

    def _holder_now(self) -> dict[str, str] | None:
        """The call of an async tool that blocks the loop, and where it is. None while the loop runs."""
        probed = self._probed
        if probed is None:
            self._probed = time.monotonic()
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._hear)
            return None
        if time.monotonic() - probed < STILL:
            return None
        task = asyncio.current_task(self._loop)
        running = [made for made in list(self.calls.values()) if made.result is None and made.call is not None]
        names = [made.name for made in running if made.task is task] or [made.name for made in running]
        return {"name": " or ".join(sorted(set(names))) or "a tool", "where": _where(self._thread)}

    def _hear(self) -> None:
        self._probed = None

    # News ------------------------------------------------------------------------------------------------------

    def touch(self, made: Made | None = None) -> None:
        """Record that a call, or anything else, has changed; from any thread."""
        with self._counting:
            self._version += 1
            if made is not None:
                made.version = self._version
        for tell in tuple(self._news):
            with suppress(RuntimeError):  # its loop has ended meanwhile
                tell()

    async def news(self, since: int) -> AsyncIterator[tuple[int, dict[str, Any]]]:
        """The changes since a version, and those from now on, each with its version."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(news.set)

        self._news.add(tell)
        try:
            known = since if since <= self._version else 0  # a version of an inspector that ran here before
            while not self.closed:
                news.clear()
                revision = await asyncio.to_thread(self._look)
                if known < (version := self._version):  # read first: what comes meanwhile is sent once more
                    events, known = self._events(known, revision), version
                    yield known, events
                    await asyncio.sleep(PAUSE)
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), LOOK)
        finally:
            self._news.discard(tell)

    def _events(self, known: int, revision: int) -> dict[str, Any]:
        fresh = [made.state(known) for made in list(self.calls.values()) if made.version > known]
        questions = [each.to_dict() for each in list(self._questions.values()) if not each.answer.done()]
        return {"board": revision, "calls": fresh, "approvals": questions, "held": self._holder, "logs": self._logs}

    def close(self) -> None:
        """Stop what runs, and send no more events."""
        self.closed = True
        for question in list(self._questions.values()):
            with suppress(PegboardError):
                self.decide(question.id, Approval.deny("the inspector has ended"))
        for made in list(self.calls.values()):
            if made.call is not None and (made.result is None or made.result.status is Status.SUSPENDED):
                made.call.stop()
        self.touch()
        # A call that takes longer to stop has its loop until it has stopped: one that is stopped before tells of it.
        late = wait(set(self._running), 2.0).not_done
        for each in late:
            each.add_done_callback(self._end)
        self._end()
        self._inner.end()
        self._thread.join(0 if late else 2.0)
        if self._make is not None:
            self.toolkit.close()

    def _end(self, _: Any = None) -> None:
        if not self._running:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._loop.stop)

    def _turn(self) -> None:
        self._loop.run_forever()
        self._loop.close()


def _misfits(schema: Mapping[str, Any], members: Mapping[str, Any]) -> list[str]:
    """What keeps members from fitting a form. Raises `PegboardError` for a form that cannot be used."""
    try:
        from pegboard_schemas import Form
    except ImportError:
        raise PegboardError(
            "forms are read by pegboard-schemas, which is missing: pip install pegboard-schemas"
        ) from None
    form = Form(schema)
    return form.problems(form.filled(members))


def _where(thread: threading.Thread) -> str:
    """The line at which a thread is, of the program or a pack rather than of the libraries that they use."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return ""
    libraries = tuple(filter(None, map(sysconfig.get_paths().get, ("stdlib", "purelib", "platlib"))))
    stack = traceback.extract_stack(frame)
    own = [each for each in stack if not each.filename.startswith((*libraries, "<"))]
    last = (own or list(stack))[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"
