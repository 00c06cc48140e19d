"""Built-in converters: bytes become images, audio, video or files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pegboard.extension import Converter
from pegboard.hookspecs import hookimpl


@hookimpl
def provide_converters() -> Iterable[Converter]:
    """Bytes in their three forms."""
    return [Converter(kind, _block) for kind in (bytes, bytearray, memoryview)]


def _block(content: Any) -> Any:
    from pegboard.builtin.sniffing import bytes_block

    return bytes_block(content)
