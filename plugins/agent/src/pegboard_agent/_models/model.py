"""Models: the one method that an agent needs, and what a response comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any, Final, NamedTuple, Protocol, final, runtime_checkable
from uuid import uuid4

from pegboard import BoundDialect, PegboardError, describe_exception
from pegboard_agent._models.provider import PROVIDER, without_own

__all__ = ["RESTARTED", "ChatModel", "ModelError", "Piece", "Reply", "new_id", "streamed", "why_it_failed"]

AT_ITS_LIMIT: Final = frozenset({"length", "max_tokens", "model_length", "incomplete"})
"""Why responses end that are longer than they may be: in chat completions, and as other servers say it."""
RESTARTED: Final[Mapping[str, Any]] = {"choices": [], "restarted": True}
"""A chunk that says: forget what came so far, the response begins anew."""


class ModelError(PegboardError):
    """A model cannot be asked, or gave no response: one sentence, without the key."""


def why_it_failed(error: Exception) -> str:
    """What is said of a model that raised."""
    if isinstance(error, ModelError):
        return str(error)
    return f"the model failed: {type(error).__name__}: {describe_exception(error)}"


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers a conversation.

    It may have a `dialect`, the name of the one whose definitions of tools it takes, else that is "openai"; and
    `keeps`, whether its server can be told that some of the tools may not be called, else that is false.
    """

    def stream(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **options: Any) -> AsyncIterator[Any]:
        """The chunks of one chat completion, as dicts or SDK objects; a whole completion counts as one chunk.

        `messages` are as chat completions take them, `tools` as the dialect gives them, `options` go into the request.
        What is raised ends the run of the agent.
        """
        ...


@asynccontextmanager
async def streamed(
    model: ChatModel, messages: list[dict[str, Any]], tools: list[dict[str, Any]], options: Mapping[str, Any]
) -> AsyncIterator[AsyncIterator[Any]]:
    """The chunks of a response. When the reader stops early, the generator is closed, and its connection with it."""
    sent = messages if getattr(model, "dialect", "openai") != "openai" else without_own(messages)
    chunks: Any = model.stream(sent, tools, **options)
    if isawaitable(chunks):  # SDKs hand out streams to be awaited
        chunks = await chunks
    try:
        yield chunks
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


class Piece(NamedTuple):
    """What a chunk adds to what was read before it."""

    text: str = ""
    reasoning: str = ""


@final
class _Written:
    """A text as it comes, which may begin anew: what was shown of it is not shown again."""

    def __init__(self) -> None:
        self._shown = ""
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def restart(self) -> None:
        """Forget it, but for what was shown."""
        self._shown = self._shown or self.text
        self._pieces = []

    def add(self, piece: str) -> str:
        """Take in a piece; what of it was not shown before."""
        self._pieces.append(piece)
        if not self._shown or not piece:
            return piece
        if self._shown.startswith(self.text):
            return ""
        shown, self._shown = self._shown, ""
        return self.text[len(shown) :] if self.text.startswith(shown) else f"\n{self.text}"


@final
class Reply:
    """One response of a model, as far as its chunks have come."""

    def __init__(self) -> None:
        self._text = _Written()
        self._reasoning = _Written()
        self.usage: Mapping[str, Any] = {}
        self._begin()

    def _begin(self) -> None:
        self._fragments: list[Any] = []  # of calls
        self._own: dict[str, Any] = {}  # what only the provider reads
        self._is_whole = False
        self.finish: str | None = None

    @property
    def text(self) -> str:
        """The text so far."""
        return self._text.text

    @property
    def is_at_its_limit(self) -> bool:
        """Whether it ends because it may not be longer."""
        return str(self.finish).lower() in AT_ITS_LIMIT

    def cuts(self, calls: list[dict[str, Any]]) -> bool:
        """Whether it was cut off, so that its calls may be a part of what was meant.

        A stream that does not say why it ends has cut a last call that has no arguments yet.
        """
        unsaid = self.finish is None and not self._is_whole
        has_none = bool(calls) and not calls[-1]["function"]["arguments"].strip()
        return self.is_at_its_limit or self.finish == "content_filter" or (unsaid and has_none)

    def feed(self, chunk: Any) -> Piece:
        """Take in a chunk; return the text and the reasoning in it that were not returned before."""
        plain: Mapping[str, Any] = chunk if isinstance(chunk, Mapping) else chunk.model_dump()
        if plain.get("restarted"):
            self._text.restart()
            self._reasoning.restart()
            self._begin()
            return Piece()
        usage = plain.get("usage")
        self.usage = usage if isinstance(usage, Mapping) else self.usage
        for choice in (plain.get("choices") or ())[:1]:
            said = choice.get("delta") or _numbered(choice.get("message") or {})
            self._fragments += _calls(said)
            self._own |= said[PROVIDER] if isinstance(said.get(PROVIDER), dict) else {}
            self.finish = choice.get("finish_reason") or self.finish
            self._is_whole = self._is_whole or bool(choice.get("message"))
            text = _text(said.get("content")) or _text(said.get("refusal"))
            return Piece(self._text.add(text), self._reasoning.add(_text(said.get("reasoning_content"))))
        return Piece()

    def message(self, dialect: BoundDialect) -> dict[str, Any]:
        """The message in it, as the conversation keeps it: each call has an id.

        What the model thought goes back with it as `reasoning_content`, where the server says it by this name: DeepSeek
        refuses each later request that lacks it beside a call. Beside it is what only the provider reads.
        """
        thought = self._reasoning.text
        reasoning: dict[str, Any] = {"reasoning_content": thought} if thought else {}
        reasoning |= {PROVIDER: self._own} if self._own else {}
        calls: list[dict[str, Any]] = []
        if self._fragments:
            collector = dialect.collector()
            collector.feed({"choices": [{"delta": {"tool_calls": self._fragments}}]})
            calls = [{**call, "id": call["id"] or new_id()} for call in collector.messages()[0].get("tool_calls", ())]
        if not calls:
            return {"role": "assistant", "content": self.text, **reasoning}
        return {"role": "assistant", "content": self.text or None, **reasoning, "tool_calls": calls}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _numbered(message: Mapping[str, Any]) -> dict[str, Any]:
    """A whole message as if it came in one chunk."""
    return {**message, "tool_calls": [{"index": index, **call} for index, call in enumerate(_calls(message))]}


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def new_id() -> str:
    """An id for a call that came without one."""
    return f"call_{uuid4().hex[:16]}"
