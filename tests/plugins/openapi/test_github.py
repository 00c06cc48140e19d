"""A real document of 296 operations against a server made from it: each is called, with everything and with little.

The server checks each request by openapi-core, which knows nothing of this pack, and answers with an example of what
the document promises.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import Status, Toolkit, ToolResult
from pegboard_openapi import OpenApi
from tests.plugins.openapi.examples import Examples
from tests.plugins.openapi.servers import Asked, Sent, Server, running

DOCUMENT = Path(__file__).with_name("github.json.gz")
# Sent on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")

TOKEN = "ghp-made-up-0123456789"


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(DOCUMENT.read_bytes()))
    return found


class GitHub:
    """Checks requests and makes answers by the document."""

    def __init__(self) -> None:
        self.oracle: Any = None
        self.examples = Examples(document(), full=True)
        self.errors: list[str] = []
        self.expected: tuple[str, str] = ("", "")

    def ask_the_oracle(self) -> None:
        """From now on each request is checked, which takes most of the time."""
        from openapi_core import Config, OpenAPI

        config: Any = {"spec_validator_cls": None}  # that the document is one is not asked here
        self.oracle = OpenAPI.from_dict(document(), config=Config(**config))

    def answer(self, asked: Asked) -> Sent:
        method, path = self.expected
        if self.oracle is not None:
            self.errors += [
                f"{method} {path}: {error!r}" for error in self.oracle.unmarshal_request(seen(asked)).errors
            ]
        if asked.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.errors.append(f"{method} {path} came without the token")
        return self._example(document()["paths"][path][method]["responses"])

    def _example(self, responses: Mapping[str, Any]) -> Sent:
        status = min(responses)
        response = responses[status]
        response = self.examples.at(response["$ref"]) if "$ref" in response else response
        for media_type, media in response.get("content", {}).items():
            example = self.examples.of(media["schema"])
            return Sent(example if "json" in media_type else str(example).encode(), int(status), media_type)
        return Sent(b"", int(status))


def seen(asked: Asked) -> Any:
    """A request as openapi-core takes it."""
    from openapi_core.datatypes import RequestParameters
    from werkzeug.datastructures import Headers, ImmutableMultiDict

    query, headers = ImmutableMultiDict(asked.query), Headers(dict(asked.headers))
    return SimpleNamespace(
        host_url="https://api.github.com",
        path=asked.path,
        method=asked.method.lower(),
        body=asked.body or None,
        content_type=asked.headers.get("Content-Type", ""),
        parameters=RequestParameters(query=query, header=headers, cookie=ImmutableMultiDict()),
    )


@pytest.fixture(scope="module")
def github() -> Iterator[tuple[GitHub, OpenApi, Toolkit]]:
    with running(Server()) as server:
        site = GitHub()
        server.answer = site.answer
        api = OpenApi(document(), server.url, name="github", token=TOKEN, send_always=True)
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(api)
            yield site, api, toolkit


def called(github: tuple[GitHub, OpenApi, Toolkit], tool: Any, *, full: bool) -> ToolResult:
    site, _, toolkit = github
    site.expected = tool.operation.method, tool.operation.path
    return toolkit.call_sync(tool.name, Examples(tool.parameters, full=full).of(tool.parameters))


def refusals(github: tuple[GitHub, OpenApi, Toolkit], tools: list[Any], *, full: bool) -> list[str]:
    found = [(tool, called(github, tool, full=full)) for tool in tools]
    return [f"{tool.name}: {result.text[:300]}" for tool, result in found if result.status is not Status.SUCCESS]


def test_every_operation_is_a_tool() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(OpenApi(document(), "http://127.0.0.1:1", name="github"))
        assert toolkit.problems == []
        assert len(toolkit) == sum(
            method in ("get", "put", "post", "patch", "delete")
            for item in document()["paths"].values()
            for method in item
        )
        assert all(tool.description for tool in toolkit)


def test_some_operations(github: tuple[GitHub, OpenApi, Toolkit]) -> None:
    assert refusals(github, github[1].tools()[::30], full=True) == []
    assert github[0].errors == []


@pytest.mark.slow
@pytest.mark.parametrize("full", [True, False], ids=["everything", "little"])
def test_every_operation(github: tuple[GitHub, OpenApi, Toolkit], full: bool) -> None:
    pytest.importorskip("openapi_core")
    github[0].ask_the_oracle()
    tools = github[1].tools()
    assert len(tools) > 200
    assert refusals(github, tools, full=full) == []
    assert github[0].errors == []


@pytest.mark.slow
def test_a_wrong_request_would_be_seen(github: tuple[GitHub, OpenApi, Toolkit]) -> None:
    pytest.importorskip("openapi_core")
    site = github[0]
    site.ask_the_oracle()
    site.expected = "get", "/repos/{owner}/{repo}/issues"
    site.answer(Asked("GET", "/repos/a/b/issues?per_page=many", {"Authorization": f"Bearer {TOKEN}"}, b""))
    assert len(site.errors) == 1
    site.errors.clear()
