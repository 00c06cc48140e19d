"""The database server that tests of stores share; it is only started if one of them runs."""

from collections.abc import Iterator

import pytest

from tests.support.postgres import PostgresServer, postgres, why_no_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the tests of a module, which empty it."""
    if reason := why_no_postgres():
        pytest.skip(reason)
    with postgres() as running:
        yield running
