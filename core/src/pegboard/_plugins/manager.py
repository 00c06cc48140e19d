"""Plugins: loaded one by one, so that none of them can break another, and asked for what they contribute."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, get_args

from attrs import evolve

from pegboard import hookspecs
from pegboard._base.errors import PluginError, SettingsError, traceback_text
from pegboard._base.known_packs import how_to_get, known_pack, pack_that_gives
from pegboard._base.names import OWN, pack_name
from pegboard._model.plugin_record import Contribution, NotOffered, PluginRecord, PluginState
from pegboard._model.tool import Origin
from pegboard._plugins.candidates import (
    INSTALLED,
    Candidate,
    IsolatedRun,
    Rule,
    Selection,
    failure,
    groups,
    isolated,
    load_plugin,
    roster,
    shadow,
)
from pegboard._plugins.hooks import Answer, HookName, Manager, PluginGuard
from pegboard._plugins.settings import MissingSettingsError, Settings

if TYPE_CHECKING:
    from pegboard._model.program import PluginFailure
    from pegboard._plugins.discovery import Discovery

OnError = Literal["collect", "raise"]

_PROBLEMS = (PluginState.FAILED, PluginState.INCOMPATIBLE, PluginState.SHADOWED)
# A toolkit needs no commands.
_ASSEMBLED = [hook for hook in get_args(HookName) if hook.startswith("provide_") and hook != "provide_commands"]
_LONG_IMPORT = 2.0
# Files that tools are held to, whatever the program selects.
_POLICIES = ("PEGBOARD_LOCK", "PEGBOARD_PERMISSIONS")


class Plugins:
    """The plugins of one toolkit. pluggy calls each hook once, on demand; a plugin that fails stays out from then on.

    Made by `load`. `manager` is pluggy's, for programs that want to watch the calls of hooks:
    `manager.add_hookcall_monitoring(...)`.

    Args:
        settings: Settings of the packs.
        unreadable: A sentence for each installed distribution whose entry points could not be read.
        slots: The plugins that were found.
        on_error: `"collect"` records what fails, `"raise"` raises it.
        environ: Environment variables.
    """

    def __init__(
        self,
        settings: Settings,
        unreadable: tuple[str, ...],
        slots: list[Candidate],
        on_error: OnError,
        environ: Mapping[str, str],
    ) -> None:
        self._environ = environ
        self.settings = settings
        # A sentence for each installed distribution whose entry points could not be read.
        self.unreadable = unreadable
        self.manager = Manager(hookspecs.GROUP)
        self.manager.add_hookspecs(hookspecs)
        self._slots = slots
        self._on_error: OnError = on_error
        self._toolkit: Any = None  # that is put together
        self._answers: dict[HookName, list[Answer]] = {}
        # Whether a plugin, other than the core's own, wants to be asked how something becomes tools.
        self.asks = False
        # Asks packs alone: the core's own answer about a function is known, and only a wrapper wants to see it.
        self._of_functions: Any = None

    @classmethod
    def load(
        cls,
        *,
        selection: str | Iterable[Any] = INSTALLED,
        block: str | Iterable[str] = (),
        on_error: OnError = "collect",
        settings: Mapping[str, Any] | None = None,
        config: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        builtin: Iterable[Any] = (),
        imports: bool = True,
    ) -> Plugins:
        """Find, select, check and import plugins.

        Raises `SettingsError` for settings of no plugin, and, with `on_error="raise"`, `PluginError` for the first
        plugin, by name, that cannot be used.

        Args:
            selection: `"installed"`, or entry-point and distribution names and plugin objects. `PEGBOARD_PLUGINS`
                narrows it.
            block: Names that are left out, beside those of `PEGBOARD_BLOCK`.
            on_error: `"collect"` records what fails, `"raise"` raises it.
            settings: Settings of packs, as `{pack: {key: value}}`.
            config: Path of a settings file. None reads the one that `PEGBOARD_CONFIG` names.
            environ: Environment variables. None: those of the process.
            builtin: The core's own plugins: never blocked, last in precedence, and the ones whose types settings are
                structured by.
            imports: False imports nothing; the records hold what is known without it.
        """
        environment = os.environ if environ is None else environ
        read = Settings.read(settings, config, environment)
        chosen = Selection.read(selection, block, environment, read.rules)
        installed: Discovery | tuple[()] = ()
        if chosen.scan:
            from pegboard._plugins.discovery import discover

            installed = discover()
        found, unreadable, release = installed or ((), (), None)
        slots = roster(found, chosen, release)
        read.check_sections((OWN, *(slot.pack for slot in slots)), only_argument=not chosen.scan)
        plugins = cls(read, unreadable, slots, on_error, environment)
        if imports and slots:
            plugins._import_all()
        plugins._add_core(builtin)
        return plugins

    def _add_core(self, modules: Iterable[Any]) -> None:
        """Register the core's own plugins, whose hooks come last, and in this order."""
        own = []
        for module in modules:
            slot = Candidate(PluginRecord(module.__name__, state=PluginState.ACTIVE), "", module)
            own.append(guard := self._guarded(slot))
            self.manager.register(guard, module.__name__)
        if self.asks and not any(each.wrapper for each in self.manager.hook.tools_from.get_hookimpls()):
            self._of_functions = self.manager.subset_hook_caller("tools_from", own)

    def check_required(self) -> None:
        """Raise `PluginError` for a plugin that `PEGBOARD_REQUIRE` names and that is not active, with the reason."""
        for name in filter(None, map(str.strip, self._environ.get("PEGBOARD_REQUIRE", "").split(","))):
            wanted = Rule("PEGBOARD_REQUIRE", (name,))
            named = [each for each in self.records if wanted.matches(each.name, each.distribution)]
            if not any(record.state is PluginState.ACTIVE for record in named):
                why = f"is {named[0].state}: {named[0].reason}" if named else "is not installed, or not looked for"
                raise PluginError(f"PEGBOARD_REQUIRE names {name!r}, which {why}")

    @property
    def records(self) -> tuple[PluginRecord, ...]:
        """Every plugin, sorted by name, whatever became of it."""
        return tuple(slot.record for slot in self._slots)

    @property
    def packs(self) -> dict[str, PluginRecord]:
        """The plugins that were asked for, by the prefix of their tools' names; of several those that are active."""
        asked = [slot for slot in self._slots if slot.record.state is not PluginState.FOUND]
        asked.sort(key=lambda slot: slot.record.state is PluginState.ACTIVE)
        return {slot.pack: slot.record for slot in asked}

    @property
    def active_packs(self) -> frozenset[str]:
        """The prefixes of the plugins that are active."""
        return frozenset(slot.pack for slot in self._active())

    @cached_property
    def chosen(self) -> dict[str, str]:
        """The pack that maps a type for all tools, by the type's full name, as the settings of Pegboard itself say.

        Raises `SettingsError`.
        """
        return self.settings.chosen_packs(self._own_types)

    @property
    def errors(self) -> tuple[PluginFailure, ...]:
        """The plugins that failed, each with the exception and its traceback where there is one."""
        from pegboard._model.program import PluginFailure

        failed = (slot for slot in self._slots if slot.record.state is PluginState.FAILED)
        return tuple(PluginFailure(slot.record, slot.traceback, slot.exception) for slot in failed)

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each plugin that is not fit to be used, and for each active one that did what it should not.

        Then those of the distributions that could not be read.
        """
        found = [record for record in self.records if record.state in (*_PROBLEMS, PluginState.ACTIVE)]
        texts = ((each.label, text) for each in found for text in (each.reason, *each.faults.values()) if text)
        return (*(f"{label}: {text}" for label, text in texts), *self.unreadable)

    @property
    def import_seconds(self) -> dict[str, float]:
        """How long the import of each plugin took, by its name."""
        return {slot.record.name: slot.seconds for slot in self._slots if slot.seconds}

    def ask_all(self, toolkit: Any = None) -> None:
        """Ask what a toolkit is made of, so that one that fails at the last hook contributes nothing to the first.

        Raises `PluginError` where the environment names a policy and no active pack holds tools to it.
        """
        self._toolkit = toolkit
        for hook in _ASSEMBLED:
            self.contributions(hook)
        for variable in _POLICIES:
            if self._environ.get(variable) and not any(known_pack(slot.pack, "policy") for slot in self._active()):
                raise PluginError(
                    f"{variable} is set, and no active pack holds tools to it. {self.how_to_get('policy')}"
                )

    def how_to_get(self, gives: str) -> str:
        """The advice to a program that misses what a pack of ours gives; empty if that pack is active."""
        ours = [slot for slot in self._slots if known_pack(slot.record.name, gives)]
        if any(slot.is_active for slot in ours):
            return ""
        idle = [slot.record for slot in ours if slot.record.distribution]
        why = (f"The pack {record.name!r} is installed, but {record.reason or 'not asked for'}." for record in idle)
        return " ".join(why) or how_to_get(pack_that_gives(gives))

    def contributions(self, hook: HookName) -> tuple[Contribution, ...]:
        """What the active plugins answer to a `provide_...` hook, in pluggy's order, the core's own last.

        Raises `SettingsError` for settings that a plugin does not have or that do not fit, and `PluginError` with
        `on_error="raise"`.
        """
        if hook not in self._answers:
            self._answers[hook] = self._ask(hook)
            self._check()
        active = self.active_packs
        return tuple(
            Contribution(answer.origin, answer.pack, item)
            for answer in self._answers[hook]
            if answer.pack is None or answer.pack in active
            for item in answer
            if not isinstance(item, NotOffered)
        )

    def _ask(self, hook: HookName) -> list[Answer]:
        call = getattr(self.manager.hook, hook)
        asking = {impl.plugin for impl in call.get_hookimpls() if "settings" in impl.argnames}
        for slot in self._active():
            # Of those, too, that ask for none: a section for them is a mistake. A command line works all the same.
            if hook != "provide_commands" or slot.guard in asking:
                self._configure(slot)
        answers: list[Answer] = call(settings=None, **({"toolkit": self._toolkit} if hook == "provide_tools" else {}))
        by_pack = {slot.pack: slot for slot in self._active()}
        for answer in answers:
            owner, found = by_pack.get(answer.pack or ""), [item for item in answer if isinstance(item, NotOffered)]
            if owner is not None and found:
                owner.record = evolve(owner.record, not_offered=(*owner.record.not_offered, *found))
        return answers

    def tools(self) -> tuple[Contribution, ...]:
        """What the active plugins answer to `provide_tools`, each asked with its own settings.

        An import string `"package.module:attribute"` is passed on as it is. Raises as `contributions` does.
        """
        return self.contributions("provide_tools")

    def settings_type(self, pack: str) -> type | None:
        """The attrs class of an active plugin's settings; None if it has none."""
        return self._settings_types.get(pack)

    @cached_property
    def _settings_types(self) -> dict[str | None, type]:
        return {answer.pack: answer[0] for answer in self.manager.hook.settings_type()}

    def settings_of(self, pack: str) -> Any:
        """An active plugin's settings; None if it has none. Raises `SettingsError` as `contributions` does."""
        for slot in self._active():
            if slot.pack == pack:
                self._configure(slot)
                return slot.settings
        return None

    def tools_from(self, source: Any, passed: Collection[str] = ()) -> Contribution | None:
        """The first answer to how `source` becomes tools; its value is a tuple. None if every plugin passes.

        Packs in `passed` are not asked. A `PegboardError` is a plugin's word on this source and goes to the caller;
        anything else fails the plugin.
        """
        hook = self.manager.hook.tools_from
        if type(source) is FunctionType and not passed and self._of_functions is not None:
            hook = self._of_functions
        elif passed:
            hook = self.manager.subset_hook_caller("tools_from", [s.guard for s in self._active() if s.pack in passed])
        answer: Answer | None = hook(source=source)
        self._check()
        if answer is None:
            return None
        if answer.refusal is not None:
            raise answer.refusal
        return Contribution(answer.origin, answer.pack, tuple(answer))

    def pass_over(self, plugin: Origin, reason: str, cause: BaseException | None = None) -> None:
        """Record that something of an active plugin does not count. Raises `PluginError` with `on_error="raise"`.

        Args:
            plugin: The plugin.
            reason: Why, as a sentence.
            cause: The exception. None where there was none.
        """
        note = self.settings.redact(reason)
        for slot in self._active(plugin):
            self._note(slot, note)
            if self._on_error == "raise":
                raise PluginError(f"the plugin {slot.record.label}: {note}") from cause

    def find_faults(self, plugin: Origin, faults: Mapping[str, str]) -> None:
        """Say what is wrong with tools of an active plugin that cannot be tools. Raises as `pass_over` does."""
        redact = self.settings.redact
        told = {name: redact(text if repr(name) in text else f"tool {name!r}: {text}") for name, text in faults.items()}
        for slot in self._active(plugin):
            slot.record = evolve(slot.record, faults=told)
            if self._on_error == "raise" and told:
                raise PluginError(f"the plugin {slot.record.label}: {'; '.join(told.values())}")

    def explain_absent(self, name: str, *, brief: bool = False) -> str | None:
        """A sentence for the message that there is no tool `name`, if a plugin may be why that is so.

        A `brief` one is for a model, which can change nothing of it.
        """
        for slot in self._active():
            own, record = name.removeprefix(f"{slot.pack}__"), slot.record
            unfit = (NotOffered(tool, "it cannot be used here", fault) for tool, fault in record.faults.items())
            for each in (*record.not_offered, *unfit):
                if own in each.names:
                    return f"The plugin {record.label} does not offer it: {each.reason if brief else each}."
        absent = [slot for slot in self._slots if not slot.is_active]
        pack, separator, _ = name.partition("__")
        for slot in absent:
            if separator and slot.pack == pack_name(pack):
                why = "." if brief else f": {slot.record.reason}"
                return f"The plugin {slot.record.label}, whose tool this may be, is {_state(slot.record)}{why}"
        # One that was not asked for is not missed.
        missed = [slot.record for slot in absent if slot.record.state is not PluginState.FOUND]
        # Who was blocked on purpose is the least likely reason.
        missed.sort(key=lambda record: record.state is PluginState.BLOCKED)
        if not missed:
            return None
        shown = ", ".join(f"{record.name} ({_state(record)})" for record in missed[:5])
        return f"It may belong to a plugin that is not active: {shown}{' and more' if len(missed) > 5 else ''}."

    def _active(self, of: Origin | None = None) -> list[Candidate]:
        # Asked once for each pack: a frame for each slot would count where there are many.
        active = [slot for slot in self._slots if slot.record.state is PluginState.ACTIVE]
        return active if of is None else [slot for slot in active if slot.record.name == of.plugin]

    def _import_all(self) -> None:
        for claimants in groups(self._slots):
            active = next((slot for slot in claimants if self._import(slot)), None)
            for slot in claimants:
                if slot.is_loadable and active is not None:
                    shadow(slot, active)
        from pegboard._base.deprecations import warn_of

        for slot in reversed(self._active()):  # pluggy calls last what came first
            self.manager.register(slot.guard, slot.pack)
            for options in slot.guard.options.values():
                warn_of(options["specname"], user=f"the plugin {slot.record.label}: ")
        self.asks = bool(self.manager.hook.tools_from.get_hookimpls())
        self._check()

    def _import(self, slot: Candidate) -> bool:
        begun = time.perf_counter()
        outcome = self._isolated(slot, lambda: self._load(slot))
        slot.seconds = time.perf_counter() - begun
        if slot.seconds > _LONG_IMPORT:
            slot.notes.append(f"took {slot.seconds:.1f} s to import; put what is heavy behind an import string")
        if outcome.error is None:
            slot.become(PluginState.ACTIVE, "; ".join(slot.notes))
            return True
        self._fail(slot, outcome.error, "at import")
        return False

    def _load(self, slot: Candidate) -> None:
        plugin = load_plugin(slot.record.entry_point or "") if slot.plugin is None else slot.plugin
        slot.plugin = plugin() if isinstance(plugin, type) else plugin
        twin = next((each for each in self._active() if each.plugin is slot.plugin), None)
        if twin is not None:
            raise PluginError(f"it is the plugin {twin.record.name!r}; register it once")
        slot.guard = self._guarded(slot)

    def _guarded(self, slot: Candidate) -> PluginGuard:
        return PluginGuard(slot.plugin, slot, partial(self._run, slot))

    def _run(self, slot: Candidate, hook: str, action: Callable[[], Any], *, around: bool = False) -> Any:
        """Run an implementation, or a part of one `around` others.

        None where its plugin has failed, or fails now; a wrapper that fails is passed over.
        """
        if not slot.pack:
            return action()  # what one of the core's own raises is a fault of the core, and must be visible
        if not slot.is_active:
            return None
        outcome = self._isolated(slot, action)
        if outcome.error is not None and around:
            reason = failure(outcome.error, f"in {hook}", slot.record)
            self.pass_over(slot.record.origin, f"its wrapper of {hook} was passed over: {reason}", outcome.error)
        elif hook == "provide_guards" and isinstance(outcome.error, SettingsError):
            raise outcome.error  # a policy that cannot be loaded must not be left out
        elif outcome.error is not None:
            self._fail(slot, outcome.error, f"in {hook}")
        return outcome.value

    def _configure(self, slot: Candidate) -> None:
        """Read a plugin's settings, once."""
        if slot.is_configured:
            return
        cls = self.settings_type(slot.pack)
        if not slot.is_active:  # as the question has shown
            return
        if cls is None:
            self.settings.refuse_section(slot.pack)
        else:
            outcome = self._isolated(slot, lambda: self.settings.structure(slot.pack, cls, self._own_types))
            if isinstance(outcome.error, SettingsError) and not isinstance(outcome.error, MissingSettingsError):
                raise outcome.error
            if outcome.error is not None:
                self._fail(slot, outcome.error, "in settings_type")
                self._check()
            slot.settings = outcome.value
        slot.is_configured = True

    @cached_property
    def _own_types(self) -> list[Any]:
        packs = [slot.guard for slot in self._active()]
        answers = self.manager.subset_hook_caller("provide_types", packs)(settings=None)
        return [handler for answer in answers for handler in answer]

    def _isolated(self, slot: Candidate, action: Callable[[], Any]) -> IsolatedRun:
        outcome = isolated(action)
        self._note(slot, *outcome.notes)
        return outcome

    def _note(self, slot: Candidate, *notes: str) -> None:
        new = [note for note in notes if note not in slot.notes]
        slot.notes.extend(new)
        if new and slot.is_active:
            slot.record = evolve(slot.record, reason="; ".join(slot.notes))

    def _check(self) -> None:
        """Raises `PluginError` for the first plugin, by name, that is not fit to be used, where it has to raise."""
        for slot in self._slots if self._on_error == "raise" else ():
            record = slot.record
            if record.state in _PROBLEMS:
                raise PluginError(f"the plugin {record.label} is {record.state}: {record.reason}") from slot.exception

    def _fail(self, slot: Candidate, error: BaseException, where: str) -> None:
        redact = self.settings.redact
        slot.exception, slot.traceback = error, redact(traceback_text(error))
        slot.become(PluginState.FAILED, redact(failure(error, where, slot.record)))
        if self.manager.is_registered(slot.guard):
            self.manager.unregister(slot.guard)

    def __repr__(self) -> str:
        counts = [f"{sum(record.state is state for record in self.records)} {state}" for state in PluginState]
        return f"Plugins({', '.join(count for count in counts if not count.startswith('0 '))})"


def _state(record: PluginRecord) -> str:
    return "not selected" if record.state is PluginState.FOUND else str(record.state)
