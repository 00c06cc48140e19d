"""How long the code is: lines that hold code, without docstrings, comments and blank lines."""

import ast
import io
import tokenize
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.architecture.graph import modules
from tests.architecture.rooms import room

_NO_CODE: Final = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


class Size(NamedTuple):
    """Code lines, and the modules that they stand in."""

    lines: int
    modules: int


def code_lines(text: str) -> int:
    """Count the lines of a module's text that hold code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for t in tokens if t.type not in _NO_CODE for line in range(t.start[0], t.end[0] + 1)}
    return len(lines - _docstring_lines(ast.parse(text)))


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Number the lines of every docstring."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.Module(body=[ast.Expr(value=ast.Constant(value=str())) as docstring, *_])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str())) as docstring, *_])
                | ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str())) as docstring, *_])
                | ast.AsyncFunctionDef(body=[ast.Expr(value=ast.Constant(value=str())) as docstring, *_])
            ):
                lines.update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return lines


def sizes(source: Path) -> Mapping[str, Size]:
    """Measure the rooms below a folder that is on the import path, by name."""
    found: dict[str, Size] = {}
    for name, path in modules(source).items():
        lines, count = found.get(room(name), Size(0, 0))
        found[room(name)] = Size(lines + code_lines(path.read_text(encoding="utf-8")), count + 1)
    return dict(sorted(found.items()))


def total(measured: Mapping[str, Size]) -> Size:
    """Add up what rooms hold."""
    return Size(sum(size.lines for size in measured.values()), sum(size.modules for size in measured.values()))


def entries(folder: Path) -> list[str]:
    """Name what a folder shows."""
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")
