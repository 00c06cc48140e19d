"""Content blocks beside text and data: media and links. Loaded when a program makes the first one."""

from __future__ import annotations

import base64
from typing import Self

from attrs import field, frozen

from pegboard._model.result import Block


@frozen(eq=False, repr=False)
class _Media(Block):
    """Bytes as base64 text in `data`, or a reference in `url`: exactly one of the two."""

    data: str | None = field(default=None, repr=lambda data: "None" if data is None else f"<{len(data)} base64 chars>")
    url: str | None = None
    media_type: str | None = None

    def __attrs_post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            kind = type(self).__name__
            raise ValueError(f"{kind} takes either data= (base64 text) or url=; for bytes use {kind}.from_bytes()")

    @classmethod
    def from_bytes(cls, content: bytes, media_type: str | None = None) -> Self:
        """A block that carries `content`, encoded as base64."""
        return cls(data=base64.b64encode(content).decode("ascii"), media_type=media_type)

    def to_bytes(self) -> bytes:
        """The decoded bytes. Raises ValueError for a block that only refers to a URL."""
        if self.data is None:
            raise ValueError(f"{type(self).__name__} refers to {self.url}; it carries no bytes")
        return base64.b64decode(self.data)


@frozen(eq=False, repr=False)
class ImageBlock(_Media):
    """An image, as base64 `data` or a `url`. Raises ValueError unless exactly one of the two is given.

    Args:
        data: The bytes as base64 text; `from_bytes` encodes them.
        url: Where the image is.
        media_type: Its type, such as `image/png`. None where it is unknown.
    """


@frozen(eq=False, repr=False)
class AudioBlock(_Media):
    """Audio, as base64 `data` or a `url`. Raises ValueError unless exactly one of the two is given.

    Args:
        data: The bytes as base64 text; `from_bytes` encodes them.
        url: Where the recording is.
        media_type: Its type, such as `audio/wav`. None where it is unknown.
    """


@frozen(eq=False, repr=False)
class VideoBlock(_Media):
    """Video, as base64 `data` or a `url`. Raises ValueError unless exactly one of the two is given.

    Args:
        data: The bytes as base64 text; `from_bytes` encodes them.
        url: Where the video is.
        media_type: Its type, such as `video/mp4`. None where it is unknown.
    """


@frozen(eq=False, repr=False)
class FileBlock(_Media):
    """Any other file, as base64 `data` or a `url`. Raises ValueError unless exactly one of the two is given.

    Args:
        data: The bytes as base64 text; `from_bytes` encodes them.
        url: Where the file is.
        media_type: Its type, such as `application/pdf`. None where it is unknown.
        name: Name of the file. None where it has none.
    """

    name: str | None = None


@frozen(eq=False, repr=False)
class LinkBlock(Block):
    """A reference to a resource that the reader may fetch; nothing is fetched by Pegboard.

    Args:
        url: Where the resource is.
        title: Its title. None for none.
        description: What is there. None for none.
        media_type: Its type, such as `text/html`. None where it is unknown.
    """

    url: str
    title: str | None = None
    description: str | None = None
    media_type: str | None = None

    @property
    def text(self) -> str:
        """The link as text, so that models without link support can read it."""
        return f"{self.title} ({self.url})" if self.title else self.url
