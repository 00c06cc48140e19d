"""A job as an order to a worker: data alone, with errors that say what cannot leave the program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from pegboard import Job, Tool, TransferError
from pegboard.inspection import plugins_of
from pegboard_process.wire import NotDataError, carried, encoded, installed_packs, named
from pegboard_ray._checks import listens, path_of, task_options
from pegboard_ray._order import Order, Wanted, schema_digest
from pegboard_ray._settings import REMEDY_FOR_SECRETS
from pegboard_ray._worker import release_of

if TYPE_CHECKING:
    from pegboard_ray._settings import Settings

__all__ = ["Known", "Orders", "written"]

_ELSEWHERE: Final = 'or let the tool run here, with backend="thread"'
_PLAIN: Final = f"make it JSON or bytes, {_ELSEWHERE}"


_TOGETHER: Final = 64
"""Calls in one task, at most."""
_LONG: Final = 0.02
"""Seconds that the calls of one task take together, on average; a task itself takes half a millisecond."""


@final
class Pace:
    """How long the calls of a tool take, and so how many of them share a task."""

    def __init__(self, tool: Tool, *, listens: bool) -> None:
        hints = tool.hints
        harmless = hints.read_only is True if hints.idempotent is None else hints.idempotent
        # Calls that a failed task has not answered begin again. Calls of a tool that can end by itself have a task
        # each.
        self._shares = harmless and not listens
        self._seconds = self._calls = 0.0

    def took(self, seconds: float, calls: int) -> None:
        """Record how long the calls of a task took; older records count less."""
        self._seconds = self._seconds * 0.9 + seconds
        self._calls = self._calls * 0.9 + calls

    @property
    def together(self) -> int:
        """How many calls one task has; 1 for a tool whose calls have one each."""
        if not (self._shares and self._calls):
            return 1
        return max(1, min(_TOGETHER, int(_LONG * self._calls / max(self._seconds, 1e-6))))


class Known(NamedTuple):
    """What all calls of a tool have in common."""

    wanted: str
    options: dict[str, Any]
    shape: str
    listens: bool
    model: frozenset[str]
    """The parameters that the model would know, if no presets were."""
    pace: Pace
    settings: Settings


@final
class Orders:
    """Writes orders for one toolkit."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[tuple[Tool, Any], Known] = {}

    def known(self, job: Job) -> Known:
        """What is known of the job's tool."""
        key = job.tool, plugins_of(job.toolkit)
        if key not in self._known:
            self._known[key] = self._read(job)
        return self._known[key]

    def together(self, job: Job) -> int:
        """How many calls of the job's tool have one task, as far as is known."""
        known = self._known.get((job.tool, plugins_of(job.toolkit)))
        return 1 if known is None else known.pace.together

    def _read(self, job: Job) -> Known:
        tool, plugins = job.tool, plugins_of(job.toolkit)
        types = installed_packs(plugins, "provide_types", "provide_converters")
        own = {tool.origin.plugin} if tool.origin.distribution is not None else set()
        wanted = Wanted(
            plugin=tool.origin.plugin,
            name=tool.source_name or tool.name,
            path=path_of(tool.function),
            schema=schema_digest(tool),
            release=release_of(tool.origin.distribution),
            pegboard=version("pegboard"),
            packs=sorted(filter(None, {*own, *types})),
            types=list(types),
            targets=list(self._settings.tools),
            groups=[each.name for each in job.toolkit.groups],
        )
        options = task_options(tool)
        shape = json.dumps(options, sort_keys=True)
        model = frozenset(parameter.name for parameter in tool.params if parameter.source in ("model", "preset"))
        heard = listens(tool)
        return Known(json.dumps(wanted), options, shape, heard, model, Pace(tool, listens=heard), self._settings)


def written(job: Job, known: Known, key: str) -> bytes:
    """The order for a job. Raises `TransferError` for what must not leave the program, or cannot."""
    args, kwargs = job.arguments()  # what was decided anew since the job was submitted holds for it
    presets: dict[str, Any] = {}
    if hidden := known.model - job.shown:
        if job.has_secrets and not known.settings.secrets:
            raise TransferError("a secret that the program provides may not leave it", {"remedy": REMEDY_FOR_SECRETS})
        values = named(job, args, kwargs)
        presets = {name: values[name] for name in hidden & values.keys() - job.json_arguments.keys()}
    heard, timeout, grace = job.emitter.heard, job.timeout, known.settings.grace
    order = Order(key, job.call.id, dict(job.json_arguments), presets, heard, timeout, grace, carried())
    try:
        return order.packed()
    except NotDataError:
        raise TransferError("a value that the program provides cannot be sent", _blamed(presets)) from None


def _blamed(presets: Mapping[str, Any]) -> dict[str, str]:
    for name, value in presets.items():
        try:
            encoded(value)
        except NotDataError:
            return {"parameter": name, "type": type(value).__qualname__, "remedy": _PLAIN}
    return {"remedy": _PLAIN}
