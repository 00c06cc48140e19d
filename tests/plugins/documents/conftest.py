from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard import Toolkit
from tests.plugins.documents.desk import board


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base directory of a module's tests; each test has files of its own names."""
    return tmp_path_factory.mktemp("documents")


@pytest.fixture(scope="module")
def toolkit(folder: Path) -> Iterator[Toolkit]:
    with board(folder) as toolkit:
        yield toolkit
