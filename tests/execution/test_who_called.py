"""Who called: middleware, around whole calls too, sees the session with its subject; no model reads of it."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import ApprovalRequest, EnteredCall, Middleware, Session, ToolCall, Toolkit, ToolResult, hookimpl, tool

ALICE, CONVERSATION = "subject-alice", "conversation-7"


class Watching:
    """A plugin that notes who called, by middleware of both kinds."""

    def __init__(self) -> None:
        self.whole: list[tuple[Any, Any, Any]] = []
        self.inner: list[tuple[Any, Any]] = []

    def around_whole(self, call: EnteredCall, proceed: Callable[[], Any]) -> Any:
        assert call.session is not None
        self.whole.append((call.session.subject, call.session.id, call.agent))
        return proceed()

    def around(self, call: ToolCall, proceed: Callable[[], ToolResult]) -> ToolResult:
        self.inner.append((call.session.subject, call.session.id))
        return proceed()

    async def around_later(self, call: ToolCall, proceed: Callable[[], Any]) -> Any:
        self.inner.append((call.session.subject, call.session.id))
        return await proceed()

    @hookimpl
    def provide_middleware(self) -> list[Middleware]:
        around = [Middleware(self.around), Middleware(self.around_later, order=1)]
        return [Middleware(self.around_whole, whole=True), *around]


def add(a: int) -> int:
    """Add one."""
    return a + 1


@tool(requires_approval=True)
def refund(amount: int) -> int:
    """Pay back."""
    return amount


@pytest.fixture
def watching() -> Watching:
    return Watching()


@pytest.fixture
def session(watching: Watching) -> Session:
    toolkit = Toolkit(plugins=[watching])
    toolkit.register(add, refund)
    return toolkit.session(subject=ALICE, id=CONVERSATION, agent="ann")


WAYS: dict[str, Callable[[Session, str, Any], Any]] = {
    "call_sync": lambda session, name, sent: session.call_sync(name, sent),
    "call": lambda session, name, sent: asyncio.run(session.call(name, sent)),
    "prepare": lambda session, name, sent: session.prepare(name, sent).execute_sync(),
    "call_many": lambda session, name, sent: session.call_many_sync([(name, sent)]),
    "of a view": lambda session, name, sent: session.view().call_sync(name, sent),
    "of a session of it": lambda session, name, sent: session.session().call_sync(name, sent),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "sent"), [("add", {"a": 1}), ("add", {"a": "x"}), ("nope", {}), ("refund", {"amount": 1})]
)
def test_middleware_sees_who_called(watching: Watching, session: Session, way: str, name: str, sent: Any) -> None:
    WAYS[way](session, name, sent)
    assert watching.whole == [(ALICE, CONVERSATION, "ann")]
    ran = (name, sent) == ("add", {"a": 1})
    assert watching.inner == ([(ALICE, CONVERSATION)] * 2 if ran else [])


def test_a_session_of_a_session_may_act_for_another_subject(session: Session) -> None:
    inner = session.session(subject="bob")
    assert (inner.subject, inner.id) == ("bob", CONVERSATION)
    assert (session.subject, session.id) == (ALICE, CONVERSATION)


def test_a_toolkit_acts_for_no_subject(watching: Watching) -> None:
    toolkit = Toolkit(plugins=[watching])
    toolkit.register(add)
    toolkit.call_sync("add", {"a": 1})
    assert watching.whole == [(None, None, None)]


@pytest.mark.parametrize("way", ["call_sync", "call", "prepare"])
def test_an_approver_sees_in_whose_name(way: str) -> None:
    asked: list[Any] = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append(request.session)
        return True

    with Toolkit(plugins=(), approver=approver) as toolkit:
        toolkit.register(add)
        toolkit.set_permission("add", "prompt")
        session = toolkit.session(subject=ALICE)
        assert not WAYS[way](session, "add", {"a": 1}).is_error
    assert asked == [session]


def test_no_model_reads_of_it(session: Session) -> None:
    read = [schema.to_dict() for schema in session.schemas()]
    results = [
        session.call_sync(name, sent)
        for name, sent in (("add", {"a": 1}), ("add", {}), ("nope", {}), ("refund", {"amount": 1}))
    ]
    text = json.dumps([read, [result.to_dict() for result in results]])
    assert ALICE not in text
    assert CONVERSATION not in text
    assert ALICE not in repr(session)
