"""The hooks that a plugin may implement. Each docstring holds a complete plugin.

A plugin is a module (or an object) with `@pegboard.hookimpl` functions, named by an entry point:

    [project.entry-points.pegboard]
    acme = "pegboard_acme"

Hooks are called once, when a toolkit is put together; a call of a tool touches none of them. All are sync, return an
iterable (or what their docstring says) or None, and a hook that raises costs nothing but its own plugin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pluggy

from pegboard.extension import Command, Converter, Dialect, Guard, Injector, Middleware, TypeHandler

__all__ = [
    "GROUP",
    "hookimpl",
    "hookspec",
    "provide_backends",
    "provide_commands",
    "provide_converters",
    "provide_dialects",
    "provide_guards",
    "provide_injectors",
    "provide_middleware",
    "provide_tools",
    "provide_types",
    "settings_type",
    "tools_from",
]

GROUP = "pegboard"

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def settings_type() -> type | None:
    """The attrs class that this pack's section of the settings is structured into.

    Give every field a default: a pack should load without settings. Without the setting of a field that has none the
    plugin fails, and its record says what to write.

        import attrs
        import pegboard

        @attrs.frozen
        class Settings:
            unit: str = "celsius"

        @pegboard.hookimpl
        def settings_type():
            return Settings
    """


@hookspec
def provide_tools(settings: Any, toolkit: Any) -> Iterable[Any] | None:
    """The pack's tools: functions, `Tool`s, objects or classes with `@tool` methods, tool sources, or import strings.

    `settings` is an instance of what `settings_type` returned, else None. `toolkit` is the one that is being put
    together, None where plugins are loaded without one: keep it for what runs later, such as tools; before
    `Toolkit(...)` has returned it can do nothing. An import string `"pkg.module:attribute"` is imported on the tool's
    first use only. A live source is followed; an `Offer` is a source with terms; a `NotOffered` names tools that are
    not offered here, and says why.

        import pegboard

        @pegboard.tool
        def roll(sides: int = 6) -> int:
            "Roll a die."
            import random
            return random.randint(1, sides)

        @pegboard.hookimpl
        def provide_tools(settings, toolkit):
            return [roll]
    """


@hookspec(firstresult=True)
def tools_from(source: Any) -> Iterable[Any] | None:
    """How an object becomes tools; None to pass. The first answer wins, the core's own plugin is asked last.

    It is asked about functions, objects, classes and tools by hand too. A plugin is not asked about what it answered
    itself; an object that is its own answer is read as a function.

    import pegboard
    from acme import AcmeClient

    @pegboard.hookimpl
    def tools_from(source):
        if isinstance(source, AcmeClient):
            return [source.search, source.fetch]
        return None
    """


@hookspec
def provide_types(settings: Any) -> Iterable[TypeHandler] | None:
    """Type handlers: how annotations become JSON Schema and JSON values become Python values.

    import pegboard
    from acme import Money

    def build(annotation, types):
        schema = {"type": "string", "pattern": "^[0-9]+ [A-Z]{3}$"}
        return pegboard.TypePlan(schema, structure=Money.parse, unstructure=str)

    @pegboard.hookimpl
    def provide_types(settings):
        return [pegboard.TypeHandler(Money, build)]
    """


@hookspec
def provide_injectors(settings: Any) -> Iterable[Injector] | None:
    """Injectors: parameters of a type that the program provides and the model never sees.

    import pegboard
    from acme import Connection, Pool

    def connection(pool: pegboard.Injected[Pool]):
        with pool.connect() as opened:
            yield opened

    @pegboard.hookimpl
    def provide_injectors(settings):
        return [pegboard.Injector(Connection, connection)]
    """


@hookspec
def provide_converters(settings: Any) -> Iterable[Converter] | None:
    """Converters: how returned values become content.

    import pegboard
    from acme import Chart

    def convert(chart):
        return pegboard.ImageBlock.from_bytes(chart.png(), "image/png")

    @pegboard.hookimpl
    def provide_converters(settings):
        return [pegboard.Converter(Chart, convert)]
    """


@hookspec
def provide_middleware(settings: Any) -> Iterable[Middleware] | None:
    """Middleware: code around every call of the tools that it applies to.

    import pegboard

    async def around(call, proceed):
        result = await proceed()
        print(call.name, result.status.value)
        return result

    @pegboard.hookimpl
    def provide_middleware(settings):
        return [pegboard.Middleware(around, name="print")]
    """


@hookspec
def provide_guards(settings: Any) -> Iterable[Guard] | None:
    """Guards: which tools are offered, which ask and what a call may do, the strictest of all.

    import pegboard

    def judge(tool):
        if tool.hints.destructive:
            return pegboard.Verdict(permission="prompt", reason="it cannot be undone")
        return None

    @pegboard.hookimpl
    def provide_guards(settings):
        return [pegboard.Guard(judge, name="careful")]
    """


@hookspec
def provide_backends(settings: Any) -> Iterable[Any] | None:
    """Execution backends that sync tools can name: `@tool(backend="single")`.

    from concurrent.futures import ThreadPoolExecutor
    import pegboard

    class Single:
        name = "single"

        def __init__(self):
            self._pool = ThreadPoolExecutor(1)

        def submit(self, job):
            return self._pool.submit(job)

        def close(self):
            self._pool.shutdown()

    @pegboard.hookimpl
    def provide_backends(settings):
        return [Single()]
    """


@hookspec
def provide_dialects(settings: Any) -> Iterable[Dialect] | None:
    """Provider dialects: `toolkit.schemas(dialect="acme")`.

    import pegboard

    def tools(tools):
        return [{"fn": tool.name, "doc": tool.description, "args": tool.parameters} for tool in tools]

    @pegboard.hookimpl
    def provide_dialects(settings):
        return [pegboard.Dialect("acme", tools)]
    """


@hookspec
def provide_commands(settings: Any) -> Iterable[Command] | None:
    """Commands for the `pegboard` command line.

    import pegboard

    def run(arguments):
        print("hello", *arguments)
        return 0

    @pegboard.hookimpl
    def provide_commands(settings):
        return [pegboard.Command("hello", "Say hello.", run)]
    """
