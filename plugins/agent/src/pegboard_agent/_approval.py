"""Approval: those who follow a run see what an approver is asked."""

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
"""The attribute in which an approver that announces keeps the one that it asks."""


@contextmanager
def announced(session: Session, tell: Callable[[ApprovalRequest], object]) -> Iterator[None]:
    """Meanwhile `tell`, on the event loop that runs here, has each request before the session's approver is asked."""
    asked = session.approver
    if asked is None:  # a call that needs approval is denied at once
        yield
        return
    session.approver = _announcing(asked, tell)
    try:
        yield
    finally:
        session.approver = None
        if session.approver is not asked:  # else it is that of a wider session, which may get another one
            session.approver = asked


def approver_of(session: Session) -> Approver | None:
    """The session's approver itself, not the one that announces what it is asked."""
    approver = session.approver
    return getattr(approver, _ASKS, approver)


def _announcing(approver: Approver, tell: Callable[[ApprovalRequest], object]) -> Approver:
    loop = asyncio.get_running_loop()

    def announce(request: ApprovalRequest) -> None:  # in whatever thread, on whatever loop the call runs
        with suppress(RuntimeError):  # the loop is closed, for the run is over
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
