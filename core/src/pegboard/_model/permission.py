"""Permission: whether a tool runs, asks first, or never runs."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Permission"]


class Permission(StrEnum):
    """Whether a tool runs without asking, asks the approver first, or never runs."""

    ALWAYS = "always"
    PROMPT = "prompt"
    NEVER = "never"
