"""DashScope's tools against a server that takes what DashScope takes."""

import asyncio
import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard import (
    AudioBlock,
    ExecutionPolicy,
    ImageBlock,
    Status,
    TextBlock,
    ToolError,
    Toolkit,
    ToolResult,
    VideoBlock,
)
from pegboard_multimodal import DashScopeTools, _dashscope
from tests.plugins.multimodal import samples
from tests.plugins.multimodal.servers import KEY, Answer, DashScopeServer, sleeping
from tests.support.thinning import first
from tests.support.waiting import given_time

PNG = "data:image/png;base64," + base64.b64encode(samples.png()).decode()
WAV = "data:audio/wav;base64," + base64.b64encode(samples.wav()).decode()
MP4 = "data:video/mp4;base64," + base64.b64encode(samples.mp4()).decode()

CALLS: dict[str, dict[str, Any]] = {
    "dashscope_text_to_image": {"prompt": "a cat"},
    "dashscope_image_to_text": {"image_urls": [PNG]},
    "dashscope_text_to_audio": {"text": "Hello"},
    "dashscope_audio_to_text": {"audio_url": WAV},
    "dashscope_text_to_video": {"prompt": "a cat runs"},
    "dashscope_image_to_video": {"image_url": PNG, "prompt": "it runs"},
    "dashscope_first_and_last_frame_image_to_video": {"first_frame_url": PNG, "last_frame_url": PNG},
    "dashscope_video_to_text": {"video_url": MP4},
}
JOBS = [name for name in CALLS if name.endswith("_video") or name == "dashscope_text_to_image"]
each_tool = pytest.mark.parametrize("tool", first(3, CALLS))
each_job = pytest.mark.parametrize("tool", first(2, JOBS))


def toolkit_of(server: DashScopeServer, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(DashScopeTools(KEY, base_url=server.base_url, **{"allow_private": True, **options}))
    return toolkit


@pytest.fixture
def toolkit(dashscope: DashScopeServer) -> Iterator[Toolkit]:
    with toolkit_of(dashscope) as made:
        yield made


def submissions(server: DashScopeServer) -> list[Any]:
    return [each.json for each in server.asked if "/services/" in each.path]


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


class TestSuccess:
    def test_text_to_image(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        arguments = {"prompt": "a cat", "n": 2, "size": "720*1280"}
        result = toolkit.call_sync("dashscope_text_to_image", arguments)
        assert [type(block) for block in result.content] == [ImageBlock, ImageBlock]
        assert [each["width"] for each in result.metadata["media"]] == [64, 64]
        (sent,) = submissions(dashscope)
        assert sent.pop("model").startswith("wan2.2")
        assert sent == {"input": {"prompt": "a cat"}, "parameters": {"n": 2, "size": "720*1280"}}

    @pytest.mark.parametrize(
        ("model", "path"),
        [
            ("wanx2.1-t2i-turbo", "aigc/text2image/image-synthesis"),
            ("wan2.5-t2i-preview", "aigc/text2image/image-synthesis"),
            ("wan2.6-t2i", "aigc/image-generation/generation"),
            ("qwen-image-plus", "aigc/multimodal-generation/generation"),
        ],
    )
    def test_models_have_the_endpoint_that_they_answer_at(
        self, dashscope: DashScopeServer, model: str, path: str
    ) -> None:
        with toolkit_of(dashscope, models={"text_to_image": model}) as toolkit:
            result = toolkit.call_sync("dashscope_text_to_image", {"prompt": "a cat", "size": "512x512"})
        assert (result.status, result.metadata["height"]) == (Status.SUCCESS, 32)
        assert dashscope.asked[0].path == f"/api/v1/services/{path}"
        assert dashscope.asked[0].json["parameters"] == {"n": 1, "size": "512*512"}

    def test_image_to_text(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        there = dashscope.host("cat.png", samples.png())
        arguments = {"image_urls": [PNG, there], "prompt": "What is it?"}
        assert toolkit.call_sync("dashscope_image_to_text", arguments).text == "A cat on a mat."
        (sent,) = submissions(dashscope)
        assert sent["input"] == message({"image": PNG}, {"image": PNG}, {"text": "What is it?"})
        assert "Authorization" not in dashscope.asked[0].headers  # the image that a URL names

    def test_text_to_audio(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        arguments = {"text": "Hello", "voice": "Ethan", "language": "English", "sample_rate": 16000}
        result = toolkit.call_sync("dashscope_text_to_audio", arguments)
        assert isinstance(result.content[0], AudioBlock)
        assert (result.metadata["duration"], result.metadata["media_type"]) == (1.5, "audio/wav")
        (sent,) = submissions(dashscope)
        assert sent["input"] == {"text": "Hello", "voice": "Ethan", "language_type": "English"}
        assert sent["parameters"] == {"sample_rate": 16000}

    def test_text_to_audio_of_a_model_with_an_endpoint_of_its_own(self, dashscope: DashScopeServer) -> None:
        with toolkit_of(dashscope, models={"text_to_audio": "cosyvoice-v3-flash"}) as toolkit:
            result = toolkit.call_sync("dashscope_text_to_audio", {"text": "Hello", "voice": "longanyang"})
        assert result.metadata["duration"] == 1.5
        (sent,) = submissions(dashscope)
        assert sent["input"] == {"text": "Hello", "voice": "longanyang", "format": "wav", "sample_rate": 24000}

    def test_audio_that_comes_at_once(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        spoken = base64.b64encode(samples.wav(0.5)).decode()
        dashscope.faults = [Answer({"output": {"audio": {"data": spoken, "url": ""}}})]
        assert toolkit.call_sync("dashscope_text_to_audio", {"text": "Hello"}).metadata["duration"] == 0.5

    def test_audio_to_text(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        assert toolkit.call_sync("dashscope_audio_to_text", {"audio_url": WAV}).text == "Hello world."
        assert submissions(dashscope)[0]["input"] == message({"audio": WAV})

    @pytest.mark.parametrize(
        ("model", "field"),
        [("paraformer-v2", "file_urls"), ("fun-asr", "file_urls"), ("qwen3-asr-flash-filetrans", "file_url")],
    )
    def test_audio_to_text_as_a_job(self, dashscope: DashScopeServer, model: str, field: str) -> None:
        with toolkit_of(dashscope, models={"audio_to_text": model}) as toolkit:
            assert toolkit.call_sync("dashscope_audio_to_text", {"audio_url": WAV}).text == "Hello world."
        (sent,) = submissions(dashscope)
        url = "oss://dashscope/here/audio.wav"
        assert sent["input"] == {field: url if field == "file_url" else [url]}
        (put,) = [each for each in dashscope.asked if each.path == "/storage"]
        assert put.form["file"] == ("audio.wav", "audio/wav", samples.wav())
        assert (put.form["key"], put.form["OSSAccessKeyId"]) == ("dashscope/here/audio.wav", "a")
        submission = next(each for each in dashscope.asked if "/services/" in each.path)
        assert submission.headers["X-DashScope-OssResourceResolve"] == "enable"

    def test_text_to_video(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        inputs = {"prompt": "a cat runs", "negative_prompt": "dogs", "audio_url": WAV}
        wanted = {"duration": 10, "shot_type": "multi", "prompt_extend": False, "watermark": True, "seed": 7}
        arguments = {**inputs, **wanted, "size": "1280x720"}
        result = toolkit.call_sync("dashscope_text_to_video", arguments)
        assert isinstance(result.content[0], VideoBlock)
        assert (result.metadata["duration"], result.metadata["size"]) == (4.0, len(samples.mp4()))
        (sent,) = submissions(dashscope)
        assert sent["input"] == inputs
        assert sent["parameters"] == {**wanted, "size": "1280*720"}

    def test_what_is_not_said_is_not_sent(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        toolkit.call_sync("dashscope_text_to_video", {"prompt": "a cat runs"})
        (sent,) = submissions(dashscope)
        assert sent["input"] == {"prompt": "a cat runs"}
        shown = {"size": "1920*1080", "shot_type": "single", "prompt_extend": True, "watermark": False}
        assert sent["parameters"] == shown

    def test_image_to_video(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        inputs = {"prompt": "it runs", "audio_url": WAV, "negative_prompt": "dogs", "template": "squish"}
        wanted = {"resolution": "1080P", "duration": 5, "shot_type": "single", "audio": False}
        wanted |= {"prompt_extend": True, "watermark": False, "seed": 7}
        result = toolkit.call_sync("dashscope_image_to_video", {"image_url": PNG, **inputs, **wanted})
        assert result.metadata["media_type"] == "video/mp4"
        (sent,) = submissions(dashscope)
        assert sent["input"] == {"img_url": PNG, **inputs}
        assert sent["parameters"] == wanted

    def test_two_frames_to_video(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        inputs = {"first_frame_url": PNG, "last_frame_url": PNG, "prompt": "it grows"}
        inputs |= {"negative_prompt": "dogs", "template": "hanfu-1"}
        wanted = {"resolution": "480P", "prompt_extend": True, "watermark": False, "seed": 7}
        result = toolkit.call_sync("dashscope_first_and_last_frame_image_to_video", {**inputs, **wanted})
        assert isinstance(result.content[0], VideoBlock)
        assert dashscope.asked[0].path.endswith("/services/aigc/image2video/video-synthesis")
        (sent,) = submissions(dashscope)
        assert (sent["input"], sent["parameters"]) == (inputs, wanted)

    def test_video_to_text(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        arguments = {"video_url": MP4, "prompt": "What happens?", "fps": 0.5}
        assert toolkit.call_sync("dashscope_video_to_text", arguments).text == "A cat on a mat."
        asked = submissions(dashscope)[0]["input"]
        assert asked == message({"video": MP4, "fps": 0.5}, {"text": "What happens?"})

    def test_large_files_go_through_the_provider_s_storage(
        self, dashscope: DashScopeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "long.mp4").write_bytes(samples.mp4() + bytes(8 * 1024 * 1024))
        with toolkit_of(dashscope, base_dir=tmp_path) as toolkit:
            assert not toolkit.call_sync("dashscope_video_to_text", {"video_url": "long.mp4"}).is_error
        (sent,) = submissions(dashscope)
        assert sent["input"]["messages"][0]["content"][0]["video"] == "oss://dashscope/here/video.mp4"

    def test_storage_at_a_private_address_gets_nothing(self, dashscope: DashScopeServer) -> None:
        models = {"audio_to_text": "paraformer-v2"}
        with toolkit_of(dashscope, allow_private=False, models=models) as toolkit:
            result = toolkit.call_sync("dashscope_audio_to_text", {"audio_url": WAV})
        assert "not at a public address" in result.text
        assert "POST /storage" not in dashscope.paths

    def test_what_failed_of_several_is_said(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        url = dashscope.host("one.png", samples.png())
        failed = {"code": "DataInspectionFailed", "message": "Not this one."}
        dashscope.outcome = {"results": [{"url": url}, failed]}
        result = toolkit.call_sync("dashscope_text_to_image", {"prompt": "a cat", "n": 2})
        assert [type(block) for block in result.content] == [ImageBlock]
        assert result.metadata["failed"] == ["DataInspectionFailed: Not this one."]

    def test_results_are_saved_on_request(self, dashscope: DashScopeServer, tmp_path: Path) -> None:
        with toolkit_of(dashscope, base_dir=tmp_path, save=True) as toolkit:
            result = toolkit.call_sync("dashscope_text_to_video", {"prompt": "a cat runs"})
        assert (tmp_path / result.metadata["path"]).read_bytes() == samples.mp4()
        assert isinstance(result.content[-1], TextBlock)


class TestJobs:
    def test_progress_is_told(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        dashscope.polls = 3
        chunks: list[str] = []
        call = CALLS["dashscope_text_to_video"]
        toolkit.call_sync("dashscope_text_to_video", call, on_chunk=lambda chunk: chunks.append(chunk.text))
        assert chunks == ["pending, 0 s", "pending, 0 s", "running, 0 s"]

    @each_job
    def test_failed_polls_are_polled_again(self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str) -> None:
        limited = {"code": "Throttling.RateQuota", "message": "Requests rate limit exceeded."}
        faults = [
            Answer(b"", 500),
            Answer(limited, 429, {"Retry-After": "0"}),
            Answer(b"{}" * 9, cut=3),
            Answer(b"<html></html>"),
            Answer(b"", 502),
        ]
        dashscope.faults_at["GET /api/v1/tasks/job-1"] = faults
        result = toolkit.call_sync(tool, CALLS[tool])
        assert (result.status, result.attempts, len(dashscope.jobs)) == (Status.SUCCESS, 1, 1)

    @each_job
    def test_polls_that_keep_failing_end_it(self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str) -> None:
        dashscope.faults_at["GET /api/v1/tasks/job-1"] = [Answer(b"", 500)] * 50
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=0.01)
        result = toolkit.call_sync(tool, CALLS[tool], policy=policy)
        assert (result.status, result.attempts, len(dashscope.jobs)) == (Status.ERROR, 1, 1)
        assert "the job job-1 was accepted and is not begun again" in result.text
        assert dashscope.paths["GET /api/v1/tasks/job-1"] == 8

    @each_job
    @pytest.mark.parametrize("max_attempts", [pytest.param(1, marks=pytest.mark.slow), 3])
    def test_timeout_ends_it_once(
        self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str, max_attempts: int
    ) -> None:
        dashscope.polls = 1_000_000

        def ended(after: float) -> ToolResult:
            dashscope.jobs.clear()
            policy = ExecutionPolicy(timeout=after, max_attempts=max_attempts, initial_backoff=0.01)
            return toolkit.call_sync(tool, CALLS[tool], policy=policy)

        result = given_time(ended, lambda result: dashscope.cancelled, 0.5)
        assert (result.status, result.attempts) == (Status.TIMEOUT, 1)
        assert (len(dashscope.jobs), dashscope.cancelled) == (1, ["job-1"])
        time.sleep(0.2)  # what was on its way may still come
        polls = len(dashscope.asked)
        time.sleep(0.2)
        assert len(dashscope.asked) == polls

    @each_job
    def test_cancel_ends_it_once(self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str) -> None:
        dashscope.polls = 1_000_000

        async def main() -> None:
            task = asyncio.create_task(toolkit.call(tool, CALLS[tool]))
            while not dashscope.jobs:  # noqa: ASYNC110 - a server in another thread
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert (len(dashscope.jobs), dashscope.cancelled) == (1, ["job-1"])

    def test_a_result_that_takes_too_long_to_fetch_is_not_made_again(
        self, dashscope: DashScopeServer, toolkit: Toolkit
    ) -> None:

        def ended(after: float) -> ToolResult:
            dashscope.jobs.clear()
            dashscope.cancelled.clear()
            dashscope.faults_at["GET /files/made.mp4"] = [Answer(samples.mp4(), before=sleeping(after + 3))]
            policy = ExecutionPolicy(timeout=after, max_attempts=3, initial_backoff=0.01)
            return toolkit.call_sync("dashscope_text_to_video", {"prompt": "x"}, policy=policy)

        result = given_time(ended, lambda result: not dashscope.cancelled, 1.0)
        assert (result.status, len(dashscope.jobs), dashscope.cancelled) == (Status.TIMEOUT, 1, [])

    def test_stop_ends_it(self, dashscope: DashScopeServer, toolkit: Toolkit) -> None:
        dashscope.polls = 1_000_000
        call = toolkit.prepare("dashscope_text_to_video", CALLS["dashscope_text_to_video"])

        async def main() -> Status:
            task = asyncio.create_task(call.execute())
            # Once it has been polled: before, the tool may not have heard of the job that there is.
            while not any(job["left"] < dashscope.polls for job in list(dashscope.jobs.values())):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            call.stop()
            return (await task).status

        assert asyncio.run(main()) is Status.CANCELLED
        assert dashscope.cancelled == ["job-1"]

    def test_a_provider_that_does_not_end_it_blocks_no_caller(
        self, dashscope: DashScopeServer, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_dashscope, "_ENDING_SECONDS", 0.1)
        dashscope.polls = 1_000_000
        dashscope.faults_at["POST /api/v1/tasks/job-1/cancel"] = [Answer(b"", before=sleeping(30.0))]
        began = time.monotonic()
        result = toolkit.call_sync("dashscope_text_to_video", {"prompt": "x"}, policy=ExecutionPolicy(timeout=0.8))
        assert result.status is Status.TIMEOUT
        assert time.monotonic() - began < 25

    @each_job
    @pytest.mark.parametrize(
        ("outcome", "message"),
        [
            (
                {"task_status": "FAILED", "code": "InternalError.Algo", "message": "Oops."},
                "refuses (InternalError.Algo): Oops.",
            ),
            (
                {"task_status": "FAILED", "code": "DataInspectionFailed", "message": "No."},
                "does not allow this content",
            ),
            ({"task_status": "FAILED"}, "DashScope refuses (FAILED)"),
            ({"task_status": "CANCELED"}, "DashScope refuses (CANCELED)"),
            ({"task_status": "UNKNOWN"}, "DashScope refuses (UNKNOWN)"),
            ({"task_status": 7}, "an answer that is not understood"),
        ],
    )
    def test_how_it_may_end(
        self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str, outcome: dict[str, Any], message: str
    ) -> None:
        dashscope.outcome = outcome
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=0.01)
        result = toolkit.call_sync(tool, CALLS[tool], policy=policy)
        assert (result.status, result.attempts, len(dashscope.jobs)) == (Status.ERROR, 1, 1)
        assert message in result.text

    @each_job
    @pytest.mark.parametrize(
        "output", [{}, {"results": [], "video_url": ""}, {"results": 1, "video_url": 7}, {"choices": [{"message": {}}]}]
    )
    def test_success_without_media(
        self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str, output: dict[str, Any]
    ) -> None:
        done = {"output": {"task_id": "job-1", "task_status": "SUCCEEDED", **output}}
        dashscope.faults_at["GET /api/v1/tasks/job-1"] = [Answer(done)]
        assert "an answer that is not understood" in toolkit.call_sync(tool, CALLS[tool]).text

    @pytest.mark.parametrize("job", ["../x", "a/b", "", 7, "x" * 201, "a?b"])
    def test_a_job_s_name_that_is_none_is_put_into_no_url(
        self, dashscope: DashScopeServer, toolkit: Toolkit, job: Any
    ) -> None:
        dashscope.faults = [Answer({"output": {"task_id": job, "task_status": "PENDING"}})]
        assert toolkit.call_sync("dashscope_text_to_video", {"prompt": "x"}).status is Status.ERROR
        assert len(dashscope.asked) == 1

    @pytest.mark.parametrize(
        ("fault", "message"),
        [
            (Answer(b"", 404), "answered 404"),
            (Answer(b"{}"), "no transcripts"),
            (Answer(b"{"), "its transcript is no JSON"),
            (Answer({"transcripts": []}), "transcripts is no list, or empty"),
            (Answer({"transcripts": [{"text": ""}]}), "text is no str, or empty"),
        ],
    )
    def test_transcripts_that_cannot_be_read(self, dashscope: DashScopeServer, fault: Answer, message: str) -> None:
        dashscope.faults_at["GET /files/transcript.json"] = [fault]
        with toolkit_of(dashscope, models={"audio_to_text": "fun-asr"}) as toolkit:
            assert message in toolkit.call_sync("dashscope_audio_to_text", {"audio_url": WAV}).text

    @pytest.mark.parametrize(
        ("results", "message"),
        [
            ([{"code": "FILE_DOWNLOAD_FAILED"}], "refuses (FILE_DOWNLOAD_FAILED)"),
            ([], "no transcription_url"),
            (7, "no transcript"),
        ],
    )
    def test_recordings_that_were_not_transcribed(self, dashscope: DashScopeServer, results: Any, message: str) -> None:
        dashscope.outcome = {"results": results}
        with toolkit_of(dashscope, models={"audio_to_text": "fun-asr"}) as toolkit:
            assert message in toolkit.call_sync("dashscope_audio_to_text", {"audio_url": WAV}).text


def code(name: str, message: str = "Something.") -> dict[str, Any]:
    return {"code": name, "message": message, "request_id": "r-1"}


FAILURES: dict[str, tuple[Answer, str]] = {
    "bad request": (Answer(code("InvalidParameter", "Bad size."), 400), "refuses (400 InvalidParameter): Bad size."),
    "wrong key": (Answer(code("InvalidApiKey", f"Invalid {KEY}"), 401), "does not accept the key (401 InvalidApiKey)"),
    "no access": (Answer(code("AccessDenied"), 403), "does not allow this with this key"),
    "free quota": (Answer(code("AllocationQuota.FreeTierOnly"), 403), "quota at DashScope is used up"),
    "unpaid": (Answer(code("Arrearage"), 400), "quota at DashScope is used up"),
    "unknown model": (Answer(code("ModelNotFound"), 404), "no such endpoint or model"),
    "throttled": (Answer(code("Throttling.RateQuota"), 429), "too much to do (429 Throttling.RateQuota)"),
    "inspection": (Answer(code("DataInspectionFailed"), 400), "does not allow this content"),
    "infringement": (Answer(code("IPInfringementSuspect"), 400), "does not allow this content"),
    "server error": (Answer(code("InternalError"), 500), "does not work at the moment (500 InternalError)"),
    "bad gateway": (Answer(b"<html/>", 502), "does not work at the moment (502)"),
    "overloaded": (Answer(b"", 503), "does not work at the moment (503)"),
    "redirect": (Answer(b"", 307, {"Location": "https://example.com/"}), "redirect, which is not followed"),
    "cut off": (Answer(b"{" * 100, cut=50), "broke off before it had answered"),
    "a code with status 200": (Answer(code("InvalidParameter", "Odd.")), "refuses (InvalidParameter): Odd."),
}
MALFORMED = {
    "empty": Answer(b""),
    "no JSON": Answer(b"<html></html>"),
    "null": Answer(None),
    "an array": Answer([]),
    "no output": Answer({"request_id": "r-1"}),
    "an empty output": Answer({"output": {}}),
    "another output": Answer({"output": {"task_id": None, "choices": [{}], "audio": {"data": "!!"}}}),
    "an output that is a text": Answer({"output": "text"}),
}


@pytest.mark.parametrize("tool", first(2, CALLS))
class TestFailure:
    @pytest.mark.parametrize("failure", FAILURES)
    def test_is_said(self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str, failure: str) -> None:
        answer, message = FAILURES[failure]
        dashscope.faults = [answer]
        result = toolkit.call_sync(tool, CALLS[tool])
        assert (result.status, result.attempts, len(dashscope.asked)) == (Status.ERROR, 1, 1)
        assert message in result.text
        assert KEY not in f"{result!r} {result.to_dict()}"

    @pytest.mark.parametrize("malformed", MALFORMED)
    def test_malformed_answer(self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str, malformed: str) -> None:
        dashscope.faults = [MALFORMED[malformed]]
        result = toolkit.call_sync(tool, CALLS[tool])
        assert result.status is Status.ERROR
        assert "DashScope sent an answer that is not understood" in result.text

    def test_no_server_listens(self, tool: str) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(DashScopeTools(KEY, base_url="http://127.0.0.1:9/api/v1"))
            assert "DashScope cannot be reached: ConnectError" in toolkit.call_sync(tool, CALLS[tool]).text

    def test_retried_by_the_policy(self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str) -> None:
        dashscope.faults = [Answer(code("Throttling"), 429, {"Retry-After": "0"}), Answer(b"", 503)]
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=0.01)
        result = toolkit.call_sync(tool, CALLS[tool], policy=policy)
        assert (result.status, result.attempts) == (Status.SUCCESS, 3)
        assert len(dashscope.jobs) <= 1

    def test_urls_are_fetched_and_looked_at(self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str) -> None:
        named = {name for name in CALLS[tool] if "url" in name}
        for fault in (Answer(samples.SVG), Answer(b"", 302, {"Location": "http://127.0.0.1:1025/"}), Answer(b"", 404)):
            dashscope.files["/files/x"] = fault
            url = f"{dashscope.origin}/files/x"
            arguments = CALLS[tool] | {name: [url] if name.endswith("s") else url for name in named}
            if named:
                assert toolkit.call_sync(tool, arguments).status is Status.ERROR
        assert submissions(dashscope) == []

    def test_private_urls_are_refused_before_anything_is_sent(
        self, dashscope: DashScopeServer, toolkit: Toolkit, tool: str
    ) -> None:
        named = {name for name in CALLS[tool] if "url" in name}
        for url in ("http://169.254.169.254/latest", "http://localhost:8080/x", "http://[::1]/x", "file:///etc/passwd"):
            arguments = CALLS[tool] | {name: [url] if name.endswith("s") else url for name in named}
            if named:
                assert toolkit.call_sync(tool, arguments).status is Status.ERROR
                assert dashscope.asked == []


FIELDS = """
output choices message content text image audio url data results code video_url task_id task_status result
transcription_url
""".split()  # noqa: SIM905 - sixteen quoted words are harder to read
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("SUCCEEDED") | st.just("job-1"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(sorted(CALLS)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_answered_the_tool_says_what_is_wrong(
    dashscope: DashScopeServer, toolkit: Toolkit, answer: Any, tool: str
) -> None:
    dashscope.faults = [Answer({"output": answer}), Answer(answer)]
    result = toolkit.call_sync(tool, CALLS[tool])
    assert result.error is None or isinstance(result.error.exception, ToolError), result.error


class TestConstruction:
    @pytest.mark.parametrize("key", ["", "   "])
    def test_refuses_an_empty_key(self, key: str) -> None:
        with pytest.raises(ValueError, match="DashScope API key cannot be empty"):
            DashScopeTools(key)

    def test_parameters_are_described(self, toolkit: Toolkit) -> None:
        for tool in toolkit.tools:
            assert [
                name for name, schema in tool.parameters["properties"].items() if not schema.get("description")
            ] == []
