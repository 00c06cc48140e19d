"""OpenAI's media, and those of every server that speaks the same protocol."""

from __future__ import annotations

from typing import Any, ClassVar, Final, final

import pegboard
from pegboard import ToolOutput
from pegboard_multimodal import _parameters as p
from pegboard_multimodal._provider import ProviderTools
from pegboard_multimodal.media import Made, Medium

__all__ = ["OpenAITools"]

_VARIATION: Final = "Make a variation of this image: the same subject and style, other details and another composition."


@final
@pegboard.toolset(name="openai", description="Images, speech and transcripts by OpenAI or a compatible server")
class OpenAITools(ProviderTools):
    """Six tools over OpenAI's HTTP interface: images, speech and transcripts.

    Raises ValueError for a blank key, an invalid base URL and unknown names of models, TypeError for a key that is not
    text, OSError for a `base_dir` that cannot be opened.

    Args:
        api_key: The key, as text or a `Secret`.
        base_url: Address of another server, up to and including `/v1`. None: OpenAI's.
        models: Other models than the defaults, by what they do (`"text_to_image"`). None for none.
        base_dir: Directory that local files are read from. None allows no files.
        allow_private: Whether URLs may lead to the server's own address although it is private; or origins that are
            allowed.
        download: Whether results that come as URLs are fetched. False leaves them URLs.
        save: Whether results are files in `base_dir` too.
        guard: What fetches URLs. None: a `Guard` for public addresses.
    """

    NAME = "OpenAI"
    PREFIX = "openai_"
    BASE_URL = "https://api.openai.com/v1"
    MODELS: ClassVar = {
        "text_to_image": "gpt-image-2.5-flare",
        "edit_image": "gpt-image-2.5-flare",
        "image_to_text": "gpt-5.4-mini",
        "text_to_audio": "gpt-4o-mini-tts",
        "audio_to_text": "gpt-transcribe",
    }

    @pegboard.tool
    async def openai_text_to_image(
        self, prompt: p.Subject, n: p.Count = 1, size: p.Size = "auto", quality: str = "auto"
    ) -> ToolOutput:
        """Make images from a description.

        Args:
            quality: auto, low, medium or high
        """
        wanted = {"prompt": prompt, **_given(n=n, size=size, quality=quality)}
        answer = await self._ask("POST", "/images/generations", json={"model": self.models["text_to_image"], **wanted})
        return await self._images("openai_text_to_image", answer)

    @pegboard.tool
    async def openai_edit_image(
        self, image_url: p.ImageUrl, prompt: str, mask_url: str | None = None, n: p.Count = 1, size: p.Size = "auto"
    ) -> ToolOutput:
        """Change an image as a text says.

        Args:
            prompt: What is to be changed
            mask_url: A PNG of the same size, transparent where the image may be changed
        """
        return await self._edited("openai_edit_image", image_url, prompt, mask_url, n, size)

    @pegboard.tool
    async def openai_create_image_variation(
        self, image_url: p.ImageUrl, n: p.Count = 1, size: p.Size = "auto"
    ) -> ToolOutput:
        """Make images that are similar to an image."""
        # The provider's own endpoint for this accepts no requests any more.
        return await self._edited("openai_create_image_variation", image_url, _VARIATION, None, n, size)

    @pegboard.tool(read_only=True)
    async def openai_image_to_text(self, image_urls: p.ImageUrls, prompt: str = "Describe the image") -> str:
        """Describe images, or answer a question about them.

        Args:
            prompt: What to say about them
        """
        # Sent as they are, so that a server in this network fetches nothing that a model named.
        images = [await self._inputs.read(each, "image") for each in image_urls]
        content: list[Any] = [{"type": "text", "text": prompt}]
        content += [{"type": "image_url", "image_url": {"url": image.data_url}} for image in images]
        request = {"model": self.models["image_to_text"], "messages": [{"role": "user", "content": content}]}
        answer = await self._ask("POST", "/chat/completions", json=request)
        choice = self._part(answer, "choices", 0, kind=dict)
        message = self._part(choice, "message", kind=dict)
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            raise self._refusal("content_filter", str(message.get("refusal") or ""))
        return str(self._part(message, "content"))

    @pegboard.tool
    async def openai_text_to_audio(
        self, text: p.ShortText, voice: str = "alloy", speed: p.Speed = 1.0, res_format: p.Format = "mp3"
    ) -> ToolOutput:
        """Say a text: make a recording of it.

        Args:
            voice: Who says it: alloy, ash, ballad, coral, echo, fable, nova, onyx, sage, shimmer or verse
        """
        wanted = {"input": text, "voice": voice, "speed": speed, "response_format": res_format}
        spoken = await self._send("POST", "/audio/speech", json={"model": self.models["text_to_audio"], **wanted})
        if not spoken:
            raise self._unknown("it is empty")
        return await self._outputs.result("openai_text_to_audio", "audio", [Made(spoken)])

    @pegboard.tool(read_only=True)
    async def openai_audio_to_text(
        self, audio_file_url: p.AudioUrl, language: str = "en", temperature: p.Temperature = 0.2
    ) -> str:
        """Write down what is said in a recording.

        Args:
            language: The language that is spoken, as two letters (ISO 639-1)
        """
        recording = await self._inputs.read(audio_file_url, "audio", "video")
        form = {"model": self.models["audio_to_text"], "language": language, "temperature": str(temperature)}
        answer = await self._ask("POST", "/audio/transcriptions", data=form, files={"file": _file("audio", recording)})
        return str(self._part(answer, "text"))

    async def _edited(
        self, tool: str, image_url: str, prompt: str, mask_url: str | None, n: int, size: str
    ) -> ToolOutput:
        files = {"image": _file("image", await self._inputs.read(image_url, "image"))}
        if mask_url:
            files["mask"] = _file("mask", await self._inputs.read(mask_url, "image"))
        form = {"model": self.models["edit_image"], "prompt": prompt, **_given(n=str(n), size=size)}
        return await self._images(tool, await self._ask("POST", "/images/edits", data=form, files=files))

    async def _images(self, tool: str, answer: Any) -> ToolOutput:
        made = []
        for each in self._part(answer, "data", kind=list):
            url = each.get("url") if isinstance(each, dict) else None
            made.append(self._made(url, None if url else self._part(each, "b64_json")))
        return await self._outputs.result(tool, "image", made)


def _given(**values: Any) -> dict[str, Any]:
    """What the server is told; `auto` is what it does anyway, and not every server knows the word."""
    return {name: value for name, value in values.items() if value != "auto"}


def _file(name: str, medium: Medium) -> tuple[str, bytes, str]:
    return f"{name}.{medium.suffix}", medium.content, medium.media_type
