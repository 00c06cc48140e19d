"""The conversations of one agent, and their calls that wait for an answer, in whichever program they were parked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, final

from pegboard import Session, ToolCall, ToolResult
from pegboard_agent._conversation import Conversation
from pegboard_agent._stores.protocol import ConversationStore

__all__ = ["Conversations"]


@final
class Conversations:
    """Conversations by their ids, each in a session of its own: the argument of `session.share_suspended`.

    With it `toolkit.pending` and `toolkit.resume` know the calls that any program has parked in the store.
    """

    def __init__(self, store: ConversationStore, new_session: Callable[[], Session]) -> None:
        self._store = store
        self._new_session = new_session
        self._by_id: dict[str | None, Conversation] = {}
        self._guard = threading.Lock()
        new_session().share_suspended(self)

    def __getitem__(self, session_id: str | None) -> Conversation:
        """The conversation with this id; a new one if there is none. No record is read yet."""
        with self._guard:
            found = self._by_id.get(session_id)
            if found is None:
                found = self._by_id[session_id] = Conversation(self._store, session_id, self._new_session())
                found.session.share_suspended(self)
            return found

    def refresh(self) -> None:
        """Read which calls other programs have parked and answered. Exceptions of the store reach the caller."""
        waiting = self._store.waiting()
        for session_id, records in waiting.items():
            conversation = self[session_id]
            if conversation.known != records or not conversation.is_ready:
                conversation.refresh()
        for conversation in list(self._by_id.values()):
            if conversation.id not in waiting and conversation.has_parked:
                conversation.refresh()

    def answer(self, session: Any, call: ToolCall, result: ToolResult) -> bool:
        """Write the answer of a parked call; False if it has one already. Exceptions of the store reach the caller."""
        conversation = next(each for each in list(self._by_id.values()) if each.session is session)
        return conversation.keep_answer(call, result)
