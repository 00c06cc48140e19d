from collections.abc import Iterator

import pytest

from tests.plugins.net.servers import Server, running


@pytest.fixture
def web() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def other() -> Iterator[Server]:
    with running() as server:
        yield server
