"""A framework's tools as tools of a toolkit. The framework has written their schemas."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, final

import attrs

from pegboard import Approval, ApprovalRequest, Fault, Judge, Status, ToolCall, ToolResult
from pegboard_bridges._frameworks import NotNativeError
from pegboard_schemas import judged

__all__ = ["ExternalTool", "ExternalTools", "approved", "denied", "external", "failed", "finished", "given_arguments"]

NOTHING: Final = {"type": "object", "properties": {}}
_MORE: Final = frozenset(
    ("additionalProperties", "unevaluatedProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf")
)
"""Keywords by which a schema itself says which further arguments are allowed."""


def _of_an_object(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    own = dict(schema or NOTHING, type="object")
    if "properties" in own and _MORE.isdisjoint(own):
        # Values that the framework fills in are in no schema. Without this a model could set them.
        own["additionalProperties"] = False
    return own


@final
@attrs.frozen(eq=False)
class ExternalTool:
    """A framework's tool as a toolkit reads it: `call(call)` runs it there, and may be a coroutine function.

    The toolkit checks the arguments by the schema before the call, in bounded steps: a framework may bring the schema
    of a third party, such as a server. The framework may check them again.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = attrs.field(converter=_of_an_object, repr=False)
    call: Callable[[ToolCall], Any] = attrs.field(repr=False)
    tags: tuple[str, ...] = ()
    returns: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @property
    def judge(self) -> Judge:
        """What checks the arguments. Raises `RegistrationError` for a schema that cannot be used."""
        return judged(self.parameters, f"tool {self.name!r}: parameters", refuses_many=False).judge


@final
@attrs.frozen(eq=False)
class ExternalTools:
    """Tools of a framework: what `toolkit.register` takes."""

    found: Iterable[ExternalTool]

    def tools(self) -> Iterable[ExternalTool]:
        """The tools, by the names that they have in the framework."""
        return list(self.found)


def external(bridge: str, tools: Any, readers: Mapping[type, Callable[[Any], Any]]) -> ExternalTools:
    """The tools of a framework's object, or of a list of such.

    `readers` says by class how to read one: a tool as an `ExternalTool`, a collection of tools as an iterable of them.
    The first class that fits counts. Raises `NotNativeError` for anything else.
    """

    def read(given: Any) -> Iterator[ExternalTool]:
        if not isinstance(given, (ExternalTool, list, tuple)):
            reader = next((read for kind, read in readers.items() if isinstance(given, kind)), None)
            if reader is None:
                known = ", ".join(kind.__name__ for kind in readers)
                got = f"{type(given).__module__}.{type(given).__qualname__}"
                raise NotNativeError(f"from_{bridge} takes {known} or a list of such; got {got}")
            given = reader(given)
        if isinstance(given, ExternalTool):
            yield given
        else:
            for each in given:
                yield from read(each)

    return ExternalTools(list(read(tools)))


def given_arguments(call: ToolCall) -> dict[str, Any]:
    """A copy of the arguments, for a framework that may change them."""
    return dict(call.arguments)


def failed(call: ToolCall, text: str) -> ToolResult:
    """The result of a tool that reports a failure, with the tool's own message."""
    return ToolResult(call.id, call.name, Status.ERROR, text, error=Fault("error", text.removeprefix("Error: ")))


def denied(call: ToolCall, message: str = "it was not approved") -> ToolResult:
    """The result of a tool that was not approved."""
    message = f"{call.name} was not run: {message}; go on without it"
    return ToolResult(call.id, call.name, Status.DENIED, f"Error: {message}", error=Fault("denied", message))


async def approved(call: ToolCall, reason: str) -> dict[str, Any] | ToolResult:
    """Ask the session's approver about a tool that needs approval in its framework.

    Returns the arguments to run it with. Returns a result instead if the call was denied, if the session has no
    approver, or if the approver's edited arguments are wrong.
    """
    approver = getattr(call.session, "approver", None)
    if approver is None:
        return denied(call)
    session, arguments = call.session, given_arguments(call)
    answer = approver(ApprovalRequest(session[call.name], call.id, arguments, reason, session=session))
    answer = await answer if inspect.isawaitable(answer) else answer
    if answer is True:
        answer = Approval.approve()
    if not isinstance(answer, Approval) or answer.decision == "deny":
        return denied(call, getattr(answer, "reason", "") or "it was not approved")
    if answer.decision == "edit":
        call = call.session.prepare(call.name, answer.arguments, call_id=call.id)
    return call.result or given_arguments(call)


def finished(work: Callable[[], Any]) -> Any:
    """The result of a coroutine function, for callers that are not async, whether an event loop runs here or not."""
    import asyncio

    with ThreadPoolExecutor(1) as other:
        return other.submit(lambda: asyncio.run(work())).result()
