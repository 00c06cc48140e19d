"""Models: the one method that an agent needs, and the responses."""

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
"""Reasons for the end of a response that is too long: in chat completions, and of other servers."""
RESTARTED: Final[Mapping[str, Any]] = {"choices": [], "restarted": True}
"""A chunk that discards the earlier ones: the response begins again."""


class ModelError(PegboardError):
    """A request to a model failed, or had no response. The message is one sentence without the key."""


def why_it_failed(error: Exception) -> str:
    """The message about a model that raised an exception."""
    if isinstance(error, ModelError):
        return str(error)
    return f"the model failed: {type(error).__name__}: {describe_exception(error)}"


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers a conversation.

    It may have a `dialect`, the name of the dialect for its tools (without it "openai"), and `keeps`: whether a request
    can forbid calls of some of the listed tools (without it false). A model with a `dialect` gets the messages as they
    are kept, and must not send on what other providers' models have left in their member `provider`.
    """

    def stream(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **options: Any) -> AsyncIterator[Any]:
        """The chunks of one chat completion, as dicts or SDK objects; a whole completion counts as one chunk.

        An exception ends the run of the agent.

        Args:
            messages: Messages in the form of chat completions.
            tools: Definitions in the form of the dialect.
            options: Further members of the request, such as the tool choice.
        """
        ...


@asynccontextmanager
async def streamed(
    model: ChatModel, messages: list[dict[str, Any]], tools: list[dict[str, Any]], options: Mapping[str, Any]
) -> AsyncIterator[AsyncIterator[Any]]:
    """The chunks of a response. If the reader stops early, the generator and its connection are closed."""
    sent = messages if hasattr(model, "dialect") else without_own(messages)
    chunks: Any = model.stream(sent, tools, **options)
    if isawaitable(chunks):  # SDKs return awaitables of streams
        chunks = await chunks
    try:
        yield chunks
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


class Piece(NamedTuple):
    """The text and the reasoning that a chunk adds."""

    text: str = ""
    reasoning: str = ""


NOTHING: Final = Piece()


@final
class _Written:
    """A text in pieces. It may begin again: then the part that was shown is not shown again."""

    def __init__(self) -> None:
        self._shown = ""
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def restart(self) -> None:
        """Discard the text, except the length of the part that was shown."""
        self._shown = self._shown or self.text
        self._pieces = []

    def add(self, piece: str) -> str:
        """Add a piece. Returns the part of it that was not shown before."""
        self._pieces.append(piece)
        if not self._shown or not piece:
            return piece
        if self._shown.startswith(self.text):
            return ""
        shown, self._shown = self._shown, ""
        return self.text[len(shown) :] if self.text.startswith(shown) else f"\n{self.text}"


@final
class Reply:
    """One response of a model, from the chunks so far."""

    def __init__(self) -> None:
        self._text = _Written()
        self._reasoning = _Written()
        self.usage: Mapping[str, Any] = {}
        self._begin()

    def _begin(self) -> None:
        self._fragments: list[Any] = []  # of calls
        self._own: dict[str, Any] = {}  # data for the provider alone
        self._is_whole = False
        self.finish: str | None = None

    @property
    def text(self) -> str:
        """The text so far."""
        return self._text.text

    @property
    def is_at_its_limit(self) -> bool:
        """Whether it ended at a length limit."""
        return str(self.finish).lower() in AT_ITS_LIMIT

    def cuts(self, calls: list[dict[str, Any]]) -> bool:
        """Whether it was cut off, so that its calls may be incomplete.

        A stream that ends without a reason has cut its last call if that has no arguments yet.
        """
        unsaid = self.finish is None and not self._is_whole
        has_none = bool(calls) and not calls[-1]["function"]["arguments"].strip()
        return self.is_at_its_limit or self.finish == "content_filter" or (unsaid and has_none)

    def feed(self, chunk: Any) -> Piece:
        """Add a chunk. Returns the text and the reasoning in it that were not returned before."""
        plain: Mapping[str, Any] = chunk if isinstance(chunk, (dict, Mapping)) else chunk.model_dump()
        if plain.get("restarted"):
            self._text.restart()
            self._reasoning.restart()
            self._begin()
            return NOTHING
        if (usage := plain.get("usage")) and isinstance(usage, (dict, Mapping)):  # a dict is known at once
            self.usage = usage
        choices = plain.get("choices")
        if not choices:
            return NOTHING
        choice = choices[0]
        delta = choice.get("delta") or _numbered(choice.get("message") or {})
        if delta.get("tool_calls"):
            self._fragments += _calls(delta)
        if isinstance(own := delta.get(PROVIDER), dict):
            self._own |= own
        self.finish = choice.get("finish_reason") or self.finish
        self._is_whole = self._is_whole or bool(choice.get("message"))
        text = _text(delta.get("content") or delta.get("refusal"))
        reasoning = _text(delta.get("reasoning_content"))
        if not (text or reasoning):
            return NOTHING
        return Piece(self._text.add(text) if text else "", self._reasoning.add(reasoning) if reasoning else "")

    def message(self, dialect: BoundDialect) -> dict[str, Any]:
        """The message of the response, as the conversation keeps it: each call has an id.

        Reasoning that the server sends as `reasoning_content` goes back with it under this name: DeepSeek refuses each
        later request that lacks it beside a call. Data for the provider alone is kept, too.
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
    if not content:  # of most members of most chunks
        return ""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _numbered(message: Mapping[str, Any]) -> dict[str, Any]:
    """A whole message in the form of a single chunk."""
    return {**message, "tool_calls": [{"index": index, **call} for index, call in enumerate(_calls(message))]}


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, (dict, Mapping))] if isinstance(calls, list) else []


def new_id() -> str:
    """An id for a call that came without one."""
    return f"call_{uuid4().hex[:16]}"
