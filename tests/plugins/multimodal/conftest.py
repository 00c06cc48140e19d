from collections.abc import Iterator
from typing import Any

import pytest

from pegboard_multimodal import _dashscope
from tests.plugins.multimodal.servers import DashScopeServer, OpenAIServer, Server, running


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with running(OpenAIServer()) as server:
        yield server


@pytest.fixture
def dashscope(monkeypatch: pytest.MonkeyPatch) -> Iterator[DashScopeServer]:
    monkeypatch.setattr(_dashscope, "_INTERVALS", (0.01, 0.02))
    with running(DashScopeServer()) as server:
        yield server


@pytest.fixture
def web() -> Iterator[Server]:
    with running(Server()) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("OPENAI_API_KEY", "DASHSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
