"""The section `multimodal` of the settings, and what they make of the tools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import attrs

from pegboard import NotOffered, Offer, SettingsError

__all__ = ["Settings", "offers"]


def _secret() -> Any:
    return attrs.field(default="", repr=False, metadata={"secret": True})


@attrs.frozen
class Settings:
    """The section `multimodal` of the settings.

    Args:
        openai_api_key: Key of OpenAI. Empty reads `OPENAI_API_KEY`.
        openai_base_url: Address of another server, up to and including `/v1`.
        dashscope_api_key: Key of DashScope. Empty reads `DASHSCOPE_API_KEY`.
        dashscope_base_url: Address of another region or server, up to and including `/api/v1`.
        base_dir: Directory that files are read from, and written to with `save`. None allows no files.
        models: Other models than the defaults, by tool (`"openai_text_to_image"`) or by what they do
            (`"text_to_image"`), which holds for all tools that can.
        allow_private: Whether URLs may lead to a server's own address although it is private.
        download: Whether results that come as URLs are fetched.
        save: Whether results are files in `base_dir` too.
    """

    openai_api_key: str = _secret()
    openai_base_url: str | None = None
    dashscope_api_key: str = _secret()
    dashscope_base_url: str | None = None
    base_dir: str | None = None
    models: dict[str, str] = attrs.field(factory=dict)
    allow_private: bool = False
    download: bool = True
    save: bool = False


def offers(settings: Settings) -> Iterator[Any]:
    """The tools that can be offered, and why further ones are not. Raises `SettingsError` for models of no tool."""
    # Here, for a toolkit of other packs has no use for them.
    from pegboard_multimodal._dashscope import DashScopeTools
    from pegboard_multimodal._local import LocalTools
    from pegboard_multimodal._openai import OpenAITools

    providers = (
        (OpenAITools, settings.openai_api_key, settings.openai_base_url),
        (DashScopeTools, settings.dashscope_api_key, settings.dashscope_base_url),
    )
    known = {LocalTools.PREFIX: LocalTools.ABILITIES} | {each.PREFIX: each.MODELS for each, _, _ in providers}
    models = _models(settings.models, known)
    for cls, setting, base_url in providers:
        variable = f"{cls.NAME.upper()}_API_KEY"
        key = setting or os.environ.get(variable, "")
        if not key.strip():
            names = sorted(name for name in vars(cls) if name.startswith(cls.PREFIX))
            yield NotOffered(names, f"needs a key, set {variable} or the setting multimodal.{cls.PREFIX}api_key")
            continue
        yield cls(
            key,
            base_url,
            models=models[cls.PREFIX],
            base_dir=settings.base_dir,
            allow_private=settings.allow_private,
            download=settings.download,
            save=settings.save,
        )
    local = LocalTools(models=models[LocalTools.PREFIX], base_dir=settings.base_dir, save=settings.save)
    missing = local.missing
    if len(missing) < len(LocalTools.ABILITIES):
        yield Offer(local, disable=sorted(missing))
    for name, needed in sorted(missing.items()):
        reason, _, remedy = needed.partition(": ")
        yield NotOffered(name, reason, remedy)


def _models(given: dict[str, str], known: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The models of each provider, by what they do; what names one tool beats what names all that can."""
    found: dict[str, dict[str, str]] = {prefix: {} for prefix in known}
    for name in sorted(given, key=lambda each: each.startswith(tuple(known))):
        meant = [(p, name.removeprefix(p)) for p, does in known.items() if name.removeprefix(p) in does]
        meant = [each for each in meant if name.startswith(each[0])] or meant
        if not meant:
            raise SettingsError(f"multimodal.models: there is no tool {name!r}")
        for prefix, ability in meant:
            found[prefix][ability] = given[name]
    return found
