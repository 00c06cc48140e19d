"""The model that the tests talk to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from pegboard_agent import OpenAIChat
from tests.real_model import engine


@pytest.fixture(scope="session")
def model() -> Iterator[OpenAIChat]:
    """The server that `PEGBOARD_MODEL_URL` names, with the model of `PEGBOARD_MODEL`; else one of our own."""
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 400}
    url = os.environ.get("PEGBOARD_MODEL_URL")
    if url:
        yield OpenAIChat(os.environ.get("PEGBOARD_MODEL", "default"), base_url=url, **options)
        return
    with engine.served() as own:
        yield OpenAIChat("local", base_url=own, api_key="none", **options)
