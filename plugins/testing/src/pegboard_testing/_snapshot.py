"""Schema snapshots: what the model sees of some tools, as a file that is compared."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

__all__ = ["SchemaSnapshot"]


class SchemaSnapshot:
    """Compares tools with a file; with `--schema-update` it writes the file.

    Args:
        folder: Folder of the file.
        name: Name of the file, without its ending.
        update: Whether the file is written.
    """

    def __init__(self, folder: Path, name: str, *, update: bool) -> None:
        self._folder = folder
        self._name = name
        self._update = update

    def __call__(self, tools: Any, *, name: str | None = None) -> None:
        """Fail if `tools` (a toolkit, a session, tools, or data) are described otherwise than the last time.

        `name` is that of the file, for tests that compare more than one thing; by default it is the test's.
        """
        __tracebackhide__ = True
        path = self._folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name or self._name).strip('-')}.json"
        text = json.dumps(_described(tools), indent=2, ensure_ascii=False) + "\n"
        if self._update:
            from pegboard.inspection import write_file  # pytest loads this module, whether there are such tests or not

            write_file(path, text, "the snapshot")
        elif not path.is_file():
            pytest.fail(f"there is no {path.name} in {path.parent}; write it: pytest --schema-update", pytrace=False)
        elif (before := path.read_text(encoding="utf-8")) != text:
            pytest.fail(_drift(path, before, text), pytrace=False)


def _drift(path: Path, before: str, now: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), str(path), "now", lineterm="")
    return "\n".join(["what the model sees has changed; if that is meant: pytest --schema-update", *lines])


def _described(tools: Any) -> Any:
    if hasattr(tools, "schema") and callable(tools.schema):
        return _one(tools)
    if hasattr(tools, "all_tools"):
        return [_one(tool) for tool in tools.all_tools]
    if isinstance(tools, Iterable) and not isinstance(tools, Mapping | str):
        return [_described(each) for each in tools]
    return tools


def _one(tool: Any) -> dict[str, Any]:
    schema = tool.schema()
    described = {"name": schema.name, "description": schema.description, "parameters": schema.parameters}
    return described if schema.returns is None else {**described, "returns": schema.returns}
