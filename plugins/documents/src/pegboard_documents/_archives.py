"""Archives that Office files and books are: checked before anything is unpacked, in a process with limits."""

from __future__ import annotations

import io
import re
from typing import Any, Final
from xml.etree import ElementTree as ET
from zipfile import BadZipFile, ZipFile

from pegboard import ToolError
from pegboard_documents._rows import shortened

__all__ = ["Archive", "presentation", "read"]

MOST_BYTES: Final = 200_000_000
MOST_ENTRIES: Final = 5_000
_SLIDE: Final = re.compile(r"ppt/slides/slide[0-9]+\.xml")
_DC: Final = "{http://purl.org/dc/elements/1.1/}"


class Archive:
    """A zip file that is not too large when it is unpacked: no entry gives more than it declares (zipfile sees to it).

    Raises `ToolError`.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._file = ZipFile(io.BytesIO(content))
        except (BadZipFile, ValueError, NotImplementedError):
            raise ToolError("it is damaged: its archive cannot be opened") from None
        entries = self._file.infolist()
        if len(entries) > MOST_ENTRIES:
            raise ToolError(f"its archive has {len(entries):,} entries, and at most {MOST_ENTRIES:,} are read")
        if (size := sum(entry.file_size for entry in entries)) > MOST_BYTES:
            raise ToolError(f"it is {size:,} bytes when it is unpacked, and at most {MOST_BYTES:,} are read")
        if any(entry.flag_bits & 1 for entry in entries):
            raise ToolError("it is encrypted with a password: ask for a copy without one")
        self.names = frozenset(self._file.namelist())

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def read(self, name: str) -> bytes:
        """An entry. Raises `ToolError` for one that is missing or damaged."""
        try:
            return self._file.read(name)
        except KeyError:
            raise ToolError(f"it is damaged: {name[:100]!r} is missing in its archive") from None
        except (BadZipFile, EOFError, NotImplementedError, OSError):
            raise ToolError(f"it is damaged: {name[:100]!r} in its archive is not what it declares") from None

    def about(self) -> dict[str, Any]:
        """Title and author of an Office file."""
        if "docProps/core.xml" not in self:
            return {"title": None, "author": None}
        try:
            root = ET.fromstring(self.read("docProps/core.xml"))  # noqa: S314 - in a process with limits
        except ET.ParseError:
            return {"title": None, "author": None}
        return {"title": shortened(root.findtext(f"{_DC}title")), "author": shortened(root.findtext(f"{_DC}creator"))}


def presentation(content: bytes) -> Archive:
    """The archive of a PowerPoint presentation. Raises `ToolError`."""
    archive = Archive(content)
    if "ppt/presentation.xml" not in archive:
        raise ToolError("it is no PowerPoint presentation: ppt/presentation.xml is missing in its archive")
    return archive


def read(given: dict[str, Any]) -> dict[str, Any]:
    """What is known of a presentation, which takes no python-pptx. Raises `ToolError`."""
    archive = presentation(given["content"])
    return {"slides": sum(1 for name in archive.names if _SLIDE.fullmatch(name)), **archive.about()}
