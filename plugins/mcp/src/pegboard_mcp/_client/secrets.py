"""Secrets by which a server is reached: the variables that they come from, and how logs and texts mask them.

A server's complaint may quote its key, and so may an error about an address that cannot be reached.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, final
from urllib.parse import parse_qsl, unquote, urlsplit

from pegboard_mcp._wire.unrequested import QUIET

__all__ = ["SHORTEST", "expanded", "expanded_all", "quiet_loggers", "secrets_of", "without_login"]

SHORTEST: Final = 4
"""Shorter values of an environment, of headers and of URLs are numbers and switches; a shorter password is a secret."""
LOGGERS: Final = (
    "client",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
    "httpx2",
    "mcp.client.auth.oauth2",
    "mcp.client.caching",
    "mcp.client.client",
    "mcp.client.sse",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.direct_dispatcher",
    "mcp.shared.dispatcher",
    "mcp.shared.jsonrpc_dispatcher",
)
"""Of the SDK and of what it speaks with: they write addresses, headers, messages and tracebacks."""
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")


def expanded(text: str) -> str:
    """`text` with `${NAME}` and `${NAME:-default}` replaced from the environment. Raises `ValueError` naming it."""

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = os.environ.get(name, default)
        if found is None:
            raise ValueError(f"the environment variable {name!r} is not set")
        return found

    return _VARIABLE.sub(value, text)


def expanded_all(texts: Mapping[str, str] | None) -> dict[str, str]:
    """The same for all values of a mapping."""
    return {name: expanded(text) for name, text in (texts or {}).items()}


def _variables(text: str) -> Iterator[str]:
    """The values of the variables in a text, of those that are set."""
    for name, default in _VARIABLE.findall(text):
        yield os.environ.get(name, default)


def secrets_of(transport: Any) -> tuple[str, ...]:
    """The values by which a server is reached that must not be shown.

    Its environment and headers, passwords, what the query of its URL says, what was sent as authorization, and what
    URL and arguments read from variables.
    """
    found = [each for given in _given(transport) for each in (given, unquote(given)) if len(each) >= SHORTEST]
    found += (login[1] for login in _logins(transport) if login[1])
    return tuple(dict.fromkeys(found))


def _given(transport: Any) -> Iterator[str]:
    for given in (getattr(transport, "env", None), getattr(transport, "headers", None)):
        for value in map(_whole, (given or {}).values()):
            yield from (value, value.rpartition(" ")[2])  # of "Bearer s3cret" the word alone is as secret
    for text in (getattr(transport, "url", ""), *getattr(transport, "args", ())):
        yield from _variables(text)
    for login in _logins(transport):
        yield login[0] if not login[1] else ""  # a token in the place of a user
    parts = urlsplit(_whole(getattr(transport, "url", "")))
    yield from (value for _, value in parse_qsl(parts.query, keep_blank_values=True))
    yield from (parts.query if "=" not in parts.query else "", parts.fragment)
    yield from getattr(transport, "authorizations", ())


def _logins(transport: Any) -> Iterator[tuple[str, str]]:
    """Users and passwords: in the URL, and in what was sent as Basic authorization."""
    yield _login(_whole(getattr(transport, "url", "")))
    headers = map(_whole, (getattr(transport, "headers", None) or {}).values())
    for header in (*headers, *getattr(transport, "authorizations", ())):
        scheme, _, code = header.partition(" ")
        if scheme.casefold() == "basic":
            with suppress(ValueError):
                user, _, password = b64decode(code).decode("utf-8", "replace").partition(":")
                yield user, password


def _login(url: str) -> tuple[str, str]:
    login = urlsplit(url).netloc.rpartition("@")[0]
    user, _, password = login.partition(":")
    return unquote(user), unquote(password)


def without_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """A URL without user and password, and these: what complains about an address quotes all of it."""
    parts = urlsplit(url)
    _, at, host = parts.netloc.rpartition("@")
    return (parts._replace(netloc=host).geturl(), _login(url)) if at else (url, None)


def _whole(text: str) -> str:
    try:
        return expanded(text)
    except ValueError:  # a variable that is not set, which is an error elsewhere
        return text


@contextmanager
def quiet_loggers(redact: Callable[[str], str], *, quiet: bool = True) -> Iterator[None]:
    """While a connection is open: what libraries log about it shows none of its secrets.

    With `quiet`, what they log on this thread, the connection's own, is for debugging: a program that has not asked for
    more reads it nowhere else.
    """
    masking = _Masking(redact, threading.get_ident() if quiet else None)
    for name in LOGGERS:
        logging.getLogger(name).addFilter(masking)
    try:
        yield
    finally:
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(masking)


@final
class _Masking(logging.Filter):
    def __init__(self, redact: Callable[[str], str], quiet_thread: int | None) -> None:
        super().__init__()
        self._quiet_thread = quiet_thread
        self._redact = redact
        self._format = logging.Formatter().formatException

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record passes: every one with its words masked, a quiet one where DEBUG is enabled.

        One that cannot be written fails where it is written.
        """
        if QUIET.get() or threading.get_ident() == self._quiet_thread:
            record.levelno, record.levelname = logging.DEBUG, logging.getLevelName(logging.DEBUG)
            if not logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
                return False
        with suppress(Exception):
            record.msg, record.args = self._redact(record.getMessage()), ()
            if record.exc_info:
                record.exc_text = self._redact(record.exc_text or self._format(record.exc_info))
        return True
