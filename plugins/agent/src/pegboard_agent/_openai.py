"""Chat completions over HTTP, of any server that speaks them."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from itertools import count
from typing import Any, Final, TypeAlias, final

import httpx2

from pegboard import ExecutionPolicy, Redaction, Secret
from pegboard_agent._model import RESTARTED, ModelError
from pegboard_agent._response import HEADERS, beginning, lines, whole
from pegboard_net import BodyError, open_client, retry_after

__all__ = ["OpenAIChat"]

OPENAI: Final = "https://api.openai.com/v1"
PATIENCE: Final = ExecutionPolicy(timeout=120.0, max_attempts=4, initial_backoff=0.5, max_backoff=30.0)
DEADLINE: Final = 1800.0
LONGEST_ERROR: Final = 500
MOST_SEARCHED: Final = 64 * 1024
"""Characters of an error in which the key is looked for; no more are shown."""
SHORTEST_KEY: Final = 8
"""Characters: what is shorter stands for a key where a server wants one that it does not check ("x", "EMPTY")."""
NO_HEADERS: Final[Mapping[str, str]] = {}
Chunk: TypeAlias = Mapping[str, Any]
_AGAIN: Final = frozenset({408, 409, 425, 429})


class _Failure(Exception):  # noqa: N818 - of an attempt, and the next one may succeed
    """An attempt failed. `wait`: after how many seconds to try again, None for as many as the policy says."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@final
class OpenAIChat:
    """A model behind an OpenAI-compatible server: OpenAI, DashScope, vLLM, llama.cpp, Ollama.

    `api_key` defaults to `OPENAI_API_KEY`, for DashScope's addresses to `DASHSCOPE_API_KEY`; an empty one is none.
    `policy` says how often a request is tried, how long to wait in between (longer only if the server asks for it, and
    then no longer than `max_backoff`), and after how many seconds of silence (`timeout`) an attempt is given up.
    `deadline` is after how many seconds a response has to be there whole, all attempts included; None: no matter when.
    `options`, such as `temperature`, go into every request; `tool_choice` and `parallel_tool_calls` only where there
    are tools. Raises ValueError for a key that cannot be sent and for a deadline that is not above 0, TypeError for a
    key that is no text.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        api_key: str | Secret[str] | None = None,
        policy: ExecutionPolicy | None = None,
        deadline: float | None = DEADLINE,
        **options: Any,
    ) -> None:
        self.model = model
        self.base_url = base_url.rstrip("/")
        self.policy = PATIENCE if policy is None else policy.merged_over(PATIENCE)
        self.deadline = _checked_deadline(deadline)
        self.options = options
        given = os.environ.get(_variable_for(self._host), "") if api_key is None else api_key
        key = given.value if isinstance(given, Secret) else given
        if not isinstance(key, str):
            raise TypeError(f"the API key is a text or a Secret of one, not {type(key).__name__}")
        key = key.strip()
        if not key.isascii() or not key.isprintable():
            raise ValueError("the API key holds characters that no key has")
        self.api_key = Secret(key)
        self._client: httpx2.AsyncClient | None = None
        self._url: httpx2.URL | None = None

    def __repr__(self) -> str:
        return f"OpenAIChat({self.model!r}, {self._host})"

    @property
    def _host(self) -> str:
        try:
            return httpx2.URL(self.base_url).netloc.decode()
        except httpx2.InvalidURL:
            return self.base_url

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[OpenAIChat]:
        """The same model with connections that stay open meanwhile; without, each request opens one of its own."""
        async with open_client(self.policy.timeout) as client:
            model = copy(self)
            model._client, model._url = client, None
            yield model

    async def stream(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **options: Any
    ) -> AsyncGenerator[Chunk, None]:
        """The chunks of one chat completion. A response that breaks off is asked for anew, after `RESTARTED`.

        Raises `ModelError` for a server that refuses, and for one that still fails at the last attempt.
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

    def _body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], options: Chunk) -> Chunk:
        """What is sent. Servers refuse a choice among tools that are not there."""
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        body |= {**({"tools": tools} if tools else {}), **self.options, **options}
        offered, chosen = body.get("tools") or (), _named(body.get("tool_choice"))
        if not offered or (chosen and chosen not in map(_named, offered)):
            body.pop("tool_choice", None)
        if not offered:
            body.pop("parallel_tool_calls", None)
        return body

    async def _attempts(self, client: httpx2.AsyncClient, body: Chunk) -> AsyncGenerator[list[Chunk], None]:
        """Chunks, those that come at once together: the deadline is looked at once for each."""
        for attempt in count(1):
            begun = False
            try:
                async with aclosing(self._attempt(client, body)) as batches:
                    async for batch in batches:
                        begun = begun or bool(batch)
                        yield batch
                return
            except _Failure as failure:
                wait = self._wait(failure, attempt)
            await asyncio.sleep(wait)
            if begun:
                yield [RESTARTED]

    async def _attempt(self, client: httpx2.AsyncClient, body: Chunk) -> AsyncGenerator[list[Chunk], None]:
        """The chunks of one response. Raises `_Failure` for one that does not come, or not whole."""
        key = self.api_key.value
        headers = {"Content-Type": "application/json", **HEADERS, **({"Authorization": f"Bearer {key}"} if key else {})}
        # Not `json=`, which raises for half a surrogate pair: models write such things.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        try:
            self._url = self._url or httpx2.URL(f"{self.base_url}/chat/completions")  # read once for a whole run
            async with client.stream("POST", self._url, content=content, headers=headers) as response:
                if response.status_code != 200:
                    raise self._refusal(response.status_code, await beginning(response), response.headers)
                if "json" in response.headers.get("content-type", ""):  # asked for a stream, and gave all at once
                    yield [self._at_once(await whole(response))]
                    return
                async with aclosing(self._streamed(response)) as batches:
                    async for batch in batches:
                        yield batch
        except BodyError as error:
            raise ModelError(f"{self._host} sent {error}") from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise ModelError(f"{self.base_url!r} is no URL of a server: {error}") from error
        except httpx2.HTTPError as error:
            raise _Failure(self._told(f"{type(error).__name__}: {error}".removesuffix(": "))) from error

    async def _streamed(self, response: httpx2.Response) -> AsyncGenerator[list[Chunk], None]:
        """The chunks of a stream of events. Raises `_Failure` for one that breaks off."""
        begun = ended = False
        async with aclosing(lines(response)) as events:
            async for come in events:
                sent = [line[5:].strip() for line in come if line.startswith("data:")]
                done = sent.index("[DONE]") if "[DONE]" in sent else None
                chunks = [self._checked(data) for data in sent[:done]]
                for choice in (choice for chunk in chunks for choice in chunk.get("choices") or ()):
                    begun, ended = True, ended or bool(choice.get("finish_reason"))
                yield chunks
                if done is not None:
                    ended = True
                    await _end(events)
                    break
        if not (begun and ended):
            raise _Failure("the response holds no message" if ended else "the response broke off")

    def _at_once(self, text: str) -> Chunk:
        completion = self._checked(text)
        if not completion.get("choices"):
            raise _Failure(f"the response is no chat completion: {self._told(text)!r}")
        return completion

    def _checked(self, text: str) -> Chunk:
        """A chunk, or a whole completion. Raises for what is none, and for an error that came in its place."""
        try:
            chunk = json.loads(text)
        except (ValueError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict):
            raise _Failure(f"the response is no JSON object: {self._told(text)!r}")
        if chunk.get("error"):
            code = chunk["error"].get("code") if isinstance(chunk["error"], dict) else None
            raise self._refusal(code if isinstance(code, int) else 500, text)
        choices = chunk.get("choices") or []
        if not isinstance(choices, list) or not all(map(_is_choice, choices)):
            raise _Failure(f"the response is no chat completion: {self._told(text)!r}")
        return chunk

    def _refusal(self, status: int, body: str, headers: Mapping[str, str] = NO_HEADERS) -> Exception:
        """The exception for an error of the server: one that asks for another attempt, or one that does not."""
        reason = f"{status}: {self._told(_message(body))}"
        if status >= 500 or status in _AGAIN:
            return _Failure(reason, retry_after(headers.get("retry-after", "")))
        if 300 <= status < 400:
            to = self._told(headers.get("location", "")) or "nowhere"
            reason = f"{status}, a redirect to {to}, which is not followed; give the right address as base_url"
        elif status == 401 and not self.api_key.value:
            reason += f" (no key was sent: set {_variable_for(self._host)}, or give api_key)"
        return ModelError(f"{self._host} answered {reason}")

    def _wait(self, failure: _Failure, attempt: int) -> float:
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

    def _told(self, text: str) -> str:
        """A server's text for an error of ours: short, on one line, without the key."""
        secrets = [self.api_key] if len(self.api_key.value) >= SHORTEST_KEY else []
        words = Redaction(secrets)(text[:MOST_SEARCHED]).split()
        line = " ".join(words if len(text) <= MOST_SEARCHED else words[:-1])  # the last one may be half of a key
        return line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]}..."


def _checked_deadline(seconds: Any) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
        raise ValueError(f"deadline is a number of seconds above 0, or None, not {seconds!r}")
    return float(seconds)


async def _end(events: AsyncIterator[Any]) -> None:
    """Read to the end what has said that it is over: then the connection can be used again. Nothing waits for that."""
    with suppress(TimeoutError, BodyError):
        async with asyncio.timeout(0.1):
            async for _ in events:
                pass


def _named(tool: Any) -> Any:
    """The name of the function that a definition, or a choice, is about; None for any other."""
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _variable_for(host: str) -> str:
    dashscope = host.startswith("dashscope") and host.endswith(".aliyuncs.com")
    return "DASHSCOPE_API_KEY" if dashscope else "OPENAI_API_KEY"


def _is_choice(choice: Any) -> bool:
    if not isinstance(choice, dict):
        return False
    return isinstance(choice.get("delta") or choice.get("message") or choice, dict)


def _message(body: str) -> str:
    """What an error's body says, in whichever of the usual forms."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return body
    while isinstance(content, dict):
        content = content.get("error") or content.get("message") or content.get("detail")
    return content if isinstance(content, str) else body
