"""What is found in a file does not depend on how it is cut into blocks."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegboard_files._directory import bytes as _bytes
from pegboard_files._directory.bytes import blocks, find_all, read_span, version_of


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BinaryIO]:
    path = tmp_path_factory.mktemp("bytes") / "file"
    with path.open("w+b", buffering=0) as opened:
        yield opened


def fill(file: BinaryIO, content: bytes) -> int:
    file.seek(0)
    file.truncate()
    file.write(content)
    return file.fileno()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bytes, "BLOCK", 3)


BYTES = st.lists(st.sampled_from([b"a", b"b"]), max_size=24).map(b"".join)


@given(BYTES, BYTES.filter(bool))
@example(b"aabaab", b"ab")
@example(b"a" * 20, b"aaa")
@pytest.mark.usefixtures("small_blocks")
def test_text_is_found_wherever_it_stands(file: BinaryIO, content: bytes, wanted: bytes) -> None:
    expected, at = [], content.find(wanted)
    while at >= 0:
        expected.append(at)
        at = content.find(wanted, at + len(wanted))
    assert list(find_all(fill(file, content), wanted)) == expected


@given(BYTES, st.integers(0, 30), st.integers(0, 30))
@pytest.mark.usefixtures("small_blocks")
def test_span_is_that_of_the_content(file: BinaryIO, content: bytes, start: int, end: int) -> None:
    descriptor = fill(file, content)
    assert b"".join(blocks(descriptor, start, end)) == content[start : max(start, end)]
    assert read_span(descriptor, start, 5) == content[start : start + 5]


def test_text_across_real_blocks(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = b"x" * (_bytes.BLOCK - 3) + b"needle" + b"x" * (_bytes.BLOCK - 6) + b"needle"
    path.write_bytes(content)
    with path.open("rb") as opened:
        assert list(find_all(opened.fileno(), b"needle")) == [_bytes.BLOCK - 3, len(content) - 6]


def test_version_is_that_of_the_content(file: BinaryIO) -> None:
    one, same, other = (version_of(fill(file, content), 100) for content in (b"one", b"one", b"two"))
    assert one == same != other
    assert len(one) == 8
