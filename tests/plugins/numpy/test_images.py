import base64
import io
from typing import Any

import pytest

from pegboard import ImageBlock, Toolkit
from pegboard._types.table import TypeTable
from tests.plugins.numpy.promise import accepts, arrive, leave, refused, schema, structures
from tests.support.examining import explain

Image = pytest.importorskip("PIL.Image")
images = pytest.importorskip("pegboard_numpy._images")


def encoded(picture: Any, file_format: str = "PNG") -> str:
    buffer = io.BytesIO()
    picture.save(buffer, file_format)
    return base64.b64encode(buffer.getvalue()).decode()


def opened(content: bytes) -> Any:
    return Image.open(io.BytesIO(content))


RED = Image.new("RGB", (4, 3), "red")


def test_schema_is_base64_text(types: TypeTable) -> None:
    found = schema(types, Image.Image)
    assert (found["type"], found["contentEncoding"], found["contentMediaType"]) == ("string", "base64", "image/*")


@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_files_arrive_as_loaded_images(types: TypeTable, file_format: str) -> None:
    found = arrive(types, Image.Image, encoded(RED, file_format))
    assert isinstance(found, Image.Image)
    assert (found.size, found.format) == ((4, 3), file_format)
    assert max(abs(a - b) for a, b in zip(found.convert("RGB").getpixel((1, 1)), (255, 0, 0), strict=True)) < 5


@pytest.mark.parametrize("value", ["?", "QUI", 1, None, ["QUJD"]])
def test_what_is_no_base64_text_is_refused(types: TypeTable, value: Any) -> None:
    assert refused(types, Image.Image, value)


class TestBeyondTheSchema:
    """What 2020-12 cannot say: that the bytes are an image, and how large it is."""

    def problem(self, types: TypeTable, value: str, annotation: Any = None) -> str:
        annotation = annotation or Image.Image
        assert accepts(types, annotation, value)
        assert not structures(types, annotation, value)
        return str(explain(types.plan(annotation), value)[0])

    def test_other_bytes(self, types: TypeTable) -> None:
        assert "not an image file" in self.problem(types, "QUJD")

    def test_formats_that_are_not_sent_are_not_even_tried(self, types: TypeTable) -> None:
        assert "not an image file" in self.problem(types, encoded(RED, "TIFF"))

    def test_a_file_that_is_cut_off(self, types: TypeTable) -> None:
        content = base64.b64decode(encoded(Image.effect_noise((64, 64), 50)))
        assert "truncated" in self.problem(types, base64.b64encode(content[:-200]).decode())

    def test_too_many_pixels(self, types: TypeTable, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(images, "MAX_PIXELS", 11)
        assert "4 x 3 pixels are too many; send at most 11" in self.problem(types, encoded(RED))

    def test_another_format_than_annotated(self, types: TypeTable) -> None:
        from PIL.PngImagePlugin import PngImageFile

        assert type(arrive(types, PngImageFile, encoded(RED))) is PngImageFile
        assert "expected another file format than JPEG" in self.problem(types, encoded(RED, "JPEG"), PngImageFile)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK", "YCbCr", "HSV", "RGBa", "F"])
def test_results_are_shown_as_images(toolkit: Toolkit, mode: str) -> None:
    def draw() -> Image.Image:  # type: ignore[name-defined]  # may be missing
        return Image.new(mode, (4, 3))

    toolkit.register(draw)
    (block,) = toolkit.call_sync("draw").content
    assert isinstance(block, ImageBlock)
    assert block.media_type == "image/png"
    assert opened(block.to_bytes()).size == (4, 3)


def test_transparency_is_kept(types: TypeTable) -> None:
    written = leave(types, Image.Image, Image.new("RGBa", (1, 1), (0, 0, 0, 0)))
    assert opened(base64.b64decode(written)).getpixel((0, 0))[3] == 0


def test_an_image_inside_other_data_is_text(toolkit: Toolkit) -> None:
    def album():  # type: ignore[no-untyped-def]
        return {"cover": RED}

    toolkit.register(album)
    assert opened(base64.b64decode(toolkit.call_sync("album").data["cover"])).size == (4, 3)


def test_an_image_in_and_out(toolkit: Toolkit) -> None:
    def turn(picture: Image.Image) -> Image.Image:  # type: ignore[name-defined]  # may be missing
        return picture.transpose(Image.Transpose.ROTATE_90)

    toolkit.register(turn)
    (block,) = toolkit.call_sync("turn", {"picture": encoded(RED)}).content
    assert isinstance(block, ImageBlock)
    assert opened(block.to_bytes()).size == (3, 4)
