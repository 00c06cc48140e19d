"""A sound and a video of one second each, as small as they can be."""

import base64
import io
import struct
import wave

RATE = 8_000

# One pixel, as a frame of VP8: what a lossy WebP holds.
FRAME = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")[20:42]


def sound() -> bytes:
    """WAV: a tone."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setparams((1, 1, RATE, RATE, "NONE", "not compressed"))
        written.writeframes(bytes(128 + (40 if at // 10 % 2 else -40) for at in range(RATE)))
    return file.getvalue()


def _element(number: str, *parts: bytes) -> bytes:
    """An element of EBML."""
    data = b"".join(parts)
    return bytes.fromhex(number) + struct.pack(">Q", 1 << 56 | len(data)) + data


def video() -> bytes:
    """WebM: a pixel."""
    head = _element("1a45dfa3", _element("4282", b"webm"), _element("4287", b"\2"), _element("4285", b"\2"))
    about = _element(
        "1549a966",
        _element("2ad7b1", (1_000_000).to_bytes(3)),
        _element("4489", struct.pack(">d", 1000)),
        _element("4d80", b"a test"),
        _element("5741", b"a test"),
    )
    size = _element("e0", _element("b0", b"\1"), _element("ba", b"\1"))
    track = _element(
        "ae", _element("d7", b"\1"), _element("73c5", b"\1"), _element("83", b"\1"), _element("86", b"V_VP8"), size
    )
    frames = _element("1f43b675", _element("e7", b"\0"), _element("a3", b"\x81\0\0\x80" + FRAME))
    return head + _element("18538067", about, _element("1654ae6b", track), frames)
