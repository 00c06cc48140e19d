"""One inspector for the tests of a file: to start one takes longer than to ask it something."""

from collections.abc import Iterator

import pytest

from tests.plugins.inspector.program import board
from tests.plugins.inspector.served import Client, served


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client that may come in."""
    with board() as toolkit, served(toolkit, "program:board") as client:
        client.enter()
        yield client
