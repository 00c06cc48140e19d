"""Decisions: the verdict on a command, by the lists and the predicates of arguments."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias, final

from attrs import evolve, frozen

from pegboard_shell._policy.command import CommandError, read_text, read_words
from pegboard_shell._policy.programs import UNCLEAR, Programs, objection, same_place, target

__all__ = ["ArgumentPredicate", "Decision", "Policy", "Verdict"]

ArgumentPredicate: TypeAlias = Callable[[Sequence[str]], bool]
"""Whether a program may run with these arguments (its own name is not among them)."""

_SHOWN: Final = 20
_DEEPEST: Final = 8
"""How many programs that start another may stand one behind the other."""


class Verdict(StrEnum):
    """What becomes of a command: it runs, needs approval, is refused, or cannot be run at all."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    INVALID = "invalid"


@frozen
class Decision:
    """A verdict on a command.

    Args:
        verdict: The verdict.
        reason: Why.
        argv: The arguments that would be run; the first is an absolute path.
    """

    verdict: Verdict
    reason: str = ""
    argv: tuple[str, ...] = ()


@final
class Policy:
    """Decides on commands: `deny` first, then `allow` with the predicates of `arguments`; everything else asks.

    Names are looked up once, when they are put on the list. `shell` is what a shell proper is started with, the command
    follows as one argument: then nothing is read, no list can hold, and every command asks. Raises ValueError for lists
    beside a shell.
    """

    def __init__(
        self,
        programs: Programs,
        *,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        arguments: Mapping[str, ArgumentPredicate] | None = None,
        shell: Sequence[str] = (),
    ) -> None:
        self._programs = programs
        self._deny = frozenset(_names(deny, "deny"))
        self._predicates = dict(arguments or {})
        self._shell = tuple(shell)
        self._lock = threading.Lock()
        self._allowed: Mapping[str, str | None] = {}
        if self._deny or self._predicates:
            self._check_no_shell()
        self.add(_names(allow, "allow"))
        unlisted = sorted(self._predicates.keys() - self._allowed.keys())
        if unlisted:
            raise ValueError(f"arguments has a predicate for {unlisted[0]!r}, which is not in allow")

    # The list --------------------------------------------------------------------------------------------------

    @property
    def allowed(self) -> Mapping[str, str | None]:
        """The names on the list and where they lead; None for a program that was not there when it was put on."""
        return dict(self._allowed)

    def add(self, names: Iterable[str]) -> None:
        """Put programs on the list, by name or by absolute path."""
        added = {name: self._programs.find(name) for name in names}
        for name in added:
            self._check_name(name)
        if added:
            self._check_no_shell()
        with self._lock:
            self._allowed = {**self._allowed, **added}

    def remove(self, names: Iterable[str]) -> None:
        """Take programs off the list. Raises KeyError for one that is not on it; nothing is changed then."""
        with self._lock:
            remaining = dict(self._allowed)
            for name in names:
                if name not in remaining:
                    raise KeyError(f"{name!r} is not on the allow-list ({self._listing()})")
                del remaining[name]
            self._allowed = remaining

    def clear(self) -> None:
        """Take everything off the list: every command asks from now on."""
        with self._lock:
            self._allowed = {}

    def _check_name(self, name: str) -> None:
        bare = name and not {os.sep, os.altsep} & set(name)
        if not bare and not Path(name).is_absolute():
            raise ValueError(f"a program is allowed by its name or its absolute path, not as {name!r}")
        if any(character.isspace() for character in name) and bare:
            raise ValueError(
                f"{name!r} is no name of a program; arguments are checked by arguments={{name: predicate}}"
            )

    def _check_no_shell(self) -> None:
        if self._shell:
            raise ValueError(
                "with shell=True no list of programs can hold: a shell starts what it likes. Leave out allow, deny and "
                "arguments, or shell=True"
            )

    def _listing(self) -> str:
        names = sorted(self._allowed)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"allowed: {', '.join(names[:_SHOWN])}{more}" if names else "the allow-list is empty"

    # Deciding --------------------------------------------------------------------------------------------------

    def decide(self, command: str) -> Decision:
        """What becomes of a command now. Starts nothing and never raises for what a model can write."""
        try:
            if self._shell:
                return Decision(Verdict.ASK, "a shell would run it", (*self._shell, read_text(command)))
            return self._judge(read_words(command, escapes=os.name != "nt"))
        except CommandError as error:
            return Decision(Verdict.INVALID, str(error))

    def _judge(self, argv: tuple[str, ...], depth: int = 0) -> Decision:
        word, rest = argv[0], argv[1:]
        listed, path = self._found(word)
        if self._denied(word, path):
            return Decision(Verdict.DENY, f"{Path(word).name} is denied", argv)
        if path is None:
            when = "" if listed is None else ", or was none when it was put on the allow-list"
            return Decision(Verdict.INVALID, f"There is no program {word!r} here{when}.", argv)
        own = Decision(Verdict.ALLOW, "", (path, *rest))
        if listed is None:
            own = evolve(own, verdict=Verdict.ASK, reason=f"{word!r} is not on the allow-list ({self._listing()})")
        elif not self._programs.is_lasting(path):
            own = evolve(
                own, verdict=Verdict.ASK, reason=f"{word!r} lies in the workspace, where commands can change it"
            )
        elif listed in self._predicates:
            return self._predicted(own, listed, rest)
        return self._launching(own, Path(path).name, rest, depth)

    def _found(self, word: str) -> tuple[str | None, str | None]:
        """The name on the list that a word stands for, and the path of the program: what is listed was looked up."""
        allowed = self._allowed  # once: another thread may change it
        if word in allowed:
            return word, allowed[word]
        path = self._programs.find(word)
        for name, place in sorted(allowed.items()):
            if path is not None and place is not None and same_place(place, path):
                return name, place
        return None, path

    def _denied(self, word: str, path: str | None) -> bool:
        names = {word, Path(word).name}
        if path is not None:
            names |= {path, Path(path).name, Path(os.path.realpath(path)).name}
        if os.name == "nt":
            names |= {Path(name).stem.lower() for name in names}
        return not names.isdisjoint(self._deny)

    def _predicted(self, own: Decision, name: str, arguments: tuple[str, ...]) -> Decision:
        try:
            fits = self._predicates[name](arguments) is True
        except Exception as error:  # noqa: BLE001 - a predicate that fails must not let the command through
            return evolve(own, verdict=Verdict.ASK, reason=f"the arguments of {name} could not be checked: {error}")
        return own if fits else evolve(own, verdict=Verdict.ASK, reason=f"{name} is not allowed with these arguments")

    def _launching(self, own: Decision, name: str, arguments: tuple[str, ...], depth: int) -> Decision:
        """A program that starts another one is judged by both."""
        guilty = objection(name, arguments)
        if guilty is not None:
            return _doubted(own, f"{name} starts another program with {guilty!r}")
        position = target(name, arguments)
        if position is None:
            return own
        if position == UNCLEAR or depth == _DEEPEST:
            return _doubted(own, f"which program {name} starts with these arguments is unclear")
        inner = self._judge(arguments[position:], depth + 1)
        judged = evolve(inner, argv=(*own.argv[: 1 + position], *inner.argv))
        return judged if inner.verdict is not Verdict.ALLOW else evolve(own, argv=judged.argv)


def _doubted(own: Decision, reason: str) -> Decision:
    return own if own.verdict is Verdict.ASK else evolve(own, verdict=Verdict.ASK, reason=reason)


def _names(names: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ValueError(f"{what} takes several names, such as {what}=[{names!r}]")
    return tuple(names)
