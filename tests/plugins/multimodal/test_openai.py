"""OpenAI's tools against a server that takes what OpenAI takes."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import AudioBlock, ExecutionPolicy, ImageBlock, Secret, Status, Toolkit, ToolResult
from pegboard_multimodal import OpenAITools
from tests.plugins.multimodal import samples
from tests.plugins.multimodal.servers import KEY, Answer, OpenAIServer, sleeping
from tests.support.thinning import first
from tests.support.waiting import given_time

PNG = "data:image/png;base64," + base64.b64encode(samples.png()).decode()
WAV = "data:audio/wav;base64," + base64.b64encode(samples.wav()).decode()

CALLS: dict[str, dict[str, Any]] = {
    "openai_text_to_image": {"prompt": "a cat"},
    "openai_edit_image": {"image_url": PNG, "prompt": "with a hat"},
    "openai_create_image_variation": {"image_url": PNG},
    "openai_image_to_text": {"image_urls": [PNG]},
    "openai_text_to_audio": {"text": "Hello"},
    "openai_audio_to_text": {"audio_file_url": WAV},
}
each_tool = pytest.mark.parametrize("tool", first(3, CALLS))


def toolkit_of(server: OpenAIServer, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(OpenAITools(KEY, base_url=server.base_url, **options))
    return toolkit


@pytest.fixture
def toolkit(openai: OpenAIServer) -> Iterator[Toolkit]:
    with toolkit_of(openai, allow_private=True) as made:
        yield made


def error(code: str | None, message: str = "Something.", kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class TestSuccess:
    def test_text_to_image(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        result = toolkit.call_sync(
            "openai_text_to_image", {"prompt": "a cat", "n": 2, "size": "1536x1024", "quality": "low"}
        )
        assert [type(block) for block in result.content] == [ImageBlock, ImageBlock]
        facts = {"media_type": "image/png", "size": len(samples.png(64, 32)), "width": 64, "height": 32}
        assert result.metadata == {**facts, "media": [facts, facts]}
        sent = openai.asked[-1].json
        assert sent.pop("model").startswith("gpt-image-")
        assert sent == {"prompt": "a cat", "n": 2, "size": "1536x1024", "quality": "low"}

    def test_what_is_auto_is_left_to_the_server(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"})
        assert set(openai.asked[-1].json) == {"model", "prompt", "n"}

    def test_an_image_that_comes_as_a_url_is_fetched(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        openai.url_images = True
        result = toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"})
        (block,) = result.content
        assert isinstance(block, ImageBlock)
        assert block.to_bytes() == samples.png(64, 32)
        assert (result.metadata["width"], result.metadata["url"]) == (64, f"{openai.origin}/files/made.png")
        assert "Authorization" not in openai.asked[-1].headers

    def test_urls_stay_urls_on_request(self, openai: OpenAIServer) -> None:
        openai.url_images = True
        with toolkit_of(openai, download=False) as toolkit:
            (block,) = toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"}).content
        assert block == ImageBlock(url=f"{openai.origin}/files/made.png")
        assert len(openai.asked) == 1

    def test_edit_image(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        arguments = {"image_url": PNG, "prompt": "with a hat", "mask_url": PNG, "n": 3, "size": "1024x1024"}
        result = toolkit.call_sync("openai_edit_image", arguments)
        assert [type(block) for block in result.content] == [ImageBlock] * 3
        form = openai.asked[-1].form
        assert form["image"] == ("image.png", "image/png", samples.png())
        assert form["mask"] == ("mask.png", "image/png", samples.png())
        assert (form["prompt"], form["n"], form["size"]) == ("with a hat", "3", "1024x1024")

    def test_variation_is_an_edit(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("openai_create_image_variation", {"image_url": PNG, "n": 2, "size": "512x512"})
        assert (result.status, len(result.content)) == (Status.SUCCESS, 2)
        form = openai.asked[-1].form
        assert (form["n"], form["size"]) == ("2", "512x512")
        assert "variation" in form["prompt"]

    def test_image_to_text(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("openai_image_to_text", {"image_urls": [PNG, PNG], "prompt": "What is it?"})
        assert result.text == "A cat on a mat."
        text, *images = openai.asked[-1].json["messages"][0]["content"]
        assert text == {"type": "text", "text": "What is it?"}
        assert images == [{"type": "image_url", "image_url": {"url": PNG}}] * 2

    @pytest.mark.parametrize(
        ("res_format", "media_type", "duration"),
        [
            ("mp3", "audio/mpeg", 1.045),
            ("opus", "audio/ogg", 2.0),
            ("flac", "audio/flac", 2.0),
            ("wav", "audio/wav", 1.5),
        ],
    )
    def test_text_to_audio(
        self, openai: OpenAIServer, toolkit: Toolkit, res_format: str, media_type: str, duration: float
    ) -> None:
        arguments = {"text": "Hello", "voice": "nova", "speed": 1.5, "res_format": res_format}
        result = toolkit.call_sync("openai_text_to_audio", arguments)
        (block,) = result.content
        assert isinstance(block, AudioBlock)
        assert (block.media_type, result.metadata["duration"]) == (media_type, duration)
        sent = openai.asked[-1].json
        assert sent.pop("model")
        assert sent == {"input": "Hello", "voice": "nova", "speed": 1.5, "response_format": res_format}

    def test_audio_that_says_nothing_of_its_length(self, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("openai_text_to_audio", {"text": "Hello", "res_format": "aac"})
        assert result.metadata["media"] == [{"media_type": "audio/aac", "size": 22}]

    def test_audio_to_text(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        arguments = {"audio_file_url": WAV, "language": "de", "temperature": 0}
        assert toolkit.call_sync("openai_audio_to_text", arguments).text == "Hello world."
        form = openai.asked[-1].form
        assert form["file"] == ("audio.wav", "audio/wav", samples.wav())
        assert (form["language"], float(form["temperature"])) == ("de", 0.0)

    def test_inputs_are_files_and_urls_too(self, openai: OpenAIServer, tmp_path: Path) -> None:
        (tmp_path / "cat.jpg").write_bytes(samples.jpeg())
        there = openai.host("cat.webp", samples.webp())
        with toolkit_of(openai, base_dir=tmp_path, allow_private=True) as toolkit:
            result = toolkit.call_sync("openai_image_to_text", {"image_urls": ["cat.jpg", there]})
        assert result.status is Status.SUCCESS
        sent = [part["image_url"]["url"] for part in openai.asked[-1].json["messages"][0]["content"][1:]]
        assert [url.partition(";")[0] for url in sent] == ["data:image/jpeg", "data:image/webp"]

    def test_results_are_saved_on_request(self, openai: OpenAIServer, tmp_path: Path) -> None:
        with toolkit_of(openai, base_dir=tmp_path, save=True) as toolkit:
            result = toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"})
        path = result.metadata["path"]
        assert (tmp_path / path).read_bytes() == samples.png(64, 32)
        assert result.text == f"Saved as {path}"

    def test_models_are_the_program_s(self, openai: OpenAIServer) -> None:
        models = {"text_to_image": "my-image", "openai_text_to_audio": "my-voice"}
        with toolkit_of(openai, models=models) as toolkit:
            toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"})
            toolkit.call_sync("openai_text_to_audio", {"text": "Hello"})
        assert [each.json["model"] for each in openai.asked] == ["my-image", "my-voice"]

    def test_is_callable_without_a_toolkit(self, openai: OpenAIServer) -> None:
        import asyncio

        tools = OpenAITools(Secret(KEY), base_url=openai.base_url)
        assert asyncio.run(tools.openai_image_to_text([PNG])) == "A cat on a mat."


# What each tool says of it, whichever it is: the answer, and what the text holds.
FAILURES: dict[str, tuple[Answer, str]] = {
    "bad request": (Answer(error("invalid_value", "Invalid size."), 400), "refuses (400 invalid_value): Invalid size."),
    "wrong key": (
        Answer(error("invalid_api_key", f"Wrong: {KEY}"), 401),
        "does not accept the key (401 invalid_api_key)",
    ),
    "no permission": (Answer(error(None, "No.", "permission"), 403), "does not allow this with this key"),
    "unknown model": (Answer(error("model_not_found", "No such model."), 404), "no such endpoint or model"),
    "too large": (Answer(b"Payload Too Large", 413), "finds this too large (413): Payload Too Large"),
    "rate limit": (Answer(error("rate_limit_exceeded", "Slow down."), 429), "too much to do (429 rate_limit_exceeded)"),
    "quota": (Answer(error("insufficient_quota", "Pay."), 429), "quota at OpenAI is used up"),
    "moderation": (Answer(error("moderation_blocked", "Unsafe."), 400), "does not allow this content"),
    "server error": (Answer(error("server_error"), 500), "does not work at the moment (500"),
    "bad gateway": (Answer(b"<html>Bad gateway</html>", 502), "does not work at the moment (502)"),
    "overloaded": (Answer(b"", 503), "does not work at the moment (503)"),
    "redirect": (
        Answer(b"", 302, {"Location": "https://example.com/"}),
        "redirect, which is not followed with a key: to https://example.com/",
    ),
    "cut off": (Answer(b"{" * 100, cut=50), "broke off before it had answered"),
    "an error that is a text": (Answer({"error": "No."}, 400), "refuses (400): No."),
}
MALFORMED: dict[str, Answer] = {
    "empty": Answer(b""),
    "no JSON": Answer(b"<html></html>"),
    "null": Answer(None),
    "an array": Answer([1]),
    "no fields": Answer({}),
    "empty fields": Answer({"data": [], "choices": [], "text": ""}),
    "half a picture": Answer({"data": [{"b64_json": base64.b64encode(samples.png()[:12]).decode()}]}),
    "wrong fields": Answer({"data": [{"b64_json": "!!"}], "choices": [{"message": 1}], "text": 1}),
    "other content": Answer({"data": [{"b64_json": base64.b64encode(b"text").decode()}], "choices": [{}], "text": []}),
}


@pytest.mark.parametrize("tool", first(2, CALLS))
class TestFailure:
    @pytest.mark.parametrize("failure", FAILURES)
    def test_is_said(self, openai: OpenAIServer, toolkit: Toolkit, tool: str, failure: str) -> None:
        answer, message = FAILURES[failure]
        openai.faults = [answer]
        result = toolkit.call_sync(tool, CALLS[tool])
        assert (result.status, result.attempts, len(openai.asked)) == (Status.ERROR, 1, 1)
        assert message in result.text
        assert KEY not in f"{result!r} {result.to_dict()}"

    @pytest.mark.parametrize("malformed", MALFORMED)
    def test_malformed_answer(self, openai: OpenAIServer, toolkit: Toolkit, tool: str, malformed: str) -> None:
        openai.faults = [MALFORMED[malformed]]
        result = toolkit.call_sync(tool, CALLS[tool])
        assert result.status is Status.ERROR
        assert "OpenAI sent an answer that is not understood" in result.text or "what the provider sent" in result.text

    def test_timeout(self, openai: OpenAIServer, toolkit: Toolkit, tool: str) -> None:
        openai.faults = [Answer({}, before=sleeping(3.0))]
        result = toolkit.call_sync(tool, CALLS[tool], policy=ExecutionPolicy(timeout=0.7))
        assert (result.status, len(openai.asked)) == (Status.TIMEOUT, 1)

    def test_what_was_sent_is_not_sent_again_when_its_time_is_up(
        self, openai: OpenAIServer, toolkit: Toolkit, tool: str
    ) -> None:
        def ended(after: float) -> ToolResult:
            openai.asked.clear()
            openai.faults = [Answer({}, before=sleeping(after + 3))]
            policy = ExecutionPolicy(timeout=after, max_attempts=3, initial_backoff=0.01)
            return toolkit.call_sync(tool, CALLS[tool], policy=policy)

        result = given_time(ended, lambda result: openai.asked, 0.3)  # it would be paid for twice
        assert (result.status, result.attempts, len(openai.asked)) == (Status.TIMEOUT, 1, 1)

    def test_no_server_listens(self, tool: str) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(OpenAITools(KEY, base_url="http://127.0.0.1:9/v1"))
            assert "OpenAI cannot be reached: ConnectError" in toolkit.call_sync(tool, CALLS[tool]).text

    def test_retried_by_the_policy(self, openai: OpenAIServer, toolkit: Toolkit, tool: str) -> None:
        openai.faults = [Answer(error("rate_limit_exceeded"), 429, {"Retry-After": "0"}), Answer(b"", 503)]
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=0.01)
        result = toolkit.call_sync(tool, CALLS[tool], policy=policy)
        assert (result.status, result.attempts, len(openai.asked)) == (Status.SUCCESS, 3, 3)

    def test_what_no_second_try_changes_is_not_tried_again(
        self, openai: OpenAIServer, toolkit: Toolkit, tool: str
    ) -> None:
        for failure in ("quota", "wrong key", "moderation", "cut off"):
            openai.asked.clear()
            openai.faults = [FAILURES[failure][0]]
            toolkit.call_sync(tool, CALLS[tool], policy=ExecutionPolicy(max_attempts=3, initial_backoff=0.01))
            assert len(openai.asked) == 1, failure


class TestRetryAfter:
    def test_is_waited_for(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        openai.faults = [Answer(b"", 429, {"Retry-After": "0.3"})]
        policy = ExecutionPolicy(max_attempts=2, initial_backoff=0.01)
        result = toolkit.call_sync("openai_text_to_image", CALLS["openai_text_to_image"], policy=policy)
        assert result.status is Status.SUCCESS
        assert result.metadata["retries"][0]["wait"] == pytest.approx(0.3)

    def test_a_model_reads_how_long(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        openai.faults = [Answer(error("rate_limit_exceeded"), 429, {"Retry-After": "500"})]
        assert "(try again in 500 s)" in toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"}).text

    @pytest.mark.parametrize("header", ["31", "Fri, 31 Dec 2100 23:59:59 GMT"])
    def test_beyond_the_longest_backoff_is_not(self, openai: OpenAIServer, toolkit: Toolkit, header: str) -> None:
        openai.faults = [Answer(b"", 429, {"Retry-After": header})]
        result = toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"}, policy=ExecutionPolicy(max_attempts=3))
        assert (result.status, len(openai.asked)) == (Status.ERROR, 1)

    @pytest.mark.parametrize("header", ["soon", "-1", "1e3", "Thu, 01 Jan 1970 00:00:00 GMT"])
    def test_what_says_nothing_is_the_usual_backoff(self, openai: OpenAIServer, toolkit: Toolkit, header: str) -> None:
        openai.faults = [Answer(b"", 429, {"Retry-After": header})]
        policy = ExecutionPolicy(max_attempts=2, initial_backoff=0.01)
        assert not toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"}, policy=policy).is_error


class TestRefusals:
    def test_of_the_model(self, openai: OpenAIServer, toolkit: Toolkit) -> None:
        message = {"role": "assistant", "content": None, "refusal": "I will not."}
        openai.faults = [Answer({"choices": [{"message": message, "finish_reason": "stop"}]})]
        result = toolkit.call_sync("openai_image_to_text", {"image_urls": [PNG]})
        assert result.text == "OpenAI does not allow this content (content_filter): I will not."

    @pytest.mark.parametrize(
        "arguments",
        [
            {"prompt": "a cat", "n": 0},
            {"prompt": "a cat", "n": 11},
            {"prompt": "a cat", "size": "large"},
            {"prompt": "a cat", "model": "mine"},
            {},
        ],
    )
    def test_of_arguments(self, openai: OpenAIServer, toolkit: Toolkit, arguments: dict[str, Any]) -> None:
        assert toolkit.call_sync("openai_text_to_image", arguments).status is Status.INVALID
        assert openai.asked == []

    @pytest.mark.parametrize("speed", [0.24, 4.01])
    def test_of_speeds(self, toolkit: Toolkit, speed: float) -> None:
        assert toolkit.call_sync("openai_text_to_audio", {"text": "Hi", "speed": speed}).status is Status.INVALID

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("http://127.0.0.1:8000/cat.png", "is not at a public address"),
            ("http://169.254.169.254/latest/meta-data", "is not at a public address"),
            ("file:///etc/passwd", "cannot be read; name a path"),
            ("ftp://example.com/cat.png", "cannot be read; name a path"),
            ("cat.png", "these tools have no base directory"),
            ("data:image/png;base64,AAAA", "of no kind that is known here"),
            ("data:image/png,abc", "must be of the form"),
            ("data:image/png;base64,%%%", "holds no valid base64"),
            ("data:image/svg+xml;base64," + base64.b64encode(samples.SVG).decode(), "SVG, which is not taken"),
            (WAV, "by its content it is audio/wav"),
            ("data:;base64," + base64.b64encode(samples.png(10_001, 10_000)).decode(), "at most 100,000,000 are taken"),
            ("data:;base64," + base64.b64encode(samples.jpeg()[:12]).decode(), "is a damaged image"),
        ],
    )
    def test_of_inputs(self, openai: OpenAIServer, toolkit: Toolkit, source: str, message: str) -> None:
        for tool, arguments in [
            ("openai_edit_image", {"image_url": source, "prompt": "x"}),
            ("openai_create_image_variation", {"image_url": source}),
            ("openai_image_to_text", {"image_urls": [source]}),
        ]:
            result = toolkit.call_sync(tool, arguments)
            assert result.status is Status.ERROR
            assert message in result.text
        assert openai.asked == []

    @pytest.mark.parametrize("path", ["missing.png", "folder", "missing/cat.png"])
    def test_of_files_that_are_not_there_name_no_tool_of_another_pack(
        self, openai: OpenAIServer, tmp_path: Path, path: str
    ) -> None:
        (tmp_path / "folder").mkdir()
        with toolkit_of(openai, base_dir=tmp_path) as toolkit:
            result = toolkit.call_sync("openai_image_to_text", {"image_urls": [path]})
        assert result.text.startswith(f"Cannot open {path}: ")
        assert "list_directory" not in result.text

    @pytest.mark.parametrize("path", ["../secret.png", "/etc/passwd", "link.png", ".env"])
    def test_of_files_outside(self, openai: OpenAIServer, tmp_path: Path, path: str) -> None:
        (tmp_path / "secret.png").write_bytes(samples.png())
        base = tmp_path / "base"
        base.mkdir()
        (base / "link.png").symlink_to(tmp_path / "secret.png")
        (base / ".env").write_bytes(samples.png())
        with toolkit_of(openai, base_dir=base) as toolkit:
            result = toolkit.call_sync("openai_image_to_text", {"image_urls": [path]})
        assert result.status is Status.ERROR
        assert openai.asked == []

    @pytest.mark.parametrize(
        "fault",
        [Answer(b"gone", 404), Answer(b"text that is no image"), Answer(samples.png(), 302, {"Location": "/x"})],
    )
    def test_of_results_that_cannot_be_had(self, openai: OpenAIServer, toolkit: Toolkit, fault: Answer) -> None:
        openai.url_images = True
        openai.faults_at["GET /files/made.png"] = [fault]
        assert toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"}).status is Status.ERROR

    def test_of_results_at_a_private_address(self, openai: OpenAIServer) -> None:
        openai.url_images = True
        with toolkit_of(openai) as toolkit:
            result = toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"})
        assert result.status is Status.ERROR
        assert "not at a public address" in result.text
        assert f"It is at {openai.origin}/files/made.png" in result.text
        assert len(openai.asked) == 1


class TestConstruction:
    @pytest.mark.parametrize("key", ["", "  ", "\n", Secret(""), "two words", "sk-\n", "schlüssel"])
    def test_refuses_a_key_that_is_none(self, key: Any) -> None:
        if key == "sk-\n":
            assert OpenAITools(key).models
            return
        with pytest.raises(ValueError, match="OpenAI API key") as raised:
            OpenAITools(key)
        assert not str(key).strip() or str(key) not in str(raised.value)

    @pytest.mark.parametrize(
        "url", ["api.openai.com", "ftp://x", "https://user:pass@x/v1", "https://", "http://127.1/v1"]
    )
    def test_refuses_a_base_url_that_is_none(self, url: str) -> None:
        with pytest.raises(ValueError, match="base_url"):
            OpenAITools(KEY, base_url=url)

    def test_refuses_models_of_no_tool(self) -> None:
        with pytest.raises(ValueError, match="nothing called 'text_to_video'; there are audio_to_text"):
            OpenAITools(KEY, models={"text_to_video": "x"})

    def test_shows_no_key(self) -> None:
        tools = OpenAITools(KEY)
        assert KEY not in f"{tools!r} {vars(tools)}"

    def test_names_no_model_that_is_switched_off(self) -> None:
        gone = ("dall-e", "gpt-image-1", "gpt-4-", "gpt-3.5", "gpt-4o-audio", "o1-", "chatgpt-4o")
        assert [model for model in OpenAITools(KEY).models.values() if model.startswith(gone)] == []
