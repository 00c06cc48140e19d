"""The loops of `docs/dialects.md`, word for word, with the providers' unmodified clients and servers on loopback."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.plugins.dialects.desk import PIXEL, chart, toolkit_of
from tests.plugins.dialects.sdks import servers
from tests.plugins.dialects.sdks.oracles import check_message
from tests.workspace.project import ROOT

PAGE = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
LOOPS = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TOOLKIT = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

PROVIDERS: dict[str, tuple[Callable[[], servers.Provider], str]] = {
    "openai": (servers.openai, "OPENAI_BASE_URL"),
    "openai-responses": (servers.openai_responses, "OPENAI_BASE_URL"),
    "anthropic": (servers.anthropic, "ANTHROPIC_BASE_URL"),
    "gemini": (servers.gemini, "GOOGLE_GEMINI_BASE_URL"),
}


def dialect_of(loop: str) -> str:
    found = re.search(r'dialect\("([^"]+)"\)', loop)
    assert found
    return found[1]


def label(loop: str) -> str:
    return f"{dialect_of(loop)}{'-stream' if 'collector' in loop else ''}"


def test_there_is_a_loop_of_each_kind() -> None:
    assert sorted(map(label, LOOPS)) == sorted(f"{name}{kind}" for name in PROVIDERS for kind in ("", "-stream"))


def test_they_are_short() -> None:
    for loop in LOOPS:
        body = loop[loop.index("while True:") :]
        assert len(body.strip().splitlines()) <= 10


@pytest.mark.parametrize("loop", LOOPS, ids=label)
def test_loop(loop: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    name = dialect_of(loop)
    make, variable = PROVIDERS[name]
    provider = make()
    assert TOOLKIT
    names: dict[str, Any] = {}
    exec(TOOLKIT[1], names)
    toolkit = names["toolkit"]
    toolkit.register(chart)
    with serving_at(provider, variable, monkeypatch):
        exec(loop, {"toolkit": toolkit})
    assert capsys.readouterr().out.strip().endswith(servers.ANSWER)
    first, second = provider.requests
    assert "add" in str(first["tools"])
    check_conversation(name, second)
    assert "42" in results_of(second)
    assert PIXEL in results_of(second)


def serving_at(provider: servers.Provider, variable: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    context = servers.serving(provider)

    class Serving:
        def __enter__(self) -> None:
            address = context.__enter__()
            monkeypatch.setenv(variable, f"{address}/v1" if variable == "OPENAI_BASE_URL" else address)

        def __exit__(self, *raised: Any) -> None:
            context.__exit__(*raised)

    return Serving()


def conversation(request: dict[str, Any]) -> list[Any]:
    found: list[Any] = request.get("messages") or request.get("input") or request["contents"]
    return found


def check_conversation(name: str, request: dict[str, Any]) -> None:
    for message in conversation(request):
        check_message(name, message)


def results_of(request: dict[str, Any]) -> str:
    """What stands after the model's own message."""
    return str(conversation(request)[2:])


class TestReading:
    """Calls out of the SDKs' own objects."""

    @pytest.mark.parametrize("name", PROVIDERS)
    def test_objects(self, name: str) -> None:
        chat = toolkit_of(chart).dialect(name)
        whole = PROVIDERS[name][0]().whole(True)
        wanted = [(call.name, call.arguments) for call in chat.calls(whole)]
        assert [name for name, _ in wanted] == ["add", "chart"]
        found = chat.calls(as_object(name, whole))
        assert [(call.name, call.arguments) for call in found] == wanted
        assert found[0].id == "call_1"

    def test_dashscope(self) -> None:
        from dashscope.api_entities.dashscope_response import GenerationResponse, MultiModalConversationResponse

        message = servers.openai().whole(True)["choices"][0]["message"] | {"content": ""}
        chat = toolkit_of(chart).dialect("dashscope")
        for kind in (GenerationResponse, MultiModalConversationResponse):
            response = kind(
                status_code=200,
                request_id="r",
                output={"choices": [{"finish_reason": "tool_calls", "message": message}]},
                usage={"input_tokens": 1, "output_tokens": 1},
            )
            assert [call.id for call in chat.calls(response)] == ["call_1", "call_2"]


def as_object(name: str, whole: Any) -> Any:
    from anthropic.types import Message
    from google.genai.types import GenerateContentResponse
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    kinds: dict[str, Any] = {
        "openai": ChatCompletion,
        "openai-responses": Response,
        "anthropic": Message,
        "gemini": GenerateContentResponse,
    }
    return kinds[name].model_validate(whole)
