"""Other people's clients read the same answers, as the page of the documentation says."""

from collections.abc import Iterator

import pytest

from tests.plugins.mcp.interop import matrix


def test_the_page_is_written_from_the_matrix() -> None:
    assert matrix.PAGE.read_text("utf-8") == matrix.page()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with matrix.http_board() as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("column", matrix.COLUMNS, ids=lambda column: f"{column.title} {column.mode}".replace(" ", "-"))
class TestClients:
    def test_over_stdio(self, column: matrix.Column) -> None:
        assert matrix.unexpected(column, "stdio", *matrix.STDIO) == {}

    def test_over_http(self, column: matrix.Column, url: str) -> None:
        assert matrix.unexpected(column, "http", url) == {}
