"""OAuth for `auth="oauth"`: a browser asks the user once, and the tokens are kept in a file of the user."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import weakref
import webbrowser
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Final, final
from urllib.parse import parse_qs, urlsplit

from pegboard.inspection import spelled_out
from pegboard_mcp._wire.reasons import ConsentError
from pegboard_mcp._wire.terminal import say

__all__ = ["authorization", "token_file"]

PATIENCE: Final = 300.0
"""Seconds that the user has to consent."""
_PAGE: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nDone. You can close this page.\n"
)


def authorization(url: str) -> Any:
    """The SDK's OAuth for a server, with this machine's browser and a file for the tokens."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    storage = _TokenFile(token_file(url))
    door = _Door(storage.port)
    metadata = OAuthClientMetadata(client_name="pegboard", redirect_uris=[AnyUrl(door.address)])
    return OAuthClientProvider(url, metadata, storage, door.send_there, door.back)


def token_file(url: str) -> Path:
    """The file with the tokens for a server. Other users cannot read it."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "pegboard" / "mcp" / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"


@final
class _TokenFile:
    """What the SDK keeps between two programs, in a file of mode 600 that several programs may use at once.

    Tokens belong to the client that they were given to, so both are replaced together, in one step: there is nothing to
    merge, and no program reads half of a file, or the tokens of one client and the name of another. Programs that begin
    at once register a client each, with a port of its own for the browser to come back to; the last one is kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._client: Any = self._read().get("client")

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):  # none yet, or broken: the user is asked again
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def port(self) -> int:
        """The port that this client was registered with; 0 for one that is not."""
        client = _valid("OAuthClientInformationFull", self._client)
        addresses = client.redirect_uris if client is not None else None
        return (urlsplit(str(addresses[0])).port or 0) if addresses else 0

    async def get_tokens(self) -> Any:
        """The tokens of an earlier time, or of another program, given to this client."""
        found = self._read()
        return _valid("OAuthToken", found.get("tokens")) if found.get("client") == self._client else None

    async def set_tokens(self, tokens: Any) -> None:
        """Keep tokens, and the client that they were given to."""
        content = {"client": self._client, "tokens": _dumped(tokens)}
        await asyncio.to_thread(_replace, self._path, json.dumps(content))

    async def get_client_info(self) -> Any:
        """What this client was registered as."""
        return _valid("OAuthClientInformationFull", self._client)

    async def set_client_info(self, client_info: Any) -> None:
        """Keep what this client is registered as, until there are tokens: another program would use its port."""
        self._client = _dumped(client_info)


def _dumped(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True)


def _valid(name: str, value: Any) -> Any:
    """A record of the SDK; None if it is invalid: the user is asked again."""
    from mcp.shared import auth
    from pydantic import ValidationError

    try:
        return None if value is None else getattr(auth, name).model_validate(value)
    except ValidationError:
        return None


def _replace(path: Path, text: str) -> None:
    """Replace a file in one step, by one of mode 600 that no other program writes."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, beside = mkstemp(dir=path.parent, prefix=f".{path.stem}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)  # noqa: PTH105 - it is no Path
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)  # noqa: PTH108 - the same
        raise


@final
class _Door:
    """Where the browser comes back to: a port of this machine, open while a human is asked."""

    def __init__(self, port: int) -> None:
        self._taken: socket.socket | None = None
        if not port:
            # Kept until the browser is sent there: clients register with an address before anything listens at it, and
            # another program that begins at the same moment must not be given the same one.
            self._taken = socket.socket()
            weakref.finalize(self, self._taken.close)  # unless the browser is sent there
            self._taken.bind(("127.0.0.1", 0))
            port = self._taken.getsockname()[1]
            # Only now, or it could be given a port that another one keeps: the next server there needs no pause.
            self._taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port = port
        self.address = f"http://127.0.0.1:{self._port}/callback"
        self._came: asyncio.Future[dict[str, list[str]]] | None = None
        self._server: asyncio.Server | None = None

    async def send_there(self, address: str) -> None:
        """Open the page that asks the human."""
        self._came = asyncio.get_running_loop().create_future()
        try:
            taken, self._taken = self._taken, None
            where: dict[str, Any] = {"sock": taken} if taken else {"host": "127.0.0.1", "port": self._port}
            self._server = await asyncio.start_server(self._answer, **where)
        except OSError as error:
            raise ConsentError(
                f"port {self._port} of this machine, to which the browser comes back, is taken: another program may "
                "be asking the user at this moment; try again when it has its answer"
            ) from error
        say(f"pegboard: to let it in, open {address}")
        await asyncio.to_thread(webbrowser.open, address)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode("latin-1").split()
        writer.write(_PAGE)
        writer.close()
        answer = parse_qs(urlsplit(line[1]).query) if len(line) > 1 else {}
        if self._came is not None and not self._came.done() and ("code" in answer or "error" in answer):
            self._came.set_result(answer)

    async def back(self) -> Any:
        """What the browser comes back with. Raises `ConsentError` where that is no consent."""
        from mcp.client.auth import AuthorizationCodeResult

        assert self._came is not None  # noqa: S101 - a browser comes back only after it was sent there
        assert self._server is not None  # noqa: S101 - the same
        try:
            answer = await asyncio.wait_for(self._came, PATIENCE)
        except TimeoutError as error:
            raise ConsentError(f"the user did not answer within {PATIENCE:g} seconds") from error
        finally:
            self._server.close()
        if "code" not in answer:
            code = answer["error"][0]
            who = "the user said no" if code == "access_denied" else "the authorization server refused"
            # RFC 6749, 4.1.2.1: printable ASCII. Anything may come to this port.
            raise ConsentError(f"{who}: {spelled_out(' '.join(code[:100].split()))}")
        return AuthorizationCodeResult(**{name: answer[name][0] for name in ("code", "state", "iss") if name in answer})
