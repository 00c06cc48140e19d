"""Media: their types by their first bytes, the inputs that a model names, and the results."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, final

from attrs import frozen

from pegboard import AudioBlock, Block, ImageBlock, TextBlock, ToolError, ToolOutput, VideoBlock
from pegboard_net import MAX_BYTES, Guard, UrlError, redacted

if TYPE_CHECKING:
    from pegboard_files import ConfinedFolder

__all__ = ["Inputs", "Medium", "Outputs", "UnsuitableMediaError", "about", "sniff"]

T = TypeVar("T")
Kind: TypeAlias = Literal["image", "audio", "video"]

MAX_PIXELS: Final = 100_000_000
_DAMAGED: Final = "{} is a damaged image: it does not say how large it is."

_BLOCKS: Final[dict[str, Any]] = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}
_SIGNATURES: Final = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF....WEBP", "image/webp"),
    (rb"BM.{4}\0{4}", "image/bmp"),
    (rb"RIFF....WAVE", "audio/wav"),
    (rb"fLaC", "audio/flac"),
    (rb"OggS", "audio/ogg"),
    (rb"ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]", "audio/mpeg"),
    (rb"\xff[\xf0\xf1\xf8\xf9]", "audio/aac"),
    (rb".{4}ftypM4[AB] ", "audio/mp4"),
    (rb".{4}ftypqt  ", "video/quicktime"),
    (rb".{4}ftyp(?!avi[fs]|hei[cfmsx]|hev[cmsx]|mif1|msf1)", "video/mp4"),
    (rb"\x1aE\xdf\xa3", "video/webm"),
)
_SUFFIXES: Final = {"image/jpeg": "jpg", "audio/mpeg": "mp3", "audio/mp4": "m4a", "video/quicktime": "mov"}


class UnsuitableMediaError(ToolError):
    """What was given is no image, no audio and no video that can be used here."""


@frozen
class Medium:
    """An image, a recording or a video."""

    content: bytes
    media_type: str

    @property
    def kind(self) -> str:
        """`image`, `audio` or `video`."""
        return self.media_type.partition("/")[0]

    @property
    def suffix(self) -> str:
        """What the name of such a file ends in."""
        return _SUFFIXES.get(self.media_type, self.media_type.partition("/")[2])

    @property
    def data_url(self) -> str:
        """The medium as a `data:` URL."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.content).decode('ascii')}"

    def block(self) -> Block:
        """The medium as content of a result."""
        block: Block = _BLOCKS[self.kind].from_bytes(self.content, self.media_type)
        return block


# What bytes are -------------------------------------------------------------------------------------------------------


def sniff(content: bytes) -> str | None:
    """The media type, by how it begins, whatever type it is declared to be; None for types that are not used here."""
    for pattern, media_type in _SIGNATURES:
        if re.match(pattern, content, re.DOTALL):
            return media_type
    return None


def about(content: bytes) -> dict[str, Any]:
    """Metadata for a program: `media_type`, `size` in bytes, `width` and `height` or `duration` in seconds."""
    media_type = sniff(content)
    found: dict[str, Any] = {"media_type": media_type, "size": len(content)}
    try:
        if media_type in _DIMENSIONS:
            found["width"], found["height"] = _DIMENSIONS[media_type](content)
        elif media_type in _DURATIONS:
            found["duration"] = round(_DURATIONS[media_type](content), 3)
    except (LookupError, ValueError, ZeroDivisionError):
        pass  # damaged, or of an unknown kind: what was found so far is kept
    return found


def _number(content: bytes, at: int, length: int, order: Literal["little", "big"] = "big") -> int:
    piece = content[at : at + length]
    if len(piece) < length:
        raise ValueError("cut off")
    return int.from_bytes(piece, order)


def _jpeg_size(content: bytes) -> tuple[int, int]:
    at = 2
    while True:
        while _number(content, at, 2) == 0xFFFF:
            at += 1
        marker = content[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _number(content, at + 7, 2), _number(content, at + 5, 2)
        at += 2 + _number(content, at + 2, 2)


def _webp_size(content: bytes) -> tuple[int, int]:
    form = content[12:16]
    if form == b"VP8X":
        return _number(content, 24, 3, "little") + 1, _number(content, 27, 3, "little") + 1
    if form == b"VP8L":
        bits = _number(content, 21, 4, "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return _number(content, 26, 2, "little") & 0x3FFF, _number(content, 28, 2, "little") & 0x3FFF


_DIMENSIONS: Final[dict[str | None, Callable[[bytes], tuple[int, int]]]] = {
    "image/png": lambda content: (_number(content, 16, 4), _number(content, 20, 4)),
    "image/gif": lambda content: (_number(content, 6, 2, "little"), _number(content, 8, 2, "little")),
    "image/bmp": lambda content: (_number(content, 18, 4, "little"), abs(_signed(content, 22))),
    "image/jpeg": _jpeg_size,
    "image/webp": _webp_size,
}


def _signed(content: bytes, at: int) -> int:
    number = _number(content, at, 4, "little")
    return number - (1 << 32) if number >> 31 else number


def _wav_duration(content: bytes) -> float:
    at, rate = 12, 0
    while True:
        name, length = content[at : at + 4], _number(content, at + 4, 4, "little")
        if name == b"fmt ":
            rate = _number(content, at + 16, 4, "little")
        if name == b"data":  # a stream's length is not known when it begins
            return min(length, len(content) - at - 8) / rate
        at += 8 + length + length % 2


def _flac_duration(content: bytes) -> float:
    return (_number(content, 21, 5) & 0xFFFFFFFFF) / (_number(content, 18, 3) >> 4)


def _ogg_duration(content: bytes) -> float:
    last = content.rindex(b"OggS")
    at = content.find(b"\x01vorbis")
    rate = 48_000 if at < 0 else _number(content, at + 12, 4, "little")  # what Opus always counts in
    return _number(content, last + 6, 8, "little") / rate


# Of MPEG 1, 2 and 2.5, layer III; kilobits and samples per second.
_KILOBITS: Final = (
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
)
_RATES: Final = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


def _mp3_duration(content: bytes) -> float:
    """The sum of all frames: bit rates may change on the way."""
    at = 0
    if content.startswith(b"ID3"):
        length = _number(content, 6, 4)
        at = 10 + sum((length >> 8 * place & 0x7F) << 7 * place for place in range(4))
    seconds = 0.0
    while at + 4 <= len(content) and content[at] == 0xFF and content[at + 1] & 0xE6 == 0xE2:
        version = content[at + 1] >> 3 & 3
        rate = _RATES[version][content[at + 2] >> 2 & 3]
        kilobits = _KILOBITS[version != 3][content[at + 2] >> 4]
        samples = 1152 if version == 3 else 576
        seconds += samples / rate
        at += max(samples // 8 * kilobits * 1000 // rate + (content[at + 2] >> 1 & 1), 4)
    if not seconds:
        raise ValueError("no frames")
    return seconds


def _mp4_duration(content: bytes) -> float:
    at = content.index(b"mvhd") + 4
    if content[at] == 1:
        return _number(content, at + 24, 8) / _number(content, at + 20, 4)
    return _number(content, at + 16, 4) / _number(content, at + 12, 4)


_DURATIONS: Final[dict[str | None, Callable[[bytes], float]]] = {
    "audio/wav": _wav_duration,
    "audio/flac": _flac_duration,
    "audio/ogg": _ogg_duration,
    "audio/mpeg": _mp3_duration,
    "audio/mp4": _mp4_duration,
    "video/mp4": _mp4_duration,
    "video/quicktime": _mp4_duration,
}


# Inputs ---------------------------------------------------------------------------------------------------------------


def checked(content: bytes, *kinds: str, what: str = "this") -> Medium:
    """What was given, if it is of one of these kinds. Raises `UnsuitableMediaError`."""
    media_type = _fitting(content, kinds, what)
    medium = Medium(content, media_type)
    if medium.kind == "image":
        found = about(content)
        if "width" not in found:
            raise UnsuitableMediaError(_DAMAGED.format(what))
        if found["width"] * found["height"] > MAX_PIXELS:
            size = f"{found['width']:,} x {found['height']:,} pixels"
            raise UnsuitableMediaError(f"{what} has {size}; at most {MAX_PIXELS:,} are taken. Use a smaller one.")
    return medium


def _fitting(content: bytes, kinds: tuple[str, ...], what: str) -> str:
    media_type = sniff(content)
    if media_type is not None and media_type.startswith(kinds):
        return media_type
    is_svg = re.search(rb"<svg[\s>]", content[:4096], re.IGNORECASE)
    found = media_type or ("SVG, which is not taken" if is_svg else "of no kind that is known here")
    raise UnsuitableMediaError(f"{what} is no {' or '.join(kinds)}: by its content it is {found}.")


@final
class Inputs:
    """Reads what a model names: a file in the base directory, a `data:` URL, or a public http(s) URL."""

    def __init__(self, guard: Guard, folder: ConfinedFolder | None, max_bytes: int = MAX_BYTES) -> None:
        self.guard = guard
        self._folder = folder
        self._max_bytes = max_bytes

    async def read(self, source: str, *kinds: Kind) -> Medium:
        """The medium, if it is of one of these kinds. Raises `ToolError`, which says what to name instead."""
        scheme = re.match(r"\s*([a-z][a-z0-9+.-]+):", source, re.IGNORECASE)
        match scheme and scheme[1].lower():
            case "data":
                return checked(self._decoded(source), *kinds, what="the data: URL")
            case "http" | "https":
                name = redacted(source)
                found = await self.guard.fetch(source, look=lambda head: _fitting(head, kinds, name))
                return checked(found.content, *kinds, what=name)
            case None:
                return checked(await self._file(source), *kinds, what=redacted(source))
        places = "a path relative to the base directory, a data: URL or an http(s) URL"
        raise UnsuitableMediaError(f"{redacted(source)} cannot be read; name {places}.")

    async def _file(self, path: str) -> bytes:
        if self._folder is None:
            raise UnsuitableMediaError(
                f"{redacted(path)} cannot be read: these tools have no base directory. Name a data: or an http(s) URL."
            )
        return await aside(self._folder.read, path)

    def _decoded(self, url: str) -> bytes:
        head, comma, text = url.partition(",")
        if not comma or not head.rstrip().lower().endswith(";base64"):
            raise UnsuitableMediaError("A data: URL must be of the form data:<type>;base64,<data>.")
        if len(text) > self._max_bytes * 4 // 3 + 4:
            raise UnsuitableMediaError(f"The data: URL has more than {self._max_bytes:,} bytes.")
        try:
            return base64.b64decode(text.strip(), validate=True)
        except ValueError:
            raise UnsuitableMediaError("The data: URL holds no valid base64.") from None


# Results --------------------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """One medium that a provider gives: its bytes, or where they are."""

    content: bytes | None = None
    url: str | None = None


@final
class Outputs:
    """Makes results: blocks with bytes for the model, metadata for the program, and files in the base directory."""

    def __init__(self, guard: Guard, folder: ConfinedFolder | None, *, download: bool, save: bool) -> None:
        self._guard = guard
        self._folder = folder if save else None
        self._download = download

    async def result(self, tool: str, kind: Kind, made: Iterable[Made], **more: Any) -> ToolOutput:
        """The result of a tool. Raises `ToolError` for what is not what the provider said."""
        blocks: list[Block] = []
        found: list[Mapping[str, Any]] = []
        for each in made:
            if each.content is None and not self._download:
                blocks.append(_BLOCKS[kind](url=each.url))
                found.append({"url": each.url})
                continue
            with once():  # what was made was paid for
                medium = await self._medium(each, kind)
            known = about(medium.content) | ({"url": each.url} if each.url else {})
            if kind == "image" and "width" not in known:
                raise UnsuitableMediaError(_DAMAGED.format("what the provider sent"))
            if self._folder is not None:
                name = f"{tool}-{hashlib.sha256(medium.content).hexdigest()[:12]}.{medium.suffix}"
                await aside(self._folder.write, name, medium.content)
                known["path"] = name
            blocks.append(medium.block())
            found.append(known)
        saved = [str(each["path"]) for each in found if "path" in each]
        notes = [TextBlock(f"Saved as {', '.join(saved)}")] if saved else []
        return ToolOutput([*blocks, *notes], {**found[0], "media": found, **more})

    async def _medium(self, made: Made, kind: Kind) -> Medium:
        if made.content is not None:
            return Medium(made.content, _fitting(made.content, (kind,), "what the provider sent"))
        url = made.url or ""
        try:
            found = await self._guard.fetch(url, look=lambda head: _fitting(head, (kind,), redacted(url)))
        except UrlError as error:
            raise UrlError(f"The {kind} was made, but could not be fetched: {error} It is at {url}") from error
        return Medium(found.content, _fitting(found.content, (kind,), redacted(url)))


@contextmanager
def once() -> Iterator[None]:
    """What is done in here may cost money: a call whose time is up meanwhile is not begun again."""
    import asyncio

    try:
        yield
    except asyncio.CancelledError as error:
        error.retry_after = math.inf  # type: ignore[attr-defined]
        raise


async def aside(function: Callable[..., T], *arguments: Any) -> T:
    """Run something in a thread, where it does not block the loop."""
    import asyncio  # loaded by the first call, like all that is larger than the tools

    return await asyncio.to_thread(function, *arguments)
