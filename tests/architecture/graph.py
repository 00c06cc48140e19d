"""Who imports whom, read from the source without running it.

Every import counts: inside functions, under TYPE_CHECKING, and `import_module` with a literal name.
"""

import ast
import functools
import graphlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Import(NamedTuple):
    """One name that one statement imports."""

    importer: str
    imported: str
    where: str

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported} ({self.where})"


def modules(source: Path) -> dict[str, Path]:
    """Name every module below a folder that is on the import path."""
    return {module_name(path.relative_to(source)): path for path in sorted(source.rglob("*.py"))}


def module_name(path: Path) -> str:
    """Name the module that lies at a path, relative to the import path."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports(name: str, path: Path) -> tuple[Import, ...]:
    """Name what a module imports; `from a import b` counts as a.b, which may be a module or a name in one."""
    return tuple(_imports(name, path))


def _imports(name: str, path: Path) -> Iterator[Import]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        for target in targets(node, package):
            yield Import(name, target, f"{path.name}:{getattr(node, 'lineno', 0)}")


def resolve(found: Iterable[Import], known: Collection[str]) -> Iterator[Import]:
    """Yield the imports that reach a known module, by that module's name."""
    for i in found:
        module = i.imported if i.imported in known else i.imported.rpartition(".")[0]
        if module in known:
            yield i._replace(imported=module)


def targets(node: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted names that a node imports, absolute."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            base = ".".join(filter(None, [ancestor(package, level), module]))
            yield from (f"{base}.{alias.name}" for alias in names)
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(module)), *_],
        ):
            yield module


def ancestor(package: str, level: int) -> str:
    """Return the package that `level` dots mean inside a package."""
    return ".".join(package.split(".")[: len(package.split(".")) - level + 1]) if level else ""


def across(found: Iterable[Import], room: Callable[[str], str], allowed: Mapping[str, Collection[str]]) -> list[str]:
    """Say which imports enter a room that the importer's room may not enter."""
    return [
        str(i)
        for i in found
        if room(i.importer) != room(i.imported) and room(i.imported) not in allowed.get(room(i.importer), ())
    ]


def circle(found: Iterable[Import]) -> list[str]:
    """Return modules that import each other in a circle, or nothing."""
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for i in found:
        sorter.add(i.importer, i.imported)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        return list(reversed(error.args[1]))
    return []
