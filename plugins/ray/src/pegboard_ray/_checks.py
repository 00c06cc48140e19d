"""Checks at registration whether a tool can run in a worker, and what resources it needs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from types import FunctionType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pegboard import CancelToken, Emitter, RegistrationError, Tool, ToolCall
from pegboard.inspection import function_kind

__all__ = ["check_remote", "listens", "path_of", "task_options"]

_HERE: Final = "or leave the backend out"
_THERE: Final = (CancelToken, Emitter, ToolCall)
"""What a worker can provide itself."""
_COUNTED: Final = ("num_cpus", "num_gpus", "memory")


def check_remote(tool: Tool, targets: list[str]) -> None:
    """Raises `RegistrationError` for a tool that could never run in a worker, saying why and what to do."""
    where = f'tool {tool.name!r} with backend="ray"'
    if function_kind(tool.function) in ("async", "async_generator"):
        raise RegistrationError(
            f"{where} is async; a worker runs plain functions and generators: write it with `def` (and asyncio.run "
            f"inside), {_HERE}"
        )
    for parameter in tool.params:
        if parameter.source in ("context", "injected") and not _kinds(parameter.annotation) & {*_THERE}:
            kind = " | ".join(sorted(kind.__name__ for kind in _kinds(parameter.annotation)))
            raise RegistrationError(
                f"{where}: its parameter {parameter.name!r} is a {kind}, which the program provides and no worker has; "
                f"take it out, {_HERE}"
            )
    task_options(tool)
    if tool.origin.distribution is None and not _is_named(tool.function, targets):
        path = path_of(tool.function).replace("__main__", "module")
        raise RegistrationError(
            f"{where}: {path} is in no installed pack, and workers find nothing else but by an import path; name it in "
            f'the settings: Toolkit(settings={{"ray": {{"tools": ["{path}"]}}}}), {_HERE}'
        )


def task_options(tool: Tool) -> dict[str, Any]:
    """The `resources` of a tool as options of a Ray task. Raises `RegistrationError` for what are none."""
    wanted = dict(tool.options.resources or {})
    custom = wanted.pop("resources", {})
    found: dict[str, Any] = {name: wanted.pop(name) for name in _COUNTED if name in wanted}
    counts = {**found, **wanted, **custom} if isinstance(custom, Mapping) else {"resources": custom}
    for name, amount in counts.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or amount < 0:
            raise RegistrationError(
                f"tool {tool.name!r}: resources[{name!r}] is {amount!r}; write a number that is not negative, as in "
                '{"num_cpus": 1, "num_gpus": 0, "memory": 2e9, "a_resource_of_your_own": 1}'
            )
    return {**found, "resources": {**wanted, **custom}} if wanted or custom else found


@cache
def listens(tool: Tool) -> bool:
    """Whether a tool can end by itself: it takes its token, or is a generator."""
    return function_kind(tool.function) == "generator" or any(
        parameter.source == "injected" and CancelToken in _kinds(parameter.annotation) for parameter in tool.params
    )


def _kinds(annotation: Any) -> set[type]:
    """The classes that an annotation names."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    named = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return {each for each in named if isinstance(each, type) and each is not type(None)}


def path_of(function: Any) -> str:
    """The import path of a function, by its names."""
    inner = getattr(function, "__func__", function)
    name = getattr(inner, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(inner, '__module__', None) or type(function).__module__}:{name}"


def _is_named(function: Any, targets: list[str]) -> bool:
    """Whether the import paths may lead to a function; what they lead to need not be there yet."""
    for target in targets:
        module, _, path = target.partition(":")
        found: Any = sys.modules.get(module)
        for part in path.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, FunctionType) or found is function or path_of(found) == path_of(function):
            return True
    return False
