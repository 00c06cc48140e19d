"""Documents as sources of tools."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias, final
from urllib.parse import urljoin, urlsplit

from attrs import frozen

from pegboard import RegistrationError
from pegboard_openapi._credentials import Credentials, Given, Signature, credential_names
from pegboard_openapi._document import METHODS, Document, DocumentError, is_url, read_document
from pegboard_openapi._names import Names
from pegboard_openapi._operation import Terms, operation_id, read_operation
from pegboard_openapi._request import split_path
from pegboard_openapi._tool import Link, OperationTool
from pegboard_schemas import judged

__all__ = ["OpenApi"]

SECONDS: Final = 60.0
MAX_BYTES: Final = 10 * 1024 * 1024
Described: TypeAlias = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]
MOST_SAID: Final = 20
"""Problems of one document that are told one by one."""


@final
@frozen
class _Reading:
    """A document that is being read, and what holds for all its operations, which may be many."""

    document: Document
    names: Mapping[tuple[str, str], str]
    link: Link
    terms: Terms
    unasked: Signature


@final
class OpenApi:
    """The operations of an OpenAPI document, as tools that `toolkit.register(api)` registers.

    `document` is a path, a URL, a mapping, or an application that has one (FastAPI), which is called in this process;
    `app` is an ASGI application for a document that stands by itself. `base_url` says where the server is, by default
    the document does. `tags`, `methods`, `paths` and `operations` (by operationId) select operations; paths and
    operations may be patterns (`/users/*`). `token`, `api_key` and `basic` (user and password) are for security schemes
    of these kinds, `credentials` for schemes by name, `headers` go with every request; all of them are secret.
    They go to the server that the program named, and to the operations that ask for them; with `send_always` also to
    those that ask for none. `timeout` is in seconds, for one request; `max_bytes` bounds an answer. With
    `output_schemas=False` answers are taken as they come. `slashes` are parameters of paths that may hold slashes,
    which are sent as `%2F`. A document that cannot be read raises nothing: see `problems`. Raises ValueError for an
    argument that is none of these.
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
        timeout: float = SECONDS,
        max_bytes: int = MAX_BYTES,
        output_schemas: bool = True,
        send_always: bool = False,
        slashes: Iterable[str] = (),
    ) -> None:
        if not (isinstance(document, (str, PathLike, Mapping)) or callable(getattr(document, "openapi", None))):
            said = type(document).__name__
            raise ValueError(f"document must be a path, a URL, a mapping or an application, not {said}")
        if app is not None and not callable(app):
            raise ValueError(f"app must be an ASGI application, not {type(app).__name__}")
        self._source = document
        self._app = document if app is None and callable(getattr(document, "openapi", None)) else app
        self._base_url = None if base_url is None else _checked(base_url)
        self.name = name or _name(document)
        self.credentials = Credentials(token, api_key, basic, credentials, headers)
        self._tags, self._methods = _several(tags), tuple(each.lower() for each in _several(methods))
        self._paths, self._operations = _several(paths), _several(operations)
        unknown = sorted(set(self._methods) - set(METHODS))
        if unknown:
            raise ValueError(f"methods: there is no {unknown[0]!r}; there are {', '.join(METHODS)}")
        self._timeout, self._max_bytes = _positive("timeout", timeout), _positive("max_bytes", max_bytes)
        self._output_schemas, self._send_always = output_schemas, send_always
        self._slashes = _several(slashes)
        self._lock = threading.RLock()
        self._watchers: list[Callable[[], None]] = []
        self._read = False
        self._tools: dict[str, OperationTool] = {}
        self._problems: tuple[str, ...] = ()
        self.missing: dict[str, str] = {}
        """Operations that are left out for want of a credential, and which."""
        self.has_secrets = bool(self.credentials)
        """Whether requests carry secrets, which go to a server that the program names alone."""
        self.tells_missing = True
        """Whether these are problems too: not where somebody else says so."""

    def __repr__(self) -> str:
        return f"OpenApi({self.name!r}, {len(self._tools)} tools)"

    # A source of tools -------------------------------------------------------------------------------------------

    def tools(self) -> list[OperationTool]:
        """The operations; the first time the document is read. Nothing is raised: see `problems`."""
        with self._lock:
            if not self._read:
                self._adopt()
            return list(self._tools.values())

    @property
    def problems(self) -> Sequence[str]:
        """Why operations are missing, or get no credentials."""
        problems = [*self._problems, *(self._left_out() if self.tells_missing else ())]
        said = [f"the API {self.name!r}: {problem}" for problem in problems[:MOST_SAID]]
        if len(problems) > MOST_SAID:
            said.append(f"the API {self.name!r} has {len(problems) - MOST_SAID} problems more")
        return said

    def lacking(self) -> dict[str, list[str]]:
        """The names of `missing`, sorted, by the reason."""
        found: dict[str, list[str]] = {}
        for name, reason in sorted(self.missing.items()):
            found.setdefault(reason, []).append(name)
        return found

    def _left_out(self) -> Iterator[str]:
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
        self._read = True
        try:
            reading = self._reading(read_document(self._source))
        except DocumentError as error:
            self._problems = (f"its document cannot be used: {error}",)
            return
        except Exception as error:  # noqa: BLE001 - whatever an application or a stranger's mapping comes up with
            self._problems = (f"its document cannot be used: {type(error).__name__}",)
            return
        self._tools, self.missing, problems = {}, {}, []
        for method, path, item, said in reading.document.operations():
            if not self._wants(method, path, said):
                continue
            try:
                problem = self._add(reading, (method, path, item, said))
            except (DocumentError, RegistrationError) as error:
                problem = f"it is left out: {error}"
            except Exception as error:  # noqa: BLE001 - a stranger's document may be wrong in any way
                problem = f"it is left out, it cannot be understood ({type(error).__name__})"
            if problem:
                problems.append(f"{method.upper()} {path}: {problem}")
        if not (self._tools or self.missing or problems):
            problems.append("no operation of its document is selected")
        if self._tools and self.credentials.by_scheme and not any(each.is_signed for each in self._tools.values()):
            problems.append("no operation asks for its credentials, so none gets them; send_always=True sends them")
        self._problems = tuple(problems)

    def _reading(self, document: Document) -> _Reading:
        return _Reading(
            document,
            _names(document),
            Link(self.credentials, lambda: self._client, _templates(document)),
            Terms(credential_names(document), self._slashes),
            self.credentials.unasked(document, always=self._send_always),
        )

    def _wants(self, method: str, path: str, said: Mapping[str, Any]) -> bool:
        tags, own = said.get("tags"), operation_id(method, path, said)
        return (
            (not self._methods or method in self._methods)
            and (not self._tags or (isinstance(tags, list) and any(each in self._tags for each in tags)))
            and (not self._paths or any(fnmatchcase(path, each) for each in self._paths))
            and (not self._operations or any(fnmatchcase(own, each) for each in self._operations))
        )

    def _add(self, reading: _Reading, described: Described) -> str:
        """Add a tool. Returns what is wrong with it, raises for what cannot be one."""
        method, path, item, said = described
        document, name = reading.document, reading.names[method, path]
        try:
            security = said.get("security", document.content.get("security"))
            signature = self.credentials.signature(document, security, reading.unasked)
        except DocumentError as error:
            self.missing[name] = str(error)
            return ""
        base = self._base(document, item, said)
        operation = read_operation(document, *described, signature.has, reading.terms)
        parameters = judged(operation.parameters, "its schema", is_whole=operation.is_whole, refuses_many=False)
        returns, check, problem = operation.returns if self._output_schemas else None, None, ""
        if returns is not None:
            try:
                whole = operation.returns_is_whole
                check = judged(returns, "its output schema", is_whole=whole, refuses_many=False).check
            except RegistrationError as error:
                returns, problem = None, f"it is offered without its output schema: {error}"
        self._tools[name] = OperationTool(
            name,
            operation,
            parameters.judge,
            base,
            returns,
            signature,
            check,
            reading.link,
            open_world=self._app is None,
        )
        return problem

    def _base(self, document: Document, item: Mapping[str, Any], said: Mapping[str, Any]) -> str:
        """Where the server of an operation is. Raises `DocumentError` for one that is nowhere, or gets no secrets."""
        if self._base_url is not None or self._app is not None:
            return self._base_url or "http://localhost"
        servers = said.get("servers") or item.get("servers") or document.content.get("servers") or [{"url": "/"}]
        variables = servers[0].get("variables") or {}
        url = re.sub("{([^{}]*)}", lambda found: str(variables[found[1]]["default"]), servers[0]["url"])
        url = urljoin(document.url or "", url)
        if not is_url(url):
            raise DocumentError("the document does not say where the server is, give base_url=")
        try:
            url = _checked(url)
        except ValueError as error:
            raise DocumentError(str(error)) from None
        # Else what a URL redirects to, and what can be changed there, would decide who gets the credentials.
        if document.url and self.has_secrets and _origin(url) != _origin(self._source):
            raise DocumentError(f"to send secrets to {urlsplit(url).hostname}, name it by base_url=")
        return url

    @cached_property
    def _client(self) -> Any:
        from pegboard_openapi._client import Client

        return Client(self.credentials, self._app, self._timeout, self._max_bytes)


def _several(said: Iterable[str]) -> tuple[str, ...]:
    return (said,) if isinstance(said, str) else tuple(said)


def _positive(what: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{what} must be a number above 0; it is {value!r}")
    return value


def _checked(url: Any) -> str:
    """A base URL. Raises ValueError for what is none; whatever else it holds may be secret."""
    with suppress(ValueError):  # of a port that is none
        parts = urlsplit(url if isinstance(url, str) else "")
        is_bare = parts.hostname and "@" not in parts.netloc and not parts.query and parts.port != 0
        if is_bare and parts.scheme in ("http", "https"):
            return str(url.partition("#")[0].rstrip("/"))
    raise ValueError("base_url takes http(s)://host/path, without user, password and query")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port. Raises ValueError for a port that is none."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _name(source: Any) -> str:
    """What a document is called before it is read."""
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
        (method, path): names.free(re.sub("[^A-Za-z0-9_-]", "_", operation_id(method, path, said)))
        for method, path, _, said in document.operations()
    }


def _templates(document: Document) -> dict[str, list[tuple[str, ...]]]:
    """The paths of the document by method, in segments."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for method, path, _, _ in document.operations():
        found.setdefault(method, []).append(split_path(path))
    return found
