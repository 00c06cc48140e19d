"""What tests of the execution share."""

from collections.abc import Iterator

import pytest

from pegboard import Toolkit


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    """A toolkit without plugins, closed afterwards."""
    with Toolkit(plugins=()) as made:
        yield made
