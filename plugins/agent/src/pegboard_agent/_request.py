"""Requests: the tools that a model is shown, in its own form, and which of them it may call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

from attrs import frozen

from pegboard import BoundDialect, Session, Tool, UnknownNameError
from pegboard_agent._json_schema import in_words

__all__ = ["Choice", "Messages", "Request", "dialect_of", "request_for", "request_in_words"]

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

    def __init__(self, session: Session, answer: Tool) -> None:
        self._session = session
        self._answer = answer

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now."""
        return [*self._session.tools, self._answer]

    def reveal(self) -> tuple[list[Tool], frozenset[str]]:
        """The tools that were ever listed, and the names that were listed first."""
        tools, first = self._session.reveal()
        return [*tools, self._answer], first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def request_for(model: Any, session: Session, answer: Tool | None, choice: Choice, messages: Messages) -> Request:
    """The request to a model that takes tools. `answer` is the tool that takes its answer, if there is one.

    Raises `PegboardError` for a choice that there is not, `UnknownNameError` for an unknown dialect of the model.
    """
    dialect = _offering(session, answer, getattr(model, "dialect", "openai"))
    asked = dialect.request(choice, keep=getattr(model, "keeps", False))
    asked |= asked.pop("config", {})  # Gemini's form
    return Request(messages, asked.pop("tools", []), asked)


def request_in_words(session: Session, answer: Tool, choice: Choice, messages: Messages) -> Request:
    """The request to a model that is told in words which tools there are. Raises `PegboardError` as `request_for`."""
    tools = _offering(session, answer, "openai").request(choice, keep=False)["tools"]
    messages, options = in_words(messages, tools)
    may = _callable_names(choice, [tool["function"]["name"] for tool in tools])
    schema = options["response_format"]["json_schema"]["schema"]
    schema["anyOf"] = [each for each in schema["anyOf"] if each["properties"]["name"]["const"] in may]
    return Request(messages, [], options)


def dialect_of(session: Session, name: str) -> BoundDialect:
    """The dialect of that name over what a session offers; where its toolkit loads no plugins, that of the library.

    Raises `UnknownNameError` if there is none.
    """
    try:
        return session.dialect(name)
    except UnknownNameError:
        from pegboard_dialects import provide_dialects

        library = {each.name: each for each in provide_dialects()}
        if name not in library:
            raise
        return BoundDialect(library[name], session)


def _offering(session: Session, answer: Tool | None, dialect: str) -> BoundDialect:
    """The dialect over what a session offers, and the tool that takes the answer."""
    bound = dialect_of(session, dialect)
    return bound if answer is None else BoundDialect(bound.dialect, _Offer(session, answer))


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
