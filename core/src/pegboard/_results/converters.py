"""Result conversion: from what a tool returned or yielded to content blocks and data."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Generator
from copy import copy
from functools import partial
from typing import Any, TypeAlias, cast, final

from pegboard._base.effects import cancellation, pass_interrupt
from pegboard._base.errors import describe_exception
from pegboard._base.jsonable import IMMUTABLE, Unstructure, dump_json, jsonable, spellable
from pegboard._base.markers import MISSING
from pegboard._base.redaction import Redaction
from pegboard._model.call import CancelToken, Emitter
from pegboard._model.result import Block, DataBlock, Rendering, TextBlock, ToolOutput, ToolResult, Unrendered, rendered
from pegboard._model.shapes import Convert, FixedItems, Items, Nullable, Record, TypePlan, Union
from pegboard._model.tool import Origin
from pegboard._types.annotations import qualified_name
from pegboard._types.table import Ranking, Remembered
from pegboard.extension import Converter

Renderer: TypeAlias = Callable[[Any], Rendering | Unrendered]


def is_content(plan: TypePlan) -> bool:
    """Whether values of this type are content, alone or in an array, and not data, although a handler maps it."""
    match plan.shape:
        case Record(build=build):
            return isinstance(build, type) and issubclass(build, Block | ToolOutput | ToolResult)
        case Items() | FixedItems() | Nullable() | Union() as shape:
            return any(map(is_content, shape.parts()))
    return False


class ConverterTable(Ranking):
    """The converters of one toolkit: program > plugins > built-in, then priority, then the nearest class."""

    def meet(self, cls: type) -> Convert | None:
        """The converter for values of `cls`, or None."""
        known = self._known.get(cls, MISSING)  # once: another thread may empty the table between two looks
        if known is MISSING:
            best = self.best(partial(self._nearness, cls), "convert", cls)
            known = self._known[cls] = None if best is None else best.convert
        return cast("Convert | None", known)

    def _nearness(self, cls: type, converter: Converter, origin: Origin) -> int | None:
        """How well one fits: 0 for the class itself, less for a base, least for a predicate; None if not at all."""
        if isinstance(converter.matches, type):
            return -cls.__mro__.index(converter.matches) if converter.matches in cls.__mro__ else None
        try:
            return -1000 if converter.matches(cls) else None
        except (TypeError, AttributeError):  # as `issubclass` and the like raise: that means no
            return None
        except BaseException as error:  # noqa: BLE001 - a plugin's predicate may raise anything
            pass_interrupt(error)
            name = qualified_name(cls)
            self._met[f"{origin} {name}"] = f"the converter of {origin} failed for {name}: {describe_exception(error)}"
            return None


@final
class Renderers:
    """How the values of one tool are rendered, remembered by class; `by_type[cls]` is `(renderer, lazy)`.

    `convert` is the tool's own converter, `promised` writes what its annotation promises.
    """

    def __init__(
        self, table: ConverterTable, unstructure: Unstructure, convert: Convert | None, promised: Convert | None
    ) -> None:
        self._table = table
        self._unstructure = unstructure
        self._convert = convert
        self._promised = promised
        self.redact: Redaction | None = None
        self.by_type: dict[type, tuple[Renderer, bool]] = Remembered()

    def guarded(self, redact: Redaction) -> Renderers:
        """The same for a tool that has secrets, which no repr of its results may show."""
        made = copy(self)
        made.redact, made.by_type = redact, Remembered()
        return made

    def of(self, cls: type) -> tuple[Renderer, bool]:
        """The renderer of a class, and whether its values may wait until they are looked at."""
        known = self.by_type.get(cls)
        if known is None:
            render, lazy = self._choose(cls)
            known = render if self.redact is None else partial(guarded, render, self.redact), lazy
            self.by_type[cls] = known
        return known

    def of_scalar(self, cls: type) -> tuple[Renderer, bool] | None:
        """The same for a scalar's class; None for any other, whose values may have to be awaited or drawn first."""
        return self.of(cls) if cls in IMMUTABLE else None

    def _choose(self, cls: type) -> tuple[Renderer, bool]:
        convert = self._convert or self._table.meet(cls)
        if convert is not None:
            return (lambda value: self._render_any(convert(value))), False
        if issubclass(cls, Block):
            return _render_block, False
        if self._promised is not None and cls is not str:
            return self._unstructuring(self._promised), cls in IMMUTABLE
        # What cannot change after the call may be rendered when it is looked at.
        return (_render_scalar, True) if cls in IMMUTABLE else (self._render_any, False)

    def _unstructuring(self, unstructure: Convert) -> Renderer:
        def render(value: Any) -> Rendering | Unrendered:
            try:
                data = unstructure(value)
            except Exception:  # noqa: BLE001 - a function may return something else than it promised
                return self._render_any(value)
            return self._render_any(data)

        return render

    def _render_any(self, value: Any) -> Rendering | Unrendered:
        if isinstance(value, Block):
            return _render_block(value)
        if type(value) in IMMUTABLE:
            return _render_scalar(value)
        if isinstance(value, list | tuple) and any(isinstance(item, Block) for item in value):
            items = [rendered(item, self._render_any(item)) for item in value]
            return tuple(block for blocks, _ in items for block in blocks), None
        data = jsonable(value, self._unstructure)  # as it is now; its text can wait until it is read
        return _render_scalar(data) if type(data) is str else (lambda _: ((TextBlock(dump_json(data)),), data))


def guarded(found: Rendering | Unrendered, redact: Redaction, value: Any) -> Any:
    """The rendering, and with it what takes secrets out of its text where people look at it."""
    return *rendered(value, found)[:2], redact


def _render_scalar(value: Any) -> Rendering:
    if type(value) is str:
        return (TextBlock(value),), value
    if type(value) is float and not math.isfinite(value):  # what JSON cannot carry is text alone
        return (TextBlock("NaN" if value != value else "Infinity" if value > 0 else "-Infinity"),), None  # noqa: PLR0124
    if type(value) is int:
        value = spellable(value)
    return (TextBlock(value if type(value) is str else dump_json(value)),), value


def _render_block(block: Block) -> Rendering:
    data = block.data if isinstance(block, DataBlock) else block.text if isinstance(block, TextBlock) else None
    return (block,), data


# Tools that yield: each yield is a chunk; the result is the returned value, else what was yielded --------------------


def drain(stream: Generator[Any, Any, Any], emitter: Emitter | None, token: CancelToken, yielded: list[Any]) -> Any:
    """Draw a generator to its end, or until it is asked to stop; its return value, or what it yielded.

    What it yields is added to `yielded`, for a result that says how far it came.
    """
    while True:
        if token._cancelled:  # as `cancelled`, without its frame
            stream.close()
            raise cancellation(token.reason)
        try:
            item = next(stream)
        except StopIteration as stop:
            return joined(yielded) if stop.value is None else stop.value
        yielded.append(item)
        if emitter is not None:
            emitter.emit(_chunk(item))


async def drain_async(stream: AsyncGenerator[Any, Any], emitter: Emitter | None, yielded: list[Any]) -> Any:
    """Draw an async generator to its end; what it yielded, as above. It waits while the listener has no room."""
    try:
        async for item in stream:
            yielded.append(item)
            if emitter is not None:
                emitter.emit(_chunk(item))
                await emitter.drain()
    finally:
        await stream.aclose()
    return joined(yielded)


def _chunk(item: Any) -> str | Block:
    return item if isinstance(item, str | Block) else dump_json(jsonable(item))


def joined(yielded: list[Any]) -> Any:
    """Texts joined, blocks appended; anything else stays a list."""
    if not yielded:
        return None
    if all(isinstance(item, str) for item in yielded):
        return "".join(yielded)
    if not all(isinstance(item, str | Block) for item in yielded):
        return yielded
    text = "".join(item for item in yielded if isinstance(item, str))
    blocks = [item for item in yielded if isinstance(item, Block)]
    return [TextBlock(text), *blocks] if text else blocks


def shown(value: Any) -> tuple[Block, ...]:
    """What was yielded, joined, as blocks for the model."""
    if isinstance(value, list) and all(isinstance(item, Block) for item in value):
        return tuple(value)
    chunk = _chunk(value)
    return (TextBlock(chunk) if isinstance(chunk, str) else chunk,)
