"""Credentials: those of the program, where each operation needs them, and how texts mask them."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, TypeAlias, final
from urllib.parse import quote

from attrs import field, frozen

from pegboard import Secret
from pegboard_openapi._document import Document, DocumentError

__all__ = ["Credentials", "Given", "Signature", "credential_names"]

Given: TypeAlias = str | Secret[str]

SHORTEST: Final = 4
"""Shorter values are not masked: they are too likely a part of a harmless word."""
LONG: Final = 8
_MOST_ALTERNATIVES: Final = 50
"""Of the requirements of one operation, and the schemes of one of them: a document may give one list to all."""
_HEADER: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""What RFC 9110 calls a token."""
_PLACES: Final = ("query", "header", "cookie")
_BEARERS: Final = frozenset({"oauth2", "openIdConnect"})


@final
@frozen
class Signature:
    """What is added to a request at the last moment, so that no logged request has it."""

    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cookies: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    by_scheme: bool = False  # it has more than the headers that go with all requests

    def has(self, where: str, name: str) -> bool:
        """Whether it fills this place, so that the model does not."""
        places = {"query": self.query, "header": self.headers, "cookie": self.cookies}.get(where, ())
        folded = str.casefold if where == "header" else str
        return any(folded(name) == folded(each) for each, _ in places)


@final
class Credentials:
    """What the program gives: by the names of the document's security schemes, by their kind, and headers for all.

    Raises ValueError for what is no text or blank, or holds characters that no header has.
    """

    def __init__(
        self,
        token: Given | None = None,
        api_key: Given | None = None,
        basic: tuple[str, Given] | None = None,
        named: Mapping[str, Given | tuple[str, Given]] | None = None,
        headers: Mapping[str, Given] | None = None,
    ) -> None:
        self._secrets: set[str] = set()
        self._token = self._revealed("token", token)
        self._api_key = self._revealed("api_key", api_key)
        self._basic = self._revealed("basic", basic)
        self._named = self._all("credentials", named)
        self._headers = self._all("headers", headers)
        wrong = next((name for name in self._headers if not re.fullmatch(_HEADER, name)), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} is no name of a header")

    def __repr__(self) -> str:
        return "Credentials(***)" if self else "Credentials()"

    def __bool__(self) -> bool:
        return self.by_scheme or bool(self._headers)

    @property
    def by_scheme(self) -> bool:
        """Whether there are some that operations ask for; headers go with all requests."""
        return any((self._token, self._api_key, self._basic, self._named))

    def unasked(self, document: Document, *, always: bool) -> Signature:
        """The signature of operations that need no credentials: headers, and with `always` all credentials."""
        schemes = document.schemes
        given = [name for name in schemes if always and self._value(schemes, name) is not None]
        return self._signed(schemes, [name for name in given if _placed(schemes[name], "")[0] in _PLACES])

    def signature(self, document: Document, security: Any, unasked: Signature) -> Signature:
        """What requests of an operation with these requirements carry. Raises `DocumentError` saying what is missing.

        Of several alternatives the first that there are credentials for counts. An operation without any asks for
        nothing, as OpenAPI has it, and gets what is `unasked`.
        """
        schemes = document.schemes
        listed = islice(security, _MOST_ALTERNATIVES) if isinstance(security, list) else ()
        wanted = [list(islice(each, _MOST_ALTERNATIVES)) for each in listed if isinstance(each, Mapping)]
        for names in wanted:
            if names and all(self._value(schemes, name) is not None for name in names):
                return self._signed(schemes, names)
        if all(wanted):  # none of them is empty, which would say that it needs nothing
            lacking = " or ".join(dict.fromkeys(self._lacking(schemes, names) for names in wanted))
            if lacking:
                raise DocumentError(f"it needs {lacking}")
        return unasked

    def _all(self, where: str, given: Any) -> dict[str, Any]:
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"{where} must be a mapping by name, not {type(given).__name__}")
        return {str(name): self._revealed(f"{where}[{name!r}]", each) for name, each in (given or {}).items()}

    def _revealed(self, where: str, given: Any) -> Any:
        if given is None:
            return None
        if isinstance(given, tuple | list):
            if len(given) != 2:
                raise ValueError(f"{where} must be a user and a password, not {len(given)} values")
            user, password = given
            return str(user), self._revealed(where, password)
        text = given.value if isinstance(given, Secret) else given
        if not isinstance(text, str):
            raise ValueError(f"{where} must be a text, not {type(text).__name__}")
        if not text.strip():
            raise ValueError(f"{where} cannot be empty")
        if not re.fullmatch(r"[ -~]+", text.strip()):
            raise ValueError(f"{where} holds characters that no credential has")
        self._keep(text.strip())
        return text.strip()

    def _keep(self, text: str) -> None:
        # Of "Bearer s3cret" and "ada:s3cret" the word alone is as secret as the whole.
        for each in (text, text.rpartition(" ")[2], text.rpartition(":")[2]):
            self._secrets |= {each, quote(each, safe="")} if len(each) >= SHORTEST else set()

    def redact(self, text: str) -> str:
        """`text` with credentials masked, also in the forms that they have in URLs and headers."""
        # The longest first: one may be a part of another.
        for secret in sorted(self._secrets, key=lambda each: (-len(each), each)):
            text = text.replace(secret, "***")
        return text

    def redact_bytes(self, body: bytes) -> bytes:
        """A server's answer without them, for some quote the request; short ones may be a part of innocent words."""
        for secret in sorted(self._secrets, key=lambda each: (-len(each), each)):
            body = body.replace(secret.encode(), b"***") if len(secret) >= LONG else body
        return body

    def _value(self, schemes: Mapping[str, Any], name: str) -> Any:
        """The credential for a scheme; None for none, and for a kind of scheme that is not known."""
        kind = _kind(schemes.get(name, {}))
        usual = {"apiKey": self._api_key, "bearer": self._token, "basic": self._basic}
        return self._named.get(name, usual[kind]) if kind in usual else None

    def _signed(self, schemes: Mapping[str, Any], names: list[str]) -> Signature:
        found: dict[str, dict[str, str]] = {"query": {}, "header": dict(self._headers), "cookie": {}}
        for name in names:
            where, key, value = _placed(schemes[name], self._value(schemes, name))
            if where not in found:
                raise DocumentError(f"it wants a credential in {where!r:.50}, which is no place for one")
            found[where].setdefault(key, value)
            self._keep(value)
        query, headers, cookies = (tuple(found[where].items()) for where in _PLACES)
        return Signature(query, headers, cookies, by_scheme=bool(names))

    def _lacking(self, schemes: Mapping[str, Any], names: list[str]) -> str:
        missing = [name for name in names if self._value(schemes, name) is None]
        return " and ".join(f"a credential for {name[:50]!r} ({_described(schemes.get(name, {}))})" for name in missing)


def credential_names(document: Document) -> dict[str, frozenset[str]]:
    """What a document calls the credentials in its query and its cookies, whether there are any or not."""
    named: dict[str, set[str]] = {}
    for scheme in document.schemes.values():
        if _kind(scheme) == "apiKey":
            where, name, _ = _placed(scheme, "")
            named.setdefault(where, set()).add(name.casefold())
    return {where: frozenset(names) for where, names in named.items()}


def _kind(scheme: Mapping[str, Any]) -> str:
    kind = str(scheme.get("type", ""))
    if kind in _BEARERS:
        return "bearer"
    return str(scheme.get("scheme", "")).lower() if kind == "http" else kind


def _described(scheme: Mapping[str, Any]) -> str:
    known = {"bearer": "token=", "apiKey": "api_key=", "basic": "user and password"}
    return known.get(_kind(scheme), "of a kind that is not known; headers= may carry it")


def _placed(scheme: Mapping[str, Any], value: Any) -> tuple[str, str, str]:
    """Where the credential goes, under which name, and as what text."""
    match _kind(scheme):
        case "apiKey":
            return str(scheme.get("in", "header")), str(scheme.get("name", "")), value
        case "basic":
            return "header", "Authorization", f"Basic {_basic(value)}"
    return "header", "Authorization", f"Bearer {value}"


def _basic(pair: tuple[str, str] | str) -> str:
    text = pair if isinstance(pair, str) else ":".join(pair)
    return base64.b64encode(text.encode()).decode("ascii")
