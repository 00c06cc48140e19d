"""The frameworks: by which package their objects are known, and what to install for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from pegboard import RegistrationError

__all__ = ["FRAMEWORKS", "Framework", "NotNativeError", "bridge_of", "needs"]


class Framework(NamedTuple):
    """A framework: the package that its tools come from, and the distribution that brings it."""

    package: str
    distribution: str


FRAMEWORKS: Final = {
    "adk": Framework("google.adk", "google-adk"),
    "agentscope": Framework("agentscope", "agentscope"),
    "crewai": Framework("crewai", "crewai"),
    "fastmcp": Framework("fastmcp", "fastmcp"),
    "haystack": Framework("haystack", "haystack-ai"),
    "langchain": Framework("langchain_core", "langchain-core"),
    "llamaindex": Framework("llama_index", "llama-index-core"),
    "llm": Framework("llm", "llm"),
    "openai_agents": Framework("agents", "openai-agents"),
    "pydantic_ai": Framework("pydantic_ai", "pydantic-ai-slim"),
    "smolagents": Framework("smolagents", "smolagents"),
    "strands": Framework("strands", "strands-agents"),
}
"""By the names of the bridges' modules, which are those of the extras."""


class NotNativeError(RegistrationError):
    """The object is not a tool of the framework, and holds no tools that the bridge can read."""


@contextmanager
def needs(name: str) -> Iterator[None]:
    """Around imports of the framework: an ImportError names the extra to install if the framework is missing."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"pegboard_bridges.{name} needs {FRAMEWORKS[name].distribution}, which cannot be imported ({error}): "
            f'pip install "pegboard-bridges[{name}]", or {FRAMEWORKS[name].distribution} itself',
            name=error.name,
        ) from error


def bridge_of(kind: type) -> Callable[[Any], Any] | None:
    """The function that reads objects of a class; None for one that no framework made."""
    if kind in (FunctionType, MethodType, type):
        return None  # nearly everything that is registered
    name = _framework_of(kind)
    return None if name is None else getattr(import_module(f"pegboard_bridges.{name}"), f"from_{name}")


@cache
def _framework_of(kind: type) -> str | None:
    for base in kind.__mro__:
        for name, framework in FRAMEWORKS.items():
            if f"{base.__module__}.".startswith(f"{framework.package}.") and framework.package in sys.modules:
                return name
    return None
