"""A real document of Swagger 2.0: each of Kubernetes' 1,014 operations is a tool that is called as it is described."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pegboard import Status, Toolkit
from pegboard_openapi import OpenApi
from tests.plugins.openapi.examples import Examples
from tests.plugins.openapi.servers import Asked, Sent, Server, running

DOCUMENT = Path(__file__).with_name("kubernetes.json.gz")
METHODS = ("delete", "get", "head", "options", "patch", "post", "put")
KEY = "Bearer s3cret-made-up-0123"
MAX_SCHEMA = 32_768


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(DOCUMENT.read_bytes()))
    return found


def operations() -> Iterator[tuple[str, str, Mapping[str, Any], list[Any]]]:
    """Method, path, the operation, and all its parameters."""
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                described = item[method]
                yield method, path, described, [*item.get("parameters", ()), *described.get("parameters", ())]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running(Server()) as started:
        yield started


@pytest.fixture(scope="module")
def api(server: Server) -> OpenApi:
    """A part of it: to read all takes seconds."""
    paths = ["/api/v1/namespaces/{namespace}/pods*", "/apis/apps/v1/namespaces/{namespace}/statefulsets*"]
    return OpenApi(document(), server.url, name="kubernetes", api_key=KEY, paths=paths)


@pytest.fixture(scope="module")
def whole(server: Server) -> OpenApi:
    return OpenApi(document(), server.url, name="kubernetes", api_key=KEY)


@pytest.fixture(scope="module")
def board(api: OpenApi) -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(api)
        yield toolkit


@pytest.fixture(scope="module")
def whole_board(whole: OpenApi) -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(whole)
        yield toolkit


def identity(tool: Any) -> str:
    """The operationId of a tool, whose name on the board has at most 64 characters."""
    return str(tool.source_name or tool.name)


@pytest.mark.slow
def test_every_operation_is_a_tool(whole: OpenApi, whole_board: Toolkit) -> None:
    assert whole_board.problems == []
    names = sorted(described["operationId"] for _, _, described, _ in operations())
    assert sorted(map(identity, whole_board)) == names
    assert len(whole_board) == 1_014
    assert all(len(json.dumps(tool.parameters, separators=(",", ":"))) <= MAX_SCHEMA for tool in whole.tools())


def wrong(asked: Asked, path: str, parameters: list[Any], arguments: Mapping[str, Any]) -> Iterator[str]:
    """What a request is not, by the document as it is written."""
    if not re.fullmatch(re.sub("{[^}]*}", "[^/]+", path), asked.path):
        yield f"the path is {asked.path}"
    known = {each["name"]: each for each in parameters if each["in"] == "query"}
    yield from (f"there is no {name} in the query" for name, _ in asked.query if name not in known)
    yield from (f"{name} in the query has no value" for name, value in asked.query if not value)
    if len(asked.query) != len(known):
        yield f"of {len(known)} in the query there are {len(asked.query)}"
    if any(each["in"] == "body" for each in parameters):
        # A field that is called as a parameter is has another name among the arguments.
        fields = {name: arguments.get(f"body_{name}", arguments.get(name)) for name in asked.json}
        if asked.json not in (fields, arguments.get("body")):
            yield "the body is another one"
    if asked.headers["Authorization"] != KEY:
        yield "the credential is not there"


def problems(server: Server, api: OpenApi, board: Toolkit, step: int) -> list[str]:
    described = {each["operationId"]: (method, path, parameters) for method, path, each, parameters in operations()}
    found = []
    names = {identity(tool): tool.name for tool in board}
    for tool in api.tools()[::step]:
        method, path, parameters = described[tool.name]
        returns = tool.returns or {}
        server.answers = [Sent(Examples(returns, full=True).of(returns))]
        arguments = Examples(tool.parameters, full=True).of(tool.parameters)
        result = board.call_sync(names[tool.name], arguments)
        if result.status is not Status.SUCCESS:
            found.append(f"{tool.name}: {result.text[:300]}")
            continue
        found += [f"{tool.name}: {each}" for each in wrong(server.last, path, parameters, arguments)]
        found += [f"{tool.name}: {server.last.method}"] if server.last.method != method.upper() else []
    return found


def test_some_operations(server: Server, api: OpenApi, board: Toolkit) -> None:
    assert len(board) > 30
    assert problems(server, api, board, 3) == []


@pytest.mark.slow
def test_every_operation(server: Server, whole: OpenApi, whole_board: Toolkit) -> None:
    assert problems(server, whole, whole_board, 1) == []


def test_a_wrong_request_would_be_seen(server: Server, board: Toolkit) -> None:
    board.call_sync("readCoreV1NamespacedPod", {"name": "a", "namespace": "b", "pretty": "true"})
    (parameters,) = [
        each for method, path, described, each in operations() if described["operationId"].endswith("dPodLog")
    ]
    path = "/api/v1/namespaces/{namespace}/pods/{name}/log"
    assert len([*wrong(server.last, path, parameters, {})]) == 2


def test_pages_are_told(board: Toolkit) -> None:
    assert board["listCoreV1NamespacedPod"].description.endswith(
        "For the next page send `continue`, which is `metadata.continue` of the answer; `limit` is the size of a page."
    )


def test_a_patch_is_one_of_members(server: Server, board: Toolkit) -> None:
    patch = {"metadata": {"labels": {"a": "b"}}}
    result = board.call_sync("patchCoreV1NamespacedPod", {"name": "a", "namespace": "b", "body": patch})
    assert result.status is Status.SUCCESS, result.text
    assert (server.last.headers["Content-Type"], server.last.json) == ("application/merge-patch+json", patch)


def test_what_is_left_out_of_a_schema_is_sent(server: Server, board: Toolkit) -> None:
    tool = board["createAppsV1NamespacedStatefulSet"]
    assert "`spec.template.spec.containers[]`: env" in tool.description
    container = {"name": "web", "env": [{"name": "A", "value": "b"}], "envFrom": [{"prefix": "x"}]}
    template = {"spec": {"containers": [container]}}
    given = {"namespace": "b", "spec": {"serviceName": "s", "selector": {}, "template": template}}
    assert board.call_sync(tool.name, given).status is Status.SUCCESS
    assert server.last.json["spec"]["template"] == template
    container["env"] = [{"value": "b"}]
    result = board.call_sync(tool.name, given)
    assert result.status is Status.INVALID
    assert "spec.template.spec.containers[0].env[0]" in result.text
