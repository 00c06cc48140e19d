"""Results: content blocks, and the record of a call that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, NoReturn, Self, TypeAlias, cast, final

from attrs import asdict, evolve, field, frozen

from pegboard._base.errors import Fault, PegboardError
from pegboard._base.jsonable import carried, carried_data
from pegboard._base.records import Compared, as_tuple


@frozen(eq=False, repr=False)
class Block(Compared):
    """The base of all content blocks. Blocks are immutable and compare by value."""

    @property
    def kind(self) -> str:
        """The block's name in `to_dict()`: `text`, `image`, `audio`, `video`, `file`, `link` or `data`."""
        return type(self).__name__.removesuffix("Block").lower()

    @property
    def text(self) -> str:
        """The text that this block contributes to `ToolResult.text`; empty for binary blocks."""
        return ""

    @property
    def carried(self) -> Self:
        """The block with text that UTF-8 can carry."""
        members = asdict(self, recurse=False)
        fit = carried_data(members)
        return self if fit is members else evolve(self, **fit)

    def to_dict(self) -> dict[str, Any]:
        """The block as JSON-able data, with its `type` first and empty fields left out."""
        members = asdict(self, recurse=False)
        return {"type": self.kind, **{name: value for name, value in members.items() if value is not None}}


@frozen(eq=False, repr=False)
class TextBlock(Block):
    """Plain text.

    Args:
        text: The text.
    """

    text: str


@frozen(eq=False, repr=False)
class DataBlock(Block):
    """JSON-able data beside or instead of text.

    Args:
        data: JSON types alone: dicts with names, lists, texts, numbers, booleans and None.
    """

    data: Any

    def to_dict(self) -> dict[str, Any]:
        """`{"type": "data", "data": ...}`; a null is data too and stays."""
        return {"type": "data", "data": self.data}


# What a value becomes: its content blocks and its JSON-able data.
Rendering: TypeAlias = tuple[tuple[Block, ...], Any]
# What gives the rendering of a value on first use, or what gives it in turn; a text is a block of it and no data.
Unrendered: TypeAlias = Callable[[Any], Any] | str
# What went wrong; the members of a `Fault` stand for the one that is made on first use. No details stand for those of
# an exception.
Unread: TypeAlias = Fault | tuple[str, str, Mapping[str, Any] | None, BaseException | None] | None


def rendered(value: Any, found: Rendering | Unrendered) -> Rendering:
    """What a renderer found for a value, or left for the first look."""
    while not isinstance(found, tuple):
        found = ((TextBlock(found),), None) if isinstance(found, str) else found(value)
    return found


class Status(StrEnum):
    """Where a call stands: three states while it lives, nine outcomes."""

    PENDING = "pending"
    AWAITING_APPROVAL = "awaiting_approval"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    INVALID = "invalid"
    NOT_FOUND = "not_found"
    INACTIVE = "inactive"
    DENIED = "denied"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"


SUCCESS: Final = Status.SUCCESS  # what each call looks at; a member of an enum is looked up slowly


class Note(str):
    """A remark for the program about how a call went: a repair, or a dropped attempt to set a locked parameter.

    A string with the `kind` of the remark and the `path` of the argument that it is about.

    Args:
        message: The remark.
        kind: What kind of remark it is.
        path: The argument that it is about, such as `items[2].qty`. Empty where it is about none.
    """

    __slots__ = ("kind", "path")
    kind: str
    path: str

    def __new__(cls, message: str, *, kind: str = "note", path: str = "") -> Note:
        note = super().__new__(cls, message)
        note.kind = kind
        note.path = path
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, str]]:
        return (str(self),), {"kind": self.kind, "path": self.path}


@frozen
class ToolOutput:
    """A tool's return value, together with data and blocks for the program.

    Args:
        value: What the model gets, as if the tool had returned it.
        metadata: Data for the program, never shown to the model.
        attachments: Blocks for the program.
    """

    value: Any
    metadata: Mapping[str, Any] = field(factory=dict)
    attachments: tuple[Block, ...] = field(default=(), converter=as_tuple)


class _Draft:
    """A result while `filled` writes it: the same slots as `ToolResult`, still open."""

    _fault: Unread
    _rendered: Rendering | Unrendered
    value: Any
    call_id: str
    name: str
    status: Status
    duration: float
    attempts: int
    _notes: tuple[Note, ...]
    logs: tuple[str, ...]
    attachments: tuple[Block, ...]
    metadata: Mapping[str, Any]

    __slots__ = tuple(__annotations__)


class _Carried(tuple[Any, ...]):
    """A rendering with text that UTF-8 can carry."""

    __slots__ = ()


_REPLACED: Final = Note("text that UTF-8 cannot carry (lone surrogates) was replaced by U+FFFD", kind="replaced")
_NO_METADATA: Final[Mapping[str, Any]] = {}


@final
class ToolResult(_Draft):
    """How a call ended. Immutable; `content`, `data` and `text` of immutable values render on first use.

    Args:
        call_id: Id of the call.
        name: Name of the tool.
        status: One of the outcomes of `Status`.
        content: Blocks for the model; a text stands for one `TextBlock`.
        data: The returned value as JSON-able data. None where there is none.
        error: What went wrong. None where nothing did.
        duration: Seconds that the call took.
        attempts: Number of runs of the function.
        notes: Remarks for the program, such as repairs.
        logs: Lines of `call.log(...)`, for the program.
        attachments: Blocks of `call.attach(...)`, for the program.
        metadata: Data of the tool for the program.
        value: What the function returned. None for failures, and for results that crossed a process.
    """

    __slots__ = ()

    def __new__(
        cls,
        call_id: str = "",
        name: str = "",
        status: Status = Status.SUCCESS,
        content: tuple[Block, ...] | list[Block] | str = (),
        data: Any = None,
        error: Fault | None = None,
        duration: float = 0.0,
        attempts: int = 1,
        notes: tuple[Note, ...] = (),
        logs: tuple[str, ...] = (),
        attachments: tuple[Block, ...] = (),
        metadata: Mapping[str, Any] = _NO_METADATA,
        *,
        value: Any = None,
    ) -> ToolResult:
        rendered = (TextBlock(content),) if isinstance(content, str) else tuple(content), data
        status = status if type(status) is Status else Status(status)
        said = tuple(notes), tuple(logs), tuple(attachments)
        return filled(call_id, name, status, rendered, value, error, duration, attempts, *said, metadata)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a ToolResult is frozen; {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a ToolResult is frozen; {name!r} cannot be deleted")

    def _render(self) -> Rendering:
        if type(self._rendered) is not _Carried:
            found: Any = rendered(self.value, self._rendered)
            content, data, *redact = found
            # What is rendered only now has its data in its text.
            if found is self._rendered or not all(block.text.isascii() for block in content):
                content, data = tuple(block.carried for block in content), carried_data(data)
                if data is not found[1] or content != found[0]:
                    object.__setattr__(self, "_notes", (*self._notes, _REPLACED))
            object.__setattr__(self, "_rendered", _Carried((content, data, *redact)))
        return cast("Rendering", self._rendered)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Remarks for the program: repairs, dropped arguments, text that had to be replaced."""
        self._render()
        return self._notes

    @property
    def content(self) -> tuple[Block, ...]:
        """The content blocks for the model."""
        return self._render()[0]

    @property
    def data(self) -> Any:
        """The returned value as JSON-able data, scalars included; None where there is none."""
        return self._render()[1]

    @property
    def text(self) -> str:
        """All text content, joined by line breaks."""
        if isinstance(self._rendered, str) and self._rendered.isascii():
            return self._rendered
        return "\n".join(block.text for block in self.content if block.text)

    @property
    def error(self) -> Fault | None:
        """What went wrong, if anything did."""
        fault = self._fault
        if isinstance(fault, tuple):
            kind, message, details, exception = fault
            if details is None:
                own = exception.details if isinstance(exception, PegboardError) else {}
                details = {"type": type(exception).__qualname__, **own}
            fault = Fault(kind, carried(message), carried_data(details), exception)
            object.__setattr__(self, "_fault", fault)
        return fault

    @property
    def is_error(self) -> bool:
        """False only for `success` and `suspended`."""
        return self.status is not Status.SUCCESS and self.status is not Status.SUSPENDED

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-able data. Without the value itself and the exception; metadata is the program's own."""
        error = self.error
        members = {
            "call_id": self.call_id,
            "name": self.name,
            "status": self.status.value,
            "is_error": self.is_error,
            "content": [block.to_dict() for block in self.content],
            "data": self.data,
            "error": None if error is None else {"kind": error.kind, "message": error.message},
            "duration": self.duration,
            "attempts": self.attempts,
            "notes": [str(note) for note in self.notes],
            "logs": list(self.logs),
            "attachments": [block.to_dict() for block in self.attachments],
            "metadata": dict(self.metadata),
        }
        return cast("dict[str, Any]", carried_data(members))

    def __repr__(self) -> str:
        rendered: Any = self._render()
        shown = self.text if len(rendered) == 2 else rendered[2](self.text)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return f"ToolResult({self.name!r}, {self.status.value}, {shown!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Results cross processes without their value and their exception, which may not be picklable."""
        error = self.error
        fault = None if error is None else Fault(error.kind, error.message)
        members = (self.call_id, self.name, self.status, self.content, self.data, fault, self.duration, self.attempts)
        return ToolResult, (*members, self.notes, self.logs, self.attachments, dict(self.metadata))


def filled(
    call_id: str,
    name: str,
    status: Status,
    rendered: Rendering | Unrendered,
    value: Any,
    fault: Unread,
    duration: float = 0.0,
    attempts: int = 1,
    notes: tuple[Note, ...] = (),
    logs: tuple[str, ...] = (),
    attachments: tuple[Block, ...] = (),
    metadata: Mapping[str, Any] = _NO_METADATA,
) -> ToolResult:
    """The one place that fills a result: plain stores into an open draft, which assigning `__class__` then closes.

    That costs a fraction of a frozen record's `__init__`.
    """
    draft = _Draft()
    draft.call_id = call_id
    draft.name = name
    draft.status = status
    draft._rendered = rendered
    draft.value = value
    draft._fault = fault
    draft.duration = duration
    draft.attempts = attempts
    draft._notes = notes
    draft.logs = logs
    draft.attachments = attachments
    draft.metadata = metadata
    draft.__class__ = ToolResult
    return draft  # type: ignore[return-value]
