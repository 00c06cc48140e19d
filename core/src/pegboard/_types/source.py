"""Writing generated Python: lines, constants, fresh names, and the compiled function."""

from __future__ import annotations

import itertools
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Writer"]

_MAX_BLOCKS = 8
"""Python allows 20 nested loops; code that deep is unreadable long before."""
_MAX_LINES = 400
"""A type that is used in many places is inlined in each, until the function is this long."""
_BUILTINS = (KeyError, bool, dict, float, frozenset, int, len, list, set, str, sum, tuple, type)
"""What the emitted code itself means by these names, whatever the user's classes are called."""
_BUILTIN_NAMES = {id(builtin): builtin.__name__ for builtin in _BUILTINS}
_numbers = itertools.count(1)


class Writer:
    """Collects the lines, constants and local names of one generated function.

    With `count=True` the emitted code adds the size of every JSON object that it consumes to a local `members`, so that
    the caller can tell duplicate keys by comparing with the number of keys in the text.
    """

    def __init__(self, *, count: bool = False) -> None:
        self.count = count
        self.depth = 0
        self._lines: list[str] = []
        self._namespace: dict[str, Any] = {}
        self._constants: dict[int, str] = dict(_BUILTIN_NAMES)
        self._names: set[str] = {"members", *_BUILTIN_NAMES.values()}

    @property
    def source(self) -> str:
        """The code so far."""
        return "\n".join(self._lines) + "\n"

    @property
    def is_long(self) -> bool:
        """Whether further types had better be called than inlined."""
        return self.depth > _MAX_BLOCKS or len(self._lines) > _MAX_LINES

    def line(self, text: str) -> None:
        """Add one statement."""
        self._lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Add a compound statement; what is written inside the `with` is its body."""
        self.line(header)
        self.depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self.depth -= 1

    def constant(self, value: Any, hint: str) -> str:
        """The name of a global bound to `value`: the same object gives the same name."""
        if id(value) not in self._constants:
            name = self._constants[id(value)] = self.fresh(hint)
            self._namespace[name] = value
        return self._constants[id(value)]

    def fresh(self, hint: str) -> str:
        """A name that nothing else has, as close to `hint` as an identifier can be."""
        # Python reads names in this form too: the ligature of "fi" as two letters, and so as the same name.
        hint = hint if hint.isascii() else unicodedata.normalize("NFKC", hint)
        base = re.sub(r"\W+", "_", hint.replace("<locals>", "")).strip("_") or "value"
        base = f"_{base}" if base[0].isdigit() or keyword.iskeyword(base) else base
        name = next(name for name in _numbered(base) if name not in self._names)
        self._names.add(name)
        return name

    def build(self, name: str, filename: str) -> Callable[..., Any]:
        """Execute the code and return what it defined as `name`. Tracebacks show the lines under `filename`."""
        import linecache
        import weakref

        unique = f"<{filename.strip('<>')} {next(_numbers)}>"
        source = self.source
        namespace = dict(self._namespace)
        exec(compile(source, unique, "exec"), namespace)  # noqa: S102 - code that was generated above, from shapes
        function: Callable[..., Any] = namespace[name]
        namespace.update(self._namespace)  # a constant may have the name of the function, which has no use for its own
        linecache.cache[unique] = (len(source), None, source.splitlines(keepends=True), unique)
        weakref.finalize(function, linecache.cache.pop, unique, None).atexit = False
        return function


def _numbered(base: str) -> Iterator[str]:
    yield base
    yield from (f"{base}_{number}" for number in itertools.count(2))
