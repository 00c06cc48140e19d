"""The pack as it is installed: what it offers, what it does not, and why."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import Offer, Secret, SettingsError, Status, Toolkit
from pegboard.inspection import plugins_of
from pegboard_multimodal import DashScopeTools, LocalTools, OpenAITools
from tests.plugins.multimodal.servers import KEY, OpenAIServer
from tests.plugins.multimodal.test_dashscope import CALLS as DASHSCOPE
from tests.plugins.multimodal.test_openai import CALLS as OPENAI

Made = Callable[..., Toolkit]


@pytest.fixture
def made() -> Any:
    toolkits: list[Toolkit] = []

    def make(**settings: Any) -> Toolkit:
        toolkits.append(Toolkit(plugins=["multimodal"], settings={"multimodal": settings}))
        return toolkits[-1]

    yield make
    for toolkit in toolkits:
        toolkit.close()


def names(toolkit: Toolkit, prefix: str) -> set[str]:
    return {tool.name for tool in toolkit.tools if tool.name.startswith(prefix)}


class TestKeys:
    def test_without_one_nothing_is_offered_and_a_call_says_why(self, made: Made) -> None:
        toolkit = made()
        assert names(toolkit, "openai") | names(toolkit, "dashscope") == set()
        assert toolkit.problems == []
        for tool in [*OPENAI, *DASHSCOPE]:
            variable = f"{tool.partition('_')[0].upper()}_API_KEY"
            for name in (tool, f"multimodal__{tool}"):
                result = toolkit.call_sync(name, {})
                assert result.status is Status.NOT_FOUND
                assert f"needs a key, set {variable}" in result.text

    @pytest.mark.parametrize("key", [b"sk-1", 5])
    @pytest.mark.parametrize("tools", [OpenAITools, DashScopeTools])
    def test_one_that_is_no_text_is_refused(self, tools: Any, key: Any) -> None:
        with pytest.raises(TypeError, match=f"API key is a text or a Secret of one, not {type(key).__name__}"):
            tools(key)

    def test_from_the_environment(self, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("DASHSCOPE_API_KEY", "  ")  # empty is no key
        toolkit = made()
        assert names(toolkit, "openai") == set(OPENAI)
        assert names(toolkit, "dashscope") == set()

    def test_from_the_settings(self, made: Made, openai: OpenAIServer) -> None:
        toolkit = made(openai_api_key=KEY, openai_base_url=openai.base_url, dashscope_api_key="sk-2")
        assert names(toolkit, "openai") == set(OPENAI)
        assert names(toolkit, "dashscope") == set(DASHSCOPE)
        assert not toolkit.call_sync("openai_text_to_image", {"prompt": "a cat"}).is_error
        plugins = plugins_of(toolkit)
        assert KEY not in f"{plugins.settings_of('multimodal')!r} {plugins.settings.effective()!r}"

    @pytest.mark.slow
    def test_the_command_line_names_the_variable(self) -> None:
        for command in ("plugins", "doctor"):
            run = [sys.executable, "-m", "pegboard_cli", command]
            if subprocess.run([*run[:3], "--version"], check=False, capture_output=True).returncode:
                pytest.skip("the command line is not installed")
            done = subprocess.run(run, check=False, capture_output=True, text=True, timeout=60)
            assert "OPENAI_API_KEY" in done.stdout, done
            assert "DASHSCOPE_API_KEY" in done.stdout
            assert done.returncode == 0


class TestSettings:
    def test_models_are_given_by_what_they_do_or_by_tool(self, made: Made) -> None:
        models = {"text_to_image": "for-all", "openai_text_to_image": "for-one"}
        toolkit = made(openai_api_key=KEY, dashscope_api_key=KEY, models=models)
        owners = [getattr(tool.function, "__self__", None) for tool in toolkit.tools]
        found: dict[Any, Any] = {type(owner): owner for owner in owners}
        assert found[OpenAITools].models["text_to_image"] == "for-one"
        assert found[DashScopeTools].models["text_to_image"] == "for-all"

    def test_models_of_no_tool_are_said(self, made: Made) -> None:
        toolkit = made(models={"text_to_smell": "x"})
        (problem,) = toolkit.problems
        assert "there is no tool 'text_to_smell'" in problem

    def test_unknown_settings_are_refused(self, made: Made) -> None:
        with pytest.raises(SettingsError, match="openai_api_key"):
            made(openai_key=KEY)

    def test_a_base_dir_that_is_none_is_said(self, made: Made) -> None:
        (problem,) = made(openai_api_key=KEY, base_dir="/no/such/place").problems
        assert "No such file or directory" in problem


class TestLocal:
    def test_what_has_no_engine_is_not_offered(self, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        reason = "needs the program tesseract: install tesseract-ocr"
        monkeypatch.setattr(LocalTools, "missing", {"local_image_to_text": reason})
        toolkit = made()
        assert names(toolkit, "local") == {"local_audio_to_text", "local_text_to_audio"}
        result = toolkit.call_sync("local_image_to_text", {"image_urls": ["x"]})
        assert result.text.endswith("does not offer it: needs the program tesseract.")
        assert result.error is not None
        assert reason in result.error.details["remedy"]

    def test_nothing_but_reasons_where_there_is_no_engine(self, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LocalTools, "missing", {f"local_{each}": "needs x" for each in LocalTools.ABILITIES})
        toolkit = made()
        assert len(toolkit) == 0
        assert toolkit.problems == []


def test_the_program_s_own_take_the_place_of_the_pack_s(made: Made, openai: OpenAIServer) -> None:
    toolkit = made(dashscope_api_key=KEY)
    toolkit.register(OpenAITools(Secret(KEY), base_url=openai.base_url))
    assert {tool.name for tool in toolkit.tools} == set(OPENAI)


def test_loading_it_loads_no_client() -> None:
    code = (
        "import sys; from pegboard import Toolkit; Toolkit(plugins=['multimodal']); "
        "print([m for m in ('httpx2', 'faster_whisper', 'piper', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_the_seed_s_registration() -> None:
    """`toolkit.registerTool(new DashScopeMultiModalTool(System.getenv("DASHSCOPE_API_KEY")))` and OpenAI's alike."""
    import os

    os.environ["DASHSCOPE_API_KEY"] = os.environ["OPENAI_API_KEY"] = KEY
    try:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(DashScopeTools(os.environ["DASHSCOPE_API_KEY"]))
            toolkit.register(OpenAITools(os.environ["OPENAI_API_KEY"]))
            abilities = {"text_to_image", "image_to_text", "text_to_audio", "audio_to_text"}
            assert {f"dashscope_{each}" for each in abilities} <= {tool.name for tool in toolkit.tools}
            assert names(toolkit, "openai") == set(OPENAI)
            assert KEY not in repr(toolkit.schemas())
    finally:
        del os.environ["DASHSCOPE_API_KEY"], os.environ["OPENAI_API_KEY"]


def test_every_parameter_is_described_and_has_the_name_that_the_field_gives_it() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(OpenAITools(KEY), DashScopeTools(KEY), LocalTools())
        shown = {tool.name: tool.parameters for tool in toolkit.tools}
    for name, parameters in shown.items():
        for parameter, schema in parameters["properties"].items():
            assert schema.get("description"), (name, parameter)
    assert {*shown["openai_edit_image"]["properties"]} == {"image_url", "prompt", "mask_url", "n", "size"}
    assert shown["openai_text_to_audio"]["properties"]["res_format"]["default"] == "mp3"
    assert shown["dashscope_audio_to_text"]["required"] == ["audio_url"]
    for tool in ("openai_text_to_image", "openai_edit_image", "dashscope_text_to_image"):
        n = shown[tool]["properties"]["n"]
        assert (n["minimum"], n["maximum"], n["default"]) == (1, 10, 1)
    assert isinstance(Offer(LocalTools()).source, LocalTools)
