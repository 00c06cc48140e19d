"""Writes mutants: copies of a module's source with one check deleted, loosened or turned around."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attrs import frozen

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_EMITTED = {
    " is not ": " is ",
    " != ": " == ",
    " == ": " != ",
    " >= ": " > ",
    " <= ": " < ",
    " > ": " >= ",
    " < ": " <= ",
}
"""Operators in the text of generated code."""


@frozen
class Mutant:
    """One change: `before` became `after` in a function of a module; `source` is the whole changed module."""

    module: str
    function: str
    line: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same when other lines are added."""
        return self.module, self.function, self.before, self.after

    def __str__(self) -> str:
        return f"{self.module}:{self.line} in {self.function}: {self.before}  ->  {self.after}"


def mutants(module: str, source: str) -> list[Mutant]:
    """All mutants of a module's source, in the order of its lines."""
    tree = ast.parse(source)
    changes, functions = _Changes(tree), _functions(tree)
    found = [
        Mutant(
            module,
            functions.get(node.lineno, "<module>"),
            node.lineno,
            _short(ast.get_source_segment(source, node) or ""),
            _short(text),
            _replaced(source, node, text),
        )
        for node in changes.nodes
        for text in changes.of(node)
    ]
    return sorted(found, key=lambda mutant: mutant.line)


class _Changes:
    """The nodes of a tree that can be changed, and their replacements."""

    def __init__(self, tree: ast.Module) -> None:
        self._tests = {id(test) for node in ast.walk(tree) for test in _tests(node)}
        left_alone = {id(inner) for node in ast.walk(tree) for inner in _left_alone(node)}
        self.nodes = [
            node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)) and id(node) not in left_alone
        ]

    def of(self, node: ast.stmt | ast.expr) -> Iterator[str]:
        """Replacements of one node, as source text."""
        if isinstance(node, (ast.Raise, ast.AugAssign, ast.Delete)) or _is_call(node):
            yield "pass"
        if id(node) in self._tests:
            yield from ("False", "True")
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from self._compared(node)
        if isinstance(node, ast.BoolOp):
            yield from _shortened(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and id(node) not in self._tests:
            yield f"({ast.unparse(node.operand)})"
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            yield from _changed_text(node)

    def _compared(self, node: ast.Compare) -> Iterator[str]:
        kind = type(node.ops[0])
        # A whole test becomes True and False already; only its boundary is another question.
        if kind in _SWAPPED and (id(node) not in self._tests or kind in (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
            yield f"({ast.unparse(ast.Compare(node.left, [_SWAPPED[kind]()], node.comparators))})"


def _functions(tree: ast.Module) -> dict[int, str]:
    """The innermost function at each line."""
    found: dict[int, str] = {}
    for node in ast.walk(tree):  # outer before inner
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            found.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), node.name))
    return found


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _tests(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _left_alone(node: ast.AST) -> Iterator[ast.AST]:
    """What is no check: docstrings, messages, annotations, the insides of f-strings (which have no position)."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield from ast.walk(node)
    if isinstance(node, (ast.Raise, ast.Assert)):
        yield from (inner for child in ast.iter_child_nodes(node) for inner in ast.walk(child))
    if isinstance(node, ast.JoinedStr):
        yield from (inner for inner in ast.walk(node) if inner is not node)
    for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if isinstance(annotation, ast.AST):
            yield from ast.walk(annotation)


def _shortened(node: ast.BoolOp) -> Iterator[str]:
    for number in range(len(node.values)):
        rest = node.values[:number] + node.values[number + 1 :]
        yield f"({ast.unparse(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))})"


def _changed_text(node: ast.Constant | ast.JoinedStr) -> Iterator[str]:
    """Generated code with one operator changed or one operand removed; a pattern without one of its anchors."""
    text = ast.unparse(node)
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str):
            return
        if node.value.startswith("^"):
            yield from (repr(node.value[1:]), repr(node.value[:-1]))
    for operator, other in _EMITTED.items():
        for found in re.finditer(re.escape(operator), text):
            yield text[: found.start()] + other + text[found.end() :]
    quote = 2 if isinstance(node, ast.JoinedStr) else 1
    for word in (" or ", " and "):
        operands = text[quote:-1].split(word)
        for number in range(len(operands) if len(operands) > 1 else 0):
            yield text[:quote] + word.join(operands[:number] + operands[number + 1 :]) + text[-1]


def _short(text: str) -> str:
    return " ".join(text.split())


def _replaced(source: str, node: ast.stmt | ast.expr, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + text.encode() + after).decode()
