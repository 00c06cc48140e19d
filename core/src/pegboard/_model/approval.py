"""Approval: who may run what, and how a human answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen
from attrs.validators import in_

from pegboard._base.records import Compared

__all__ = ["Approval", "ApprovalRequest"]


@frozen(eq=False, repr=False)
class ApprovalRequest(Compared):
    """What an approver decides on: `arguments` as the model sent them, without injected and secret values.

    They are a copy. `reason` says why somebody is asked.
    """

    tool: Any
    call_id: str
    arguments: Mapping[str, Any]
    reason: str = ""


@frozen(eq=False, repr=False)
class Approval(Compared):
    """An approver's answer. `True` and `False` stand for `Approval.approve()` and `Approval.deny()`.

    Raises ValueError for a decision that is none, and for an edit without arguments.
    """

    decision: Literal["approve", "deny", "edit"] = field(validator=in_(("approve", "deny", "edit")))
    reason: str = ""
    arguments: Mapping[str, Any] | None = None

    def __attrs_post_init__(self) -> None:
        if (self.arguments is None) is (self.decision == "edit"):
            raise ValueError("the decision 'edit' goes with arguments, and no other does")

    @classmethod
    def approve(cls) -> Approval:
        """Run the call as it was asked for."""
        return cls("approve")

    @classmethod
    def deny(cls, reason: str = "") -> Approval:
        """Do not run the call; the model sees `reason`."""
        return cls("deny", reason)

    @classmethod
    def edit(cls, arguments: Mapping[str, Any]) -> Approval:
        """Run the call with these arguments instead; they are checked as the model's own are."""
        return cls("edit", arguments=dict(arguments))
