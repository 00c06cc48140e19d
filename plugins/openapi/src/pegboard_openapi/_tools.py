"""Tools: an operation as a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

from attrs import evolve, field, frozen

from pegboard import Fault, ForeignSchema, Judge, Status, TextBlock, ToolCall, ToolOutput, ToolResult
from pegboard_net import CHARSETS, charset_of
from pegboard_openapi._answers import value_of
from pegboard_openapi._credentials import Credentials, Signature
from pegboard_openapi._operation import Operation
from pegboard_openapi._request import ArgumentsError, request_for

__all__ = ["Link", "OperationTool"]

MAX_PROBLEMS: Final = 20
"""Problems of one answer, or of the arguments of one call, that are reported."""


@final
@frozen(eq=False)
class Link:
    """What the tools of a document share: its origin and its client. `client` is made by the first call."""

    credentials: Credentials
    client: Callable[[], Any]
    # The paths of all operations by method, in segments.
    paths: Mapping[str, Sequence[tuple[str, ...]]] = field(repr=False)


@final
@frozen(eq=False)
class OperationTool:
    """An operation as a tool. Its method says whether it only reads and whether it may be repeated."""

    name: str
    operation: Operation
    # A third party wrote the schema.
    judge: Judge = field(repr=False)
    base: str
    returns: dict[str, Any] | None = field(repr=False)
    _signature: Signature = field(repr=False)
    # What arguments are held against where the model is shown less of the schema.
    _arguments: ForeignSchema | None = field(repr=False)
    _check: ForeignSchema | None = field(repr=False)
    _link: Link = field(repr=False)
    open_world: bool = True

    @property
    def description(self) -> str:
        """What the document says of it."""
        return self.operation.description

    @property
    def parameters(self) -> dict[str, Any]:
        """One schema for parameters and body, as far as a model is shown it."""
        return self.operation.shown

    @property
    def tags(self) -> tuple[str, ...]:
        """`openapi`, and the tags of the operation."""
        return ("openapi", *self.operation.tags)

    @property
    def is_signed(self) -> bool:
        """Whether its requests carry credentials that the operation asks for."""
        return self._signature.by_scheme

    @property
    def read_only(self) -> bool:
        """Whether it changes nothing."""
        return self.operation.method in ("get", "head", "options", "trace")

    @property
    def destructive(self) -> bool | None:
        """Whether it may destroy; unknown for most methods."""
        return True if self.operation.method == "delete" else False if self.read_only else None

    @property
    def idempotent(self) -> bool:
        """Whether a second request changes nothing more."""
        return self.read_only or self.operation.method in ("put", "delete")

    async def call(self, call: ToolCall) -> ToolOutput | ToolResult:
        """Send the request. Raises `AnswerError`, and `BusyError` for what may be tried again."""
        operation = self.operation
        wrong = self._arguments.problems(dict(call.arguments)) if self._arguments is not None else []
        if wrong and not any(problem.unchecked for problem in wrong):
            return self._invalid(*map(str, wrong[:MAX_PROBLEMS]))
        try:
            request = request_for(operation, self.base, call.arguments, self._link.paths[operation.method])
        except ArgumentsError as error:
            return self._invalid(str(error))
        answer = await self._link.client().send(request, self._signature, operation.label, again=self.idempotent)
        answer = evolve(answer, body=self._link.credentials.redact_bytes(answer.body))
        value = value_of(answer)
        about = {"operation": operation.id, "status": answer.status, **answer.headers}
        charset = charset_of(answer.media_type)
        if isinstance(value, str) and charset and charset not in CHARSETS:  # and it was read as UTF-8
            about["unknown_charset"] = charset
        metadata = {"openapi": about}
        problems = self._check.problems(value) if self._check is not None else []
        if problems and not any(problem.unchecked for problem in problems):  # that is taken as it is
            return self._broken(answer.status, answer.text, "; ".join(map(str, problems[:MAX_PROBLEMS])), metadata)
        return ToolOutput(value, metadata)

    def _invalid(self, *problems: str) -> ToolResult:
        """The result of a call that is not sent."""
        message = "\n".join(("invalid arguments:", *problems))
        fault = Fault("invalid_arguments", message, {"problems": [*problems]})
        return ToolResult("", self.name, Status.INVALID, f"Error: {message}", error=fault)

    def _broken(self, status: int, text: str, why: str, metadata: Mapping[str, Any]) -> ToolResult:
        """An answer that is not what the document promises: the operation is done, and the answer is shown."""
        message = f"{self.operation.label} answered {status}, it is done; but the answer is not as documented: {why}"
        blocks = (TextBlock(f"Error: {message}"), TextBlock(text))
        fault = Fault("remote_schema", message, {"status": status})
        return ToolResult("", self.name, Status.ERROR, blocks, None, fault, metadata=metadata)
