"""What a conformance check found, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

__all__ = ["Finding", "message"]


@frozen(order=True)
class Finding:
    """One thing that is wrong.

    Args:
        check: The check that found it.
        what: What is wrong.
        remedy: What to do.
    """

    check: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.check}: {self.what}\n    {self.remedy}"


def message(label: str, findings: Iterable[Finding]) -> str:
    """All findings in one text."""
    found = list(findings)
    things = "one thing" if len(found) == 1 else f"{len(found)} things"
    return "\n".join([f"{label} does not conform, {things} to fix:", *(f"  {finding}" for finding in found)])
