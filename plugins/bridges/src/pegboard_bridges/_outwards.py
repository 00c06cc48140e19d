"""A toolkit as the tools of a framework need it, and results as text that every framework takes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, final

from attrs import field, frozen

from pegboard import (
    Approval,
    ApprovalRequest,
    Block,
    Chunk,
    DataBlock,
    ImageBlock,
    LinkBlock,
    Session,
    Status,
    TextBlock,
    Tool,
    ToolCall,
    Toolkit,
    ToolResult,
)

__all__ = ["OfferedTools", "data_url", "image_type", "parts", "progress_of", "text_of", "text_or_parts", "words_of"]

_WORDS: Final = frozenset({TextBlock, LinkBlock})

T = TypeVar("T")
Answer = bool | Approval


def _is_a_source(offered: OfferedTools, attribute: object, source: Any) -> None:
    if not isinstance(source, (Toolkit, Session)):
        raise TypeError(f"a bridge outwards takes a toolkit, a session or a view; got {type(source).__qualname__}")


@final
@frozen(eq=False)
class OfferedTools:
    """A toolkit, session or view, as a bridge calls it. Pegboard alone checks the arguments."""

    source: Toolkit | Session = field(validator=_is_a_source)
    _made: dict[str, tuple[Tool, Any]] = field(factory=dict, init=False, repr=False)

    @property
    def tools(self) -> list[Tool]:
        """The tools that are offered now."""
        return self.source.tools

    def natives(self, make: Callable[[Tool], T]) -> list[T]:
        """The framework's objects for the tools that are offered now. Each is made once: a framework may ask often."""
        tools = self.source.tools
        for tool in tools:
            if tool.name not in self._made or self._made[tool.name][0] is not tool:
                self._made[tool.name] = (tool, make(tool))
        return [self._made[tool.name][1] for tool in tools]

    def offers(self, name: str) -> bool:
        """Whether a tool is offered now."""
        return any(tool.name == name for tool in self.source.tools)

    def prepare(self, name: str, arguments: Any, call_id: str | None = None) -> ToolCall:
        """A call that has not begun; a bad one has its result already."""
        return self.source.prepare(name, arguments, call_id=call_id)

    def question(self, call: ToolCall) -> ApprovalRequest | None:
        """The request that the framework decides on; None if the session has an approver, or no approval is needed."""
        if call.status is not Status.AWAITING_APPROVAL or self.source.session().approver is not None:
            return None
        return ApprovalRequest(self.source[call.name], call.id, dict(call.arguments), f"{call.name} needs approval")

    def answered(self, call: ToolCall, answer: Answer) -> ToolCall:
        """The same call, with an answer to its own request for approval and to no other one."""

        def approver(request: ApprovalRequest) -> Answer:
            return answer if request.call_id == call.id else False

        return self.source.session(approver=approver).prepare(call.name, call.arguments, call_id=call.id)

    async def call(
        self,
        name: str,
        arguments: Any,
        call_id: str | None = None,
        *,
        ask: Callable[[ApprovalRequest], Awaitable[Answer | None] | Answer | None] | None = None,
        on_chunk: Callable[[Chunk], Any] | None = None,
    ) -> ToolResult:
        """Call a tool. `ask` asks the framework for approval. It may raise what makes the framework ask; None denies.

        It may be a coroutine function, too.
        """
        result = await self.source.call(name, arguments, call_id=call_id, on_chunk=on_chunk)
        # Most calls need no approval. One that does was denied, and has not run.
        if ask is not None and result.status is Status.DENIED:
            call = self.prepare(name, arguments, call_id)
            if (request := self.question(call)) is not None:
                answer = ask(request)
                decided = await answer if inspect.isawaitable(answer) else answer
                if decided is not None:
                    return await self.answered(call, decided).execute(on_chunk=on_chunk)
        return result

    def call_sync(
        self,
        name: str,
        arguments: Any,
        call_id: str | None = None,
        *,
        ask: Callable[[ApprovalRequest], Answer | None] | None = None,
        on_chunk: Callable[[Chunk], Any] | None = None,
    ) -> ToolResult:
        """`call` for a framework without coroutines."""
        result = self.source.call_sync(name, arguments, call_id=call_id, on_chunk=on_chunk)
        if ask is not None and result.status is Status.DENIED:
            call = self.prepare(name, arguments, call_id)
            if (request := self.question(call)) is not None and (answer := ask(request)) is not None:
                return self.answered(call, answer).execute_sync(on_chunk=on_chunk)
        return result


def parts(result: ToolResult, text: Callable[[str], T], image: Callable[[ImageBlock], T]) -> list[T]:
    """A result in a framework's own parts: images as images, everything else as text.

    An empty text is left out if there is another part: providers refuse it.
    """
    content = [block for block in result.content if type(block) is not TextBlock or block.text] or result.content
    return [image(block) if isinstance(block, ImageBlock) else text(words_of(block)) for block in content]


def text_or_parts(result: ToolResult, text: Callable[[str], T], image: Callable[[ImageBlock], T]) -> str | list[T]:
    """A result as text, or in a framework's own parts if it has more than text."""
    if ImageBlock in map(type, result.content):
        return parts(result, text, image)
    return text_of(result)


def text_of(result: ToolResult) -> str:
    """A result for a framework, or a model, that takes only text: blocks of other kinds are named."""
    if _WORDS.issuperset(map(type, result.content)):
        return result.text
    return "\n".join(words_of(block) for block in result.content)


def words_of(block: Block) -> str:
    """A block as text: one of another kind is named."""
    if isinstance(block, DataBlock):
        return json.dumps(block.data, ensure_ascii=False)
    if type(block) in _WORDS:
        return block.text
    media: Any = block
    size = "" if media.data is None else f", {len(media.to_bytes()):,} bytes"
    return (
        f"[{block.kind}: {media.url}]" if media.url else f"[{block.kind}, {media.media_type or 'unknown type'}{size}]"
    )


_PNG: Final = "image/png"


def image_type(block: ImageBlock) -> str:
    """The media type of an image."""
    return block.media_type or _PNG


def data_url(block: ImageBlock) -> str:
    """The URL of an image, or a `data:` URL with its bytes."""
    return block.url or f"data:{image_type(block)};base64,{block.data}"


def progress_of(chunk: Chunk) -> dict[str, Any]:
    """A piece of progress as data, for frameworks that have a channel for it but no form."""
    fields = {"call_id": chunk.call_id, "tool": chunk.name, "text": chunk.text}
    done = chunk.progress
    return fields if done is None else {**fields, "done": done.done, "total": done.total}
