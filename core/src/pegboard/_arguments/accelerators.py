"""Accelerators: what plugins offer to do faster, under the rules of the core.

An accelerator only ever says yes. Where it raises, fails to load or says no, the core's own code decides and words the
error, so that every result is the same with it and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, final

from pegboard._arguments.decode import DEFAULT_LIMITS, check_depth, decode, fast_decode, has_every_key
from pegboard._base.effects import is_interrupt
from pegboard._base.errors import describe_exception
from pegboard._model.shapes import JsonSchema
from pegboard.extension import Accelerator

__all__ = ["Accelerators", "FastDecode"]

FastDecode: TypeAlias = Callable[[str], tuple[dict[str, Any], int]]


@final
class Accelerators:
    """The accelerators of one toolkit: the first of each kind. `decode` and `read` are the core's own where none is."""

    __slots__ = ("_loaded", "decode", "offered", "problems", "read")

    def __init__(self) -> None:
        self.use(())

    def use(self, offered: Iterable[Accelerator]) -> None:
        """Use these from now on."""
        self.offered = tuple(offered)
        self.problems: list[str] = []
        """A sentence for each accelerator that failed to load."""
        self._loaded = {each.kind: _Loaded(each, self.problems) for each in reversed(self.offered)}
        decoder = self._loaded.get("decode")
        self.decode: FastDecode = _decoding(decoder) if decoder else fast_decode
        """`_decode.fast_decode`, or the same through the accelerator."""
        self.read: Callable[[Any], dict[str, Any]] = _reading(self.decode)
        """`_decode.decode`, or the same through the accelerator."""

    @property
    def used(self) -> dict[str, str]:
        """The names of the accelerators by kind, without those that failed to load."""
        return {kind: each.accelerator.name for kind, each in sorted(self._loaded.items()) if not each.failed}

    def quick(self, schema: JsonSchema) -> Callable[[Any], bool] | None:
        """A predicate that is true only for values that fit a foreign schema; None where there is none for it."""
        validator = self._loaded.get("validator")
        if validator is None:
            return None
        try:
            fits = validator.function()(schema)
        except BaseException as error:  # whatever a library says of a schema, jsonschema has accepted it
            if is_interrupt(error):
                raise
            return None

        def surely_fits(value: Any) -> bool:
            try:
                return fits(value) is True
            except BaseException as error:  # a library in another language may raise anything
                if is_interrupt(error):
                    raise
                return False

        return None if fits is None else surely_fits


@final
class _Loaded:
    """An accelerator, and what it loads on first use."""

    __slots__ = ("_function", "_problems", "accelerator", "failed")

    def __init__(self, accelerator: Accelerator, problems: list[str]) -> None:
        self.accelerator = accelerator
        self.failed = False
        self._problems = problems
        self._function: Callable[..., Any] | None = None

    def function(self) -> Callable[..., Any]:
        """What `load` returned; where that failed, a function that raises."""
        if self._function is None:
            try:
                self._function = self.accelerator.load()
            except BaseException as error:  # a broken wheel may raise anything
                if is_interrupt(error):
                    raise
                self.failed = True
                self._problems.append(
                    f"the accelerator {self.accelerator.name} cannot be used: {describe_exception(error)}"
                )
                self._function = _unusable
        return self._function


def _unusable(text: Any) -> Any:
    raise ValueError("this accelerator failed to load")


def _decoding(decoder: _Loaded) -> FastDecode:
    loads: Callable[[str], Any] | None = None
    shortest, longest, levels = decoder.accelerator.shortest, DEFAULT_LIMITS.size, DEFAULT_LIMITS.depth
    flat = 2 * levels  # characters: each level takes two

    def fast_decode_with(text: str) -> tuple[dict[str, Any], int]:
        nonlocal loads
        size = len(text)
        if shortest <= size <= longest:
            if loads is None:
                loads = decoder.function()
            try:
                if size > flat and text.count("{") + text.count("[") > levels:
                    check_depth(text)
                value = loads(text)
            except BaseException as error:  # read again below, for the decision and the message
                if is_interrupt(error):
                    raise
            else:
                if type(value) is dict:
                    return value, text.count(":")
        return fast_decode(text)

    return fast_decode_with


def _reading(fast: FastDecode) -> Callable[[Any], dict[str, Any]]:
    def read(sent: Any) -> dict[str, Any]:
        if type(sent) is str:
            value, keys = fast(sent)
            if has_every_key(value, keys, sent):
                return value
        return decode(sent)

    return read
