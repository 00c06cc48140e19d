"""Chat completions over HTTP, of any compatible server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, final

from pegboard import ExecutionPolicy
from pegboard_agent._models.provider import has_own, without_own
from pegboard_agent._models.server import DEADLINE, Chunk, Failure, Key, Reading, ServerModel, offering

__all__ = ["OpenAIChat", "OpenAIModel"]

OPENAI: Final = "https://api.openai.com/v1"


class OpenAIModel(ServerModel):
    """What the models that speak one of OpenAI's formats have in common; `keeps` is as in `OpenAIChat`."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        api_key: Key = None,
        policy: ExecutionPolicy | None = None,
        deadline: float | None = DEADLINE,
        keeps: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, base_url, api_key, policy, deadline, options)
        self._keeps = keeps

    @property
    def keeps(self) -> bool:
        """Whether a request can forbid calls of some of the listed tools."""
        return is_openai(self._host) if self._keeps is None else self._keeps

    @property
    def _variable(self) -> str:
        return "OPENAI_API_KEY"

    def _key_headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}


@final
class OpenAIChat(OpenAIModel):
    """A model behind an OpenAI-compatible server: OpenAI, DashScope, vLLM, llama.cpp, Ollama.

    Raises ValueError for a key that cannot be sent and for a deadline that is not above 0, TypeError for a key that is
    not text.

    Args:
        model: Name of the model, as the server has it.
        base_url: Address of the server, with the version. OpenAI's by default.
        api_key: The key. None reads `OPENAI_API_KEY`, for DashScope's addresses `DASHSCOPE_API_KEY`; an empty one is
            not sent.
        policy: How often a request is tried, how long to wait in between (longer only if the server asks for it, and at
            most `max_backoff`), and after how many seconds of silence (`timeout`) an attempt ends.
        deadline: Seconds for a complete response, all attempts included; 1,800 by default. None for no deadline.
        keeps: Whether the server takes `allowed_tools`, by which a request forbids calls of some of the listed tools.
            None: only OpenAI's own server does.
        options: Members of every request, such as `temperature`. `tool_choice` and `parallel_tool_calls` go only into
            those with tools.
    """

    dialect: ClassVar[str] = "openai"

    @property
    def _variable(self) -> str:
        dashscope = self._host.startswith("dashscope") and self._host.endswith(".aliyuncs.com")
        return "DASHSCOPE_API_KEY" if dashscope else super()._variable

    @property
    def _path(self) -> str:
        return "/chat/completions"

    def _body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], options: Chunk) -> Chunk:
        sent = without_own(messages)
        if is_openai(self._host):  # it refuses requests with it; other servers want it back
            sent = [{name: each for name, each in message.items() if name != "reasoning_content"} for message in sent]
        body: dict[str, Any] = {"model": self.model, "messages": sent}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        body |= {**({"tools": tools} if tools else {}), **self.options, **options}
        chosen = _named(body.get("tool_choice"))
        if chosen and chosen not in map(_named, body.get("tools") or ()):  # nor a choice of a tool that is not offered
            del body["tool_choice"]
        return offering(body, "tool_choice", "parallel_tool_calls")

    def _reading(self) -> Reading:
        return _Completion()


class _Completion(Reading):
    """Reads chunks of a chat completion: they stay as they are, and only their form is checked."""

    def __init__(self) -> None:
        self._is_begun = self._is_ended = False

    def read(self, event: Chunk) -> Iterable[Chunk]:
        choices = event.get("choices") or []
        if not isinstance(choices, list):
            raise Failure("the response is no chat completion")
        marked = False
        for choice in choices:
            if not _is_choice(choice):
                raise Failure("the response is no chat completion")
            self._is_begun = True
            self._is_ended = self._is_ended or bool(choice.get("finish_reason"))
            marked = marked or _is_marked(choice)
        return ({**event, "choices": list(map(_plain, choices))},) if marked else (event,)

    def events_of(self, response: Chunk) -> Iterable[Chunk]:
        if not response.get("choices"):
            raise Failure("the response is no chat completion")
        self._is_ended = True
        return (response,)

    def end(self) -> Iterable[Chunk]:
        is_ended = self._is_ended or self.is_over
        if not (self._is_begun and is_ended):
            raise Failure("the response holds no message" if is_ended else "the response broke off")
        return ()


def is_openai(host: str) -> bool:
    """Whether the host is OpenAI's own server."""
    return host == "api.openai.com"


def _named(tool: Any) -> Any:
    """The name of the function in a definition or a choice; None if there is none."""
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _is_marked(choice: dict[str, Any]) -> bool:
    """Whether a choice has data for other providers."""
    delta, message = choice.get("delta"), choice.get("message")
    return (isinstance(delta, dict) and has_own(delta)) or (isinstance(message, dict) and has_own(message))


def _plain(choice: dict[str, Any]) -> dict[str, Any]:
    """A choice without data for other providers: a server must not be able to set that."""
    parts = {name: choice[name] for name in ("delta", "message") if isinstance(choice.get(name), dict)}
    return {**choice, **{name: without_own([part])[0] for name, part in parts.items()}}


def _is_choice(choice: Any) -> bool:
    if not isinstance(choice, dict):
        return False
    return isinstance(choice.get("delta") or choice.get("message") or choice, dict)
