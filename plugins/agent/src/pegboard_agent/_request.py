"""Requests: the tools that are listed for a model, in its own form, and which of them it may call."""

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
    """A request to a model: `messages`, `tools` in the form of its dialect, and further `options`."""

    messages: Messages
    tools: list[Any]
    options: Mapping[str, Any]


@final
class _Offer:
    """The tools that a session offers, followed by the tool that takes the answer."""

    def __init__(self, session: Session, answer: Tool) -> None:
        self._session = session
        self._answer = answer

    @property
    def tools(self) -> list[Tool]:
        """The tools offered now."""
        return [*self._session.tools, self._answer]

    def reveal(self) -> tuple[list[Tool], frozenset[str]]:
        """All tools that have been listed, and the names of those that were listed first."""
        tools, first = self._session.reveal()
        return [*tools, self._answer], first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def request_for(model: Any, session: Session, answer: Tool | None, choice: Choice, messages: Messages) -> Request:
    """The request to a model that takes tools. `answer` is the tool that takes its answer, if there is one.

    Raises `PegboardError` for an invalid choice, `UnknownNameError` for an unknown dialect of the model.
    """
    dialect = _offering(session, answer, getattr(model, "dialect", "openai"))
    options = dialect.request(choice, keep=getattr(model, "keeps", False))
    options |= options.pop("config", {})  # Gemini's form
    return Request(messages, options.pop("tools", []), options)


def request_in_words(session: Session, answer: Tool, choice: Choice, messages: Messages) -> Request:
    """The request to a model that reads about its tools in a text. Raises `PegboardError` as `request_for` does."""
    tools = _offering(session, answer, "openai").request(choice, keep=False)["tools"]
    messages, options = in_words(messages, tools)
    may = _callable_names(choice, [tool["function"]["name"] for tool in tools])
    schema = options["response_format"]["json_schema"]["schema"]
    schema["anyOf"] = [each for each in schema["anyOf"] if each["properties"]["name"]["const"] in may]
    return Request(messages, [], options)


def dialect_of(session: Session, name: str) -> BoundDialect:
    """The dialect with this name for a session's tools; the library's own if the toolkit loads no plugins.

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
    """The dialect for a session's tools and the tool that takes the answer."""
    bound = dialect_of(session, dialect)
    return bound if answer is None else BoundDialect(bound.dialect, _Offer(session, answer))


def _callable_names(choice: Choice, names: list[str]) -> list[str]:
    """The tools that a choice allows; the last one takes the answer."""
    *tools, answer = names
    if choice == "auto":
        return names
    if choice == "required":
        return tools or names
    if choice == "none":
        return [answer]
    return [choice] if isinstance(choice, str) else [*choice, answer]
