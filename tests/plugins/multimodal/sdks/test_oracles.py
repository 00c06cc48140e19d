"""What the providers' own SDKs send, the tools send; what the servers answer, the SDKs understand."""

import base64
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import openai as openai_sdk
import pytest

from pegboard import Toolkit
from pegboard_multimodal import DashScopeTools, OpenAITools
from tests.plugins.multimodal import samples
from tests.plugins.multimodal.servers import KEY, Asked, DashScopeServer, OpenAIServer
from tests.plugins.multimodal.test_dashscope import MP4, PNG, WAV

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the SDK's own affair
    import dashscope as dashscope_sdk
    from dashscope.audio.http_tts import HttpSpeechSynthesizer
    from dashscope.audio.qwen_asr import QwenTranscription
    from dashscope.utils.oss_utils import OssUtils

pytestmark = pytest.mark.filterwarnings("ignore")

IMAGE = ("image.png", samples.png(), "image/png")
MASK = ("mask.png", samples.png(), "image/png")
SOUND = ("audio.wav", samples.wav(), "audio/wav")
MODELS = OpenAITools(KEY).models


def sent(asked: Asked) -> tuple[str, str, Any]:
    form = (asked.headers.get("Content-Type") or "").startswith("multipart/")
    return asked.method, asked.path, asked.form if form else asked.json


class TestOpenAI:
    @pytest.fixture
    def client(self, openai: OpenAIServer) -> Iterator[Any]:
        with openai_sdk.OpenAI(api_key=KEY, base_url=openai.base_url, max_retries=0) as client:
            yield client

    CASES: ClassVar[dict[str, tuple[str, dict[str, Any], Callable[[Any], Any]]]] = {
        "generate": (
            "openai_text_to_image",
            {"prompt": "a cat", "n": 2, "size": "1024x1024", "quality": "high"},
            lambda client: client.images.generate(
                model=MODELS["text_to_image"], prompt="a cat", n=2, size="1024x1024", quality="high"
            ),
        ),
        "edit": (
            "openai_edit_image",
            {"image_url": PNG, "prompt": "with a hat", "mask_url": PNG, "n": 2, "size": "1024x1024"},
            lambda client: client.images.edit(
                model=MODELS["edit_image"], image=IMAGE, mask=MASK, prompt="with a hat", n=2, size="1024x1024"
            ),
        ),
        "chat": (
            "openai_image_to_text",
            {"image_urls": [PNG], "prompt": "What is it?"},
            lambda client: client.chat.completions.create(
                model=MODELS["image_to_text"],
                messages=[
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "What is it?"},
                            {"type": "image_url", "image_url": {"url": PNG}},
                        ],
                    }
                ],
            ),
        ),
        "speech": (
            "openai_text_to_audio",
            {"text": "Hello", "voice": "nova", "speed": 1.25, "res_format": "wav"},
            lambda client: client.audio.speech.create(
                model=MODELS["text_to_audio"], input="Hello", voice="nova", speed=1.25, response_format="wav"
            ),
        ),
        "transcription": (
            "openai_audio_to_text",
            {"audio_file_url": WAV, "language": "de", "temperature": 0.5},
            lambda client: client.audio.transcriptions.create(
                model=MODELS["audio_to_text"], file=SOUND, language="de", temperature=0.5
            ),
        ),
    }

    @pytest.mark.parametrize("case", CASES)
    def test_sends_the_same(self, openai: OpenAIServer, client: Any, case: str) -> None:
        tool, arguments, call = self.CASES[case]
        understood = call(client)
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(OpenAITools(KEY, base_url=openai.base_url))
            result = toolkit.call_sync(tool, arguments)
        theirs, ours = openai.asked
        assert sent(ours) == sent(theirs)
        assert ours.headers["Authorization"] == theirs.headers["Authorization"]
        blocks: Any = result.content
        got = [block.to_bytes() for block in blocks] if case in ("generate", "edit", "speech") else result.text
        if case in ("generate", "edit"):
            assert got == [base64.b64decode(image.b64_json) for image in understood.data]
        elif case == "chat":
            assert got == understood.choices[0].message.content
        else:
            assert got == ([understood.read()] if case == "speech" else understood.text)

    def test_images_by_url_and_errors_are_understood_too(self, openai: OpenAIServer, client: Any) -> None:
        openai.url_images = True
        assert client.images.generate(prompt="a cat").data[0].url == f"{openai.origin}/files/made.png"
        with pytest.raises(openai_sdk.NotFoundError):
            client.images.create_variation(image=IMAGE)
        with pytest.raises(openai_sdk.BadRequestError, match="n is 1 to 10"):
            client.images.generate(prompt="a cat", n=11)
        with pytest.raises(openai_sdk.AuthenticationError):
            client.with_options(api_key="wrong").images.generate(prompt="a cat")


class TestDashScope:
    @pytest.fixture(autouse=True)
    def sdk(self, dashscope: DashScopeServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dashscope_sdk, "base_http_api_url", dashscope.base_url)
        monkeypatch.setattr(dashscope_sdk, "api_key", KEY)
        dashscope.polls = 0

    @staticmethod
    def ask(server: DashScopeServer, tool: str, arguments: dict[str, Any], **models: str) -> Any:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(DashScopeTools(KEY, base_url=server.base_url, allow_private=True, models=models))
            result = toolkit.call_sync(tool, arguments)
        assert not result.is_error, result
        return result

    @staticmethod
    def same(server: DashScopeServer) -> None:
        """Both submissions are alike, but for a flag that is out of use and a repetition of the path."""
        theirs, ours = [each for each in server.asked if "/services/" in each.path]
        expected = theirs.json
        expected["input"].pop("extend_prompt", None)
        assert expected["input"].pop("function", "") in theirs.path
        if not expected.get("parameters"):
            expected.pop("parameters", None)
        assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, expected)
        for name in ("Authorization", "X-DashScope-Async", "X-DashScope-OssResourceResolve"):
            assert ours.headers.get(name) == theirs.headers.get(name), name

    def test_text_to_image(self, dashscope: DashScopeServer) -> None:
        answer = dashscope_sdk.ImageSynthesis.call(model="wan2.2-t2i-flash", prompt="a cat", n=2, size="720*1280")
        assert [each.url for each in answer.output.results] == [f"{dashscope.origin}/files/made{n}.png" for n in (0, 1)]
        self.ask(dashscope, "dashscope_text_to_image", {"prompt": "a cat", "n": 2, "size": "720*1280"})
        self.same(dashscope)

    @pytest.mark.parametrize(
        ("tool", "arguments", "model", "content"),
        [
            (
                "image_to_text",
                {"image_urls": [PNG], "prompt": "What?"},
                "qwen3-vl-plus",
                [{"image": PNG}, {"text": "What?"}],
            ),
            ("audio_to_text", {"audio_url": WAV}, "qwen3-asr-flash", [{"audio": WAV}]),
            (
                "video_to_text",
                {"video_url": MP4, "prompt": "What?", "fps": 1.5},
                "qwen3.5-plus",
                [{"video": MP4, "fps": 1.5}, {"text": "What?"}],
            ),
        ],
    )
    def test_what_reads(
        self, dashscope: DashScopeServer, tool: str, arguments: dict[str, Any], model: str, content: list[Any]
    ) -> None:
        messages = [{"role": "user", "content": content}]
        answer = dashscope_sdk.MultiModalConversation.call(model=model, messages=messages)
        text = "".join(part["text"] for part in answer.output.choices[0].message.content)
        assert self.ask(dashscope, f"dashscope_{tool}", arguments).text == text
        self.same(dashscope)

    def test_text_to_audio(self, dashscope: DashScopeServer) -> None:
        answer = dashscope_sdk.MultiModalConversation.call(
            model="qwen3-tts-flash", text="Hello", voice="Cherry", language_type="English"
        )
        assert answer.output.audio.url == f"{dashscope.origin}/files/spoken.wav"
        self.ask(dashscope, "dashscope_text_to_audio", {"text": "Hello", "language": "English"})
        self.same(dashscope)

    def test_text_to_audio_of_a_model_with_an_endpoint_of_its_own(self, dashscope: DashScopeServer) -> None:
        model = "cosyvoice-v3-flash"
        HttpSpeechSynthesizer.call(model=model, text="Hello", voice="longanyang", sample_rate=16000)
        arguments = {"text": "Hello", "voice": "longanyang", "sample_rate": 16000}
        self.ask(dashscope, "dashscope_text_to_audio", arguments, text_to_audio=model)
        self.same(dashscope)

    def test_transcription(self, dashscope: DashScopeServer, tmp_path: Path) -> None:
        url = "oss://dashscope/here/audio.wav"
        answer = dashscope_sdk.audio.asr.Transcription.call(
            model="paraformer-v2", file_urls=[url], headers={"X-DashScope-OssResourceResolve": "enable"}
        )
        assert answer.output.results[0]["transcription_url"] == f"{dashscope.origin}/files/transcript.json"
        self.ask(dashscope, "dashscope_audio_to_text", {"audio_url": WAV}, audio_to_text="paraformer-v2")
        self.same(dashscope)

    def test_transcription_of_one_file(self, dashscope: DashScopeServer) -> None:
        url, model = "oss://dashscope/here/audio.wav", "qwen3-asr-flash-filetrans"
        QwenTranscription.call(model=model, file_url=url, headers={"X-DashScope-OssResourceResolve": "enable"})
        self.ask(dashscope, "dashscope_audio_to_text", {"audio_url": WAV}, audio_to_text=model)
        self.same(dashscope)

    def test_upload(self, dashscope: DashScopeServer, tmp_path: Path) -> None:
        (tmp_path / "audio.wav").write_bytes(samples.wav())
        url, _ = OssUtils.upload(model="paraformer-v2", file_path=str(tmp_path / "audio.wav"), api_key=KEY)
        assert url == "oss://dashscope/here/audio.wav"
        self.ask(dashscope, "dashscope_audio_to_text", {"audio_url": WAV}, audio_to_text="paraformer-v2")
        theirs, ours = [each for each in dashscope.asked if each.path.endswith("/uploads")]
        assert (ours.method, ours.path, ours.query) == (theirs.method, theirs.path, theirs.query)
        theirs, ours = [each for each in dashscope.asked if each.path == "/storage"]
        expected = theirs.form
        kind = expected.pop("x-oss-content-type")
        _, _, content = expected.pop("file")
        form = ours.form
        assert form.pop("file") == ("audio.wav", form.pop("x-oss-content-type"), content)
        assert kind in ("audio/x-wav", "audio/wav", "audio/vnd.wave")  # by the name, where ours is by the content
        assert form == expected

    @pytest.mark.parametrize(
        ("tool", "arguments", "model", "given"),
        [
            (
                "text_to_video",
                {"prompt": "a cat runs", "negative_prompt": "dogs", "duration": 5, "seed": 7},
                "wan2.6-t2v",
                {"size": "1920*1080", "shot_type": "single", "prompt_extend": True, "watermark": False},
            ),
            (
                "image_to_video",
                {"prompt": "it runs", "image_url": PNG, "template": "squish", "duration": 5},
                "wan2.6-i2v-flash",
                {"resolution": "720P", "audio": True},
            ),
            (
                "first_and_last_frame_image_to_video",
                {"prompt": "it grows", "first_frame_url": PNG, "last_frame_url": PNG, "watermark": True},
                "wan2.2-kf2v-flash",
                {"resolution": "720P"},
            ),
        ],
    )
    def test_videos(
        self, dashscope: DashScopeServer, tool: str, arguments: dict[str, Any], model: str, given: dict[str, Any]
    ) -> None:
        theirs = {{"image_url": "img_url"}.get(name, name): value for name, value in arguments.items()}
        answer = dashscope_sdk.VideoSynthesis.call(model=model, **theirs, **given)
        assert answer.output.video_url == f"{dashscope.origin}/files/made.mp4"
        self.ask(dashscope, f"dashscope_{tool}", arguments)
        self.same(dashscope)

    def test_a_job_is_ended_in_the_same_way(self, dashscope: DashScopeServer) -> None:
        dashscope.polls = 1_000_000
        task = dashscope_sdk.VideoSynthesis.async_call(model="wan2.6-t2v", prompt="x")
        dashscope_sdk.VideoSynthesis.cancel(task)
        with Toolkit(plugins=()) as toolkit:
            from pegboard import ExecutionPolicy

            toolkit.register(DashScopeTools(KEY, base_url=dashscope.base_url))
            toolkit.call_sync("dashscope_text_to_video", {"prompt": "x"}, policy=ExecutionPolicy(timeout=1.0))
        assert dashscope.cancelled == ["job-1", "job-2"]
        theirs, ours = [each for each in dashscope.asked if each.path.endswith("/cancel")]
        assert (ours.method, ours.path.replace("2", "1")) == (theirs.method, theirs.path)

    def test_errors_are_understood_too(self, dashscope: DashScopeServer) -> None:
        answer = dashscope_sdk.ImageSynthesis.async_call(model="wan2.2-t2i-flash", prompt="a cat", api_key="wrong")
        assert (answer.status_code, answer.code) == (401, "InvalidApiKey")
