"""Code mode: one tool with which a model runs a program that calls other tools."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, final
from weakref import WeakKeyDictionary

from pegboard import (
    Agent,
    CancelToken,
    Emitter,
    ExecutionPolicy,
    Permission,
    Secret,
    Session,
    Suspend,
    Tool,
    ToolCall,
    ToolError,
    tool,
)
from pegboard_code._catalog import Catalog, CatalogMode, offered
from pegboard_code._check import Checks
from pegboard_code._program import Limits
from pegboard_code._run import Run, on_loop_or_here
from pegboard_code._snapshots import Parked, Snapshots, TakenError
from pegboard_code._workers import workers

__all__ = ["CodeMode", "stubs"]

Approve: TypeAlias = Literal["call", "program"]
MAX_CODE: Final = 100_000
_OWN: Final = frozenset({"read_output", "search_tools"})
_WORDS: Final = {"catalog": ("all", "search", "auto"), "approve": ("call", "program")}
_LOST: Final = "the program is kept no more: it went on already, or was lost with its process; nothing was run now"
Source: TypeAlias = Session | Callable[[], Session]


def stubs(source: Session) -> str:
    """The tools that a toolkit, session or view offers as Python stubs, as programs of code mode see them."""
    return Catalog(_callable(source, source)).text


@final
class CodeMode:
    """A source of one tool, `run_code(code)`: `toolkit.register(CodeMode(toolkit.view(exclude="shell__*")))`.

    The view decides which tools programs may call and under which names; whatever else holds for a call is decided by
    the session that calls `run_code`. `catalog` says whether the description has all stubs (`"all"`), names alone
    (`"search"`), or names alone above 16,000 characters of stubs (`"auto"`). With `approve="program"` the approver is
    asked once, about the whole program. `timeout` is in seconds, waiting for approvals not counted, `max_memory` in
    bytes, `max_code` in characters. With `check=False` programs run unchecked. Programs that wait for an answer are
    kept in memory, or with `store`, a folder, for other programs too; `key` seals them and has at least 16 bytes.
    Raises ValueError for an argument that is none of these.
    """

    def __init__(
        self,
        source: Source,
        *,
        name: str = "run_code",
        catalog: CatalogMode = "auto",
        approve: Approve = "call",
        max_calls: int = 50,
        timeout: float = 30.0,
        max_memory: int = 64 * 2**20,
        check: bool = True,
        max_code: int = MAX_CODE,
        store: str | os.PathLike[str] | None = None,
        key: str | bytes | Secret[str] | None = None,
    ) -> None:
        _check_words(catalog=catalog, approve=approve)
        _check_numbers(max_calls=max_calls, timeout=timeout, max_memory=max_memory, max_code=max_code)
        if (store is None) is not (key is None):
            raise ValueError("store= and key= go together: a folder, and what seals the snapshots in there")
        self.name = name
        self.approve = approve
        self.limits = Limits(int(max_calls), float(timeout), int(max_memory), int(max_code))
        self.checks = Checks() if check else None
        self._mode: CatalogMode = catalog
        self._source = source
        self._snapshots = None if store is None or key is None else Snapshots(store, key, name)
        self._keeper = _Keeper(self)
        self._listed: dict[str, ToolCall] = {}  # the calls that wait here, by the names of their files without suffix
        self._lock = threading.Lock()
        self._through: WeakKeyDictionary[Session, Session] = WeakKeyDictionary()
        self._catalogs: WeakKeyDictionary[Session, tuple[Any, Catalog]] = WeakKeyDictionary()
        self._covered: WeakKeyDictionary[ToolCall, tuple[str, ...]] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"CodeMode({self.name!r}, approve={self.approve!r}, timeout={self.limits.seconds:g})"

    # A source of one tool ----------------------------------------------------------------------------------------

    @property
    def problems(self) -> Sequence[str]:
        """Nothing is ever missing here."""
        return ()

    def tools(self) -> list[Tool]:
        """The tool."""

        @tool(
            name=self.name,
            backend="inline",
            policy=ExecutionPolicy(timeout=None),
            requires_approval=_ProgramApproval(self) if self.approve == "program" else False,
        )
        def run_code(
            code: Annotated[str, "The program: Python, within the rules above"],
            call: ToolCall,
            token: CancelToken,
            emitter: Emitter,
            agent: Agent | None = None,
        ) -> Any:
            run = self._run(call, token, emitter, agent, self._covered.pop(call, ()))
            return on_loop_or_here(lambda io: run.begin(code, io))

        return [Tool.from_function(run_code).evolve(face=_Face(self))]

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Keep the sandbox for as long as a toolkit has the tool."""
        workers.retain()
        if self._snapshots is not None:
            self.view().session().share_suspended(self._keeper)
        left = [workers.release]
        return lambda: left.pop()() if left else None

    # What programs may call --------------------------------------------------------------------------------------

    def view(self) -> Session:
        """The view that decides which tools there are."""
        if not isinstance(self._source, Session):
            self._source = self._source()
        return self._source

    def through(self, session: Session) -> Session:
        """The calling session with the tools of the view."""
        known = self._through.get(session)
        if known is None:
            known = self._through[session] = session.through(self.view())
        return known

    def catalog(self, session: Session) -> Catalog:
        """The tools that programs of a session may call now. `session` is the calling one, or one made through it."""
        view, known = self.view(), self._catalogs.get(session)
        if known is not None and known[0] == _readied(known[1], view, session):
            return known[1]
        catalog = Catalog(_callable(view, session))
        self._catalogs[session] = _readied(catalog, view, session), catalog
        return catalog

    def described(self, session: Session) -> str:
        """The description of the tool for a session."""
        return self.catalog(self.through(session)).description(self._mode, self.limits.calls, self.limits.seconds)

    def needing_approval(self, code: str, session: Session) -> tuple[str, ...]:
        """The tools that need approval, or may, and whose names stand in a program."""
        catalog, permissions = self.catalog(session), session.permissions
        words = set(re.findall(r"\w+", code))
        return tuple(
            stub.tool
            for name, stub in catalog.stubs.items()
            if name in words
            and (
                permissions.get(stub.tool) is Permission.PROMPT
                or callable(catalog.tools[stub.tool].options.requires_approval)
            )
        )

    # Runs --------------------------------------------------------------------------------------------------------

    def _run(self, call: ToolCall, token: CancelToken, emitter: Emitter, agent: Any, covered: tuple[str, ...]) -> Run:
        session: Session = call.session
        given: dict[str, Any] = {} if agent is None else {"agent": agent}
        if call.context is not session.scope:
            given["context"] = call.context
        return Run(self, call, self.through(session), covered, (token, emitter, given))

    def cover(self, call: ToolCall) -> str:
        """Why a program has to be approved as a whole; empty if it need not."""
        code = str(call.arguments.get("code", ""))
        names = self.needing_approval(code, self.through(call.session))
        self._covered[call] = names
        need = "needs" if len(names) == 1 else "need"
        which = f"{', '.join(names)}, which {need} approval"
        return f"the program may call {which}; yes allows that in this run of it" if names else ""

    # Programs that wait ------------------------------------------------------------------------------------------

    def kept(self, run: Run, parked: Parked) -> Callable[[Any], Any]:
        """Keep a program that waits; what goes on with it, given the answer."""
        if self._snapshots is None:
            return lambda value: on_loop_or_here(lambda io: run.go_on(parked, value, io, lambda: None))
        path = self._snapshots.keep(parked)
        self._listed[path.stem] = run.call
        return partial(self._take, self._snapshots, run, path)

    def restored(self, call: ToolCall) -> Callable[[Any], Any]:
        """What goes on with the program of a call that an earlier process has suspended, given the answer."""
        snapshots, session = self._snapshots, call.session
        path = None if snapshots is None else snapshots.waiting(session.id).get(call.id)
        if snapshots is None or path is None:
            return _lost
        before = self._listed.get(path.stem, call)
        if before is not call:  # `restore` has listed it, and now a conversation knows of it
            before.session.withdraw(before)
        self._listed[path.stem] = call
        return partial(self._take, snapshots, self._again(call, ()), path)

    def _take(self, snapshots: Snapshots, run: Run, path: Path, value: Any) -> Any:
        call = run.call
        try:
            parked, used = snapshots.take(path, call.id, run.caller_session.id)
        except TakenError as error:
            self._listed.pop(path.stem, None)
            if call.session.shared is None:
                raise
            # The other program keeps the answer of a call that it shares: here it is waited for.
            raise Suspend(str(error), resume=partial(self._later, call)) from None
        except ToolError:
            self._listed.pop(path.stem, None)
            raise
        if (covered := tuple(parked.covered)) != run.covered:
            run = self._again(call, covered)

        def done() -> None:
            used.unlink(missing_ok=True)
            self._listed.pop(used.stem, None)

        return on_loop_or_here(lambda io: run.go_on(parked, value, io, done))

    def _later(self, call: ToolCall, value: Any) -> Any:
        return self.restored(call)(value)

    def _again(self, call: ToolCall, covered: tuple[str, ...]) -> Run:
        return self._run(call, CancelToken(), Emitter(call.id, call.name), None, covered)

    def restore(self, session: Session) -> None:
        """Suspend, in that session, what earlier programs have kept for one of its name."""
        snapshots = self._snapshots
        if snapshots is None or session.toolkit is not self.view().toolkit:
            return
        with self._lock:
            for call_id, path in snapshots.waiting(session.id).items():
                if path.stem not in self._listed:
                    self._list(session, call_id, path, snapshots)

    def _list(self, session: Session, call_id: str, path: Path, snapshots: Snapshots) -> None:
        try:
            parked = snapshots.read(path, call_id, session.id)
            code, reason = parked.code, parked.reason
        except ToolError as error:
            code, reason = "", str(error)
        call = self._listed[path.stem] = session.prepare(ToolCall(call_id, self.name, {"code": code}))
        if call.result is None:
            session.suspend(call, reason, resume=partial(self._take, snapshots, self._again(call, ()), path))


class _Keeper:
    """Lists the programs that earlier programs have kept, whenever `pending` is read."""

    def __init__(self, mode: CodeMode) -> None:
        self._mode = mode

    def restore(self, session: Session) -> None:
        """As `CodeMode.restore`."""
        self._mode.restore(session)

    def refresh(self) -> None:
        """Nothing is listed without a session."""

    def answer(self, session: Any, call: ToolCall, result: Any) -> bool:
        """Answers are kept by no one."""
        return True


class _ProgramApproval:
    """Asks for approval of a whole program."""

    def __init__(self, mode: CodeMode) -> None:
        self._mode = mode

    def __call__(self, arguments: Any) -> bool:
        """Only a call is asked about."""
        return True

    def for_call(self, call: ToolCall) -> str:
        """Why a call has to be approved."""
        return self._mode.cover(call)


class _Face:
    """How `run_code` looks in one session; before a session lists it, its description names no tools."""

    own = False

    def __init__(self, mode: CodeMode, session: Session | None = None) -> None:
        self.mode = mode
        self._session = session

    def of(self, session: Session) -> _Face:
        """How it looks in that session."""
        return _Face(self.mode, session)

    @property
    def description(self) -> str:
        """The rules and the tools."""
        if self._session is None:
            return Catalog(()).description("all", self.mode.limits.calls, self.mode.limits.seconds)
        return self.mode.described(self._session)

    def schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The parameters, which are the same everywhere."""
        return schema

    def restored(self, call: ToolCall) -> Callable[[Any], Any]:
        """As `CodeMode.restored`."""
        return self.mode.restored(call)


def _lost(value: Any) -> Any:
    raise ToolError(_LOST)


def _check_words(**options: str) -> None:
    """Raises ValueError for an option that has no such value."""
    for option, value in options.items():
        if value not in _WORDS[option]:
            raise ValueError(f"{option} takes {' or '.join(map(repr, _WORDS[option]))}, got {value!r}")


def _check_numbers(**options: float) -> None:
    """Raises ValueError for what is no number above 0."""
    for option, number in options.items():
        if type(number) not in (int, float) or not 0 < number < 2**40:
            raise ValueError(f"{option} takes a number above 0, got {number!r}")


def _callable(view: Session, session: Session) -> list[Tool]:
    """The tools that a view and a session both offer, without code mode itself and the core's own tools."""
    here = offered(session)
    known = here if view is session else offered(view)
    return [each for name, each in here.items() if name in known and each.face is None and name not in _OWN]


def _readied(catalog: Catalog, view: Session, session: Session) -> Any:
    """What is made ready for calls anew whenever anything about the tools of a view or a session changes."""
    probe = next(iter(catalog.tools), None)
    return object() if probe is None else (view.ready(probe), session.ready(probe))
