"""Which Ray a toolkit uses: that of its address, or none, and never another one in silence."""

import time
from typing import Any

import pytest

from pegboard import Status
from tests.plugins.ray import laborers
from tests.plugins.ray.conftest import Board
from tests.plugins.ray.test_lifetime import run

pytestmark = pytest.mark.ray


def test_an_address_where_nothing_listens_is_named_in_time(board: Board) -> None:
    toolkit = board(laborers.add, address="127.0.0.1:9")
    began = time.monotonic()
    results = [toolkit.call_sync("add", {"a": 1, "b": 2}) for _ in range(2)]
    assert time.monotonic() - began < 30
    assert {each.status for each in results} == {Status.ERROR}
    assert "no Ray at '127.0.0.1:9': ConnectionRefusedError" in results[1].text


def test_an_address_where_something_else_listens_is_named_in_time() -> None:
    said, _ = run("""
        import socket
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = "127.0.0.1:%d" % silent.getsockname()[1]
            toolkit = board(laborers.add, address=address)
            began = time.monotonic()
            texts = [toolkit.call_sync("add", {"a": 1, "b": 2}).text for _ in range(2)]
            told(took=time.monotonic() - began, named=[f"no Ray at '{address}'" in each for each in texts])
            os._exit(0)  # Ray goes on trying for minutes
    """)
    assert said["named"] == [True, True]
    assert said["took"] < 60


def test_a_second_address_is_refused_with_the_first(board: Board, cluster: Any) -> None:
    first, second, third = board(laborers.add), board(laborers.add, address="192.0.2.77:6379"), board(laborers.add)
    assert first.call_sync("add", {"a": 1, "b": 2}).data == 3
    refused = second.call_sync("add", {"a": 1, "b": 2})
    assert refused.status is Status.ERROR
    assert "'192.0.2.77:6379'" in refused.text
    assert cluster.address in refused.text
    assert third.call_sync("add", {"a": 1, "b": 2}).data == 3


def test_a_toolkit_without_an_address_is_not_sent_to_the_cluster_of_another(board: Board) -> None:
    first, second = board(laborers.add), board(laborers.add, address=None)
    assert first.call_sync("add", {"a": 1, "b": 2}).data == 3
    assert "the address of this toolkit's Ray is None" in second.call_sync("add", {"a": 1, "b": 2}).text
