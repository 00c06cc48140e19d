"""Answers: what a server sent, as a value that the board knows."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pegboard import AudioBlock, FileBlock, ImageBlock, VideoBlock

if TYPE_CHECKING:
    from pegboard_openapi._client import Answer

__all__ = ["CHARSETS", "value_of"]

_TEXT: Final = re.compile(
    r"text/.*|.*[/+](xml|yaml|json|javascript|jsonl|ndjson)|application/(x-www-form-urlencoded|graphql|sql)"
)
CHARSETS: Final = frozenset((
    "ascii", "us-ascii", "utf-8", "utf8", "utf-16", "utf-16be", "utf-16le", "utf-32", "utf-32be", "utf-32le",
    "latin-1", "latin1", *(f"iso{dash}8859-{part}" for part in range(1, 17) if part != 12 for dash in ("-", "")),
    *(f"windows-125{page}" for page in range(9)), *(f"cp125{page}" for page in range(9)), "cp437", "cp850", "cp866",
    "ibm437", "ibm850", "ibm866", "macintosh", "koi8-r", "koi8-u", "tis-620",
    "big5", "big5-hkscs", "euc-jp", "euc-kr", "gb18030", "gb2312", "gbk", "iso-2022-jp", "iso-2022-kr", "shift-jis",
    "ks-c-5601-1987",
))  # fmt: skip
"""The codecs that answers may name: those of text on the web, which take time in proportion to the text.

Python has others, which a server must not choose: `punycode` takes quadratic time, `unicode_escape` makes other text.
"""
_BLOCKS: Final = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}


def value_of(answer: Answer) -> Any:
    """JSON as data, text, media as blocks; null for nothing. What says it is JSON and is none is text."""
    media_type = answer.media_type.partition(";")[0].strip().lower()
    if not answer.body:
        return None
    if media_type.endswith(("/json", "+json")) or not media_type:
        try:
            # What Python reads as a number and JSON does not know, such as NaN, becomes null.
            return json.loads(answer.body, parse_constant=lambda name: None)
        except (ValueError, RecursionError):
            pass
    if _TEXT.fullmatch(media_type) or (not media_type and _is_text(answer.body)):
        return answer.text
    if media_type in ("", "application/octet-stream"):
        return answer.body  # by how it begins
    return _BLOCKS.get(media_type.partition("/")[0], FileBlock).from_bytes(answer.body, media_type)


def _is_text(body: bytes) -> bool:
    try:
        return "\0" not in body.decode()
    except UnicodeDecodeError:
        return False
