"""Faster decoding by msgspec or orjson, faster checks of foreign schemas by jsonschema-rs, where they are installed."""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Literal

import attrs

from pegboard import Accelerator, PluginError, hookimpl
from pegboard_accelerators._libraries import jsonschema_rs_validator, msgspec_decoder, orjson_decoder

__all__ = ["Settings", "provide_accelerators", "settings_type"]

# In the order of preference. orjson's own check of large integers costs more than it gains on short text.
_DECODERS = {
    "msgspec": Accelerator("decode", "msgspec", msgspec_decoder),
    "orjson": Accelerator("decode", "orjson", orjson_decoder, shortest=256),
}
_VALIDATORS = {"jsonschema-rs": Accelerator("validator", "jsonschema-rs", jsonschema_rs_validator)}


@attrs.frozen
class Settings:
    """The section `accelerators` of the settings: which library to use; `"auto"` is the best that is installed."""

    decoder: Literal["auto", "msgspec", "orjson", "none"] = "auto"
    validator: Literal["auto", "jsonschema-rs", "none"] = "auto"


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_accelerators(settings: Settings) -> Iterable[Accelerator]:
    """One accelerator of each kind, if its library is there. Imports none of them."""
    return [
        *_chosen("decoder", settings.decoder, _DECODERS),
        *_chosen("validator", settings.validator, _VALIDATORS),
    ]


def _chosen(setting: str, wanted: str, known: dict[str, Accelerator]) -> list[Accelerator]:
    if wanted == "none":
        return []
    names = list(known) if wanted == "auto" else [wanted]
    found = [known[name] for name in names if find_spec(name.replace("-", "_")) is not None]
    if not found and wanted != "auto":
        raise PluginError(
            f"its setting {setting} is {wanted!r}, which is not installed; "
            f"pip install 'pegboard-accelerators[{wanted}]'"
        )
    return found[:1]
