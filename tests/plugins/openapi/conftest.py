from collections.abc import Iterator

import pytest

from tests.plugins.openapi.servers import Server, running


@pytest.fixture
def server() -> Iterator[Server]:
    with running(Server()) as started:
        yield started
