"""Pillow images: files as base64 text on the way in, content blocks on the way out."""

import io
from typing import Any, Final

from pegboard import ImageBlock, Text, TypePlan, Types, shaped

__all__ = ["image", "image_block"]

MAX_PIXELS: Final = 40_000_000
"""An image takes some 4 bytes of memory for each pixel, however small its file is."""

_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
"""What models and browsers send; Pillow reads many more, some of them by running other programs."""

_PNG_MODES: Final = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})


def image(annotation: Any, types: Types) -> TypePlan:
    """The plan of `PIL.Image.Image`, or of the class of one file format: base64 text of a file, in 40 megapixels."""
    content = types.plan(bytes)

    def parse(text: str) -> Any:
        found = _opened(content.structure(text))
        if not isinstance(found, annotation):
            raise ValueError(f"expected another file format than {found.format}")
        return found

    schema = {**content.schema, "contentMediaType": "image/*", "description": "Image file (PNG, JPEG, GIF, WebP, BMP)"}
    return shaped(schema, Text(parse), lambda value: content.unstructure(_png(value)))


def _opened(content: bytes) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        found = Image.open(io.BytesIO(content), formats=_FORMATS)
    except UnidentifiedImageError:
        raise ValueError("not an image file (PNG, JPEG, GIF, WebP or BMP)") from None
    width, height = found.size
    if width * height > MAX_PIXELS:
        raise ValueError(f"{width} x {height} pixels are too many; send at most {MAX_PIXELS:,}")
    found.load()  # a file that is cut off shows only now
    return found


def image_block(value: Any) -> ImageBlock:
    """An image as content for the model, without loss."""
    return ImageBlock.from_bytes(_png(value), "image/png")


def _png(value: Any) -> bytes:
    if value.mode not in _PNG_MODES:
        value = value.convert("RGBA" if value.has_transparency_data else "RGB")
    buffer = io.BytesIO()
    value.save(buffer, "PNG")
    return buffer.getvalue()
