"""Bytes as blocks: what they are is told by how they begin. Loaded with the first bytes that a tool returns."""

from __future__ import annotations

from typing import Final

from pegboard._model.content import Block
from pegboard._model.media import AudioBlock, FileBlock, ImageBlock, VideoBlock

__all__ = ["bytes_block"]

# Magic numbers: the WHATWG MIME Sniffing Standard, section 6.
_SIGNATURES: Final[tuple[tuple[bytes, bytes, type[ImageBlock | AudioBlock | VideoBlock | FileBlock], str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", b"", ImageBlock, "image/png"),
    (b"\xff\xd8\xff", b"", ImageBlock, "image/jpeg"),
    (b"GIF87a", b"", ImageBlock, "image/gif"),
    (b"GIF89a", b"", ImageBlock, "image/gif"),
    (b"RIFF", b"WEBP", ImageBlock, "image/webp"),
    (b"RIFF", b"WAVE", AudioBlock, "audio/wav"),
    (b"ID3", b"", AudioBlock, "audio/mpeg"),
    (b"\xff\xfb", b"", AudioBlock, "audio/mpeg"),
    (b"OggS", b"", AudioBlock, "audio/ogg"),
    (b"fLaC", b"", AudioBlock, "audio/flac"),
    (b"\x1aE\xdf\xa3", b"", VideoBlock, "video/webm"),
    (b"%PDF-", b"", FileBlock, "application/pdf"),
)
# ISO base media files say after a length and "ftyp" what they are; most are video.
_BRANDS: Final[dict[bytes, tuple[type[ImageBlock | AudioBlock], str]]] = {
    b"M4A ": (AudioBlock, "audio/mp4"),
    b"avif": (ImageBlock, "image/avif"),
    b"heic": (ImageBlock, "image/heic"),
}


def bytes_block(content: bytes | bytearray | memoryview) -> Block:
    """The block that suits `content`: by its leading bytes an image, audio or video, else a file."""
    raw = bytes(content)
    if raw[4:8] == b"ftyp":
        kind, label = _BRANDS.get(raw[8:12], (VideoBlock, "video/mp4"))
        return kind.from_bytes(raw, label)
    if raw.startswith(b"BM") and raw[6:10] == bytes(4):  # two letters alone would make a bitmap of any text about BMW
        return ImageBlock.from_bytes(raw, "image/bmp")
    for head, brand, block, media_type in _SIGNATURES:
        if raw.startswith(head) and raw[8 : 8 + len(brand)] == brand:
            return block.from_bytes(raw, media_type)
    return FileBlock.from_bytes(raw, "application/octet-stream")
