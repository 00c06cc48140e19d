"""Without the SDKs there is nothing to ask."""

import importlib.util

import pytest

SDKS = ("openai", "anthropic", "google.genai", "dashscope")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


MISSING = [name for name in SDKS if not _is_there(name)]


def pytest_ignore_collect() -> bool | None:
    """Leave these tests out where an SDK is missing: their modules import it."""
    return True if MISSING else None


@pytest.fixture(autouse=True)
def _no_key_of_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DASHSCOPE_API_KEY"):
        monkeypatch.setenv(name, "key-of-a-test")
    for name in ("GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
