"""Versions and version ranges (PEP 440), as far as a plugin's requirement on the core needs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from attrs import evolve, field, frozen

from pegboard._base.names import normalise

__all__ = ["Version", "allows", "conflicts"]

_VERSION = re.compile(
    r"\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<phase>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre>\d*))?"
    r"(?:-(?P<implicit>\d+)|[-_.]?(?P<is_post>post|rev|r)[-_.]?(?P<post>\d*))?"
    r"(?:[-_.]?(?P<is_dev>dev)[-_.]?(?P<dev>\d*))?"
    r"(?P<local>\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?\s*",
    re.IGNORECASE | re.ASCII,
)
_SPECIFIER = re.compile(r"\s*(~=|==|!=|<=|>=|<|>)\s*([^\s,]+?)(\.\*)?\s*")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*([^;]*?)\s*(;.*)?", re.ASCII)
_PHASES = {"alpha": 0, "a": 0, "beta": 1, "b": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FINAL = 3


@frozen
class Version:
    """A parsed version. Its local part (`+cpu`) takes no part in comparisons: a range speaks of public versions."""

    epoch: int
    release: tuple[int, ...]
    pre: tuple[int, int] | None = None
    post: int | None = None
    dev: int | None = None
    local: str = field(default="", eq=False)

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """Read a version; None for text that is none."""
        found = _VERSION.fullmatch(text)
        if found is None:
            return None
        part = found.groupdict()
        return cls(
            epoch=int(part["epoch"] or 0),
            release=tuple(int(number) for number in part["release"].split(".")),
            pre=(_PHASES[part["phase"].lower()], int(part["pre"] or 0)) if part["phase"] else None,
            post=int(part["implicit"] or part["post"] or 0) if part["implicit"] or part["is_post"] else None,
            dev=int(part["dev"] or 0) if part["is_dev"] else None,
            local=part["local"] or "",
        )

    @property
    def is_prerelease(self) -> bool:
        """Whether this is an alpha, beta, candidate or development version."""
        return self.pre is not None or self.dev is not None

    @property
    def key(self) -> tuple[Any, ...]:
        """Orders versions: development, alpha, beta, candidate, final, post."""
        if self.pre is not None:
            phase = self.pre
        else:
            # 1.0.dev1 comes before 1.0a1, but 1.0.post1.dev1 after 1.0.
            phase = (-1, 0) if self.dev is not None and self.post is None else (_FINAL, 0)
        post = -1 if self.post is None else self.post
        return (*self.base, phase, post, self.dev is None, self.dev or 0)

    @property
    def base(self) -> tuple[int, tuple[int, ...]]:
        """Epoch and release; trailing zeros say nothing."""
        release = self.release
        while len(release) > 1 and release[-1] == 0:
            release = release[:-1]
        return self.epoch, release

    def starts_with(self, other: Version) -> bool:
        """Whether this is a version of the series `other.*`."""
        padded = self.release + (0,) * (len(other.release) - len(self.release))
        return self.epoch == other.epoch and padded[: len(other.release)] == other.release


def _below(version: Version, limit: Version) -> bool:
    # <2 does not mean 2.0a1: what comes before 2 ends where the first development version of 2 begins.
    bound = limit if limit.is_prerelease else evolve(limit, dev=0)
    return version.key < bound.key


def _above(version: Version, limit: Version) -> bool:
    # >1 does not mean 1.post1, nor >1a1 1a1.post1.
    same = (version.base, version.pre) == (limit.base, limit.pre)
    late = same and version.post is not None and limit.post is None and limit.dev is None
    return version.key > limit.key and not late


def _compatible(version: Version, limit: Version) -> bool:
    series = Version(limit.epoch, limit.release[:-1])
    return version.key >= limit.key and version.starts_with(series)


_OPERATORS: dict[str, Callable[[Version, Version], bool]] = {
    "==": lambda version, limit: version.key == limit.key,
    "!=": lambda version, limit: version.key != limit.key,
    "<=": lambda version, limit: version.key <= limit.key,
    ">=": lambda version, limit: version.key >= limit.key,
    "<": _below,
    ">": _above,
    "~=": _compatible,
}


def allows(specifiers: str, version: str) -> bool | None:
    """Whether `version` lies in a range such as `>=0.1,<0.2`; None where either cannot be understood.

    A pre-release counts like any other version, because this asks about one that is installed already.
    """
    installed = Version.parse(version)
    tests = [_test(part) for part in specifiers.split(",") if part.strip()]
    if installed is None or None in tests:
        return None
    return all(test(installed) for test in tests if test is not None)


def _test(specifier: str) -> Callable[[Version], bool] | None:
    found = _SPECIFIER.fullmatch(specifier)
    limit = Version.parse(found[2]) if found else None
    if found is None or limit is None or limit.local:
        return None
    operator, wildcard = found[1], bool(found[3])
    if wildcard:
        if operator not in ("==", "!=") or limit.is_prerelease or limit.post is not None:
            return None
        return lambda version: version.starts_with(limit) is (operator == "==")
    if operator == "~=" and len(limit.release) < 2:
        return None
    return lambda version: _OPERATORS[operator](version, limit)


def conflicts(requires: Iterable[str], name: str, version: str) -> list[str]:
    """The ranges that `requires` asks of the distribution `name` and that `version` is not in, sorted.

    What cannot be understood conflicts with nothing: the installer has judged it before.
    """
    asked = {_asked(text, name) for text in requires}
    return sorted(specifiers for specifiers in asked if allows(specifiers, version) is False)


def _asked(requirement: str, name: str) -> str:
    """The range that a `Requires-Dist` line asks of `name`. One under a condition (`; extra == "x"`) binds nobody."""
    found = _REQUIREMENT.fullmatch(requirement)
    if found is None or found[3] or normalise(found[1]) != name:
        return ""
    return found[2].removeprefix("(").removesuffix(")")
