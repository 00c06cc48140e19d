"""Plugins: loaded one by one, so that none of them can break another, and asked for what they contribute."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeAlias, get_args

from attrs import evolve

from pegboard._base.errors import PegboardError, PluginError, SettingsError, traceback_text
from pegboard._base.names import OWN, pack_name
from pegboard._model.plugin_record import Contribution, NotOffered, PluginRecord, PluginState
from pegboard._model.tool import Origin
from pegboard._plugins.candidates import INSTALLED, Candidate, Selection, groups, roster, shadow
from pegboard._plugins.hooks import CONFIGURED, HookName, Hooks
from pegboard._plugins.loading import IsolatedRun, failure, isolated, load_plugin
from pegboard._plugins.settings import MissingSettingsError, Settings

if TYPE_CHECKING:
    from pegboard._model.program import PluginFailure

OnError = Literal["collect", "raise"]

_PROBLEMS = (PluginState.FAILED, PluginState.INCOMPATIBLE, PluginState.SHADOWED)
# A toolkit needs no commands.
_ASSEMBLED = [hook for hook in get_args(HookName) if hook.startswith("provide_") and hook != "provide_commands"]
_LONG_IMPORT = 2.0
_Answers: TypeAlias = dict[tuple[HookName, Any], tuple[Contribution, ...]]
# What the core's own plugins answer where no settings are: asked once, for it is the same for all toolkits.
_ALIKE: _Answers = {}


class _Request(NamedTuple):
    """What `Plugins.load` was asked for, so that it can be asked again."""

    selection: str | tuple[Any, ...]
    block: str | tuple[str, ...]
    on_error: OnError
    settings: Mapping[str, Any] | None
    config: str | os.PathLike[str] | None
    environ: Mapping[str, str] | None
    builtin: tuple[Any, ...]


class Plugins:
    """The plugins of one toolkit. Hooks are asked on demand, once each; a plugin that fails stays out from then on."""

    def __init__(
        self, settings: Settings, unreadable: tuple[str, ...], request: _Request, slots: list[Candidate]
    ) -> None:
        self.settings = settings
        # A sentence for each installed distribution whose entry points could not be read.
        self.unreadable = unreadable
        self._request = request
        self._slots = slots
        self._hooks = Hooks()
        self._answers: _Answers = {}
        self._configured: dict[str, Any] = {}
        # Those that want to be asked how something becomes tools.
        self.askers: list[Candidate] = []

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

        `selection` is `"installed"`, or entry-point and distribution names and plugin objects; `block`,
        `PEGBOARD_PLUGINS` and `PEGBOARD_BLOCK` narrow it. With `imports=False` nothing is imported, and the records
        hold what is known without it. `builtin` are the core's own plugins: never blocked, last in precedence, and the
        ones whose types settings are structured by.

        Raises `SettingsError` for settings of nobody, and, with `on_error="raise"`, `PluginError` for the first
        plugin, by name, that is not fit to be used.
        """
        selected = selection if isinstance(selection, str) else tuple(selection)
        blocked = block if isinstance(block, str) else tuple(block)
        plugins = cls._found(_Request(selected, blocked, on_error, settings, config, environ, tuple(builtin)))
        if imports and plugins._slots:
            plugins._import_all()
        return plugins

    @classmethod
    def _found(cls, request: _Request, installed_before: Iterable[str] = ()) -> Plugins:
        environment = os.environ if request.environ is None else request.environ
        read = Settings.read(request.settings, request.config, environment)
        chosen = Selection.read(request.selection, request.block, environment, read.rules)
        slots, unreadable = _rostered(chosen)
        read.check_sections((OWN, *installed_before, *(slot.pack for slot in slots)), only_argument=not chosen.scan)
        plugins = cls(read, unreadable, request, slots)
        for module in request.builtin:
            plugins._hooks.register(module, module.__name__)
        return plugins

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
        return self.settings.chosen_packs([each.value for each in self._built_in("provide_types")])

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
        said = [(record.label, text) for record in found for text in (record.reason, *record.faults.values()) if text]
        return (*(f"{label}: {text}" for label, text in said), *self.unreadable)

    @property
    def import_seconds(self) -> dict[str, float]:
        """How long the import of each plugin took, by its name."""
        return {slot.record.name: slot.seconds for slot in self._slots if slot.seconds}

    def ask_all(self) -> None:
        """Ask what a toolkit is made of, so that one that fails at the last hook contributes nothing to the first."""
        for hook in _ASSEMBLED:
            self.contributions(hook)

    def contributions(self, hook: HookName) -> tuple[Contribution, ...]:
        """What the active plugins answer to a `provide_...` hook, in the order of their names, the core's own last."""
        own = [self._answer(slot, hook) for slot in self._active()]
        # Once more: the later ones may have failed others, and a failed one contributes nothing.
        active = {slot.pack for slot in self._active()}
        return tuple(item for items in own for item in items if item.pack in active) + self._built_in(hook)

    def tools(self) -> tuple[Contribution, ...]:
        """What the active plugins answer to `provide_tools`, each asked with its own settings.

        An import string `"package.module:attribute"` is passed on as it is. Raises `SettingsError` for settings that
        a plugin does not have or that do not fit.
        """
        return self.contributions("provide_tools")

    def settings_type(self, pack: str) -> type | None:
        """The attrs class of an active plugin's settings. Raises what the plugin raises."""
        return self._hooks.settings_type(pack)

    def settings_of(self, pack: str) -> Any:
        """An active plugin's settings; None if it has none. Raises `SettingsError` as `tools` does."""
        return next((self._settings_of(slot) for slot in self._active() if slot.pack == pack), None)

    def tools_from(self, source: Any, passed: Container[str] = ()) -> Contribution | None:
        """The first answer to how `source` becomes tools; its value is a tuple. None if every plugin passes.

        Packs in `passed` are not asked.

        A `PegboardError` is a plugin's word on this source and goes to the caller; anything else fails the plugin.
        """
        answer = self.from_packs(source, passed)
        for module in () if answer else self._request.builtin:
            tools = self._hooks.tools_from(module.__name__, source)
            if tools is not None:
                return Contribution(Origin(module.__name__), None, tools, builtin=True)
        return answer

    def from_packs(self, source: Any, passed: Container[str] = ()) -> Contribution | None:
        """The same, of those that are not the core's own."""
        asked = [slot for slot in self.askers if slot.pack not in passed and slot.record.state is PluginState.ACTIVE]
        for slot in asked:
            outcome = self._run(slot, partial(self._hooks.tools_from, slot.pack, source))
            if isinstance(outcome.error, PegboardError) and not isinstance(outcome.error, PluginError):
                raise outcome.error
            if outcome.error is not None:
                self._fail(slot, failure(outcome.error, "in tools_from", slot.record), outcome.error)
            elif outcome.value is not None:
                return Contribution(slot.record.origin, slot.pack, outcome.value)
        return None

    def fail(self, plugin: Origin, reason: str, exception: BaseException | None = None) -> None:
        """Mark a plugin, if it is active, as failed: none of its contributions are handed out from now on.

        Raises `PluginError` with `on_error="raise"`.
        """
        for slot in self._active():
            if slot.record.name == plugin.plugin:
                self._fail(slot, reason, exception)

    def find_faults(self, plugin: Origin, faults: Mapping[str, str]) -> None:
        """Say what is wrong with tools of an active plugin that cannot be tools. Raises as `fail` does."""
        said = {name: fault if repr(name) in fault else f"tool {name!r}: {fault}" for name, fault in faults.items()}
        for slot in self._active():
            if slot.record.name == plugin.plugin:
                slot.record = evolve(slot.record, faults={name: self.settings.redact(said[name]) for name in said})
                if self._request.on_error == "raise" and said:
                    raise PluginError("; ".join(said.values()))

    def explain_absent(self, name: str, *, brief: bool = False) -> str | None:
        """A sentence for the message that there is no tool `name`, if a plugin may be why that is so.

        A `brief` one is for a model, which can change nothing of it.
        """
        for slot in self._active():
            own, broken = name.removeprefix(f"{slot.pack}__"), slot.record.faults
            unfit = [NotOffered(own, "it cannot be used here", broken[own])] if own in broken else []
            for each in (*slot.record.not_offered, *unfit):
                if own in each.names:
                    return f"The plugin {slot.record.label} does not offer it: {each.reason if brief else each}."
        absent = [slot for slot in self._slots if slot.record.state is not PluginState.ACTIVE]
        pack, separator, _ = name.partition("__")
        for slot in absent:
            if separator and slot.pack == pack_name(pack):
                record = slot.record
                why = "." if brief else f": {record.reason}"
                return f"The plugin {record.label}, whose tool this may be, is {_state(record)}{why}"
        # One that nobody asked for is not missed.
        missed = [slot.record for slot in absent if slot.record.state is not PluginState.FOUND]
        # Who was blocked on purpose is the least likely reason.
        missed.sort(key=lambda record: record.state is PluginState.BLOCKED)
        if not missed:
            return None
        shown = ", ".join(f"{record.name} ({_state(record)})" for record in missed[:5])
        return f"It may belong to a plugin that is not active: {shown}{' and more' if len(missed) > 5 else ''}."

    def _active(self) -> list[Candidate]:
        return [slot for slot in self._slots if slot.record.state is PluginState.ACTIVE]

    def _import_all(self) -> None:
        running = {slot.pack: slot for slot in self._active()}
        for claimants in groups(self._slots):
            active = running.get(claimants[0].pack) or next((slot for slot in claimants if self._import(slot)), None)
            if active is not None:
                for slot in claimants:
                    if slot.loadable:
                        shadow(slot, active)
        self.askers = [slot for slot in self._active() if self._hooks.implements(slot.pack, "tools_from")]
        if self._request.on_error == "raise":
            for slot in self._slots:
                if slot.record.state in _PROBLEMS:
                    _refuse(slot)

    def _import(self, slot: Candidate) -> bool:
        outcome = self._run(slot, lambda: self._hang_up(slot))
        slot.seconds = outcome.seconds
        if outcome.seconds > _LONG_IMPORT:
            slot.notes.append(f"took {outcome.seconds:.1f} s to import; put what is heavy behind an import string")
        if outcome.error is None:
            slot.become(PluginState.ACTIVE, "; ".join(slot.notes))
            return True
        # In the end, for the first by name: here the sorted order is not known to be complete.
        self._set_failed(slot, failure(outcome.error, "at import", slot.record), outcome.error)
        return False

    def _hang_up(self, slot: Candidate) -> None:
        plugin = load_plugin(slot.record.entry_point or "") if slot.plugin is None else slot.plugin
        slot.plugin = plugin() if isinstance(plugin, type) else plugin
        self._hooks.register(slot.plugin, slot.pack)

    def _answer(self, slot: Candidate, hook: HookName) -> tuple[Contribution, ...]:
        if (hook, slot.pack) not in self._answers:
            self._answers[hook, slot.pack] = self._contributed(slot, hook)
        return self._answers[hook, slot.pack]

    def _contributed(self, slot: Candidate, hook: HookName) -> tuple[Contribution, ...]:
        arguments = {"settings": self._settings_of(slot)} if hook in CONFIGURED else {}
        # Its settings may have shown that the plugin does not work.
        if slot.record.state is not PluginState.ACTIVE or not self._hooks.implements(slot.pack, hook):
            return ()
        outcome = self._run(slot, lambda: self._hooks.provide(slot.pack, hook, **arguments))
        if outcome.error is not None:
            self._fail(slot, failure(outcome.error, f"in {hook}", slot.record), outcome.error)
        given = outcome.value or ()
        not_offered = tuple(value for value in given if isinstance(value, NotOffered))
        if not_offered:
            slot.record = evolve(slot.record, not_offered=not_offered)
        origin = slot.record.origin
        return tuple(Contribution(origin, slot.pack, value) for value in given if not isinstance(value, NotOffered))

    def _settings_of(self, slot: Candidate) -> Any:
        if slot.pack not in self._configured:
            self._configured[slot.pack] = self._read_settings(slot)
        return self._configured[slot.pack]

    def _read_settings(self, slot: Candidate) -> Any:
        outcome = IsolatedRun()
        if self._hooks.implements(slot.pack, "settings_type"):
            outcome = self._run(slot, lambda: self._hooks.settings_type(slot.pack))
        if outcome.error is None:
            if outcome.value is None:
                self.settings.refuse_section(slot.pack)
                return None
            cls = outcome.value
            handlers = [found.value for found in self._built_in("provide_types")]
            outcome = self._run(slot, lambda: self.settings.structure(slot.pack, cls, handlers))
            if isinstance(outcome.error, SettingsError) and not isinstance(outcome.error, MissingSettingsError):
                raise outcome.error
        if outcome.error is not None:
            self._fail(slot, failure(outcome.error, "in settings_type", slot.record), outcome.error)
        return outcome.value

    def _built_in(self, hook: HookName) -> tuple[Contribution, ...]:
        # Not isolated: what fails here is a fault of the core, and must be seen.
        answers, key = (self._answers, (hook, "")) if hook in CONFIGURED else (_ALIKE, (hook, self._request.builtin))
        if key not in answers:
            arguments = {"settings": None} if hook in CONFIGURED else {}
            answers[key] = tuple(
                Contribution(Origin(module.__name__), None, value, builtin=True)
                for module in self._request.builtin
                for value in self._hooks.provide(module.__name__, hook, **arguments)
            )
        return answers[key]

    def _run(self, slot: Candidate, action: Callable[[], Any]) -> IsolatedRun:
        outcome = isolated(action)
        slot.notes.extend(note for note in outcome.notes if note not in slot.notes)
        if outcome.notes and slot.record.state is PluginState.ACTIVE:
            slot.record = evolve(slot.record, reason="; ".join(slot.notes))
        return outcome

    def _fail(self, slot: Candidate, reason: str, error: BaseException | None) -> None:
        self._set_failed(slot, reason, error)
        if self._request.on_error == "raise":
            _refuse(slot)

    def _set_failed(self, slot: Candidate, reason: str, error: BaseException | None) -> None:
        slot.exception = error
        slot.traceback = self.settings.redact(traceback_text(error)) if error else ""
        slot.become(PluginState.FAILED, self.settings.redact(reason))

    def __repr__(self) -> str:
        counts = [f"{sum(record.state is state for record in self.records)} {state}" for state in PluginState]
        return f"Plugins({', '.join(count for count in counts if not count.startswith('0 '))})"


def _rostered(chosen: Selection) -> tuple[list[Candidate], tuple[str, ...]]:
    """A slot for each plugin, and what could not be read; nobody looks at what is installed unless it is wanted."""
    if not chosen.scan:
        return roster((), chosen, None) if chosen.objects else [], ()
    from pegboard._plugins.discovery import discover

    discovery = discover()
    return roster(discovery.found, chosen, discovery.core), discovery.unreadable


def _state(record: PluginRecord) -> str:
    return "not selected" if record.state is PluginState.FOUND else str(record.state)


def _refuse(slot: Candidate) -> NoReturn:
    record = slot.record
    raise PluginError(f"the plugin {record.label} is {record.state}: {record.reason}") from slot.exception
