"""A toolkit whose tool wants approval, and what is sent to it."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Self

from pegboard import ApprovalRequest, ToolCall, Toolkit, ToolResult, tool

__all__ = ["EXPECTED", "SENT", "Desk", "noting", "run", "sent"]

SENT: dict[str, Any] = {"paths": ["/tmp/a"], "filters": {"names": {"like": "x"}}, "extra": [1]}

EXPECTED = (["/tmp/a"], {"names": {"like": "x"}}, [1])


class Desk:
    """A toolkit with one tool that deletes, and what it deleted."""

    def __init__(self, approver: Any = None, **options: Any) -> None:
        self.ran: list[Any] = []
        requires = options.pop("requires_approval", True)

        @tool(requires_approval=requires)
        def delete(paths: list[str], filters: dict[str, Any] | None = None, extra: Any = None) -> str:
            self.ran.append((paths, filters, extra))
            return "deleted"

        @tool
        async def look() -> str:
            await asyncio.sleep(0)
            return "seen"

        self.toolkit = Toolkit(approver=approver, **{"plugins": (), **options})
        self.toolkit.register(delete, look)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.toolkit.close()


def sent() -> dict[str, Any]:
    return json.loads(json.dumps(SENT))  # type: ignore[no-any-return]


def noting(seen: list[Any], answer: Any, of: Callable[[ApprovalRequest], Any]) -> Callable[[ApprovalRequest], Any]:
    """An approver that remembers something of each request."""

    def note(request: ApprovalRequest) -> Any:
        seen.append(of(request))
        return answer

    return note


def run(call: ToolCall, *, on_a_loop: bool) -> ToolResult:
    return asyncio.run(call.execute()) if on_a_loop else call.execute_sync()
