"""What each library does, imported when a toolkit first needs it."""

from collections.abc import Callable
from typing import Any

__all__ = ["jsonschema_rs_validator", "msgspec_decoder", "orjson_decoder"]

_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * 19


def msgspec_decoder() -> Callable[[str], Any]:
    """What msgspec reads, it reads as `json` does."""
    from msgspec.json import Decoder

    return Decoder().decode


def orjson_decoder() -> Callable[[str], Any]:
    """The same for orjson, but for text with large integers: it makes floats of those that do not fit 64 bits."""
    from orjson import loads

    def decode(text: str) -> Any:
        data = text.encode()
        if _LONG_NUMBER in data.translate(_DIGITS):
            raise ValueError("a number that may not fit 64 bits")
        return loads(data)

    return decode


def jsonschema_rs_validator() -> Callable[[dict[str, Any]], Callable[[Any], bool] | None]:
    """Compile by jsonschema-rs what it reads as jsonschema does; without formats, for those that matter are not."""
    from jsonschema_rs import validator_for

    from pegboard_accelerators._agreement import believed

    def compile_schema(schema: dict[str, Any]) -> Callable[[Any], bool]:
        return validator_for(schema, validate_formats=False).is_valid

    return lambda schema: believed(schema, compile_schema)
