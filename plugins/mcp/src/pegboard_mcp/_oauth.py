"""OAuth by one word: a browser asks the human once, and the tokens are kept in a file of his own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import parse_qs, urlsplit

from pegboard_mcp._say import say

__all__ = ["authorization", "token_file"]

PATIENCE: Final = 300.0
"""Seconds in which a human has to agree."""
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
    """Where the tokens for a server are kept; nobody else may read it."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "pegboard" / "mcp" / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"


@final
class _TokenFile:
    """What the SDK keeps between two programs, in a file of mode 600."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):  # none yet, or broken: the human is asked again
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, key: str, value: Any) -> None:
        content = {**self._read(), key: value.model_dump(mode="json", exclude_none=True)}
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(FileNotFoundError):
            beside.unlink()
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
        beside.replace(self._path)

    @property
    def port(self) -> int:
        """The port that this client was registered with; 0 for one that is not."""
        for address in self._read().get("client", {}).get("redirect_uris", ()):
            return urlsplit(str(address)).port or 0
        return 0

    async def get_tokens(self) -> Any:
        """The tokens of an earlier time."""
        from mcp.shared.auth import OAuthToken

        said = self._read().get("tokens")
        return None if said is None else OAuthToken.model_validate(said)

    async def set_tokens(self, tokens: Any) -> None:
        """Keep tokens."""
        self._write("tokens", tokens)

    async def get_client_info(self) -> Any:
        """What this client was registered as."""
        from mcp.shared.auth import OAuthClientInformationFull

        said = self._read().get("client")
        return None if said is None else OAuthClientInformationFull.model_validate(said)

    async def set_client_info(self, client_info: Any) -> None:
        """Keep what this client is registered as."""
        self._write("client", client_info)


@final
class _Door:
    """Where the browser comes back to: a port of this machine, open while a human is asked."""

    def __init__(self, port: int) -> None:
        import socket

        # Taken and given back: clients register with an address before anybody listens there.
        with socket.create_server(("127.0.0.1", port)) as taken:
            self._port = taken.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}/callback"
        self._came: asyncio.Future[dict[str, list[str]]] | None = None
        self._server: asyncio.Server | None = None

    async def send_there(self, address: str) -> None:
        """Open the page that asks the human."""
        self._came = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", self._port)
        say(f"pegboard: to let it in, open {address}")
        await asyncio.to_thread(webbrowser.open, address)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode("latin-1").split()
        writer.write(_PAGE)
        writer.close()
        said = parse_qs(urlsplit(line[1]).query) if len(line) > 1 else {}
        if self._came is not None and not self._came.done() and ("code" in said or "error" in said):
            self._came.set_result(said)

    async def back(self) -> Any:
        """What the browser comes back with. Raises `PermissionError` where the human said no."""
        from mcp.client.auth import AuthorizationCodeResult

        assert self._came is not None  # noqa: S101 - nobody comes back who was not sent there
        assert self._server is not None  # noqa: S101 - the same
        try:
            said = await asyncio.wait_for(self._came, PATIENCE)
        finally:
            self._server.close()
        if "code" not in said:
            raise PermissionError(f"it was not let in: {said['error'][0]}")
        return AuthorizationCodeResult(**{name: said[name][0] for name in ("code", "state", "iss") if name in said})
