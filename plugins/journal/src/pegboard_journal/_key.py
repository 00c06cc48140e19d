"""The key by which a call is known to be the same as an earlier one."""

from __future__ import annotations

from typing import final

from pegboard import ToolCall

__all__ = ["IdempotencyKey", "key_of"]


@final
class IdempotencyKey(str):
    """The key of a call, the same in every attempt, for the tool's own server: `def pay(..., key: IdempotencyKey)`."""

    __slots__ = ()


def key_of(call: ToolCall) -> IdempotencyKey:
    """What the program says in `provider_meta["idempotency_key"]`, else the call's id."""
    return IdempotencyKey(call.provider_meta.get("idempotency_key") or call.id)
