"""Requests: the tools that a model is shown, in its own form, and which of them it may call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

from attrs import frozen

from pegboard import BoundDialect, Session, Tool
from pegboard_agent._dialects import dialect_of
from pegboard_agent._json_schema import in_words

__all__ = ["Choice", "Messages", "Request", "request_for", "request_in_words"]

Choice: TypeAlias = str | Sequence[str]
"""`"auto"`, `"required"`, `"none"`, the name of a tool, or a list of names."""
Messages: TypeAlias = list[dict[str, Any]]


@frozen
class Request:
    """What a model is asked beside its conversation: `tools` in the form of its dialect, `options` for the request."""

    messages: Messages
    tools: list[Any]
    options: Mapping[str, Any]


@final
class _Offer:
    """What a session offers, and after that the tool that takes the answer."""

    def __init__(self, session: Session, answer: Tool | None) -> None:
        self._session = session
        self._answer = () if answer is None else (answer,)

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now."""
        return [*self._session.tools, *self._answer]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def request_for(model: Any, session: Session, answer: Tool | None, choice: Choice, messages: Messages) -> Request:
    """The request to a model that takes tools. `answer` is the tool that takes its answer, if there is one.

    Raises `PegboardError` for a choice that there is not, `UnknownNameError` for an unknown dialect of the model.
    """
    dialect = dialect_of(session, getattr(model, "dialect", "openai"))
    asked = _asked(dialect, session, answer, choice, keep=getattr(model, "keeps", False))
    asked |= asked.pop("config", {})  # Gemini's form
    return Request(messages, asked.pop("tools", []), asked)


def request_in_words(session: Session, answer: Tool, choice: Choice, messages: Messages) -> Request:
    """The request to a model that is told in words which tools there are. Raises `PegboardError` as `request_for`."""
    asked = _asked(dialect_of(session, "openai"), session, answer, choice)
    messages, options = in_words(messages, asked["tools"])
    may = _callable_names(choice, [tool["function"]["name"] for tool in asked["tools"]])
    schema = options["response_format"]["json_schema"]["schema"]
    schema["anyOf"] = [each for each in schema["anyOf"] if each["properties"]["name"]["const"] in may]
    return Request(messages, [], options)


def _callable_names(choice: Choice, names: list[str]) -> list[str]:
    """Which tools a choice leaves; the last one takes the answer."""
    *tools, answer = names
    if choice == "auto":
        return names
    if choice == "required":
        return tools or names
    if choice == "none":
        return [answer]
    return [choice] if isinstance(choice, str) else [*choice, answer]


def _asked(
    dialect: BoundDialect, session: Session, answer: Tool | None, choice: Choice, *, keep: bool = False
) -> dict[str, Any]:
    offered = BoundDialect(dialect.dialect, _Offer(session, answer))
    tools = offered.tools()
    chosen = {} if choice == "auto" or not tools else {"tool_choice": offered.tool_choice(str(choice))}
    return {"tools": tools, **chosen}
