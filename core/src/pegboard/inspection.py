"""For hosts that show what a toolkit is made of: command lines, inspectors, test kits. Programs need `Toolkit` alone.

`Plugins` is what a toolkit loads its plugins with: `Plugins.load(imports=False)` says what is installed without
importing any of it, `plugins.contributions(hook)` who contributes what, `plugins.settings.effective()` which settings
hold and where each came from, `plugins.import_seconds` how long imports took.

`facts_of(tool)` are what a person who allows a tool goes by, `digest(data)` is a hash of such data, and `is_own(tool)`
says that a tool is one of the core's own. `write_file(path, text, what)` and `open(path, opener=regular)` are how
Pegboard and its packs write files of their own. `verdicts_of(session, name)` is what each guard says of a tool.
`spelled_out(text)` is for text from outside that goes to a terminal, `suggestion(name, known)` follows "unknown X".
`pack_that_gives("pegboard chat")` is the pack of this project that has a command, installed or not.
`tool_index(tools).search(words, limit)` names the tools that fit best, as `search_tools` does.
`program_toolkit("myprogram:toolkit")` is the toolkit of a program that a person names on a command line, and
`sources_of(toolkit)` are the objects that were registered as live sources, such as remote servers.
`watch_calls(toolkit, Middleware(around, whole=True))` follows the calls of a toolkit that was made without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

from pegboard._base.errors import PegboardError, SettingsError, spelled_out, suggestion
from pegboard._base.jsonable import digest
from pegboard._base.known_packs import pack_that_gives
from pegboard._board.board import Board, Clash
from pegboard._board.permissions import facts_of, is_own
from pegboard._model.plugin_record import Contribution
from pegboard._model.tool import Tool
from pegboard._plugins.hooks import HookName
from pegboard._plugins.manager import Plugins
from pegboard._plugins.settings import Settings
from pegboard._plugins.settings_values import Setting
from pegboard._schema.nodes import render
from pegboard._toolkit.session import Session
from pegboard._toolkit.toolkit import Toolkit
from pegboard._types.hints import function_kind
from pegboard.builtin.search import tool_index
from pegboard.extension import LiveSource, Middleware, Verdict

__all__ = [
    "Board",
    "Clash",
    "Contribution",
    "HookName",
    "Plugins",
    "Setting",
    "Settings",
    "board_of",
    "digest",
    "facts_of",
    "function_kind",
    "is_loaded",
    "is_own",
    "pack_that_gives",
    "plugins_of",
    "program_toolkit",
    "regular",
    "render",
    "sources_of",
    "spelled_out",
    "suggestion",
    "tool_index",
    "verdicts_of",
    "watch_calls",
    "write_file",
]


def plugins_of(toolkit: Toolkit) -> Plugins:
    """The plugins that a toolkit was assembled from.

    Args:
        toolkit: The toolkit.
    """
    return toolkit._core.plugins


def board_of(toolkit: Toolkit) -> Board:
    """What is registered now, with the names that clash.

    Args:
        toolkit: The toolkit.
    """
    return toolkit._core.registry.board


def sources_of(toolkit: Toolkit) -> list[LiveSource]:
    """The live sources of a toolkit, such as remote servers, as they were registered.

    Args:
        toolkit: The toolkit.
    """
    return [each.source for each in toolkit._core.live]


def program_toolkit(target: str) -> Toolkit:
    """The toolkit of a program: `MODULE:NAME`, `FILE.py:NAME` or `FILE.py`, whose name is `toolkit` then.

    The name is that of a toolkit, or of a function that returns one. Modules are looked for in the current directory
    too, and those beside a file are found by it. Raises `PegboardError` saying what cannot be loaded, and why.

    Args:
        target: Where the toolkit is.
    """
    place, _, path = target.rpartition(":")
    if target.endswith(".py"):  # a colon before that stands in the path, as on Windows
        place, path = target, "toolkit"
    if not (place and path):
        raise PegboardError(f"{target!r} names no program; write MODULE:NAME or FILE.py, such as myprogram:toolkit")
    try:
        found: Any = reduce(getattr, path.split("."), _module(place))
        if not isinstance(found, Toolkit) and callable(found):
            found = found()
    except Exception as error:  # a program may raise anything
        raise PegboardError(f"{target} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, Toolkit):
        kind = type(found).__name__
        raise PegboardError(f"{target} is of type {kind}; name a Toolkit, or a function that returns one")
    return found


def _module(place: str) -> Any:
    from importlib import import_module
    from importlib.util import module_from_spec, spec_from_file_location

    if not place.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        return import_module(place)
    path = Path(place).resolve()
    sys.path.insert(0, str(path.parent))  # as Python does for a script
    # Types of its own are looked up in the module of their name, so that it gets a unique one.
    spec: Any = spec_from_file_location(f"_pegboard_program_{path.stem}", path)
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_loaded(tool: Tool) -> bool:
    """Whether a tool can be described without importing anything; False for an import string not yet used.

    Args:
        tool: The tool.
    """
    return tool.definition.is_loaded


def verdicts_of(session: Session, name: str) -> list[tuple[str, Verdict]]:
    """What each guard says of a tool of a session: the guard, as messages name it, and its verdict.

    Args:
        session: The session.
        name: Name of the tool.
    """
    return [(guard, verdict) for _, guard, verdict in session._guards.verdicts(session._tool(name))]


def watch_calls(toolkit: Toolkit, watcher: Middleware) -> Callable[[], None]:
    """Put middleware around the whole calls of a toolkit, outside of all that is there; what it returns removes it.

    Args:
        toolkit: The toolkit.
        watcher: Middleware with `whole=True`.
    """
    core = toolkit._core
    core.engine.around = [watcher, *core.engine.around]
    core.run = core.runner.entered

    def remove() -> None:
        core.engine.around = [each for each in core.engine.around if each is not watcher]

    return remove


def regular(path: str, flags: int, mode: int = 0o666) -> int:
    """An `opener=` of `open()` for files of our own: it follows no link, waits for no FIFO and opens no device.

    Raises OSError for what is no regular file.

    Args:
        path: Path of the file.
        flags: Flags of `os.open`.
        mode: Permissions of a file that is made.
    """
    odd = OSError(0, "it is no regular file but a link, a FIFO, a device or a folder", path)
    if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113, PTH114
        raise odd
    # What is there may be exchanged in between.
    descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), mode)
    if not os.path.isfile(descriptor):  # noqa: PTH113 - it is no path
        os.close(descriptor)
        raise odd
    return descriptor


def write_file(path: Path, text: str, what: str) -> None:
    """Write a file of our own in one step: a reader meanwhile, or after a crash, sees the old text or the new.

    The text is written beside it, under a name that cannot be guessed; a link, a FIFO or a device is not written to.
    Raises `SettingsError`, naming `what` it is; then nothing has changed.

    Args:
        path: Path of the file. Its folders are made.
        text: The whole text.
        what: What the file is, for messages.
    """
    beside = path.with_name(f".pegboard-{os.urandom(8).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "xb", buffering=0, opener=regular) as file:
            with suppress(FileNotFoundError), open(path, opener=regular) as before:
                beside.chmod(os.fstat(before.fileno()).st_mode & 0o777)
            file.write(text.encode("utf-8", "backslashreplace"))
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise SettingsError(f"{path}: {what} cannot be saved: {error.strerror}; nothing was changed") from error
