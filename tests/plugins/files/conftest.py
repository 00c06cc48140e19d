"""Every engine that this system has, and file tools that stand on one of them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pegboard_files import FileTools, _tools
from pegboard_files._directory.folder import Rules
from pegboard_files._directory.named_root import NamedRoot
from pegboard_files._directory.opening import open_beneath, open_by_walking
from pegboard_files._directory.root import Root

Make: TypeAlias = Callable[..., FileTools]

CONFINED: dict[str, Callable[[str, Rules], Root]] = {}
if os.name != "nt":
    CONFINED["walk"] = lambda path, rules: Root(path, rules, open_by_walking)
if sys.platform == "linux":
    CONFINED["openat2"] = lambda path, rules: Root(path, rules, open_beneath)
# The engine of Windows, which can be run wherever an open file can be asked where it is.
ENGINES = {**CONFINED, **({"named": NamedRoot} if sys.platform in ("linux", "win32") else {})}


def names_in(folder: Path) -> list[str]:
    """The names in a directory, in order, hidden ones included."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(engine: str, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes file tools that stand on the engine; they do not wait for the disk."""
    monkeypatch.setattr(_tools, "open_root", ENGINES[engine])

    def made(base: Path, **options: Any) -> FileTools:
        return FileTools(base, **{"durability": "rename", **options})

    return made
