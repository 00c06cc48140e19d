"""Where each `sh`, `console` and `py` block of the pages runs, command by command; or why it cannot run in a test."""

import ast
import builtins
import functools
import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import NamedTuple

from tests.docs.blocks import Block, blocks

COMMANDS = "tests/docs/test_commands.py"
CHEAP = "tests/docs/test_shell_blocks.py"
FRAMEWORKS = "tests/docs/test_framework_blocks.py"
INSTALLS = "tests/docs/test_installs.py"
PYTHON = "tests/docs/test_python_blocks.py"
AUTHOR = "tests/plugins/cli/test_new.py"
LOOPS = "tests/plugins/dialects/sdks/test_loops.py"


class Piece(NamedTuple):
    """A command of a block, or a whole block of Python."""

    block: Block
    text: str
    words: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        return self.block.place.partition(":")[0]

    @property
    def label(self) -> str:
        return f"{self.block.place} {' '.join(self.words)}".strip()


class Row(NamedTuple):
    """Pieces, by page and by what they match, and the file that runs them; or, in NOWHERE, the reason."""

    page: str
    pattern: str
    place: str

    def holds(self, piece: Piece) -> bool:
        return fnmatch(piece.page, self.page) and re.search(self.pattern, piece.text) is not None


# The first row that holds counts, those of NOWHERE before all others.
SHELL = (
    Row("README.md", r"^nox -s (demo|tests)$", ".ci/run"),
    Row("README.md", r"^pip install nox\[uv\]$", ".ci/run"),
    Row("docs/writing-a-pack.md", "", AUTHOR),
    # The same commands as on the page above.
    Row("docs/command-line.md", r"^(pegboard new|cd acme-dice|pip install -e|pytest$|pegboard call dice_)", AUTHOR),
    Row("docs/command-line.md", r"^pegboard test-pack", "tests/plugins/cli/test_test_pack.py"),
    Row("docs/cookbook/*", r"^(python|pytest) \S*", "tests/docs/test_cookbook.py"),
    Row("docs/installation.md", r"^(python -m venv|\S*pegboard doctor)", "tests/docs/test_installation.py"),
    Row("*", r"^(\S*/)?pip (install|wheel) ", INSTALLS),
    Row("*", r"^(echo|pegboard (call|doctor|lock|new|plugins|schema|search|settings|show|tools|types)) ?", CHEAP),
    Row("*", r"^pegboard (completion|inspect|serve|skills)( |$)", COMMANDS),
)
PYTHON_ROWS = (
    Row("docs/coming-from.md", r"(import|from) (langchain|fastmcp|pydantic_ai|llm|agentscope)", FRAMEWORKS),
    Row("docs/packs/bridges.md", "create_agent", FRAMEWORKS),
    Row("plugins/bridges/README.md", "create_agent", FRAMEWORKS),
    Row("docs/dialects.md", "while True:", LOOPS),
    Row("docs/packs/ray.md", 'backend="ray"', "tests/plugins/ray/test_page.py"),
    Row("docs/writing-a-pack.md", "dice_average", AUTHOR),
)
NOWHERE = (
    Row("docs/installation.md", r"^(git clone|cd) ", "the address of the repository is the reader's"),
    Row(
        "docs/examples/service/README.md",
        "^(cd|export|uvicorn) ",
        "a database and a key; see test_service",
    ),
    Row("docs/internals/performance.md", "^nox -s bench", "takes minutes; its arguments are read by test_shell_blocks"),
    Row("docs/packs/agent.md", "^pegboard chat .* https://", "a provider on the internet; see test_chat"),
    Row("docs/packs/inspector.md", "https://example.com", "a server on the internet"),
    Row("plugins/web/README.md", "https://example.com", "a page on the internet"),
)


def commands(block: Block) -> Iterator[list[str]]:
    """The commands of a block, split as a shell does; in a `console` block those after `$`."""
    text = block.text.replace("\\\n", " ")
    if block.language == "console":
        text = "\n".join(re.findall(r"^\$ (.*)$", text, re.MULTILINE))
    for line in text.splitlines():
        command: list[str] = []
        for word in [*shlex.split(line, comments=True), ";"]:
            if word not in {"&&", ";", "|"}:
                command.append(word)
            elif command:
                yield command
                command = []


def pieces(*languages: str) -> Iterator[Piece]:
    """The commands and the blocks of Python on all pages."""
    for block in blocks(*languages):
        if block.language == "py":
            yield Piece(block, block.text)
        else:
            yield from (Piece(block, " ".join(words), tuple(words)) for words in commands(block))


def is_test(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in tree.body)


def free_names(tree: ast.Module) -> set[str]:
    """Names that a block uses and neither defines nor imports: it is a part of a program then."""
    stored, loaded = set(dir(builtins)) | {"__name__"}, set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stored.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            stored |= {(each.asname or each.name).partition(".")[0] for each in node.names}
    return loaded - stored


def place_of(piece: Piece) -> str | None:
    """The file that runs a piece, or why none does; None if no row holds. A whole program in Python needs no row."""
    rows = (*NOWHERE, *(SHELL if piece.words else PYTHON_ROWS))
    found = next((row.place for row in rows if row.holds(piece)), None)
    if found is None and not piece.words:
        tree = ast.parse(piece.text)
        return PYTHON if is_test(tree) or not free_names(tree) else None
    return found


@functools.cache
def _placed() -> dict[str | None, list[Piece]]:
    found: dict[str | None, list[Piece]] = {}
    for piece in pieces("sh", "console", "py"):
        found.setdefault(place_of(piece), []).append(piece)
    return found


def run_by(place: str | None) -> list[Piece]:
    """What a file runs: `pytest.mark.parametrize` takes it, so that nothing is named there that does not run."""
    return _placed().get(place, [])
