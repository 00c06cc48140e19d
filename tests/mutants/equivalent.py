"""Mutants that behave as the original does, so that no test could tell them apart, each with the reason."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str, str], str] = {}
"""By module, function, what was there and what is there now."""
