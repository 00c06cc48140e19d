"""What live sources have beside tools: resources, prompts and a log, where they have methods by these names.

A source says in `features` what it has. `list_resources`, `list_resource_templates` and `list_prompts` give records, as
mappings or as models of pydantic; `read_resource` and `prompt_messages` give blocks; `log` gives lines. A journal has
`earlier_calls`, which gives mappings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from pegboard import PegboardError, Toolkit, UnknownNameError
from pegboard.inspection import sources_of

__all__ = [
    "earlier_calls",
    "features_of",
    "log_counts",
    "log_lines",
    "prompts_data",
    "read_prompt",
    "read_resource",
    "resources_data",
]

PATIENCE: Final = 60.0
"""Seconds in which a source has to answer."""
FEATURES: Final = ("resources", "prompts", "calls")
EARLIER: Final = 50
"""Number of recorded calls that the history begins with."""


def features_of(source: Any) -> list[str]:
    """What a source has: `resources`, `prompts`, `calls`, `log`."""
    found = getattr(source, "features", ())
    known = found if isinstance(found, Iterable) and not isinstance(found, str) else ()
    return [*(each for each in FEATURES if each in known), *(["log"] if callable(getattr(source, "log", None)) else [])]


def resources_data(toolkit: Toolkit, name: str) -> dict[str, Any]:
    """The resources of a source and the templates of further ones. Raises `PegboardError` for what it refuses."""
    source = _source(toolkit, name, "resources")
    templates = getattr(source, "list_resource_templates", None)
    listed = _answer(source, source.list_resources)
    return {
        "resources": [_plain(each) for each in listed],
        "templates": [_plain(each) for each in _answer(source, templates)] if templates is not None else [],
    }


def read_resource(toolkit: Toolkit, name: str, uri: str) -> dict[str, Any]:
    """The content of a resource. Raises `PegboardError` for what the source refuses."""
    source = _source(toolkit, name, "resources")
    return {"content": [each.to_dict() for each in _answer(source, lambda: source.read_resource(uri))]}


def prompts_data(toolkit: Toolkit, name: str) -> dict[str, Any]:
    """The prompts of a source. Raises `PegboardError` for what it refuses."""
    source = _source(toolkit, name, "prompts")
    return {"prompts": [_plain(each) for each in _answer(source, source.list_prompts)]}


def read_prompt(toolkit: Toolkit, name: str, prompt: str, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The messages of a prompt. Raises `PegboardError` for what the source refuses."""
    source = _source(toolkit, name, "prompts")
    messages = _answer(source, lambda: source.prompt_messages(prompt, arguments))
    return {"messages": [{"role": role, "content": block.to_dict()} for role, block in messages]}


def log_counts(toolkit: Toolkit) -> dict[str, int]:
    """How many lines the log of each source has had."""
    return {each.name: int(getattr(each, "log_count", 0)) for each in sources_of(toolkit) if "log" in features_of(each)}


def log_lines(toolkit: Toolkit, name: str) -> dict[str, Any]:
    """The lines of a source's log that are kept."""
    return {"lines": [_plain(each) for each in _source(toolkit, name, "log").log()]}


def earlier_calls(toolkit: Toolkit, before: float) -> list[Mapping[str, Any]]:
    """The last calls that a source has recorded before a moment, the latest first. Raises `PegboardError`."""
    recording: list[Any] = [each for each in sources_of(toolkit) if "calls" in features_of(each)]
    return [call for each in recording for call in each.earlier_calls(before, EARLIER)][:EARLIER]


def _source(toolkit: Toolkit, name: str, feature: str) -> Any:
    for each in sources_of(toolkit):
        if each.name == name and feature in features_of(each):
            return each
    raise UnknownNameError(f"there is no source {name!r} with {feature}")


def _answer(source: Any, work: Callable[[], Awaitable[Any]]) -> Any:
    """What a source answers, on a loop of this thread's own: a tool may block the page's. Raises `PegboardError`."""

    async def answered() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await work()

    try:
        return asyncio.run(answered())
    except TimeoutError:
        raise PegboardError(f"{source.name} did not answer within {PATIENCE:g} seconds") from None
    except Exception as error:  # a source may raise anything
        redact = getattr(source, "redact", str)
        raise PegboardError(f"{source.name} refused: {redact(str(error)) or type(error).__name__}") from error


def _plain(record: Any) -> Any:
    """A record as JSON data."""
    if hasattr(record, "model_dump"):
        return record.model_dump(mode="json", by_alias=True, exclude_none=True)
    return attrs.asdict(record) if attrs.has(type(record)) else record
