"""What media are, by their bytes; what inputs and results become."""

import asyncio
import base64
import io
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import ToolError
from pegboard_files import ConfinedFolder
from pegboard_multimodal.media import Inputs, Medium, UnsuitableMediaError, about, checked, sniff
from pegboard_net import Guard
from tests.plugins.multimodal import samples

IMAGES = {
    "image/png": samples.png(),
    "image/jpeg": samples.jpeg(),
    "image/gif": samples.gif(),
    "image/bmp": samples.bmp(),
    "image/webp": samples.webp("VP8X"),
}
SOUNDS = {
    "audio/wav": (samples.wav(0.5), 0.5),
    "audio/mpeg": (samples.mp3(40), 1.045),
    "audio/flac": (samples.flac(2.0), 2.0),
    "audio/ogg": (samples.ogg(2.0), 2.0),
    "audio/mp4": (samples.mp4(4.0, b"M4A "), 4.0),
    "video/mp4": (samples.mp4(4.0), 4.0),
    "video/quicktime": (samples.mp4(2.5, b"qt  ", long=True), 2.5),
}


@pytest.mark.parametrize(("media_type", "content"), IMAGES.items())
def test_images(media_type: str, content: bytes) -> None:
    assert about(content) == {"media_type": media_type, "size": len(content), "width": 3, "height": 2}


@pytest.mark.parametrize("form", ["VP8X", "VP8L", "VP8 "])
def test_each_webp(form: str) -> None:
    facts = about(samples.webp(form, 640, 480))
    assert (facts["width"], facts["height"]) == (640, 480)


@pytest.mark.parametrize(("media_type", "sound"), SOUNDS.items())
def test_sounds_and_videos(media_type: str, sound: tuple[bytes, float]) -> None:
    content, duration = sound
    assert about(content) == {"media_type": media_type, "size": len(content), "duration": duration}


def test_recordings_whose_head_does_not_know_how_long_they_are() -> None:
    streamed = bytearray(samples.wav(0.5))
    streamed[40:44] = b"\xff\xff\xff\x7f"
    assert about(bytes(streamed))["duration"] == 0.5


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
def test_agrees_with_pillow(form: str) -> None:
    image = pytest.importorskip("PIL.Image")
    pick = random.Random(7)
    for _ in range(20):
        size = pick.randint(1, 300), pick.randint(1, 300)
        target = io.BytesIO()
        image.new("RGB", size, (10, 20, 30)).save(target, form)
        facts = about(target.getvalue())
        assert (facts["width"], facts["height"]) == size
        assert facts["media_type"] == f"image/{form.lower()}"


@pytest.mark.parametrize(
    "content",
    [b"", b"text", samples.SVG, b"%PDF-1.7", b"BMW", b"RIFF", b"\0\0\0\x20ftypavif", b"\0\0\0\x20ftypheic", b"PK"],
)
def test_what_is_used_nowhere(content: bytes) -> None:
    assert sniff(content) is None
    with pytest.raises(UnsuitableMediaError):
        checked(content, "image", "audio", "video")


@given(st.sampled_from([*IMAGES.values(), *(sound for sound, _ in SOUNDS.values())]), st.data())
def test_what_is_damaged_raises_nothing_else(content: bytes, data: st.DataObject) -> None:
    damaged = bytearray(content[: data.draw(st.integers(0, len(content)))])
    for at in data.draw(st.lists(st.integers(0, max(len(damaged) - 1, 0)), max_size=5)) if damaged else ():
        damaged[at] = data.draw(st.integers(0, 255))
    facts = about(bytes(damaged))
    assert facts["size"] == len(damaged)
    try:
        medium = checked(bytes(damaged), "image", "audio", "video")
    except UnsuitableMediaError:
        return
    assert medium.media_type == facts["media_type"]


@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    assert about(content)["media_type"] == sniff(content)


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_large_images_are_refused(width: int, height: int) -> None:
    content = samples.png(width, height) if width * height >= 1_000_000 else samples.gif(width, height)
    if width * height > 100_000_000:
        with pytest.raises(UnsuitableMediaError, match="at most 100,000,000 are taken"):
            checked(content, "image")
    else:
        assert checked(content, "image").kind == "image"


class TestInputs:
    @staticmethod
    def read(source: str, *kinds: Any, folder: ConfinedFolder | None = None, max_bytes: int = 1000) -> Medium:
        return asyncio.run(Inputs(Guard(), folder, max_bytes).read(source, *(kinds or ("image",))))

    @given(st.sampled_from([*IMAGES]))
    def test_data_urls(self, media_type: str) -> None:
        content = IMAGES[media_type]
        text = base64.b64encode(content).decode()
        for head in (f"data:{media_type};base64,", "data:;base64,", "DATA:text/plain;charset=utf-8;BASE64,"):
            assert self.read(head + text) == Medium(content, media_type)
        assert self.read(Medium(content, media_type).data_url) == Medium(content, media_type)

    @pytest.mark.parametrize("url", ["data:", "data:image/png", "data:image/png;base64", "data:,x", "data:;base64,é"])
    def test_data_urls_that_are_none(self, url: str) -> None:
        with pytest.raises(UnsuitableMediaError, match="data: URL"):
            self.read(url)

    def test_large_ones(self, tmp_path: Path) -> None:
        with pytest.raises(UnsuitableMediaError, match="more than 1,000 bytes"):
            self.read("data:;base64," + "A" * 2000)
        (tmp_path / "large.png").write_bytes(samples.png() + bytes(2000))
        folder = ConfinedFolder(tmp_path, max_bytes=1000)
        with pytest.raises(ToolError, match=r"large\.png has more than 1,000 bytes"):
            self.read("large.png", folder=folder)

    def test_files(self, tmp_path: Path) -> None:
        (tmp_path / "a: b.png").write_bytes(samples.png())
        folder = ConfinedFolder(tmp_path)
        assert self.read("a: b.png", folder=folder).media_type == "image/png"
        assert self.read(str(tmp_path / "a: b.png"), folder=folder).media_type == "image/png"
        with pytest.raises(ToolError, match=r"missing\.png"):
            self.read("missing.png", folder=folder)

    @given(st.text(max_size=40))
    def test_any_text(self, text: str) -> None:
        with pytest.raises(ToolError):
            self.read(text)


class TestConfinedFolder:
    def test_reads_and_writes(self, tmp_path: Path) -> None:
        folder = ConfinedFolder(tmp_path)
        folder.write("a/b.bin", b"\0one")
        folder.write("a/b.bin", b"\0two")
        assert folder.read("a/b.bin") == (tmp_path / "a" / "b.bin").read_bytes() == b"\0two"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        assert repr(folder) == f"ConfinedFolder({str(tmp_path)!r})"

    @pytest.mark.parametrize("path", ["../x", "/etc/passwd", "out/x", "link", "", "a\0b", ".git/x", ".env", "key.pem"])
    def test_refuses_what_is_outside_or_denied(self, tmp_path: Path, path: str) -> None:
        base = tmp_path / "base"
        base.mkdir()
        (tmp_path / "x").write_text("outside")
        (base / "out").symlink_to(tmp_path)
        (base / "link").symlink_to(tmp_path / "x")
        folder = ConfinedFolder(base)
        with pytest.raises(ToolError):
            folder.read(path)
        with pytest.raises(ToolError):
            folder.write(path, b"changed")
        assert (tmp_path / "x").read_text() == "outside"

    def test_refuses_what_is_no_file(self, tmp_path: Path) -> None:
        import os

        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ToolError, match="not a regular file"):
            ConfinedFolder(tmp_path).read("fifo")
        with pytest.raises(OSError, match="No such"):
            ConfinedFolder(tmp_path / "missing")
