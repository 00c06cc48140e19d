"""Policy: a lock file, a file of permissions, limits and flow rules that hold tools to what was agreed to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias

import attrs

from pegboard import Command, Guard, Middleware, Session, SettingsError, Toolkit, hookimpl
from pegboard_policy._explain import Explanation, explain
from pegboard_policy._flow import TRIFECTA, FlowRule, flow_rules
from pegboard_policy._limits import Limit, LimitedTools, limited
from pegboard_policy._lock import LockFile, unenforced
from pegboard_policy._permissions import PermissionFile, kept_permissions, read_permissions
from pegboard_policy._settings import Settings
from pegboard_policy._watch import Watch

__all__ = [
    "TRIFECTA",
    "Explanation",
    "FlowRule",
    "Limit",
    "LockFile",
    "Policy",
    "Settings",
    "provide_commands",
    "provide_guards",
    "provide_middleware",
    "settings_type",
    "unenforced",
]

PathLike: TypeAlias = str | os.PathLike[str]

_FROM_ENVIRONMENT: Final[Mapping[str, Callable[[str, str], Guard]]] = {
    "PEGBOARD_LOCK": LockFile.guard,
    "PEGBOARD_PERMISSIONS": lambda path, name: read_permissions(PermissionFile(path), name),
}


_OUTERMOST: Final = -1_000_000
"""What other middleware answers, such as a cache, has been called as well."""


def _limited_tools(given: Mapping[str, Any] | None) -> tuple[LimitedTools, ...]:
    return tuple(limited(given))


def _rules(given: Any) -> tuple[FlowRule, ...]:
    return tuple(flow_rules(given))


@attrs.frozen(eq=False)
class Policy:
    """The policy of one program, for `Toolkit(plugins=["installed", Policy(...)])`; it stands for the installed pack.

    What the environment names (`PEGBOARD_LOCK`, `PEGBOARD_PERMISSIONS`) counts besides, and is never written. A call
    counts when it begins: one that is invalid, denied or not approved does not. A toolkit raises `SettingsError` for a
    file that is damaged, and for a lock that is missing; the class for an invalid limit or rule.

    Args:
        lock: File of `pegboard lock`: only tools that are as it has them are offered and called. None for none.
        permissions: File that the permissions of the toolkit are kept in; it is made when the first is set. None keeps
            none.
        limits: `Limit`s, or mappings of their fields, by patterns of tools' names. All tools that a pattern fits count
            together. None for no limits.
        flow: `"trifecta"`, or `FlowRule`s or mappings of their fields.
        history: Where it is known what a session has called: `"memory"`, or `"journal"` for the calls of a session with
            an id in all processes that write the same journal.
    """

    lock: PathLike | None = attrs.field(default=None, kw_only=True)
    permissions: PathLike | None = attrs.field(default=None, kw_only=True)
    limits: tuple[LimitedTools, ...] = attrs.field(default=None, kw_only=True, converter=_limited_tools)
    flow: tuple[FlowRule, ...] = attrs.field(default=(), kw_only=True, converter=_rules)
    history: Literal["memory", "journal"] = attrs.field(
        default="memory", kw_only=True, validator=attrs.validators.in_(("memory", "journal"))
    )

    @staticmethod
    def explain(session: Session | Toolkit) -> list[Explanation]:
        """What holds for every tool of a session, and what decides, by the names of the tools."""
        return explain(session)

    @hookimpl
    def settings_type(self) -> type[Settings]:
        """The pack's settings."""
        return Settings

    def _watch(self, settings: Settings) -> Watch | None:
        """What counts the calls of a toolkit; None without limits and rules."""
        if "watch" not in settings.made:
            limits = [*self.limits, *limited(settings.limits)]
            rules = [*self.flow, *flow_rules(settings.flow)]
            recorded = "journal" in (self.history, settings.history)
            settings.made["watch"] = Watch(limits, rules, recorded=recorded) if limits or rules else None
        watch: Watch | None = settings.made["watch"]
        return watch

    @hookimpl
    def provide_middleware(self, settings: Settings) -> Iterator[Middleware]:
        """What counts calls as they begin, and knows in which session."""
        if (watch := self._watch(settings)) is not None:
            yield Middleware(watch.around, "policy", whole=True)
            yield Middleware(watch.begin, "policy", watch.counts_plain, _OUTERMOST)
            yield Middleware(watch.begin_awaited, "policy", watch.counts_awaited, _OUTERMOST)

    @hookimpl
    def provide_guards(self, settings: Settings) -> Iterator[Guard]:
        """A guard for each file, and one for limits and flow rules."""
        for path in (self.lock, settings.lock):
            if path is not None:
                yield LockFile.guard(path)
        for path in (self.permissions, settings.permissions):
            if path is not None:
                yield kept_permissions(PermissionFile(path))
        for variable, guard in _FROM_ENVIRONMENT.items():
            if named := os.environ.get(variable):
                try:
                    yield guard(named, variable)
                except SettingsError as error:
                    raise SettingsError(f"{variable}: {error}") from error
        if (watch := self._watch(settings)) is not None:
            if watch.recorded and find_spec("pegboard_journal") is None:
                raise SettingsError('history = "journal" needs a pack: pip install "pegboard-policy[journal]"')
            yield Guard(watch.judge, check=watch.look, name="limits and flow")


def _check(arguments: list[str]) -> int:
    from pegboard_policy._explain import run

    return run(arguments)


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_commands() -> Iterable[Command]:
    """`pegboard policy check`."""
    return [Command("policy", "Say for each tool what holds, and why.", _check)]


@hookimpl
def provide_guards(settings: Settings) -> Iterator[Guard]:
    """What the settings and the environment name."""
    return Policy().provide_guards(settings)


@hookimpl
def provide_middleware(settings: Settings) -> Iterator[Middleware]:
    """What counts calls, where the settings have limits or flow rules."""
    return Policy().provide_middleware(settings)
