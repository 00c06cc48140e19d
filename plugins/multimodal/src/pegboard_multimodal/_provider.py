"""A provider's HTTP interface: requests with the key, and its errors as messages for the model."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pegboard import Redaction, Secret, ToolError
from pegboard_multimodal.media import Inputs, Made, Outputs, once
from pegboard_net import MAX_BYTES, BodyError, Guard, body_of, open_client, read_url, retry_after

if TYPE_CHECKING:
    import os

    import httpx2

__all__ = ["BusyError", "ProviderError", "ProviderTools"]

MAX_ANSWER: Final = 256 * 1024 * 1024  # bytes; ten large images as base64 text
_SECONDS: Final = 600.0  # without a byte; the call's own timeout is shorter
_REDIRECTS: Final = range(300, 400)

# Codes and types of providers' errors that say more than the status.
_QUOTA: Final = re.compile(r"insufficient_quota|billing|arrearage|quota.*(exceed|exhaust|freetier)", re.IGNORECASE)
_MODERATION: Final = re.compile(r"moderation|content_policy|content_filter|inspection|infringement", re.IGNORECASE)


class ProviderError(ToolError):
    """The provider refuses, or its answer cannot be used. A retry would change nothing."""


class BusyError(Exception):
    """The provider cannot answer now: whether to try again is for the call's policy to say."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProviderTools:
    """What the tools of all providers are made with.

    `models` names other models than `MODELS`, by what they do ("text_to_image"). `base_dir` is where local files are
    read from; without it there are none. With `save`, results are files in there too; without `download`, results that
    the provider gives as URLs stay URLs. `allow_private` lets URLs lead to the server's own address although it is
    private, or to origins that are named; `guard` is another guard than the usual one. Raises ValueError for a blank
    key, a base URL that is none and names that nothing has, TypeError for a key that is no text, OSError for a
    `base_dir` that cannot be opened.
    """

    NAME: ClassVar[str]
    PREFIX: ClassVar[str]
    BASE_URL: ClassVar[str]
    MODELS: ClassVar[Mapping[str, str]]

    def __init__(
        self,
        api_key: str | Secret[str],
        base_url: str | None = None,
        *,
        models: Mapping[str, str] | None = None,
        base_dir: str | os.PathLike[str] | None = None,
        allow_private: bool | Iterable[str] = False,
        download: bool = True,
        save: bool = False,
        guard: Guard | None = None,
    ) -> None:
        key: Any = api_key.value if isinstance(api_key, Secret) else api_key
        if key is not None and not isinstance(key, str):
            raise TypeError(f"{self.NAME} API key is a text or a Secret of one, not {type(key).__name__}")
        if not key or not key.strip():
            raise ValueError(f"{self.NAME} API key cannot be empty")
        if not re.fullmatch(r"[!-~]+", key.strip()):
            raise ValueError(f"{self.NAME} API key holds characters that no key has")
        self._key = Secret(key.strip())
        self.base_url = (base_url or self.BASE_URL).rstrip("/")
        try:
            own = read_url(self.base_url).origin
        except ToolError as error:
            raise ValueError(f"base_url: {error}") from None
        self.models = {**self.MODELS, **named_models(models or {}, self.PREFIX, self.MODELS)}
        origins = [own] if allow_private is True else [] if allow_private is False else [*allow_private]
        self._guard = guard or Guard(origins)
        folder = open_folder(base_dir)
        self._inputs = Inputs(self._guard, folder)
        self._outputs = Outputs(self._guard, folder, download=download, save=save)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    # Requests ----------------------------------------------------------------------------------------------------

    async def _send(self, method: str, path: str, **content: Any) -> bytes:
        """The body of a successful answer. Raises `ProviderError` and `BusyError`."""
        import httpx2

        headers = {"Authorization": f"Bearer {self._key.value}", **content.pop("headers", {})}
        try:
            with nullcontext() if method == "GET" else once():
                async with (
                    open_client(_SECONDS) as client,
                    client.stream(method, f"{self.base_url}{path}", headers=headers, **content) as response,
                ):
                    return self._accepted(response, await body_of(response, MAX_ANSWER))
        except BodyError as error:
            raise ProviderError(f"{self.NAME} sent {error}.") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise BusyError(f"{self.NAME} cannot be reached: {type(error).__name__}") from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            # The request may have been received and charged: it must not be repeated automatically.
            raise ProviderError(f"{self.NAME} broke off before it had answered: {type(error).__name__}.") from error

    async def _ask(self, method: str, path: str, **content: Any) -> Any:
        """The same for an answer in JSON."""
        body = await self._send(method, path, **content)
        try:
            return json.loads(body)
        except ValueError as error:
            raise self._unknown("it is no JSON") from error

    def _accepted(self, response: httpx2.Response, body: bytes) -> bytes:
        status = response.status_code
        if status in _REDIRECTS:
            to = self._clean(response.headers.get("location", "")) or "nowhere"
            raise ProviderError(f"{self.NAME} answers {status}, a redirect, which is not followed with a key: to {to}")
        if status < 300:
            return body
        code, message = _error_in(body)
        raise self._refusal(code, message, status, retry_after(response.headers.get("retry-after", "")))

    def _refusal(
        self, code: str, message: str, status: int | None = None, retry_after: float | None = None
    ) -> ProviderError | BusyError:
        """What a provider's error means."""
        about = " ".join(filter(None, [str(status or ""), code]))
        detail = f" ({about})" if about else ""
        detail += f": {self._clean(message)}" if message else ""
        if _MODERATION.search(code):
            return ProviderError(f"{self.NAME} does not allow this content{detail}")
        if _QUOTA.search(code):
            return ProviderError(f"The quota at {self.NAME} is used up{detail}")
        if retry_after is not None and math.isfinite(retry_after) and retry_after >= 1:
            detail += f" (try again in {retry_after:.0f} s)"
        if status in (408, 429):
            return BusyError(f"{self.NAME} has too much to do{detail}", retry_after)
        if status is not None and status >= 500:
            return BusyError(f"{self.NAME} does not work at the moment{detail}", retry_after)
        meaning = {
            401: "does not accept the key",
            403: "does not allow this with this key",
            404: "has no such endpoint or model",
            413: "finds this too large",
        }
        return ProviderError(f"{self.NAME} {meaning.get(status or 0, 'refuses')}{detail}")

    def _clean(self, text: str) -> str:
        """A provider's words on one line, without the key."""
        plain = " ".join(Redaction([self._key])(text).split())
        return plain if len(plain) <= 1000 else f"{plain[:1000]}..."

    # Answers -----------------------------------------------------------------------------------------------------

    def _unknown(self, why: str) -> ProviderError:
        return ProviderError(f"{self.NAME} sent an answer that is not understood: {why}.")

    def _made(self, url: Any, data: Any) -> Made:
        """A medium that an answer gives by its URL, or as base64."""
        try:
            return Made(url=str(url)) if url else Made(b64decode(str(data), validate=True))
        except ValueError as error:
            raise self._unknown("its data is no base64") from error

    def _part(self, answer: Any, *path: str | int, kind: type = str) -> Any:
        """What is at a path of the answer, if it is of that kind and there is something."""
        for step in path:
            try:
                answer = answer[step]
            except (LookupError, TypeError):
                raise self._unknown(f"it has no {'.'.join(map(str, path))}") from None
        if not isinstance(answer, kind) or not answer:
            raise self._unknown(f"{'.'.join(map(str, path))} is no {kind.__name__}, or empty")
        return answer


def open_folder(base_dir: str | os.PathLike[str] | None) -> Any:
    """The confined directory; None where there is none. Raises OSError."""
    if base_dir is None:
        return None
    from pegboard_files import ConfinedFolder

    return ConfinedFolder(base_dir, max_bytes=MAX_BYTES)


def named_models(models: Mapping[str, str], prefix: str, known: Iterable[str]) -> dict[str, str]:
    """The models by what they do; they may be given by the names of tools. Raises ValueError for other names."""
    short = {name.removeprefix(prefix): model for name, model in models.items()}
    unknown = sorted(short.keys() - set(known))
    if unknown:
        raise ValueError(f"models: there is nothing called {unknown[0]!r}; there are {', '.join(sorted(known))}")
    return short


def _error_in(body: bytes) -> tuple[str, str]:
    """The code and the message of an error, whichever provider's it is."""
    try:
        answer = json.loads(body)
    except ValueError:
        return "", body[:500].decode("utf-8", "replace")
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    if not isinstance(error, dict):
        return "", str(error)
    return str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")


def records(found: Any) -> list[dict[str, Any]]:
    """The objects of an array, if it is one."""
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
