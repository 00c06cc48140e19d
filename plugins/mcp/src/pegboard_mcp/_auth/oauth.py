"""OAuth: what a program says of it, the file of a server's tokens, and the browser that asks the user."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Final, final
from urllib.parse import parse_qs, urlsplit

from attrs import evolve, field, frozen

from pegboard.inspection import spelled_out
from pegboard_mcp._arguments import function, scopes
from pegboard_mcp._wire.reasons import ConsentError
from pegboard_mcp._wire.terminal import say

__all__ = ["PATIENCE", "Consent", "Door", "OAuth", "TokenFile", "oauth", "token_file"]

PATIENCE: Final = 300.0
"""Seconds that the user has to consent."""
_PAUSE: Final = 0.05
"""Seconds between two looks at whether the lock of a token file is free."""
_PAGE: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nDone. You can close this page.\n"
)


def _function(given: Any) -> Any:
    return function("open", given)


def _scopes(given: str | Iterable[str]) -> tuple[str, ...]:
    return scopes("scopes", given)


@final
@frozen
class OAuth:
    """How the user gives access to a server: `auth=OAuth(...)`; `auth="oauth"` is the same without options.

    Raises ValueError for an option of another kind.

    Args:
        open: `open(url)` shows the user the page that asks for consent. It may be async, and may return the address
            that the user's browser was sent to afterwards, where that browser does not reach this machine. None opens
            this machine's browser.
        scopes: Scopes to ask for, beside those that the server says it needs.
    """

    open: Callable[[str], Any] | None = field(default=None, converter=_function, kw_only=True)
    scopes: tuple[str, ...] = field(default=(), converter=_scopes, kw_only=True)


def oauth(auth: Any, wanted: str | Iterable[str]) -> Any:
    """`auth` with the scopes wanted besides. Raises ValueError for scopes that nothing would ask for."""
    named = _scopes(wanted)
    if isinstance(auth, OAuth) or auth == "oauth":
        known = auth if isinstance(auth, OAuth) else OAuth()
        return evolve(known, scopes=dict.fromkeys((*known.scopes, *named)))
    if named:
        raise ValueError('scopes= are asked for by OAuth: say auth="oauth", or auth=OAuth(...)')
    return auth


def token_file(url: str) -> Path:
    """Where the tokens for a server are kept; other users may not read it."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "pegboard" / "mcp" / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"


@final
@frozen
class Consent:
    """What the user was asked last: when that ended, for which scopes, and why there is no access, if so."""

    at: float
    scopes: frozenset[str]
    refused: str

    def covers(self, scopes: Iterable[str], since: float) -> bool:
        """Whether the user was asked for these scopes after that time."""
        return self.at >= since and self.scopes.issuperset(scopes)


@final
class TokenFile:
    """The tokens for a server and the client that they belong to, in a file of mode 600 that several programs share.

    It is replaced as a whole, so that no program reads half of it. A program that refreshes tokens or asks the user
    holds the lock, a file beside it that also says how the user answered last. The lock ends with its program.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_suffix(".lock")

    def read(self) -> dict[str, Any]:
        """What is kept; nothing where there is no file, or a broken one: the user is asked again."""
        return _object(self._path)

    def replace(self, content: Mapping[str, Any]) -> None:
        """Keep that instead. Raises OSError where the file cannot be written."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, beside = mkstemp(dir=self._path.parent, prefix=f".{self._path.stem}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(content, file)
            os.replace(beside, self._path)  # noqa: PTH105 - it is no Path
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)  # noqa: PTH108 - the same
            raise

    @asynccontextmanager
    async def alone(
        self, patience: float, left: float, waiting: Callable[[], AbstractContextManager[Any]]
    ) -> AsyncIterator[None]:
        """Hold the lock, so that others wait; `waiting()` is entered while this one does.

        Raises `ConsentError` where it is not free within the seconds that are `left` of `patience`.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A descriptor of its own: so the lock keeps threads of one program apart as well.
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with waiting():
                deadline = time.monotonic() + left
                while not _locked(descriptor):
                    if time.monotonic() > deadline:
                        raise ConsentError(self._taken(patience))
                    await asyncio.sleep(_PAUSE)
            self._note(process=os.getpid())
            yield
        finally:
            _unlock(descriptor)
            os.close(descriptor)

    def _taken(self, patience: float) -> str:
        process = _object(self._lock).get("process")
        who = f"process {process}" if isinstance(process, int) else "another program"
        return (
            f"{who} has been asking the user for access to the same server for {patience:g} seconds; answer in the "
            "browser window that it opened, or end that process, and try again"
        )

    def note_answer(self, scopes: Iterable[str], refused: str = "") -> None:
        """Note how the user has just answered, for those that wait for the lock."""
        self._note(at=time.time(), scopes=list(scopes), refused=refused)

    def consent(self) -> Consent | None:
        """How the user answered last; None where that is not known."""
        found = _object(self._lock)
        at, named, refused = found.get("at"), found.get("scopes"), found.get("refused")
        if isinstance(at, int | float) and isinstance(named, list) and isinstance(refused, str):
            return Consent(at, frozenset(map(str, named)), refused)
        return None

    def _note(self, **changes: Any) -> None:
        self._lock.write_text(json.dumps({**_object(self._lock), **changes}), "utf-8")


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _locked(descriptor: int) -> bool:
    """Whether the lock was free, and is held now. Without POSIX locks programs are not kept apart."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _unlock(descriptor: int) -> None:
    with suppress(ImportError, OSError):
        import fcntl

        # Closing alone would not release it where a forked process has the descriptor as well.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@final
class Door:
    """Where the browser comes back to: a port of this machine, open while the user is asked."""

    def __init__(self, show: Callable[[str], Any] | None, patience: float, left: float) -> None:
        self._show = show
        self._patience = patience
        self._left = left
        self._came: asyncio.Future[dict[str, list[str]]] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._showing: asyncio.Task[None] | None = None

    async def listen(self, port: int) -> int:
        """Listen at that port, or at any where that is 0 or taken. Returns the port."""
        try:
            self._server = await asyncio.start_server(self._answer, "127.0.0.1", port)
        except OSError:
            self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def send(self, url: str) -> None:
        """Show the page that asks the user."""
        if self._show is None:
            say(f"pegboard: to let it in, open {url}")
        self._showing = asyncio.create_task(self._shown(url))

    async def _shown(self, url: str) -> None:
        show = self._show or webbrowser.open
        try:
            answer = show(url) if inspect.iscoroutinefunction(show) else await _in_thread(partial(show, url))
            answer = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - the program's own function: whatever it raises ends the asking
            # Its text may quote the address.
            self._refuse(f"the function open= of OAuth failed with {type(error).__name__}")
            return
        if isinstance(answer, str) and not self._arrived(answer.strip()):
            self._refuse(
                "the function open= of OAuth returned a text without code= and error=: it may return the whole address "
                "that the user's browser was sent to, or None"
            )

    def _refuse(self, why: str) -> None:
        if not self._came.done():
            self._came.set_exception(ConsentError(why))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode("latin-1").split()
        writer.write(_PAGE)
        writer.close()
        if len(line) > 1:
            self._arrived(line[1])

    def _arrived(self, url: str) -> bool:
        """Whether that is how the browser comes back."""
        answer = parse_qs(urlsplit(url).query)
        if "code" not in answer and "error" not in answer:
            return False
        if not self._came.done():
            self._came.set_result(answer)
        return True

    async def back(self) -> Any:
        """What the browser comes back with. Raises `ConsentError` where that is no consent."""
        from mcp.client.auth import AuthorizationCodeResult

        try:
            answer = await asyncio.wait_for(self._came, self._left)
        except TimeoutError as error:
            raise ConsentError(f"the user did not answer within {self._patience:g} seconds") from error
        if "code" not in answer:
            code = answer["error"][0]
            who = "the user said no" if code == "access_denied" else "the authorization server refused"
            # RFC 6749, 4.1.2.1: printable ASCII. Anything may come to this port.
            raise ConsentError(f"{who}: {spelled_out(' '.join(code[:100].split()))}")
        return AuthorizationCodeResult(**{name: answer[name][0] for name in ("code", "state", "iss") if name in answer})

    def close(self) -> None:
        """Listen no longer, and wait for nothing."""
        if self._server is not None:
            self._server.close()
        if self._showing is not None:
            self._showing.cancel()
        if self._came.done() and not self._came.cancelled():
            self._came.exception()  # looked at, which asyncio would complain about otherwise


async def _in_thread(work: Callable[[], Any]) -> Any:
    """The outcome of work that may never end, such as waiting for a line of stdin: no program waits for its thread."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, Exception | None]] = loop.create_future()

    def settle(result: Any, error: Exception | None) -> None:
        if not outcome.done():
            outcome.set_result((result, error))

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:  # noqa: BLE001 - raised again where it is waited for
            error = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="pegboard-mcp-consent", daemon=True).start()
    result, error = await outcome
    if error is not None:
        raise error
    return result
