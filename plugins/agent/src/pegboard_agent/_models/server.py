"""Models behind HTTP: the part of a request that is the same for all providers."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar, Final, Self, TypeAlias, final

import httpx2

from pegboard import ExecutionPolicy, Redaction, Secret
from pegboard_agent._models.model import RESTARTED, ModelError
from pegboard_agent._models.response import HEADERS, beginning, lines, whole
from pegboard_net import BodyError, open_client, retry_after

__all__ = ["DEADLINE", "Chunk", "Failure", "Key", "Reading", "ServerModel", "offering", "status_of"]

PATIENCE: Final = ExecutionPolicy(timeout=120.0, max_attempts=4, initial_backoff=0.5, max_backoff=30.0)
DEADLINE: Final = 1800.0
LONGEST_ERROR: Final = 500
MOST_SEARCHED: Final = 64 * 1024
"""Characters of an error that are searched for the key; no more are shown."""
SHORTEST_KEY: Final = 8
"""Characters of a key: a shorter text is a placeholder for servers that want a key but do not check it ("x")."""
NO_HEADERS: Final[Mapping[str, str]] = {}
Chunk: TypeAlias = Mapping[str, Any]
Key: TypeAlias = "str | Secret[str] | None"
_AGAIN: Final = frozenset({408, 409, 425, 429})


class Failure(Exception):  # noqa: N818 - only one attempt failed, and the next one may succeed
    """An attempt failed. `wait` is the number of seconds before the next attempt; None for that of the policy."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Reading(ABC):
    """Reads one response as chunks of a chat completion. `is_over` is true after its last event."""

    is_over = False

    @abstractmethod
    def read(self, event: Chunk) -> Iterable[Chunk]:
        """The chunks of an event. Raises `Failure` for data that is not an event of the provider."""

    @abstractmethod
    def events_of(self, response: Chunk) -> Iterable[Chunk]:
        """A response that came at once, as the events of a stream. Raises `Failure` for data that is not a response."""

    @abstractmethod
    def end(self) -> Iterable[Chunk]:
        """The chunks after the last event. Raises `Failure` for an incomplete response."""

    def error_in(self, event: Chunk) -> tuple[int, Any] | None:
        """An error in place of an event, with the corresponding HTTP status; None for an event."""
        error = event.get("error")
        return (status_of(error), error) if error else None


@lru_cache(64)
def _host_of(base_url: str) -> str:
    """The host and port of a URL, which each request asks for; the text itself if it is no URL."""
    try:
        return httpx2.URL(base_url).netloc.decode()
    except httpx2.InvalidURL:
        return base_url


@final
class Bodies:
    """Writes the bodies of the requests of a run as JSON.

    A conversation is sent again with each request: the texts of messages and tools are kept from one to the next. Of
    two that are equal and stand at the same place, such as those with 0 and with False, the first one's text is sent.
    """

    def __init__(self) -> None:
        # By the member of the body, of each item of its list: what it was when it was written, and the text.
        self._written: dict[str, list[tuple[Any, str]]] = {}

    def json(self, body: Mapping[str, Any]) -> bytes:
        """The body in UTF-8; a half of a surrogate pair, which models write, becomes "?"."""
        members = (
            f"{_json(name)}:{self._items(name, value) if isinstance(value, list) else _json(value)}"
            for name, value in body.items()
        )
        return f"{{{','.join(members)}}}".encode("utf-8", "replace")

    def _items(self, name: str, items: Sequence[Any]) -> str:
        written = self._written.setdefault(name, [])
        del written[len(items) :]
        for at, item in enumerate(items):
            if at == len(written) or written[at][0] != item:
                text = _json(item)
                written[at : at + 1] = [(json.loads(text), text)]
        return f"[{','.join(text for _, text in written)}]"


class ServerModel(ABC):
    """A model behind an HTTP server. Each subclass implements a provider's format.

    Raises ValueError for a key that cannot be sent and for a deadline that is not above 0, TypeError for a key that is
    not text.
    """

    dialect: ClassVar[str]
    """The name of the dialect in which the model takes tools."""

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: Key,
        policy: ExecutionPolicy | None,
        deadline: float | None,
        options: dict[str, Any],
    ) -> None:
        self.model = model
        self.base_url = base_url.rstrip("/")
        self.policy = PATIENCE if policy is None else policy.merged_over(PATIENCE)
        self.deadline = _checked_deadline(deadline)
        self.options = options
        given = os.environ.get(self._variable, "") if api_key is None else api_key
        key = given.value if isinstance(given, Secret) else given
        if not isinstance(key, str):
            raise TypeError(f"the API key is a text or a Secret of one, not {type(key).__name__}")
        key = key.strip()
        if not key.isascii() or not key.isprintable():
            raise ValueError("the API key holds characters that no key has")
        self.api_key = Secret(key)
        self._client: httpx2.AsyncClient | None = None
        self._url: httpx2.URL | None = None
        self._bodies = Bodies()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, {self._host})"

    # A provider's format ----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _variable(self) -> str:
        """The environment variable that holds the key."""

    @property
    @abstractmethod
    def _path(self) -> str:
        """The path after `base_url`."""

    @abstractmethod
    def _key_headers(self, key: str) -> dict[str, str]:
        """The provider's headers for the key, which may be empty."""

    @abstractmethod
    def _body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], options: Chunk) -> Chunk:
        """The body of a request."""

    @abstractmethod
    def _reading(self) -> Reading:
        """The reader of the next response."""

    def _instead(self, body: Chunk, refusal: str) -> Chunk | None:
        """Another body for a request that the server refused with this text; None if there is none."""
        return None

    def _wait_named(self, headers: Mapping[str, str], body: str) -> float | None:
        """The seconds that the server asks to wait before the next attempt; None if it does not."""
        return retry_after(headers.get("retry-after", ""))

    # A request --------------------------------------------------------------------------------------------------

    @property
    def _host(self) -> str:
        return _host_of(self.base_url)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Self]:
        """The same model with connections that stay open inside the block; otherwise each request opens its own."""
        async with open_client(self.policy.timeout) as client:
            model = copy(self)
            model._client, model._url, model._bodies = client, None, Bodies()
            yield model

    async def stream(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **options: Any
    ) -> AsyncGenerator[Chunk, None]:
        """The chunks of one chat completion. After a response that breaks off, `RESTARTED` precedes the next attempt.

        `messages` have the form of chat completions, `tools` that of `dialect`; `options` go into the request. Raises
        `ModelError` for a server that refuses the request, and for one that still fails at the last attempt.
        """
        if self._client is None:
            async with self.connected() as model, aclosing(model.stream(messages, tools, **options)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        batches = self._attempts(self._client, self._body(messages, tools, options))
        by = None if self.deadline is None else asyncio.get_running_loop().time() + self.deadline
        async with aclosing(batches):
            while True:
                try:
                    async with asyncio.timeout_at(by):
                        batch = await anext(batches)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    late = f"{self._host} did not answer completely within {self.deadline:g} s, the model's deadline"
                    raise ModelError(late) from error
                for chunk in batch:
                    yield chunk

    async def _attempts(self, client: httpx2.AsyncClient, body: Chunk) -> AsyncGenerator[list[Chunk], None]:
        """The chunks, in batches as they come: the deadline is checked once for each batch."""
        for attempt in count(1):
            begun = False
            try:
                async with aclosing(self._attempt(client, body)) as batches:
                    async for batch in batches:
                        begun = begun or bool(batch)
                        yield batch
                return
            except Failure as failure:
                wait = self._wait(failure, attempt)
            await asyncio.sleep(wait)
            if begun:
                yield [RESTARTED]

    async def _attempt(self, client: httpx2.AsyncClient, body: Chunk) -> AsyncGenerator[list[Chunk], None]:
        """The chunks of one response. Raises `Failure` for one that does not come, or is incomplete."""
        headers = {"Content-Type": "application/json", **HEADERS, **self._key_headers(self.api_key.value)}
        content = self._bodies.json(body)
        try:
            self._url = self._url or httpx2.URL(f"{self.base_url}{self._path}")  # parsed once for a whole run
            async with client.stream("POST", self._url, content=content, headers=headers) as response:
                if response.status_code == 200:
                    async with aclosing(self._read(response)) as batches:
                        async for batch in batches:
                            yield batch
                    return
                refusal = await beginning(response)
                instead = self._instead(body, refusal) if response.status_code == 400 else None
                if instead is None:
                    raise self._refusal(response.status_code, refusal, response.headers)
            async with aclosing(self._attempt(client, instead)) as batches:
                async for batch in batches:
                    yield batch
        except BodyError as error:
            raise ModelError(f"{self._host} sent {error}") from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise ModelError(f"{self.base_url!r} is no URL of a server: {error}") from error
        except httpx2.HTTPError as error:
            raise Failure(self._excerpt(f"{type(error).__name__}: {error}".removesuffix(": "))) from error

    async def _read(self, response: httpx2.Response) -> AsyncGenerator[list[Chunk], None]:
        """The chunks of a stream of events. Raises `Failure` for one that breaks off."""
        reading = self._reading()
        if "json" in response.headers.get("content-type", ""):  # the server did not stream
            yield [*self._chunks(reading, await whole(response), is_whole=True), *reading.end()]
            return
        async with aclosing(lines(response)) as events:
            async for come in events:
                sent = [line[5:].strip() for line in come if line.startswith("data:")]
                done = sent.index("[DONE]") if "[DONE]" in sent else None
                yield [chunk for data in sent[:done] for chunk in self._chunks(reading, data)]
                if done is not None or reading.is_over:
                    reading.is_over = True
                    yield list(reading.end())
                    await _end(events)
                    return
        yield list(reading.end())

    def _chunks(self, reading: Reading, text: str, *, is_whole: bool = False) -> list[Chunk]:
        """The chunks of an event, or of a whole response. Raises for other data, and for an error."""
        event = self._event(reading, text)
        try:
            if not is_whole:
                return list(reading.read(event))
            return [chunk for each in reading.events_of(event) for chunk in reading.read(each)]
        except Failure as failure:
            raise Failure(f"{failure}: {self._excerpt(text)!r}") from None

    def _event(self, reading: Reading, text: str) -> Chunk:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise Failure(f"the response is no JSON object: {self._excerpt(text)!r}")
        error = reading.error_in(event)
        if error is not None:
            status, content = error
            raise self._refusal(status, json.dumps({"error": content}))
        return event

    # Failures ---------------------------------------------------------------------------------------------------

    def _refusal(self, status: int, body: str, headers: Mapping[str, str] = NO_HEADERS) -> Exception:
        """The exception for an error of the server: `Failure` if another attempt may help, else `ModelError`."""
        reason = f"{status}: {self._excerpt(_message(body))}"
        if status >= 500 or status in _AGAIN:
            return Failure(reason, self._wait_named(headers, body))
        if 300 <= status < 400:
            to = self._excerpt(headers.get("location", "")) or "nowhere"
            reason = f"{status}, a redirect to {to}, which is not followed; give the right address as base_url"
        elif status in (401, 403) and not self.api_key.value:
            reason += f" (no key was sent: set {self._variable}, or give api_key)"
        return ModelError(f"{self._host} answered {reason}")

    def _wait(self, failure: Failure, attempt: int) -> float:
        """Seconds until the next attempt. Raises `ModelError` after the last one, or if the server wants too many."""
        policy = self.policy
        if attempt >= policy.max_attempts:
            times = "once" if attempt == 1 else f"{attempt} times"
            raise ModelError(f"{self._host} was asked {times} and failed: {failure}") from failure
        wait = failure.wait
        if wait is None:
            wait = policy.backoff(attempt) * (random.uniform(0.5, 1.0) if policy.jitter else 1.0)  # noqa: S311 - spreads
        elif wait > policy.max_backoff:
            raise ModelError(f"{self._host} wants to be asked again in {wait:.0f} s only: {failure}") from failure
        return wait

    def _excerpt(self, text: str) -> str:
        """A server's text for a message: short, on one line, without the key."""
        secrets = [self.api_key] if len(self.api_key.value) >= SHORTEST_KEY else []
        words = Redaction(secrets)(text[:MOST_SEARCHED]).split()
        line = " ".join(words if len(text) <= MOST_SEARCHED else words[:-1])  # the last one may be half of a key
        return line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]}..."


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _checked_deadline(seconds: Any) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
        raise ValueError(f"deadline is a number of seconds above 0, or None, not {seconds!r}")
    return float(seconds)


async def _end(events: AsyncIterator[Any]) -> None:
    """Read the rest of a finished response, so that its connection can be used again. This takes 0.1 s at most."""
    with suppress(TimeoutError, BodyError):
        async with asyncio.timeout(0.1):
            async for _ in events:
                pass


def offering(body: dict[str, Any], *choices: str) -> dict[str, Any]:
    """A request; without these members if it offers no tools: servers refuse a choice without tools."""
    return body if body.get("tools") else {name: value for name, value in body.items() if name not in choices}


def status_of(error: Any, statuses: Mapping[str, int] = {}) -> int:
    """The HTTP status of an error, or that of its code or type in `statuses`; else 500."""
    if not isinstance(error, Mapping):
        return 500
    if type(error.get("code")) is int:
        return int(error["code"])
    names = [error.get("code"), error.get("type")]
    return next((statuses[name] for name in names if isinstance(name, str) and name in statuses), 500)


def _message(body: str) -> str:
    """The message in an error's body, which has one of the usual forms."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return body
    while isinstance(content, dict):
        content = content.get("error") or content.get("message") or content.get("detail")
    return content if isinstance(content, str) else body
