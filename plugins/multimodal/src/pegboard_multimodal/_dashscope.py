"""DashScope's media, over plain HTTP: answers at once, or jobs that are polled."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final, TypeVar, final

import pegboard
from pegboard import Emitter, ToolOutput
from pegboard_multimodal import _parameters as p
from pegboard_multimodal._provider import BusyError, ProviderError, ProviderTools, records
from pegboard_multimodal.media import Kind

__all__ = ["DashScopeTools"]

T = TypeVar("T")

_MULTIMODAL: Final = "/services/aigc/multimodal-generation/generation"
_VIDEO: Final = "/services/aigc/video-generation/video-synthesis"
_FRAMES: Final = "/services/aigc/image2video/video-synthesis"
_INLINE: Final = 7 * 1024 * 1024  # bytes; more go through the provider's own storage
_INTERVALS: Final = (0.5, 5.0)  # seconds between the first polls, and between the last
_MISSED: Final = 8  # polls that fail in a row
_ENDING_SECONDS: Final = 1.5  # a cancelled call has two seconds to end
_IMAGES_BY_TEXT: Final = re.compile(r"wanx|wan2\.[0-5]|flux|stable-diffusion")
_IMAGES_AT_ONCE: Final = re.compile(r"qwen-image|z-image")
_TRANSCRIBED_AT_ONCE: Final = re.compile(r"qwen.*-asr(?!.*filetrans)")


@final
@pegboard.toolset(name="dashscope", description="Images, speech, transcripts and videos by DashScope")
class DashScopeTools(ProviderTools):
    """Eight tools over DashScope's HTTP interface; `base_url` is another region's, up to and including `/api/v1`.

    Args:
        api_key: The key, as text or a `Secret`.
        base_url: Address of another region or server, up to and including `/api/v1`. None: the default region.
        models: Other models than the defaults, by what they do (`"text_to_image"`). None for none.
        base_dir: Directory that local files are read from. None allows no files.
        allow_private: Whether URLs may lead to the server's own address although it is private; or origins that are
            allowed.
        download: Whether results that come as URLs are fetched. False leaves them URLs.
        save: Whether results are files in `base_dir` too.
        guard: What fetches URLs. None: a `Guard` for public addresses.
    """

    NAME = "DashScope"
    PREFIX = "dashscope_"
    BASE_URL = "https://dashscope.aliyuncs.com/api/v1"
    MODELS: ClassVar = {
        "text_to_image": "wan2.2-t2i-flash",
        "image_to_text": "qwen3-vl-plus",
        "text_to_audio": "qwen3-tts-flash",
        "audio_to_text": "qwen3-asr-flash",
        "text_to_video": "wan2.6-t2v",
        "image_to_video": "wan2.6-i2v-flash",
        "first_and_last_frame_image_to_video": "wan2.2-kf2v-flash",
        "video_to_text": "qwen3.5-plus",
    }

    @pegboard.tool
    async def dashscope_text_to_image(
        self, prompt: p.Subject, n: p.Count = 1, size: p.Pixels = "1024*1024", emitter: Emitter | None = None
    ) -> ToolOutput:
        """Make images from a description."""
        model, parameters = self.models["text_to_image"], {"n": n, "size": size.replace("x", "*")}
        finish = partial(self._media, "dashscope_text_to_image", "image")
        if _IMAGES_AT_ONCE.match(model):
            return await finish(await self._generate(model, _message({"text": prompt}), parameters))
        by_text = _IMAGES_BY_TEXT.match(model)
        path = "text2image/image-synthesis" if by_text else "image-generation/generation"
        inputs = {"prompt": prompt} if by_text else _message({"text": prompt})
        return await self._job(f"/services/aigc/{path}", model, inputs, parameters, finish, emitter)

    @pegboard.tool(read_only=True)
    async def dashscope_image_to_text(self, image_urls: p.ImageUrls, prompt: str = "Describe the image") -> str:
        """Describe images, or answer a question about them.

        Args:
            prompt: What to say about them
        """
        model = self.models["image_to_text"]
        images = [{"image": await self._named(each, "image", model)} for each in image_urls]
        return self._text(await self._generate(model, _message(*images, {"text": prompt})))

    @pegboard.tool
    async def dashscope_text_to_audio(
        self, text: p.Text, voice: str = "Cherry", language: str = "Chinese", sample_rate: p.SampleRate = 24000
    ) -> ToolOutput:
        """Say a text: make a recording of it.

        Args:
            voice: Name of the voice, such as Cherry, Serena, Ethan or Chelsie
            language: The language of the text, such as Chinese, English or German
        """
        model = self.models["text_to_audio"]
        inputs: dict[str, Any] = {"text": text, "voice": voice}
        if model.startswith("cosyvoice"):
            inputs |= {"format": "wav", "sample_rate": sample_rate}
            body = {"model": model, "input": inputs}
            output = self._output(await self._ask("POST", "/services/audio/tts/SpeechSynthesizer", json=body))
        else:
            rate = {} if sample_rate == 24000 else {"sample_rate": sample_rate}
            output = await self._generate(model, inputs | {"language_type": language}, rate)
        return await self._media("dashscope_text_to_audio", "audio", output)

    @pegboard.tool(read_only=True)
    async def dashscope_audio_to_text(self, audio_url: p.AudioUrl, emitter: Emitter | None = None) -> str:
        """Write down what is said in a recording."""
        model = self.models["audio_to_text"]
        if _TRANSCRIBED_AT_ONCE.match(model):
            recording = {"audio": await self._named(audio_url, "audio", model)}
            return self._text(await self._generate(model, _message(recording)))
        url = await self._named(audio_url, "audio", model, inline=0)
        files = {"file_url": url} if model.endswith("filetrans") else {"file_urls": [url]}
        return await self._job("/services/audio/asr/transcription", model, files, {}, self._transcript, emitter)

    @pegboard.tool
    async def dashscope_text_to_video(
        self,
        prompt: str,
        negative_prompt: p.Negative = None,
        audio_url: p.Sound = None,
        size: p.Pixels = "1920*1080",
        duration: p.Duration = None,
        shot_type: p.Shots = "single",
        prompt_extend: p.Extend = True,
        watermark: p.Watermark = False,
        seed: p.Seed = None,
        emitter: Emitter | None = None,
    ) -> ToolOutput:
        """Make a video from a description. This takes minutes.

        Args:
            prompt: What is to be seen and to happen
        """
        model = self.models["text_to_video"]
        inputs = {"prompt": prompt, "negative_prompt": negative_prompt}
        inputs["audio_url"] = await self._named(audio_url, "audio", model) if audio_url else None
        parameters = {"size": size.replace("x", "*"), "duration": duration, "shot_type": shot_type}
        parameters |= {"prompt_extend": prompt_extend, "watermark": watermark, "seed": seed}
        finish = partial(self._media, "dashscope_text_to_video", "video")
        return await self._job(_VIDEO, model, inputs, parameters, finish, emitter)

    @pegboard.tool
    async def dashscope_image_to_video(
        self,
        image_url: p.ImageUrl,
        prompt: str | None = None,
        audio_url: p.Sound = None,
        negative_prompt: p.Negative = None,
        template: p.Template = None,
        resolution: p.Resolution = "720P",
        duration: p.Duration = None,
        shot_type: p.Shots = None,
        audio: p.HasSound = True,
        prompt_extend: p.Extend = None,
        watermark: p.Watermark = None,
        seed: p.Seed = None,
        emitter: Emitter | None = None,
    ) -> ToolOutput:
        """Make a video that begins with an image. This takes minutes.

        Args:
            prompt: What is to happen
        """
        model = self.models["image_to_video"]
        inputs = {"prompt": prompt, "img_url": await self._named(image_url, "image", model)}
        inputs |= {"negative_prompt": negative_prompt, "template": template}
        inputs["audio_url"] = await self._named(audio_url, "audio", model) if audio_url else None
        parameters = {"resolution": resolution, "duration": duration, "shot_type": shot_type, "audio": audio}
        parameters |= {"prompt_extend": prompt_extend, "watermark": watermark, "seed": seed}
        finish = partial(self._media, "dashscope_image_to_video", "video")
        return await self._job(_VIDEO, model, inputs, parameters, finish, emitter)

    @pegboard.tool
    async def dashscope_first_and_last_frame_image_to_video(
        self,
        first_frame_url: p.ImageUrl,
        last_frame_url: p.ImageUrl,
        prompt: str | None = None,
        negative_prompt: p.Negative = None,
        template: p.Template = None,
        resolution: p.Resolution = "720P",
        prompt_extend: p.Extend = None,
        watermark: p.Watermark = None,
        seed: p.Seed = None,
        emitter: Emitter | None = None,
    ) -> ToolOutput:
        """Make a video that leads from one image to another. This takes minutes.

        Args:
            prompt: What is to happen in between
        """
        model = self.models["first_and_last_frame_image_to_video"]
        inputs = {"prompt": prompt, "negative_prompt": negative_prompt, "template": template}
        inputs["first_frame_url"] = await self._named(first_frame_url, "image", model)
        inputs["last_frame_url"] = await self._named(last_frame_url, "image", model)
        parameters = {"resolution": resolution, "prompt_extend": prompt_extend, "watermark": watermark, "seed": seed}
        finish = partial(self._media, "dashscope_first_and_last_frame_image_to_video", "video")
        return await self._job(_FRAMES, model, inputs, parameters, finish, emitter)

    @pegboard.tool(read_only=True)
    async def dashscope_video_to_text(
        self, video_url: p.VideoUrl, prompt: str = "Describe the video", fps: p.PerSecond = 2.0
    ) -> str:
        """Describe a video, or answer a question about it.

        Args:
            prompt: What to say about it
        """
        model = self.models["video_to_text"]
        video = {"video": await self._named(video_url, "video", model), "fps": fps}
        return self._text(await self._generate(model, _message(video, {"text": prompt})))

    # Requests ----------------------------------------------------------------------------------------------------

    async def _generate(
        self, model: str, inputs: Mapping[str, Any], parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What is answered at once."""
        body = _body(model, inputs, parameters or {})
        return self._output(await self._ask("POST", _MULTIMODAL, json=body, headers=_resolving(inputs)))

    async def _job(
        self,
        path: str,
        model: str,
        inputs: Mapping[str, Any],
        parameters: Mapping[str, Any],
        finish: Callable[[dict[str, Any]], Awaitable[T]],
        emitter: Emitter | None,
    ) -> T:
        """What `finish` makes of a job's output.

        One that was accepted is never begun again, and is ended when its caller no longer waits.
        """
        import asyncio

        headers = {"X-DashScope-Async": "enable", **_resolving(inputs)}
        answer = await self._ask("POST", path, json=_body(model, inputs, parameters), headers=headers)
        job = str(self._part(self._output(answer), "task_id"))
        runs = True
        try:
            if not re.fullmatch(r"[\w.-]{1,200}", job):
                raise self._unknown("its task_id is none")
            output = await self._finished(job, emitter)
            runs = False
            return await finish(output)
        except BaseException as error:
            error.retry_after = math.inf  # type: ignore[attr-defined]
            if runs and isinstance(error, asyncio.CancelledError):
                with suppress(BusyError, ProviderError, TimeoutError):
                    async with asyncio.timeout(_ENDING_SECONDS):
                        await self._send("POST", f"/tasks/{job}/cancel")
            raise

    async def _finished(self, job: str, emitter: Emitter | None) -> dict[str, Any]:
        """The output of a job that has succeeded."""
        from asyncio import sleep

        began, missed, (wait, longest) = time.monotonic(), 0, _INTERVALS
        while True:
            await sleep(wait)
            wait = min(wait * 1.5, longest)
            try:
                output = self._output(await self._ask("GET", f"/tasks/{job}"))
                missed = 0
            except (BusyError, ProviderError) as error:
                missed += 1
                # Asking twice does no harm; a clear answer of the provider will be the same again.
                clear = isinstance(error, ProviderError) and error.__cause__ is None
                if missed >= _MISSED or clear:
                    raise ProviderError(f"{error} (the job {job} was accepted and is not begun again)") from error
                wait = max(wait, min(getattr(error, "retry_after", None) or 0.0, 30.0))
                continue
            status = str(self._part(output, "task_status"))
            if status == "SUCCEEDED":
                return output
            if status not in ("PENDING", "RUNNING", "SUSPENDED"):
                raise self._refusal(str(output.get("code") or status), str(output.get("message") or ""))
            if emitter is not None:
                emitter.emit(f"{status.lower()}, {time.monotonic() - began:.0f} s")

    def _output(self, answer: Any) -> dict[str, Any]:
        """The part of an answer that counts. Raises what its error code means."""
        if isinstance(answer, dict) and answer.get("code") and not answer.get("output"):
            raise self._refusal(str(answer["code"]), str(answer.get("message") or ""))
        output: dict[str, Any] = self._part(answer, "output", kind=dict)
        return output

    # Inputs and results ------------------------------------------------------------------------------------------

    async def _named(self, source: str, kind: Kind, model: str, *, inline: int = _INLINE) -> str:
        """What the provider is given for a medium: its content, or where that was put. It fetches nothing itself."""
        medium = await self._inputs.read(source, kind)
        if len(medium.content) <= inline:
            return medium.data_url
        answer = await self._ask("GET", "/uploads", params={"action": "getPolicy", "model": model})
        policy = self._part(answer, "data", kind=dict)
        key = f"{self._part(policy, 'upload_dir')}/{kind}.{medium.suffix}"
        fields = {
            "OSSAccessKeyId": self._part(policy, "oss_access_key_id"),
            "Signature": self._part(policy, "signature"),
            "policy": self._part(policy, "policy"),
            "key": key,
            "x-oss-object-acl": self._part(policy, "x_oss_object_acl"),
            "x-oss-forbid-overwrite": self._part(policy, "x_oss_forbid_overwrite"),
            "success_action_status": "200",
            "x-oss-content-type": medium.media_type,
        }
        form = {"data": fields, "files": {"file": (f"{kind}.{medium.suffix}", medium.content, medium.media_type)}}
        await self._guard.fetch(self._part(policy, "upload_host"), form=form)
        return f"oss://{key}"

    def _text(self, output: dict[str, Any]) -> str:
        """The text of an answer."""
        content = self._part(output, "choices", 0, "message", kind=dict).get("content")
        parts = [{"text": content}] if isinstance(content, str) else records(content)
        text = "".join(str(each["text"]) for each in parts if each.get("text"))
        if not text:
            raise self._unknown("it holds no text")
        return text

    async def _media(self, tool: str, kind: Kind, output: dict[str, Any]) -> ToolOutput:
        """The result with all media that an answer holds; what failed is said beside them."""
        made, failed = [], []
        for each in _media_in(output):
            if isinstance(each.get("url") or each.get("data") or None, str):
                made.append(self._made(each.get("url"), each.get("data")))
            elif each.get("code"):
                failed.append((str(each["code"]), str(each.get("message") or "")))
        if not made:
            raise self._refusal(*failed[0]) if failed else self._unknown(f"it holds no {kind}")
        more = {"failed": [f"{code}: {self._clean(message)}" for code, message in failed]} if failed else {}
        return await self._outputs.result(tool, kind, made, **more)

    async def _transcript(self, output: dict[str, Any]) -> str:
        """The text of the transcripts that a job has put somewhere."""
        results = output.get("results") or [output.get("result")]
        texts: list[str] = []
        for each in results if isinstance(results, list) else []:
            if isinstance(each, dict) and each.get("code"):
                raise self._refusal(str(each["code"]), str(each.get("message") or ""))
            found = await self._guard.fetch(self._part(each, "transcription_url"))
            try:
                transcripts = self._part(json.loads(found.content), "transcripts", kind=list)
            except ValueError as error:
                raise self._unknown("its transcript is no JSON") from error
            texts += [str(self._part(transcript, "text")) for transcript in transcripts]
        if not texts:
            raise self._unknown("it holds no transcript")
        return "\n".join(texts)


def _message(*content: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}]}


def _body(model: str, inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request, without values that are None."""
    given = {name: value for name, value in parameters.items() if value is not None}
    filled = {name: value for name, value in inputs.items() if value is not None}
    return {"model": model, "input": filled, **({"parameters": given} if given else {})}


def _resolving(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The header that lets the provider look into its own storage, where something was put there."""
    return {"X-DashScope-OssResourceResolve": "enable"} if "oss://" in json.dumps(inputs) else {}


def _media_in(output: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Where the media of an answer are, in each of the forms that answers have: url, data, or code of a failure."""
    yield from records(output.get("results"))
    for choice in records(output.get("choices")):
        for message in records([choice.get("message")]):
            yield from ({"url": part["image"]} for part in records(message.get("content")) if "image" in part)
    yield {"url": output.get("video_url")}
    yield from records([output.get("audio")])
