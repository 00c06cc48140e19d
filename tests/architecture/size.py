"""How long the code is: lines that hold code and their tokens, without docstrings, comments and blank lines."""

import ast
import io
import tokenize
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Final, NamedTuple

from tests.architecture.graph import modules
from tests.architecture.rooms import room

_NO_CODE: Final = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


class Size(NamedTuple):
    """Code lines, the tokens in them, and the modules that they stand in."""

    lines: int = 0
    tokens: int = 0
    modules: int = 0

    def plus(self, other: "Size") -> "Size":
        """Both together."""
        return Size(*map(sum, zip(self, other, strict=True)))


def size(text: str) -> Size:
    """Measure a module's text. The tokens are those of Python 3.11 on every Python: an f-string is one of them."""
    docstrings = _docstring_lines(ast.parse(text))
    lines: set[int] = set()
    tokens = inside = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _NO_CODE or token.start[0] in docstrings:
            continue
        lines.update(range(token.start[0], token.end[0] + 1))
        tokens += not inside
        kind = tokenize.tok_name[token.type]
        inside += (kind == "FSTRING_START") - (kind == "FSTRING_END")
    return Size(len(lines), tokens, 1)


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
        found[room(name)] = found.get(room(name), Size()).plus(size(path.read_text(encoding="utf-8")))
    return dict(sorted(found.items()))


def total(measured: Mapping[str, Size]) -> Size:
    """Add up what rooms hold."""
    return reduce(Size.plus, measured.values(), Size())


def entries(folder: Path) -> list[str]:
    """Name what a folder shows."""
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")
