"""Consent: asking an approver of one's own, where no toolkit asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeAlias

from pegboard import Approval, ApprovalRequest

__all__ = ["Approver", "consent"]

Answer: TypeAlias = bool | Approval
Approver: TypeAlias = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]


async def consent(approver: Approver, request: ApprovalRequest) -> Approval:
    """The approver's answer; whatever is no clear yes is a no. One that is not async holds up the event loop."""
    try:
        answer = approver(request)
        answer = await answer if isawaitable(answer) else answer
    except Exception as error:  # noqa: BLE001 - an approver that fails must not let the command through
        return Approval.deny(f"asking for approval failed: {error}")
    if isinstance(answer, Approval):
        return answer
    return Approval.approve() if answer is True else Approval.deny("it was not approved")
