"""Charsets: which codecs a server may choose for the text of its answers."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["CHARSETS", "charset_of", "decoded"]

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


def charset_of(media_type: str) -> str:
    """The charset that a media type names, spelled as in `CHARSETS`; UTF-8 where it names none."""
    named = re.search(r"charset=[\"']?([\w.:-]+)", media_type, re.IGNORECASE | re.ASCII)
    return named[1].lower().replace("_", "-") if named else "utf-8"


def decoded(body: bytes, media_type: str) -> str:
    """The text of an answer: as UTF-8 where it names a charset that is not among `CHARSETS`."""
    charset = charset_of(media_type)
    return body.decode(charset if charset in CHARSETS else "utf-8", "replace")
