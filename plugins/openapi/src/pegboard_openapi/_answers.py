"""Answers of a server, as values that Pegboard knows."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pegboard import AudioBlock, FileBlock, ImageBlock, VideoBlock

if TYPE_CHECKING:
    from pegboard_openapi._client import Answer

__all__ = ["value_of"]

_TEXT: Final = re.compile(
    r"text/.*|.*[/+](xml|yaml|json|javascript|jsonl|ndjson)|application/(x-www-form-urlencoded|graphql|sql)"
)
_BLOCKS: Final = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}


def value_of(answer: Answer) -> Any:
    """JSON as data, text, media as blocks; null for nothing. A body that claims to be JSON and is not is text."""
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
