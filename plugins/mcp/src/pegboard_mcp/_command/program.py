"""Programs: the toolkit that a module or a file of the user's makes."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from pegboard import PegboardError, Toolkit

__all__ = ["is_file", "program_toolkit"]


def is_file(target: str) -> bool:
    """Whether a target is a file's and not a module's, whose name may have `.py` in it too: `board.pytools:toolkit`."""
    return target.endswith(".py") or ".py:" in target


def program_toolkit(target: str) -> Toolkit:
    """The toolkit of `module:attribute` or `file.py[:attribute]`; the attribute is it, or a function that makes it.

    Raises `PegboardError` saying what is not there.
    """
    place, _, path = target.rpartition(":")
    if target.endswith(".py"):  # a colon before that stands in the path, as on Windows
        place, path = target, "toolkit"
    if not place:
        raise PegboardError(f"{target!r} is no program: write MODULE:NAME or FILE.py, such as myprogram:toolkit")
    try:
        found: Any = _module(place)
        for step in path.split("."):
            found = getattr(found, step)
        if not isinstance(found, Toolkit) and callable(found):
            found = found()
    except Exception as error:  # a program of the user's may raise anything
        raise PegboardError(f"{target} cannot be served: {type(error).__name__}: {error}") from error
    if not isinstance(found, Toolkit):
        raise PegboardError(f"{target} is a {type(found).__name__}; name a Toolkit, or what returns one")
    return found


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        return import_module(place)
    path = Path(place).resolve()
    sys.path.insert(0, str(path.parent))  # as Python does for a script
    # Types of its own are looked up in the module of their name, so that it gets a unique one.
    spec = spec_from_file_location(f"_pegboard_program_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PegboardError("it is no Python file")
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
