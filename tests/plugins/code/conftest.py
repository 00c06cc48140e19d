from collections.abc import Iterator

import pytest

from pegboard import Toolkit
from pegboard_code import CodeMode


@pytest.fixture(scope="session", autouse=True)
def _workers_stay() -> Iterator[None]:
    """Keep the sandbox warm from test to test: a toolkit that has code mode keeps it."""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(CodeMode(toolkit))
        yield
