"""What an engine does for the tools, and how it says what went wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import frozen

from pegboard import CancelToken, Redaction, ToolError

__all__ = ["CANCELLED", "Engine", "InProcess", "Run", "too_long"]

CANCELLED: Final = "The call was cancelled."
# Seconds in which an engine ends a call itself, before its process is ended.
_GRACE: Final = 0.3


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


class Engine(Protocol):
    """A database of one kind."""

    kind: str

    def ask(self, run: Run, **request: Any) -> dict[str, Any]:
        """The answer to one of four requests, by their `act`. Raises `ToolError`, written for a model.

        `schema` (`table`): what `listing` gives; `query` (`text`, `max_rows`): the fields of `Rows`; `explain`
        (`text`): `plan`; `execute` (`text`): `rows`, how many were changed, None where it is not about rows.
        """


class InProcess:
    """An engine that answers in a process with limits, which opens the file by its path: `answer(request)`.

    A limit inside of this process would not hold: SQLite expands a query of a kilobyte to gigabytes before it runs, and
    DuckDB passes its own limit of memory with a single value.
    """

    def __init__(self, module: Any, path: Path, tables: tuple[str, ...] | None) -> None:
        self.kind: str = module.KIND
        self._module = module
        self._given = {"path": str(path), "tables": None if tables is None else list(tables)}

    def ask(self, run: Run, **request: Any) -> dict[str, Any]:
        """See `Engine`."""
        from pegboard_process import LimitError, ProcessDiedError

        redact = Redaction([self._given["path"]])
        try:
            answer = self._answered({**request, **self._given, "seconds": run.seconds}, run)
            return dict(redact.deep(answer))  # DuckDB lists the files that are open
        except LimitError as error:
            if request["act"] == "execute":
                self.ask(Run(30.0, CancelToken()), act="recover", table=None)
            if error.limit == "memory":
                raise ToolError("This needs too much memory and was stopped. Ask for less.") from None
            raise ToolError(CANCELLED) if error.limit == "cancel" else too_long(run.seconds) from None
        except TimeoutError:
            raise too_long(run.seconds) from None
        except ToolError as error:  # of the other process, whose trace names the file
            raise ToolError(redact(str(error))) from None
        except ProcessDiedError:
            raise ToolError("The database engine broke down over this. Write it in another way.") from None

    def _answered(self, request: dict[str, Any], run: Run) -> Any:
        answer, memory = self._module.answer, self._module.MEMORY
        if self.kind == "SQLite" and not hasattr(os, "fork"):  # its own limits have to do
            return answer(request)
        from pegboard_process import limited

        return limited(answer, request, memory=memory, seconds=run.seconds + _GRACE, cancel=run.cancel)
