"""Approval: the requests to an approver are also events of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

from pegboard import ApprovalRequest, Session

__all__ = ["announced", "approver_of"]

Approver: TypeAlias = Callable[[ApprovalRequest], Any]
_ASKS = "__pegboard_agent_asks__"
"""The attribute of an announcing approver that holds the approver that it asks."""


@contextmanager
def announced(session: Session, tell: Callable[[ApprovalRequest], object]) -> Iterator[None]:
    """Inside, `tell` gets each request on the running event loop before the session's approver does."""
    approver = session.approver
    if approver is None:  # a call that needs approval is denied at once
        yield
        return
    session.approver = _announcing(approver, tell)
    try:
        yield
    finally:
        session.approver = None
        if session.approver is not approver:  # otherwise it belongs to a wider session, which may get another one
            session.approver = approver


def approver_of(session: Session) -> Approver | None:
    """The session's approver itself, not the announcing one around it."""
    approver = session.approver
    return getattr(approver, _ASKS, approver)


def _announcing(approver: Approver, tell: Callable[[ApprovalRequest], object]) -> Approver:
    loop = asyncio.get_running_loop()

    def announce(request: ApprovalRequest) -> None:  # the call may run in any thread, on any loop
        with suppress(RuntimeError):  # the loop is closed, because the run is over
            loop.call_soon_threadsafe(tell, request)

    def ask(request: ApprovalRequest) -> Any:
        announce(request)
        return approver(request)

    async def ask_async(request: ApprovalRequest) -> Any:
        announce(request)
        return await approver(request)

    is_async = iscoroutinefunction(approver) or iscoroutinefunction(getattr(approver, "__call__", None))  # noqa: B004
    announcing = ask_async if is_async else ask
    setattr(announcing, _ASKS, approver)
    return announcing
