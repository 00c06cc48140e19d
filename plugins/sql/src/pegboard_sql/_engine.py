"""What an engine does for the tools, and how it says what went wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, Protocol

from attrs import frozen

from pegboard import CancelToken, Redaction, ToolError
from pegboard_process import LimitError, ProcessDiedError, limited

__all__ = ["Engine", "InProcess", "Run", "cancelled", "too_long"]

_GRACE: Final = 0.3
"""Seconds in which an engine ends a call itself, before its process is ended."""
_RECOVERY: Final = 30.0
"""Seconds for undoing what a statement left whose process was ended."""


@frozen
class Run:
    """A call of a tool: how many seconds it may take, and what cancels it."""

    seconds: float
    cancel: CancelToken


def too_long(seconds: float) -> ToolError:
    """The failure of a call that was ended."""
    return ToolError(
        f"This takes longer than {seconds:g} s and was stopped. Ask for less: filter, aggregate, or join less; "
        "sql_explain shows how a query would run."
    )


def cancelled() -> ToolError:
    """The failure of a call that its caller has stopped."""
    return ToolError("The call was cancelled.")


class Engine(Protocol):
    """A database of one kind. All of them raise `ToolError`, written for a model."""

    kind: str

    def schema(self, table: str | None, run: Run) -> dict[str, Any]:
        """`tables`, those with columns as the fields of `Table`; `more`, the names of others; `omitted`, a number."""

    def query(self, query: str, max_rows: int, run: Run) -> dict[str, Any]:
        """The fields of `Rows`."""

    def explain(self, query: str, run: Run) -> str:
        """The plan of a query."""

    def execute(self, statement: str, run: Run) -> int | None:
        """Run a statement in a transaction of its own; how many rows it changed, None where it is not about rows."""


class InProcess:
    """An engine that answers in a process with limits, which opens the file by its path: `answer(request)`.

    A limit inside of this process would not hold: SQLite expands a query of a kilobyte to gigabytes before it runs, and
    DuckDB passes its own limit of memory with a single value.
    """

    def __init__(
        self, kind: str, answer: Callable[[Any], dict[str, Any]], path: str, tables: tuple[str, ...] | None, memory: int
    ) -> None:
        self.kind = kind
        self._answer = answer
        self._path = path
        self._tables = tables
        self._memory = memory

    def schema(self, table: str | None, run: Run) -> dict[str, Any]:
        """See `Engine`."""
        return self._ask(run, act="schema", table=table)

    def query(self, query: str, max_rows: int, run: Run) -> dict[str, Any]:
        """See `Engine`."""
        return self._ask(run, act="query", text=query, max_rows=max_rows)

    def explain(self, query: str, run: Run) -> str:
        """See `Engine`."""
        return str(self._ask(run, act="explain", text=query)["plan"])

    def execute(self, statement: str, run: Run) -> int | None:
        """See `Engine`."""
        rows: int | None = self._ask(run, act="execute", text=statement)["rows"]
        return rows

    def _ask(self, run: Run, **request: Any) -> dict[str, Any]:
        given = {**request, "path": self._path, "tables": self._tables and list(self._tables), "seconds": run.seconds}
        try:
            answer = self._answered(given, run)
        except LimitError as error:
            if request["act"] == "execute":
                self._ask(Run(_RECOVERY, CancelToken()), act="recover")
            if error.limit == "memory":
                size = f"{self._memory >> 20:,} MiB"
                raise ToolError(f"This needs more than {size} of memory and was stopped. Ask for less.") from None
            raise cancelled() if error.limit == "cancel" else too_long(run.seconds) from None
        except ProcessDiedError:
            raise ToolError("The database engine broke down over this. Write it in another way.") from None
        if answer.get("late"):
            raise too_long(run.seconds)
        if message := answer.get("error"):
            raise ToolError(Redaction([self._path])(message))
        return answer

    def _answered(self, request: dict[str, Any], run: Run) -> dict[str, Any]:
        if self.kind == "SQLite" and not hasattr(os, "fork"):  # its own limits have to do
            return self._answer(request)
        seconds = run.seconds + _GRACE
        answer: dict[str, Any] = limited(self._answer, request, memory=self._memory, seconds=seconds, cancel=run.cancel)
        return answer
