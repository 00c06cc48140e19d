"""What a toolkit and its program tell each other: groups, toolsets, broken plugins, approvals.

Loaded with the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, frozen
from attrs.validators import in_

from pegboard._base.records import Compared, Shown
from pegboard._model.call import CallerSession
from pegboard._model.plugin_record import PluginRecord
from pegboard._model.tool import Entry, Tool

Manager: TypeAlias = Literal["model", "program"]


@frozen(eq=False, repr=False)
class Group(Compared):
    """A group of tools that are switched on and off together.

    Args:
        name: Name of the group.
        description: Text for the model, which reads it where it may switch groups.
        active: Whether its tools are offered at first.
        managed_by: Who switches it: `"model"`, by the tool of `register_meta_tool`, or `"program"` alone.
        instructions: Text that the model reads when it activates the group. None for none.
        max_concurrency: Most calls of its tools that run at once. None for no limit.
    """

    name: str
    description: str = ""
    active: bool = True
    managed_by: Manager = "model"
    instructions: str | None = None
    max_concurrency: int | None = None
    entry: Entry = field(factory=Entry, init=False, eq=False, repr=False)


@frozen(eq=False, repr=False)
class Toolset(Compared):
    """Tools that belong together: a class with `@tool` methods, or a pack.

    Args:
        name: Name of the class or the pack.
        description: What the tools have in common.
        tools: The tools.
    """

    name: str
    description: str
    tools: tuple[Tool, ...]


@frozen(eq=False, repr=False)
class PluginFailure(Shown):
    """A plugin that failed.

    Args:
        record: The plugin.
        traceback: Text of the traceback. Empty where nothing was raised.
        exception: The exception. None where nothing was raised.
    """

    record: PluginRecord
    traceback: str = field(default="", repr=False)
    exception: BaseException | None = field(default=None, repr=False)


@frozen(eq=False, repr=False)
class ApprovalRequest(Compared):
    """What an approver decides on.

    Args:
        tool: The tool.
        call_id: Id of the call.
        arguments: Copy of the arguments as the model sent them, without injected and secret values.
        reason: Why approval is requested.
        form: JSON Schema of the form of a question, whose answer is a mapping of its members or a decision. None for a
            plain request.
        session: The session of the call.
    """

    tool: Any
    call_id: str
    arguments: Mapping[str, Any]
    reason: str = ""
    form: Mapping[str, Any] | None = None
    session: CallerSession | None = field(default=None, eq=False, repr=False, kw_only=True)


@frozen(eq=False, repr=False)
class Approval(Compared):
    """An approver's answer. `True` and `False` stand for `Approval.approve()` and `Approval.deny()`.

    Raises ValueError for a decision that is none, and for an edit without arguments.

    Args:
        decision: `"approve"` runs the call, `"deny"` does not, `"edit"` runs it with other arguments.
        reason: Text for the model where the call is denied.
        arguments: The other arguments of an edit, which are checked as the model's own are. None for the other
            decisions.
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
