"""Built-in injectors and converters: what every tool may ask for by type, and what bytes that one returns become."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pegboard import Session, Toolkit
from pegboard._base.markers import MISSING
from pegboard._injection.invocation import Invocation, call_of
from pegboard._model.call import Agent, CancelToken, Emitter, ToolCall
from pegboard._model.result import Block
from pegboard.extension import Converter, Injector
from pegboard.hookspecs import hookimpl


def emitter(invocation: Invocation) -> Emitter:
    """Reports progress."""
    return invocation.emitter


def agent(invocation: Invocation) -> Any:
    """The object passed as `agent=` to the call, else to the session."""
    found = invocation.session.agent if invocation.agent is None else invocation.agent
    return MISSING if found is None else found


def token(invocation: Invocation) -> CancelToken:
    """Set when the call should stop."""
    return invocation.token


def session(invocation: Invocation) -> Any:
    """The session in whose name the call is made."""
    return invocation.session


def toolkit(invocation: Invocation) -> Any:
    """The toolkit of that session."""
    return invocation.session.toolkit


@hookimpl
def provide_injectors() -> Iterable[Injector]:
    """The specials."""
    own = {Emitter: emitter, Agent: agent, ToolCall: call_of, CancelToken: token, Session: session, Toolkit: toolkit}
    return [Injector(cls, resolve) for cls, resolve in own.items()]


# Magic numbers: the WHATWG MIME Sniffing Standard, section 6.
_SIGNATURES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
    b"\x1aE\xdf\xa3": "video/webm",
    b"%PDF-": "application/pdf",
}
# ISO base media files say after a length and "ftyp" what they are, RIFF files after "RIFF" and a length.
_BRANDS: Final = {
    b"M4A ": "audio/mp4",
    b"avif": "image/avif",
    b"heic": "image/heic",
    b"WEBP": "image/webp",
    b"WAVE": "audio/wav",
}
_UNKNOWN: Final = "application/octet-stream"


@hookimpl
def provide_converters() -> Iterable[Converter]:
    """Bytes in their three forms."""
    return [Converter(kind, _block) for kind in (bytes, bytearray, memoryview)]


def _block(content: bytes | bytearray | memoryview) -> Block:
    from pegboard._model.media import AudioBlock, FileBlock, ImageBlock, VideoBlock  # with the first bytes

    raw = bytes(content)
    media_type = _sniffed(raw)
    blocks = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}
    return blocks.get(media_type.partition("/")[0], FileBlock).from_bytes(raw, media_type)


def _sniffed(raw: bytes) -> str:
    if raw[4:8] == b"ftyp" or raw.startswith(b"RIFF"):
        return _BRANDS.get(raw[8:12], "video/mp4" if raw[4:8] == b"ftyp" else _UNKNOWN)  # most ISO files are video
    if raw.startswith(b"BM") and raw[6:10] == bytes(4):  # two letters alone would make a bitmap of any text about BMW
        return "image/bmp"
    return next((media_type for head, media_type in _SIGNATURES.items() if raw.startswith(head)), _UNKNOWN)
