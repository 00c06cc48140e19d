"""The sabotage matrix within one program: each place where code of a plugin runs, and what its failure may cost.

A plugin `guilty` fails at one place. Beside it are `apple`, `pear` and a tool of the program, which must not notice.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

import attrs
from attrs import frozen

from pegboard import (
    Converter,
    Dialect,
    Injector,
    Middleware,
    Offer,
    ToolCall,
    Toolkit,
    TypeHandler,
    TypePlan,
    hookimpl,
    tool,
)
from pegboard.inspection import plugins_of
from tests.support.failing import OfClass, boom, pack

__all__ = ["ERRORS", "PLACES", "Place"]


class Odd(BaseException):
    """No one expects it, and it has no text."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class Unwritable(Exception):
    """One that cannot be written."""

    def __str__(self) -> str:
        raise RecursionError("no text")

    __repr__ = __str__


ERRORS: tuple[type[BaseException], ...] = (ValueError, SystemExit, RecursionError, Odd, Unwritable, MemoryError)


def failing() -> NoReturn:
    boom()


def guilty_plain(text: str = "x") -> str:
    """A tool of the guilty plugin that has nothing to do with what fails."""
    return text


@frozen
class Place:
    """The guilty plugin, and what its failure costs.

    `spares` says that its other tools stay. `fails` is a tool whose calls end as errors, by that failure alone.
    `raises` is what the program itself asks for, to which the failure goes. `asks` is what has to happen before that.
    `silent` says that no problem tells of it.
    """

    plugin: Callable[[], Any]
    state: str = "active"
    spares: bool = True
    fails: str = ""
    raises: Callable[[Toolkit], Any] | None = None
    asks: Callable[[Toolkit], Any] | None = None
    silent: bool = False


class Rare:
    """Nothing but the guilty plugin has to do with it."""


def guilty_takes(x: Rare) -> str:
    return "taken"


def guilty_gives() -> Rare:
    return Rare()


def with_(*more: Any, **hooks: Any) -> Callable[[], ModuleType]:
    """The guilty plugin with these tools beside the plain one, and with these other hooks."""
    return lambda: pack("guilty", provide_tools=lambda settings: [guilty_plain, *more], **hooks)


def of(hook: str, item: Any, *tools: Any) -> Callable[[], ModuleType]:
    """The guilty plugin whose hook gives what `item()` makes."""
    return with_(*tools, **{hook: lambda settings: [item()]})


# Hooks -----------------------------------------------------------------------------------------------------------

CONTRIBUTING = (
    "provide_tools",
    "provide_types",
    "provide_injectors",
    "provide_converters",
    "provide_middleware",
    "provide_backends",
    "provide_dialects",
    "provide_commands",
)


class Breaks:
    """An iterable that cannot be begun."""

    def __iter__(self) -> Iterator[Any]:
        boom()


def half_way(settings: Any) -> Iterator[Any]:
    yield from ()
    boom()


def broken_iterable(settings: Any) -> Any:
    return Breaks()


def raising(settings: Any) -> NoReturn:
    boom()


def commands(toolkit: Toolkit) -> None:
    """What a command line asks for."""
    plugins_of(toolkit).contributions("provide_commands")


def failing_hooks() -> Iterator[tuple[str, Place]]:
    ways: Mapping[str, Any] = {"raises": raising, "a generator half way": half_way, "no iterable": broken_iterable}
    for hook in CONTRIBUTING:
        for way, function in ways.items():
            # Commands are asked for last, by command lines alone: the tools of the plugin are there by then.
            late: dict[str, Any] = {"asks": commands} if hook == "provide_commands" else {}
            plugin = lambda hook=hook, function=function: pack(  # noqa: E731
                "guilty", **{"provide_tools": lambda settings: [guilty_plain], hook: function}
            )
            yield f"{hook}: {way}", Place(plugin, "failed", bool(late), **late)


def wrapper_of(hook: str, when: str) -> Any:
    def wrapper(settings: Any) -> Any:
        if when == "before":
            boom()
        yield
        boom()

    return hookimpl(wrapper=True, specname=hook)(wrapper)


def failing_wrappers() -> Iterator[tuple[str, Place]]:
    for hook in CONTRIBUTING:
        for when in ("before", "after"):
            late: dict[str, Any] = {"asks": commands} if hook == "provide_commands" else {}
            wrapper = wrapper_of(hook, when)
            plain = {"provide_tools": lambda settings: [guilty_plain]}
            plugin = lambda wrapper=wrapper, plain=plain: pack("guilty", wrapper=wrapper, **plain)  # noqa: E731
            yield f"a wrapper of {hook}: {when}", Place(plugin, **late)


# The plugin itself, and its settings -----------------------------------------------------------------------------


class AttributeFails:
    @hookimpl
    def provide_tools(self, settings: Any) -> list[Any]:
        return [guilty_plain]

    @property
    def broken(self) -> Any:
        boom()


class AnyAttributeFails:
    def __getattr__(self, name: str) -> Any:
        boom()


class DirFails:
    def __dir__(self) -> Any:
        boom()


def settings_of(**terms: Any) -> Callable[[], ModuleType]:
    cls = attrs.make_class("Settings", {"unit": attrs.field(type=str, **terms)})
    return with_(settings_type=lambda: cls)


@attrs.frozen
class Built:
    unit: str = "c"

    def __attrs_post_init__(self) -> None:
        boom()


ITSELF: dict[str, Place] = {
    "an attribute of the plugin": Place(lambda: named(AttributeFails()), silent=True),
    "any attribute of the plugin": Place(lambda: named(AnyAttributeFails()), "failed", False),
    "the plugin's __dir__": Place(lambda: named(DirFails()), "failed", False),
    "settings_type": Place(with_(settings_type=failing), "failed", False),
    "a default of the settings": Place(settings_of(factory=failing), "failed", False),
    "a validator of the settings": Place(settings_of(default="c", validator=boom), "failed", False),
    "a converter of the settings": Place(settings_of(default="c", converter=boom), "failed", False),
    "the class of the settings": Place(with_(settings_type=lambda: Built), "failed", False),
}


def named(plugin: Any) -> Any:
    type(plugin).__name__ = "guilty"
    return plugin


# Types, injectors, converters ------------------------------------------------------------------------------------


def plan(structure: Any = lambda text: Rare(), unstructure: Any = lambda value: "rare", **terms: Any) -> Any:
    schema = terms.get("schema", {"type": "string"})
    return lambda: TypeHandler(Rare, lambda annotation, types: TypePlan(schema, structure, unstructure))


def generator() -> Iterator[Rare]:
    yield Rare()
    boom()


async def later() -> Rare:
    boom()


async def later_generator() -> AsyncIterator[Rare]:
    yield Rare()
    boom()


def provides(resolve: Any) -> Callable[[], ModuleType]:
    return of("provide_injectors", lambda: Injector(Rare, resolve), guilty_takes)


def misread(other: "boom()") -> Rare:  # type: ignore[valid-type]
    return Rare()


def gives(toolkit: Toolkit) -> None:
    """What no converter fits is written somehow."""
    toolkit.call_sync("guilty_gives")


TYPES: dict[str, Place] = {
    "TypeHandler: matches": Place(of("provide_types", lambda: TypeHandler(boom, boom), guilty_takes)),
    "TypeHandler: build": Place(of("provide_types", lambda: TypeHandler(Rare, boom), guilty_takes)),
    "TypeHandler: structure": Place(of("provide_types", plan(boom), guilty_takes), fails="guilty_takes"),
    "TypeHandler: unstructure": Place(of("provide_types", plan(unstructure=boom), guilty_gives), fails="guilty_gives"),
    "Injector: matches": Place(
        of("provide_injectors", lambda: Injector(lambda annotation: annotation is Rare and boom(), Rare), guilty_takes)
    ),
    "Injector: what it needs": Place(provides(misread)),
    "Injector: resolve": Place(provides(failing), fails="guilty_takes"),
    "Injector: async resolve": Place(provides(later), fails="guilty_takes"),
    "Injector: cleanup": Place(provides(generator), silent=True),
    "Injector: async cleanup": Place(provides(later_generator), silent=True),
    "Converter: matches": Place(of("provide_converters", lambda: Converter(boom, boom), guilty_gives), asks=gives),
    "Converter: convert": Place(
        of("provide_converters", lambda: Converter(Rare, boom), guilty_gives), fails="guilty_gives"
    ),
}


# Middleware, backends --------------------------------------------------------------------------------------------


def is_used(each: Any) -> bool:
    return bool(each.name == "guilty_used")


def guilty_used(text: str = "x") -> str:
    return text


async def async_around(call: ToolCall, proceed: Any) -> Any:
    boom()


async def async_after(call: ToolCall, proceed: Any) -> Any:
    await proceed()
    boom()


def after_proceed(call: ToolCall, proceed: Any) -> Any:
    proceed()
    boom()


def whole_calls(call: Any, proceed: Any) -> Any:
    return boom() if call.tool is not None and is_used(call.tool) else proceed()


def middleware(around: Any, **terms: Any) -> Callable[[], ModuleType]:
    return of("provide_middleware", lambda: Middleware(around, **{"applies": is_used} | terms), guilty_used)


def proceeding(call: ToolCall, proceed: Any) -> Any:
    return proceed()


class Backend:
    name = "guilty"

    def submit(self, job: Any) -> Any:
        future: Future[Any] = Future()
        future.set_result(job())
        return future

    def close(self) -> None: ...


class SubmitFails(Backend):
    def submit(self, job: Any) -> Any:
        boom()


class FutureFails(Backend):
    def submit(self, job: Any) -> Any:
        future: Future[Any] = Future()
        future.set_exception(boom.error("of the pack's own"))
        return future


class FutureIsNone(Backend):
    def submit(self, job: Any) -> Any:
        return None


class CloseFails(Backend):
    def close(self) -> None:
        boom()


class CheckFails(Backend):
    def check(self, each: Any) -> None:
        boom()


class NameFails(Backend):
    @property
    def name(self) -> str:  # type: ignore[override]
        boom()


class RunHereFails(Backend):
    keeps_time = True

    def run_here(self, job: Any) -> Any:
        boom()

    submit = SubmitFails.submit


@tool(backend="guilty")
def guilty_elsewhere(text: str = "x") -> str:
    return text


def backend(cls: type[Backend]) -> Callable[[], ModuleType]:
    return of("provide_backends", cls, guilty_elsewhere)


RUNNING: dict[str, Place] = {
    "Middleware: applies": Place(
        middleware(proceeding, applies=lambda each: is_used(each) and boom()), fails="guilty_used"
    ),
    "Middleware: around": Place(middleware(boom), fails="guilty_used"),
    "Middleware: after the call": Place(middleware(after_proceed), fails="guilty_used"),
    "Middleware: async": Place(middleware(async_around), fails="guilty_used"),
    "Middleware: async, after the call": Place(middleware(async_after), fails="guilty_used"),
    "Middleware: around whole calls": Place(middleware(whole_calls, whole=True, applies=None), fails="guilty_used"),
    "Middleware: no result": Place(middleware(lambda call, proceed: None), fails="guilty_used"),
    "Backend: submit": Place(backend(SubmitFails), fails="guilty_elsewhere"),
    "Backend: the future": Place(backend(FutureFails), fails="guilty_elsewhere"),
    "Backend: no future": Place(backend(FutureIsNone), fails="guilty_elsewhere"),
    "Backend: run_here": Place(backend(RunHereFails), fails="guilty_elsewhere"),
    "Backend: check": Place(backend(CheckFails)),
    "Backend: close": Place(backend(CloseFails), silent=True),
    "Backend: name": Place(backend(NameFails), "failed", False),
}


# Dialects: the program asks for each part, and hears of it -------------------------------------------------------


def dialect(**parts: Any) -> Callable[[], ModuleType]:
    return of("provide_dialects", lambda: Dialect("guilty", **{"tools": lambda tools: []} | parts))


def asked(part: str, *given: Any) -> Callable[[Toolkit], Any]:
    return lambda toolkit: getattr(toolkit.dialect("guilty"), part)(*given)


DIALECTS: dict[str, Place] = {
    "Dialect: tools": Place(dialect(tools=boom), raises=asked("tools")),
    "Dialect: calls": Place(dialect(calls=boom), raises=asked("calls", {})),
    "Dialect: results": Place(dialect(results=boom), raises=asked("messages", [])),
    "Dialect: tool_choice": Place(dialect(tool_choice=boom), raises=asked("tool_choice", "auto")),
    "Dialect: lint": Place(dialect(lint=boom), raises=asked("lint")),
    "Dialect: collector": Place(dialect(collector=boom), raises=asked("collector")),
    "Dialect: external": Place(dialect(external=boom), raises=asked("external", [])),
}


# Tools and their sources -----------------------------------------------------------------------------------------


class Live:
    name = "live"
    problems = ()

    def watch(self, changed: Any) -> Callable[[], None]:
        return lambda: None

    def tools(self) -> list[Any]:
        return []


class LiveToolsFail(Live):
    def tools(self) -> list[Any]:
        boom()


class LiveHalfWay(Live):
    def tools(self) -> Any:
        yield guilty_used
        boom()


class LiveWatchFails(Live):
    def watch(self, changed: Any) -> Callable[[], None]:
        boom()


class LiveEndFails(Live):
    def watch(self, changed: Any) -> Callable[[], None]:
        return boom


class LiveNameFails(Live):
    @property
    def name(self) -> str:  # type: ignore[override]
        boom()


class LiveProblemsFail(Live):
    @property
    def problems(self) -> Any:  # type: ignore[override]
        boom()


class LiveChangesAndFails(Live):
    """Fails when it is asked for the second time, after it said that something changed."""

    def __init__(self) -> None:
        self.changed: list[Callable[[], None]] = []
        self.is_broken = False

    def watch(self, changed: Any) -> Callable[[], None]:
        self.changed.append(changed)
        return lambda: None

    def tools(self) -> list[Any]:
        return boom() if self.is_broken else []


def change(toolkit: Toolkit) -> None:
    """The failure goes to where the source says that it changed, which is its own code."""
    (source,) = CHANGING
    source.is_broken = True
    for changed in source.changed:
        with suppress(boom.error):
            changed()


CHANGING: list[LiveChangesAndFails] = []


def changing() -> LiveChangesAndFails:
    CHANGING[:] = [LiveChangesAndFails()]
    return CHANGING[0]


class Source:
    def tools(self) -> Any:
        yield guilty_used
        boom()


class WithProperty:
    @property
    def broken(self) -> Any:
        boom()

    @tool
    def with_property(self) -> str:
        return ""


class Written:
    name, description, parameters = "guilty_used", "By hand.", {"type": "object"}

    def call(self, call: ToolCall) -> Any:
        boom()


class WrittenBadly(Written):
    @property
    def description(self) -> str:  # type: ignore[override]
        boom()


class Default:
    def __repr__(self) -> str:
        boom()

    __eq__ = __hash__ = __bool__ = __repr__  # type: ignore[assignment]


def guilty_default(x: int = Default()) -> str:  # type: ignore[assignment]
    return "called"


def guilty_annotated(x: "boom()") -> str:  # type: ignore[valid-type]
    return ""


def guilty_yields() -> Iterator[str]:
    yield "half"
    boom()


async def guilty_waits() -> str:
    boom()


def tools(*items: Any) -> Callable[[], ModuleType]:
    """The guilty plugin that gives what these make beside its plain tool."""
    return lambda: pack("guilty", provide_tools=lambda settings: [guilty_plain, *(item() for item in items)])


def asking(source: Any) -> Any:
    return boom() if source is guilty_used else None


def registered(toolkit: Toolkit) -> None:
    """The program registers what the guilty plugin fails for: it is a function like any other."""
    toolkit.register(guilty_used)
    assert toolkit.call_sync("guilty_used", {"text": "a"}).text == "a"


def guilty_fails() -> str:
    boom()


SOURCES: dict[str, Place] = {
    "tools_from": Place(with_(tools_from=asking), "failed", asks=registered),
    "LiveSource: tools": Place(tools(LiveToolsFail)),
    "LiveSource: tools half way": Place(tools(LiveHalfWay)),
    "LiveSource: watch": Place(tools(LiveWatchFails)),
    "LiveSource: the end of watching": Place(tools(LiveEndFails), silent=True),
    "LiveSource: name": Place(tools(LiveNameFails)),
    "LiveSource: problems": Place(tools(LiveProblemsFail), silent=True),
    "LiveSource: tools once they changed": Place(tools(changing), asks=change, silent=True),
    "ToolSource: tools": Place(tools(Source)),
    "a class of tools": Place(tools(lambda: OfClass)),
    "a property of a class of tools": Place(tools(WithProperty), silent=True),
    "a tool by hand": Place(tools(Written), fails="guilty_used"),
    "the description of a tool by hand": Place(tools(WrittenBadly)),
    "a default value": Place(tools(lambda: guilty_default), silent=True),
    "an annotation": Place(tools(lambda: guilty_annotated)),
    "the terms of an offer": Place(tools(lambda: Offer(guilty_used, rename=boom))),
    "a module behind an import string": Place(
        tools(lambda: "tests.ecosystem.breaks:tool"), asks=lambda toolkit: toolkit.call_sync("tool")
    ),
    "a tool": Place(tools(lambda: guilty_fails), fails="guilty_fails"),
    "a tool that yields": Place(tools(lambda: guilty_yields), fails="guilty_yields"),
    "an async tool": Place(tools(lambda: guilty_waits), fails="guilty_waits"),
}


PLACES: dict[str, Place] = {
    **dict(failing_hooks()),
    **dict(failing_wrappers()),
    **ITSELF,
    **TYPES,
    **RUNNING,
    **DIALECTS,
    **SOURCES,
}
