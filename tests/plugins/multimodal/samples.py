"""Small media, made here byte by byte, so that no test needs a library to have an image."""

import io
import struct
import wave
import zlib


def png(width: int = 3, height: int = 2) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + bytes(3 * width) for _ in range(height)) if width * height < 1_000_000 else b""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpeg(width: int = 3, height: int = 2) -> bytes:
    """What leads to the size, with a segment before it."""
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + app + b"\xff\xff" + frame[1:] + b"\xff\xd9"


def gif(width: int = 3, height: int = 2) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def bmp(width: int = 3, height: int = -2) -> bytes:
    return b"BM" + struct.pack("<IIIIii", 54, 0, 54, 40, width, height) + bytes(28)


def webp(form: str = "VP8X", width: int = 3, height: int = 2) -> bytes:
    body = {
        "VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        "VP8L": b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little"),
        "VP8 ": bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height),
    }[form]
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBP" + form.encode() + struct.pack("<I", len(body)) + body


def wav(seconds: float = 0.5, rate: int = 8000) -> bytes:
    target = io.BytesIO()
    with wave.open(target, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(rate)
        recording.writeframes(bytes(2 * int(seconds * rate)))
    return target.getvalue()


def mp3(frames: int = 40) -> bytes:
    """Silence at 128 kbit/s and 44.1 kHz behind an ID3 tag: 1152 samples in each frame of 417 bytes."""
    return b"ID3\x03\0\0\0\0\0\x0a" + bytes(10) + (b"\xff\xfb\x90\x00" + bytes(413)) * frames


def flac(seconds: float = 2.0, rate: int = 44_100) -> bytes:
    info = struct.pack(">HH", 4096, 4096) + bytes(6)
    info += ((rate << 44) | (0 << 41) | (15 << 36) | int(seconds * rate)).to_bytes(8, "big") + bytes(16)
    return b"fLaC\x80\0\0\x22" + info


def ogg(seconds: float = 2.0) -> bytes:
    def page(granule: int, content: bytes) -> bytes:
        return b"OggS\0\0" + struct.pack("<qIII", granule, 1, 0, 0) + b"\x01" + bytes([len(content)]) + content

    return page(0, b"OpusHead" + bytes(11)) + page(int(seconds * 48_000), bytes(20))


def mp4(seconds: float = 4.0, brand: bytes = b"isom", *, long: bool = False) -> bytes:
    times = (
        b"\x01\0\0\0" + bytes(16) + struct.pack(">IQ", 1000, int(seconds * 1000))
        if long
        else bytes(4) + bytes(8) + struct.pack(">II", 1000, int(seconds * 1000))
    )
    movie = b"mvhd" + times + bytes(80)
    return (
        struct.pack(">I", 16)
        + b"ftyp"
        + brand
        + bytes(4)
        + struct.pack(">I", len(movie) + 12)
        + b"moov"
        + (struct.pack(">I", len(movie) + 4) + movie)
    )


SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
