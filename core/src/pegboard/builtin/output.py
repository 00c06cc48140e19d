"""The tool `read_output`: a model pages through output that was too long to be shown at once."""

from __future__ import annotations

import sys
from typing import Annotated

from pegboard import Param, Session, tool

__all__ = ["read_output"]


# Its pages are short by themselves; a page that spilled would never end.
@tool(read_only=True, idempotent=True, max_output=sys.maxsize)
def read_output(session: Session, handle: str, offset: Annotated[int, Param(ge=0)] = 0) -> str:
    """Read on in the output of a tool that was too long to be shown at once.

    Args:
        handle: The handle that stands at the end of the shortened output
        offset: How many characters to skip
    """
    return session.read_output(handle, offset)
