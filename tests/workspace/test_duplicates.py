"""No code stands in two distributions: what two of them need has one home, which both depend on."""

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations, takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.workspace.project import MEMBERS, ROOT

SHORTEST = 8
"""Identical lines in a row that count as a duplicate."""


class Line(NamedTuple):
    """A line of code and where it is."""

    number: int
    text: str


def code(source: str) -> list[Line]:
    """The lines of a module that are compared, without indentation and comments.

    Imports and docstrings are left out, and what makes the face of a pack: the signatures of its hooks, which the core
    prescribes, and the `__getattr__` of PEP 562. These are alike in all packs, so that a reader knows them.
    """
    lines = ["", *source.splitlines()]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row] = lines[row][:column]
    left_out = {number for node in ast.walk(ast.parse(source)) for number in _left_out(node)}
    stripped = (Line(number, line.strip()) for number, line in enumerate(lines) if number not in left_out)
    return [line for line in stripped if line.text]


def _left_out(node: ast.AST) -> Iterable[int]:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
        case ast.FunctionDef(name="__getattr__", args=ast.arguments(args=[ast.arg(arg="name")])):
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
        case ast.FunctionDef(decorator_list=[ast.Name(id="hookimpl")]):
            return range(node.decorator_list[0].lineno, node.body[0].lineno)
    return ()


def duplicates(modules: Iterable[tuple[str, Path]]) -> Iterator[str]:
    """Every longest run of lines that stands in modules of two distributions."""
    found = {path: (distribution, code(path.read_text(encoding="utf-8"))) for distribution, path in modules}
    windows: defaultdict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path, (_, lines) in found.items():
        for start in range(len(lines) - SHORTEST + 1):
            windows[tuple(line.text for line in lines[start : start + SHORTEST])].append((path, start))
    for places in windows.values():
        for (one, at), (other, there) in combinations(places, 2):
            (one_owner, ours), (other_owner, theirs) = found[one], found[other]
            is_inside = at and there and ours[at - 1].text == theirs[there - 1].text
            if one_owner != other_owner and not is_inside:
                pairs = zip(ours[at:], theirs[there:], strict=False)
                run = list(takewhile(lambda pair: pair[0].text == pair[1].text, pairs))
                (first, first_there), (last, last_there) = run[0], run[-1]
                yield (
                    f"{len(run)} lines: {one}:{first.number}-{last.number} and "
                    f"{other}:{first_there.number}-{last_there.number}"
                )


@pytest.mark.slow
def test_no_code_stands_in_two_distributions() -> None:
    modules = [(each.name, path) for each in MEMBERS for path in sorted((each.path / "src").rglob("*.py"))]
    assert len(modules) > len(MEMBERS)
    assert [each.replace(f"{ROOT}/", "") for each in duplicates(modules)] == []


BODY = "".join(f"    value_{number} = {number}\n" for number in range(SHORTEST - 1))
RUN = f"def run():\n{BODY}"
HOOK = f"@hookimpl\n{RUN}"
LAZY = f"def __getattr__(name):\n{BODY}"


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        pytest.param(RUN, RUN, 1, id="the same"),
        pytest.param(RUN, f"class Run:\n  def run():  # a comment\n\n    'What it does.'\n{BODY}", 1, id="commented"),
        pytest.param(RUN, f"def start():\n{BODY}", 0, id="a line less"),
        pytest.param(HOOK, HOOK, 0, id="the signature of a hook"),
        pytest.param(LAZY, LAZY, 0, id="PEP 562"),
    ],
)
def test_finds_what_it_looks_for(tmp_path: Path, one: str, other: str, found: int) -> None:
    modules = []
    for distribution, source in (("acme", one), ("other", other)):
        path = tmp_path / f"{distribution}.py"
        path.write_text(f"import {distribution}\n{source}")
        modules.append((distribution, path))
    assert len(list(duplicates(modules))) == found
    assert list(duplicates(("acme", path) for _, path in modules)) == []
