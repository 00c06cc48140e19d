"""Selection: which plugins may be loaded, by argument, environment and settings file. All of them must allow it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pegboard._base.names import normalise

__all__ = ["INSTALLED", "Rule", "Selection"]

INSTALLED = "installed"
_WILDCARDS = frozenset("*?[")


class Rule:
    """Names that one source allows or blocks: entry-point or distribution names, `*` stands for anything."""

    __slots__ = ("_exact", "_patterns", "names", "source")

    def __init__(self, source: str, names: tuple[str, ...]) -> None:
        self.source = source
        self.names = names
        normalised = [normalise(name) for name in names]
        # Those with wildcards have to be tried; the others are looked up.
        self._patterns = [name for name in normalised if set(name) & _WILDCARDS]
        self._exact = frozenset(normalised) - frozenset(self._patterns)

    def matches(self, *candidates: str | None) -> bool:
        """Whether one of the candidates' names is meant."""
        known = [normalise(name) for name in candidates if name]
        exact = not self._exact.isdisjoint(known)
        if exact or not self._patterns:
            return exact
        from fnmatch import fnmatchcase

        return any(fnmatchcase(name, each) for name in known for each in self._patterns)

    def __str__(self) -> str:
        return f"{self.source}={','.join(self.names)}"


class Selection(NamedTuple):
    """What was asked for: rules over names, plugin objects, and the names that have to be there."""

    allow: tuple[Rule, ...]
    block: tuple[Rule, ...]
    objects: tuple[Any, ...]
    requested: tuple[str, ...]
    scan: bool
    """Whether installed plugins are wanted at all."""

    @classmethod
    def read(
        cls,
        selection: str | Iterable[Any] = INSTALLED,
        block: str | Iterable[str] = (),
        environ: Mapping[str, str] | None = None,
        configured: Iterable[tuple[str, str, tuple[str, ...]]] = (),
    ) -> Selection:
        """Combine the arguments with `PEGBOARD_PLUGINS`, `PEGBOARD_BLOCK` and a file's (key, source, names)."""
        items = [selection] if isinstance(selection, str) else list(selection)
        names = tuple(item for item in items if isinstance(item, str) and item != INSTALLED)
        objects = tuple(item for item in items if not isinstance(item, str))
        everything = INSTALLED in [item for item in items if isinstance(item, str)]
        allow = [] if everything else [Rule("plugins", names)]
        blocked = [Rule("block", (block,) if isinstance(block, str) else tuple(block))]
        for key, source, listed in (*configured, *_from_environment(environ or {})):
            (allow if key == "plugins" else blocked).append(Rule(source, listed))
        return cls(
            allow=tuple(allow),
            block=tuple(rule for rule in blocked if rule.names),
            objects=objects,
            requested=tuple(sorted({name for name in names if not set(name) & _WILDCARDS})),
            scan=everything or bool(names),
        )

    def blocks(self, *names: str | None) -> str:
        """Why none of these names may be loaded; empty if nothing blocks them."""
        return next((f"blocked by {rule}" for rule in self.block if rule.matches(*names)), "")

    def leaves_out(self, *names: str | None, by_object: bool = False) -> str:
        """Why none of these names was asked for; empty if they were. An object in `plugins=` asks for itself."""
        rules = [rule for rule in self.allow if not (by_object and rule.source == "plugins")]
        return next((f"not selected: {rule} does not name it" for rule in rules if not rule.matches(*names)), "")


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for key, variable in (("plugins", "PEGBOARD_PLUGINS"), ("block", "PEGBOARD_BLOCK")):
        if variable in environ:
            yield key, variable, tuple(name.strip() for name in environ[variable].split(",") if name.strip())
