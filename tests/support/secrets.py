"""A secret, and the ways in which encoders, escapes and protocols write it."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

SECRET = "pä s3cr3t/+&\"'\\key"
"""With something in it that every encoder writes in its own way."""


def _basic(user: str) -> Callable[[str], str]:
    return lambda text: b64encode(f"{user}:{text}".encode()).decode()


FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "percent": quote,
    "percent, all": lambda text: quote(text, safe=""),
    "percent, lower case": lambda text: "".join(c if c.isalnum() and c.isascii() else quote(c).lower() for c in text),
    "percent, plus": quote_plus,
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON, twice": lambda text: json.dumps(json.dumps(text)),
    "JSON, slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "repr": repr,
    "repr, twice": lambda text: repr(repr(text)),
    "repr of bytes": lambda text: repr(text.encode()),
    "ascii": ascii,
    "hex": lambda text: text.encode().hex(),
    "hex, upper case": lambda text: text.encode().hex().upper(),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64, for URLs": lambda text: urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64, percent": lambda text: quote(b64encode(text.encode()).decode(), safe=""),
    "Basic, 0": _basic("ab"),
    "Basic, 1": _basic("abc"),
    "Basic, 2": _basic("abcd"),
    "Basic, inside": lambda text: b64encode(f"a:{text}&more".encode()).decode(),
}


def leaked(text: str, secret: str = SECRET) -> list[str]:
    """In which forms a text shows a secret, or a part of it."""
    found = [name for name, write in FORMS.items() if write(secret) in text]
    core = [b64encode(b"x" * shift + secret.encode()).decode()[4:-4] for shift in range(3)]
    found += [f"base64 at {shift}" for shift, each in enumerate(core) if len(each) > 3 and each in text]
    return found + [piece for piece in ("s3cr3t", b"s3cr3t".hex()) if piece in text.casefold()]
