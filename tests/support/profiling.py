"""Which functions run."""

import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["profiled"]


def profiled(work: Callable[[], object], begins: Callable[[FrameType, str], object]) -> None:
    """Run `work`, and tell of every function that begins meanwhile on this thread: its frame, and `call` or `c_call`.

    The frame is the function's own where it is one of Python's, and the caller's where it is one of C's.
    """

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            begins(frame, event)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
