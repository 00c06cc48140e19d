"""Documents as sources of tools."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias, final
from urllib.parse import urlsplit

from attrs import Factory, evolve, frozen

from pegboard import RegistrationError
from pegboard_net import RefusedUrlError, read_url
from pegboard_openapi._credentials import Credentials, Given, Signature, credential_names
from pegboard_openapi._document import Document, DocumentError, is_url, read_document
from pegboard_openapi._names import Names
from pegboard_openapi._operation import Terms, operation_id, read_operation
from pegboard_openapi._request import split_path
from pegboard_openapi._selection import Selection, excluded, several
from pegboard_openapi._server import Server
from pegboard_openapi._swagger import as_openapi_3
from pegboard_openapi._tools import Link, OperationTool
from pegboard_openapi._trimming import size_of
from pegboard_schemas import judged

__all__ = ["OpenApi"]

SECONDS: Final = 60.0
MAX_BYTES: Final = 10 * 1024 * 1024
MAX_SCHEMA: Final = 32_768
Described: TypeAlias = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]
MAX_PROBLEMS: Final = 20
"""Problems of one document that are reported one by one."""


@final
@frozen
class _Found:
    """The tools of a document, the operations without a needed credential, and what is wrong."""

    tools: dict[str, OperationTool] = Factory(dict)
    missing: dict[str, str] = Factory(dict)
    problems: list[str] = Factory(list)


@final
@frozen
class _Reading:
    """A document that is being read, and what holds for all its operations, which may be many."""

    document: Document
    names: Mapping[tuple[str, str], str]
    link: Link
    terms: Terms
    unasked: Signature
    found: _Found = Factory(_Found)


@final
class OpenApi:
    """The operations of an OpenAPI 3 or Swagger 2.0 document, as tools that `toolkit.register(api)` registers.

    Credentials and headers are secret. They go to the server that the program named, and to the operations that ask for
    them. A document that cannot be read raises nothing: see `problems`. Raises ValueError for an invalid argument.

    Args:
        document: A path, a URL, a mapping, or an application that has a document (FastAPI), which is called in this
            process.
        base_url: Where the server is. None: where the document says.
        name: Name for messages. None makes one from the document.
        app: ASGI application for a document that stands by itself. None: the network.
        token: For `http` bearer, `oauth2` and `openIdConnect` schemes.
        api_key: For `apiKey` schemes, in a header, the query or a cookie.
        basic: User and password, for `http` basic.
        credentials: By the names of security schemes, where there are several of a kind.
        headers: Headers of every request.
        tags: Tags of the operations to take. Empty for all; so for the next three. An operation must fit all that is
            given.
        methods: Their methods, such as `"get"`.
        paths: Their paths, or patterns such as `/users/*`.
        operations: Their operationIds, or patterns.
        exclude: Operations to leave out: patterns of operationIds, and of paths where they begin with a slash; or a
            mapping with `tags`, `methods`, `paths` and `operations`, of which any fits.
        timeout: Seconds that one request may take; 60 by default.
        max_bytes: Most bytes of an answer; 10 MiB by default.
        max_schema: Most characters of a schema as JSON; 32,768 by default. In a larger one long descriptions go first,
            then deep optional members: they are still accepted, and the description of the tool names them. None for no
            limit.
        output_schemas: Whether tools have an output schema, and answers are checked.
        send_always: Whether credentials go also to operations that ask for none.
        slashes: Parameters of paths that may hold slashes, which are sent as `%2F`.
    """

    def __init__(
        self,
        document: Any,
        base_url: str | None = None,
        *,
        name: str | None = None,
        app: Any = None,
        token: Given | None = None,
        api_key: Given | None = None,
        basic: tuple[str, Given] | None = None,
        credentials: Mapping[str, Given | tuple[str, Given]] | None = None,
        headers: Mapping[str, Given] | None = None,
        tags: Iterable[str] = (),
        methods: Iterable[str] = (),
        paths: Iterable[str] = (),
        operations: Iterable[str] = (),
        exclude: Iterable[str] | Mapping[str, Iterable[str]] = (),
        timeout: float = SECONDS,
        max_bytes: int = MAX_BYTES,
        max_schema: int | None = MAX_SCHEMA,
        output_schemas: bool = True,
        send_always: bool = False,
        slashes: Iterable[str] = (),
    ) -> None:
        is_application = _is_application(document)
        self._source = document
        self._server = Server(base_url, document if is_application and app is None else app, timeout, max_bytes)
        self._selection = Selection(tags, methods, paths, operations)
        self._excluded = excluded(exclude)
        self._max_schema = _limit(max_schema)
        self.name = name or _name(document)
        self.credentials = Credentials(token, api_key, basic, credentials, headers)
        self._output_schemas, self._send_always, self._slashes = output_schemas, send_always, several(slashes)
        self._lock = threading.RLock()
        self._watchers: list[Callable[[], None]] = []
        self._found, self._is_read = _Found(), False
        self.has_secrets = bool(self.credentials)
        """Whether requests carry secrets, which go to a server that the program names alone."""
        self.tells_missing = True
        """Whether operations without a credential are problems too; False if another report names them."""

    def __repr__(self) -> str:
        return f"OpenApi({self.name!r}, {len(self._found.tools)} tools)"

    # A source of tools -------------------------------------------------------------------------------------------

    def tools(self) -> list[OperationTool]:
        """The operations; the first time the document is read. Nothing is raised: see `problems`."""
        with self._lock:
            if not self._is_read:
                self._adopt()
            return list(self._found.tools.values())

    @property
    def problems(self) -> Sequence[str]:
        """Why operations are missing, or get no credentials."""
        problems = [*self._found.problems, *(self._lacking_problems() if self.tells_missing else ())]
        reported = [f"the API {self.name!r}: {problem}" for problem in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            reported.append(f"the API {self.name!r} has {len(problems) - MAX_PROBLEMS} problems more")
        return reported

    @property
    def missing(self) -> Mapping[str, str]:
        """Operations that are not offered because a credential is missing, with the reason."""
        return self._found.missing

    def lacking(self) -> dict[str, list[str]]:
        """The names of `missing`, sorted, by the reason."""
        found: dict[str, list[str]] = {}
        for name, reason in sorted(self.missing.items()):
            found.setdefault(reason, []).append(name)
        return found

    def _lacking_problems(self) -> Iterator[str]:
        for reason, names in self.lacking().items():
            yield f"{', '.join(names[:5])}{' and others' * (len(names) > 5)} left out: {reason}"

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed()` after each `refresh`, until what is returned is called."""
        self._watchers.append(changed)
        return lambda: self._watchers.remove(changed) if changed in self._watchers else None

    def refresh(self) -> None:
        """Read the document again. Raises nothing: one that cannot be read leaves the tools as they are."""
        with self._lock:
            self._adopt()
        for changed in list(self._watchers):
            changed()

    def _adopt(self) -> None:
        self._is_read = True
        try:
            reading = self._reading(as_openapi_3(read_document(self._source)))
        except Exception as error:  # noqa: BLE001 - an application or a third-party mapping may raise anything
            reason = str(error) if isinstance(error, DocumentError) else type(error).__name__
            self._found = evolve(self._found, problems=[f"its document cannot be used: {reason}"])
            return
        found = reading.found
        for described in reading.document.operations():
            method, path, _, operation = described
            selected = self._selection.fits_all(method, path, operation)
            if selected and not self._excluded.fits_any(method, path, operation):
                found.problems.extend(f"{method.upper()} {path}: {each}" for each in self._add(reading, described))
        if not (found.tools or found.missing or found.problems):
            found.problems.append("no operation of its document is selected")
        if found.tools and self.credentials.by_scheme and not any(each.is_signed for each in found.tools.values()):
            found.problems.append(
                "no operation asks for its credentials, so none gets them; send_always=True sends them"
            )
        self._found = found

    def _reading(self, document: Document) -> _Reading:
        return _Reading(
            document,
            _names(document),
            Link(self.credentials, lambda: self._client, _templates(document)),
            Terms(credential_names(document), self._slashes, self._max_schema),
            self.credentials.unasked(document, always=self._send_always),
        )

    def _add(self, reading: _Reading, described: Described) -> Iterator[str]:
        """Add the tool of an operation, or why it cannot be one. Yields what is wrong."""
        try:
            yield from self._read(reading, described)
        except (DocumentError, RegistrationError, RefusedUrlError) as error:
            yield f"it is left out: {error}"
        except Exception as error:  # noqa: BLE001 - a third-party document may be wrong in any way
            yield f"it is left out, it cannot be understood ({type(error).__name__})"

    def _read(self, reading: _Reading, described: Described) -> Iterator[str]:
        method, path, item, content = described
        document, name = reading.document, reading.names[method, path]
        try:
            security = content.get("security", document.content.get("security"))
            signature = self.credentials.signature(document, security, reading.unasked)
        except DocumentError as error:
            reading.found.missing[name] = str(error)
            return
        base = self._base(document, item, content)
        operation = read_operation(document, *described, signature.has, reading.terms)
        whole = judged(operation.parameters, "its schema", is_whole=operation.is_whole, refuses_many=False)
        judge, arguments = whole.judge, None
        if operation.shown is not operation.parameters:
            judge = judged(operation.shown, "its schema", is_whole=False, refuses_many=False).judge
            arguments = whole.check
            yield from self._too_large(operation.shown)
        returns, check = operation.returns if self._output_schemas else None, None
        if returns is not None:
            try:
                is_whole = operation.returns_is_whole
                check = judged(returns, "its output schema", is_whole=is_whole, refuses_many=False).check
            except RegistrationError as error:
                returns = None
                yield f"it is offered without its output schema: {error}"
        reading.found.tools[name] = OperationTool(
            name,
            operation,
            judge,
            base,
            returns and operation.shown_returns,
            signature,
            arguments,
            check,
            reading.link,
            open_world=self._server.app is None,
        )

    def _too_large(self, schema: Mapping[str, Any]) -> Iterator[str]:
        if (size := size_of(schema)) > self._max_schema:
            yield f"its schema has {size:,} characters, more than max_schema, for nothing else of it can go"

    def _base(self, document: Document, item: Mapping[str, Any], content: Mapping[str, Any]) -> str:
        """Where the server of an operation is. Raises `DocumentError` for one that is nowhere, or gets no secrets."""
        url = self._server.url(document, item, content)
        # Else what a URL redirects to, and what can be changed there, would decide who gets the credentials.
        is_trusted = not self.has_secrets or self._server.is_named or not document.url
        if not is_trusted and read_url(url).origin != read_url(self._source).origin:
            raise DocumentError(f"to send secrets to {urlsplit(url).hostname}, name it by base_url=")
        return url

    @cached_property
    def _client(self) -> Any:
        from pegboard_openapi._client import Client

        return Client(self.credentials, self._server.app, self._server.timeout, self._server.max_bytes)


def _limit(most: Any) -> float:
    """How many characters a schema may have. Raises ValueError for what is no number above 0."""
    if most is None:
        return math.inf
    if isinstance(most, bool) or not isinstance(most, int | float) or not most > 0:
        raise ValueError(f"max_schema must be a number above 0 or None; it is {most!r}")
    return most


def _is_application(document: Any) -> bool:
    """Whether a document is that of an application. Raises ValueError for what is no document."""
    is_application = callable(getattr(document, "openapi", None))
    if not (is_application or isinstance(document, (str, PathLike, Mapping))):
        got = type(document).__name__
        raise ValueError(f"document must be a path, a URL, a mapping or an application, not {got}")
    return is_application


def _name(source: Any) -> str:
    """The name of a document before it is read."""
    if isinstance(source, Mapping):
        info = source.get("info")
        return str((isinstance(info, Mapping) and info.get("title")) or "openapi")
    if is_url(source):
        return urlsplit(source).hostname or "openapi"
    if callable(getattr(source, "openapi", None)):
        return str(getattr(source, "title", "") or "app")
    return Path(source).stem


def _names(document: Document) -> dict[tuple[str, str], str]:
    """The names of all operations, whichever are selected: as providers take them, and none twice."""
    names = Names()
    return {
        (method, path): names.free(re.sub("[^A-Za-z0-9_-]", "_", operation_id(method, path, operation)))
        for method, path, _, operation in document.operations()
    }


def _templates(document: Document) -> dict[str, list[tuple[str, ...]]]:
    """The paths of the document by method, in segments."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for method, path, _, _ in document.operations():
        found.setdefault(method, []).append(split_path(path))
    return found
