"""Plugins: loaded one by one, so that none of them can break another, and asked for what they contribute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NoReturn

from attrs import define, evolve, field

from pegboard._discovery import Discovery, core_version, discover, pack_name
from pegboard._errors import PegboardError, PluginError, SettingsError, UnknownNameError, describe_exception, suggestion
from pegboard._hooks import HookName, Hooks
from pegboard._isolation import Outcome, isolated, traceback_text
from pegboard._plugin_record import Contribution, PluginFailure, PluginRecord, PluginState
from pegboard._roster import Slot, groups, roster, shadow
from pegboard._selection import INSTALLED, Selection
from pegboard._settings import Settings
from pegboard._tool import Origin

__all__ = ["Contribution", "OnError", "PluginFailure", "PluginRecord", "PluginState", "Plugins"]

OnError = Literal["collect", "raise"]

_PROBLEMS = (PluginState.FAILED, PluginState.INCOMPATIBLE, PluginState.SHADOWED)
_LONGEST_REASON = 400


@define(eq=False, repr=False)
class Plugins:
    """The plugins of one toolkit. Hooks are asked on demand, once each; a plugin that fails stays out from then on."""

    settings: Settings
    unreadable: tuple[str, ...]
    """A sentence for each installed distribution whose entry points could not be read."""
    _on_error: OnError
    _slots: list[Slot]
    _builtin: tuple[Any, ...] = ()
    _hooks: Hooks = field(factory=Hooks)
    _asked: dict[str, tuple[Contribution, ...]] = field(factory=dict, init=False)

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
        hold what is known without it. `builtin` are the core's own plugins: never blocked, and last in precedence.

        Raises `SettingsError` for settings of nobody, and, with `on_error="raise"`, `PluginError` for the first
        plugin, by name, that is not fit to be used.
        """
        environment = os.environ if environ is None else environ
        read = Settings.read(settings, config, environment)
        chosen = Selection.read(selection, block, environment, read.rules)
        discovery = discover() if chosen.scan else Discovery()
        slots = roster(discovery, chosen, core_version() if discovery.found else None)
        read.check_sections((slot.pack for slot in slots), only_argument=not chosen.scan)
        plugins = cls(read, discovery.unreadable, on_error, slots, tuple(builtin))
        for module in plugins._builtin:
            plugins._hooks.register(module, module.__name__)
        if imports:
            plugins._import_all()
        return plugins

    @property
    def records(self) -> tuple[PluginRecord, ...]:
        """Every plugin, sorted by name, whatever became of it."""
        return tuple(slot.record for slot in self._slots)

    @property
    def errors(self) -> tuple[PluginFailure, ...]:
        """The plugins that failed, each with the exception and its traceback where there is one."""
        failed = (slot for slot in self._slots if slot.record.state is PluginState.FAILED)
        return tuple(PluginFailure(slot.record, slot.traceback, slot.exception) for slot in failed)

    @property
    def import_seconds(self) -> dict[str, float]:
        """How long the import of each plugin took, by its name."""
        return {slot.record.name: slot.seconds for slot in self._slots if slot.seconds}

    def contributions(self, hook: HookName) -> tuple[Contribution, ...]:
        """What the active plugins answer to a `provide_...` hook, in the order of their names, the core's own last."""
        if hook not in self._asked:
            own = [self._contributed(slot, hook) for slot in self._active()]
            self._asked[hook] = tuple(item for items in own for item in items) + self._built_in(hook)
        active = {slot.pack for slot in self._active()}
        return tuple(item for item in self._asked[hook] if item.builtin or item.pack in active)

    def tools(self) -> tuple[Contribution, ...]:
        """What the active plugins answer to `provide_tools`, each asked with its own settings.

        An import string `"package.module:attribute"` is passed on as it is. Raises `SettingsError` for settings that
        a plugin does not have or that do not fit.
        """
        return self.contributions("provide_tools")

    def tools_from(self, source: Any) -> Contribution | None:
        """The first answer to how `source` becomes tools; its value is a tuple. None if every plugin passes.

        A `PegboardError` is a plugin's word on this source and goes to the caller; anything else fails the plugin.
        """
        for slot in self._active():
            outcome = self._run(slot, lambda slot=slot: self._hooks.tools_from(slot.pack, source))  # type: ignore[misc]
            if isinstance(outcome.error, PegboardError) and not isinstance(outcome.error, PluginError):
                raise outcome.error
            if outcome.error is not None:
                self._failed(slot, outcome.error, "in tools_from")
            elif outcome.value is not None:
                return Contribution(slot.record.origin, slot.pack, outcome.value)
        for module in self._builtin:
            tools = self._hooks.tools_from(module.__name__, source)
            if tools is not None:
                return Contribution(Origin(module.__name__), None, tools, builtin=True)
        return None

    def fail(self, plugin: Origin | str, reason: str, exception: BaseException | None = None) -> None:
        """Mark an active plugin as failed: none of its contributions are handed out from now on.

        Raises `UnknownNameError` for a plugin that is not active, and `PluginError` with `on_error="raise"`.
        """
        name = plugin if isinstance(plugin, str) else plugin.plugin or ""
        active = {slot.pack: slot for slot in self._active()}
        slot = active.get(pack_name(name))
        if slot is None:
            known = [slot.record.name for slot in active.values()]
            raise UnknownNameError(f"no active plugin {name!r}. {suggestion(name, known, noun='active plugins')}")
        self._fail(slot, reason, exception)

    def explain_absent(self, name: str) -> str | None:
        """A sentence for the message that there is no tool `name`, if a plugin that is not active may be why."""
        absent = [slot for slot in self._slots if slot.record.state is not PluginState.ACTIVE]
        pack, separator, _ = name.partition("__")
        for slot in absent:
            if separator and slot.pack == pack_name(pack):
                record = slot.record
                return f"The plugin {record.label}, whose tool this may be, is {_state(record)}: {record.reason}"
        # One that nobody asked for is not missed.
        missed = [slot.record for slot in absent if slot.record.state is not PluginState.FOUND]
        if not missed:
            return None
        shown = ", ".join(f"{record.name} ({_state(record)})" for record in missed[:5])
        return f"It may belong to a plugin that is not active: {shown}{' and more' if len(missed) > 5 else ''}."

    def _active(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.record.state is PluginState.ACTIVE]

    def _import_all(self) -> None:
        for claimants in groups(self._slots):
            active = next((slot for slot in claimants if self._import(slot)), None)
            if active is not None:
                for slot in claimants:
                    if slot.loadable:
                        shadow(slot, active)
        if self._on_error == "raise":
            for slot in self._slots:
                if slot.record.state in _PROBLEMS:
                    _refuse(slot)

    def _import(self, slot: Slot) -> bool:
        outcome = self._run(slot, lambda: self._hang_up(slot), watch=True)
        slot.seconds = outcome.seconds
        if outcome.error is None:
            slot.become(PluginState.ACTIVE, "; ".join(slot.notes))
            return True
        # In the end, for the first by name: here the sorted order is not known to be complete.
        self._set_failed(slot, _why(outcome.error, "at import", slot.record), outcome.error)
        return False

    def _hang_up(self, slot: Slot) -> None:
        plugin = _load(slot.record.entry_point or "") if slot.plugin is None else slot.plugin
        self._hooks.register(plugin() if isinstance(plugin, type) else plugin, slot.pack)

    def _contributed(self, slot: Slot, hook: HookName) -> list[Contribution]:
        arguments = {"settings": self._settings_of(slot)} if hook == "provide_tools" else {}
        # Its settings may have shown that the plugin does not work.
        if slot.record.state is not PluginState.ACTIVE or not self._hooks.implements(slot.pack, hook):
            return []
        outcome = self._run(slot, lambda: self._hooks.provide(slot.pack, hook, **arguments))
        if outcome.error is not None:
            self._failed(slot, outcome.error, f"in {hook}")
        return [Contribution(slot.record.origin, slot.pack, value) for value in outcome.value or ()]

    def _settings_of(self, slot: Slot) -> Any:
        outcome = self._run(slot, lambda: self._hooks.settings_type(slot.pack))
        if outcome.error is None:
            if outcome.value is None:
                self.settings.refuse_section(slot.pack)
                return None
            cls = outcome.value
            outcome = self._run(slot, lambda: self.settings.structure(slot.pack, cls))
            if isinstance(outcome.error, SettingsError):
                raise outcome.error
        if outcome.error is not None:
            self._failed(slot, outcome.error, "in settings_type")
        return outcome.value

    def _built_in(self, hook: HookName) -> tuple[Contribution, ...]:
        # Not isolated: what fails here is a fault of the core, and must be seen.
        arguments = {"settings": None} if hook == "provide_tools" else {}
        return tuple(
            Contribution(Origin(module.__name__), None, value, builtin=True)
            for module in self._builtin
            for value in self._hooks.provide(module.__name__, hook, **arguments)
        )

    def _run(self, slot: Slot, action: Callable[[], Any], *, watch: bool = False) -> Outcome:
        outcome = isolated(action, watch=watch)
        slot.notes.extend(note for note in outcome.notes if note not in slot.notes)
        if slot.record.state is PluginState.ACTIVE:
            slot.record = evolve(slot.record, reason="; ".join(slot.notes))
        return outcome

    def _failed(self, slot: Slot, error: BaseException, where: str) -> None:
        self._fail(slot, _why(error, where, slot.record), error)

    def _fail(self, slot: Slot, reason: str, error: BaseException | None) -> None:
        self._set_failed(slot, reason, error)
        if self._on_error == "raise":
            _refuse(slot)

    def _set_failed(self, slot: Slot, reason: str, error: BaseException | None) -> None:
        slot.exception = error
        slot.traceback = self.settings.redact(traceback_text(error))
        slot.become(PluginState.FAILED, self.settings.redact(reason))

    def __repr__(self) -> str:
        counts = [f"{sum(record.state is state for record in self.records)} {state}" for state in PluginState]
        return f"Plugins({', '.join(count for count in counts if not count.startswith('0 '))})"


def _load(entry_point: str) -> Any:
    """Import what an entry point names. Raises what the import raises."""
    from importlib import import_module

    path = entry_point.partition("[")[0]
    module, _, attributes = (part.strip() for part in path.partition(":"))
    try:
        plugin: Any = import_module(module)
    except ModuleNotFoundError as error:
        # Also a package on the way to it; anything else that is missing is missed by the plugin.
        if error.name and f"{module}.".startswith(f"{error.name}."):
            reason = f"its entry point leads to no module: there is no {error.name!r}; reinstall it"
            raise PluginError(reason) from error
        raise
    for attribute in filter(None, attributes.split(".")):
        try:
            plugin = getattr(plugin, attribute)
        except AttributeError as error:
            raise PluginError(f"its entry point leads to nothing: {module!r} has no {attributes!r}") from error
    return plugin


def _why(error: BaseException, where: str, record: PluginRecord) -> str:
    """A plugin's failure as a sentence on one line."""
    if isinstance(error, PluginError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        again = f" (or reinstall {record.distribution})" if record.distribution else ""
        return f"needs the module {missing!r} {where}, which is not installed; pip install {missing}{again}"
    name = type(error).__name__
    message = " ".join(describe_exception(error).removeprefix(f"{name}: ").split())
    if len(message) > _LONGEST_REASON:
        message = f"{message[:_LONGEST_REASON]}..."
    return f"raised {name} {where}" + ("" if message == name else f": {message}")


def _state(record: PluginRecord) -> str:
    return "not selected" if record.state is PluginState.FOUND else str(record.state)


def _refuse(slot: Slot) -> NoReturn:
    record = slot.record
    raise PluginError(f"the plugin {record.label} is {record.state}: {record.reason}") from slot.exception
