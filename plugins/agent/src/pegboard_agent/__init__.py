"""A small agent: a model of any provider, a toolkit, and the loop between them."""

# Loading the plugin loads none of these modules: each name is imported when it is first used (PEP 562).

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import Command, hookimpl

if TYPE_CHECKING:
    from pegboard_agent._agent import Agent
    from pegboard_agent._events import (
        ApprovalNeeded,
        CallEnded,
        CallStarted,
        ChunkEvent,
        Event,
        Final,
        Parked,
        ReasoningDelta,
        Stopped,
        TextDelta,
    )
    from pegboard_agent._limits import Limits
    from pegboard_agent._messages import Message
    from pegboard_agent._models.anthropic import AnthropicChat
    from pegboard_agent._models.gemini import GeminiChat
    from pegboard_agent._models.model import RESTARTED, ChatModel, ModelError
    from pegboard_agent._models.openai import OpenAIChat
    from pegboard_agent._models.responses import OpenAIResponses
    from pegboard_agent._run import AgentStoppedError
    from pegboard_agent._stores.memory import Memory
    from pegboard_agent._stores.postgres import PostgresMemory
    from pegboard_agent._stores.protocol import ConversationConflictError, ConversationStore, ConversationStoreError
    from pegboard_agent._stores.trimming import estimated_tokens
    from pegboard_agent._usage import Usage

__all__ = ["RESTARTED", "Agent", "AgentStoppedError", "ChatModel", "Limits", "Memory", "Message", "ModelError", "Usage"]
__all__ += ["AnthropicChat", "GeminiChat", "OpenAIChat", "OpenAIResponses"]
__all__ += ["ApprovalNeeded", "CallEnded", "CallStarted", "ChunkEvent", "Event", "Final", "Parked", "ReasoningDelta"]
__all__ += ["ConversationConflictError", "ConversationStore", "ConversationStoreError", "PostgresMemory"]
__all__ += ["Stopped", "TextDelta", "estimated_tokens", "provide_commands"]

_HOMES = {
    "_agent": "Agent",
    "_models.anthropic": "AnthropicChat",
    "_events": "ApprovalNeeded CallEnded CallStarted ChunkEvent Event Final Parked ReasoningDelta Stopped TextDelta",
    "_models.gemini": "GeminiChat",
    "_limits": "Limits",
    "_messages": "Message",
    "_models.model": "RESTARTED ChatModel ModelError",
    "_models.openai": "OpenAIChat",
    "_models.responses": "OpenAIResponses",
    "_run": "AgentStoppedError",
    "_stores.memory": "Memory",
    "_stores.postgres": "PostgresMemory",
    "_stores.protocol": "ConversationConflictError ConversationStore ConversationStoreError",
    "_stores.trimming": "estimated_tokens",
    "_usage": "Usage",
}
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    home = _home_of.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


def _run_chat(arguments: list[str]) -> int:
    from pegboard_agent._chat import run

    return run(arguments)


@hookimpl
def provide_commands() -> Iterable[Command]:
    """`pegboard chat`."""
    return [Command("chat", "Talk to a model that has the toolkit's tools.", _run_chat)]
