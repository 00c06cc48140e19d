"""Errors of calls in a cluster."""

from __future__ import annotations

from pegboard import PegboardError

__all__ = ["MismatchError", "NoResourcesError", "OutOfMemoryError", "WorkerLostError"]


class WorkerLostError(Exception):
    """The worker of a call, or its whole node, died with it; it is unknown how far the tool came."""

    abandoned = True
    """So that only an idempotent tool is tried again."""


class OutOfMemoryError(WorkerLostError):
    """Ray ended the worker of a call because the memory of its node ran out."""


class NoResourcesError(PegboardError):
    """No node of the cluster has what a tool asks for."""


class MismatchError(PegboardError):
    """A worker has another tool, or another Pegboard, than the program."""
