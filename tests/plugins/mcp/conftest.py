"""Fixtures of this pack's tests."""

from tests.plugins.mcp.leaks import nothing_left

__all__ = ["nothing_left"]
