"""The lines that are asked for are found, in files of any size, without reading more than they need."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegboard import ToolError
from pegboard_files._directory import bytes as _bytes
from pegboard_files._text import lines as _lines
from pegboard_files._text.lines import Excerpt, Range, parse_range, read_excerpt

LIMIT = 1_000


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of three bytes, so that short contents cross many of them."""
    monkeypatch.setattr(_bytes, "BLOCK", 3)
    monkeypatch.setattr(_lines, "BLOCK", 3)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Excerpt]:
    path = tmp_path_factory.mktemp("lines") / "file"

    def view(content: bytes, wanted: Range | None, limit: int = LIMIT) -> Excerpt:
        path.write_bytes(content)
        return opened(path, wanted, limit)

    return view


def opened(path: Path, wanted: Range | None, limit: int = LIMIT) -> Excerpt:
    with path.open("rb") as file:
        return read_excerpt(file.fileno(), wanted, limit)


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        action()
    return str(caught.value)


class TestRange:
    @pytest.mark.parametrize(
        ("written", "first", "last"),
        [
            ("1,100", 1, 100),
            ("[1,100]", 1, 100),
            (" [ 1 , 100 ] ", 1, 100),
            ("1\uff0c100", 1, 100),
            ([1, 100], 1, 100),
            ((1, 100), 1, 100),
            ("-50,-1", -50, -1),
            ("5,-1", 5, -1),
            ("-5,3", -5, 3),
            ("7,7", 7, 7),
        ],
    )
    def test_is_read(self, written: str | list[int], first: int, last: int) -> None:
        assert parse_range(written) == Range(first, last)

    @pytest.mark.parametrize("written", [None, "", "  "])
    def test_left_out_means_all(self, written: str | None) -> None:
        assert parse_range(written) is None

    @pytest.mark.parametrize(
        "written", ["5", "1-100", "1,2,3", "a,b", "[1,2", "1,2]", "1.0,2", "1,", "9" * 5000 + ",1", [], [1], [1, 2, 3]]
    )
    def test_other_text_is_refused_with_an_example(self, written: str | list[int]) -> None:
        self.is_refused(written)

    @pytest.mark.parametrize("written", [["1", "2"], [1.0, 2], [True, 2], [None, 1]])
    def test_other_lists_are_refused_as_well(self, written: Any) -> None:
        """A toolkit lets none of them through; a program may call the function itself."""
        self.is_refused(written)

    def is_refused(self, written: Any) -> None:
        message = refusal(lambda: parse_range(written))
        assert '"1,100"' in message
        assert len(message) < 200

    @pytest.mark.parametrize(("written", "remedy"), [("9,3", '"3,9"'), ("-1,-50", '"-50,-1"'), ([2, 1], '"1,2"')])
    def test_reversed_range_is_refused(self, written: str | list[int], remedy: str) -> None:
        assert remedy in refusal(lambda: parse_range(written))

    @pytest.mark.parametrize("written", ["0,5", "-3,0", [0, 0]])
    def test_there_is_no_line_zero(self, written: str | list[int]) -> None:
        assert "no line 0" in refusal(lambda: parse_range(written))


def model(content: bytes, wanted: Range) -> tuple[int, list[bytes]] | None:
    """The first number and the lines, as simply as it can be said."""
    lines = content.split(b"\n")
    numbered = list(enumerate(lines if lines[-1] else lines[:-1], 1))
    first, last = (n if n > 0 else len(numbered) + 1 + n for n in (wanted.first, wanted.last))
    chosen = [(number, line) for number, line in numbered if first <= number <= last]
    return (chosen[0][0], [line for _, line in chosen]) if chosen else None


CONTENTS = st.lists(st.sampled_from([b"\n", b"\n", b"a", b"bb\r", b"\xe4\xb8", b"\x0b\x85"]), max_size=12).map(b"".join)
NUMBERS = st.integers(-8, 8).filter(bool)
RANGES = st.builds(Range, NUMBERS, NUMBERS).filter(
    lambda wanted: (wanted.first > 0) != (wanted.last > 0) or wanted.first <= wanted.last
)


@given(CONTENTS.filter(bool), RANGES)
@example(b"a\n", Range(2, 3))
@example(b"a\nb", Range(-1, -1))
@pytest.mark.usefixtures("small_blocks")
def test_small_files_follow_the_model(view: Callable[..., Excerpt], content: bytes, wanted: Range) -> None:
    expected = model(content, wanted)
    if expected is None:
        assert "do not exist" in refusal(lambda: view(content, wanted))
        return
    found = view(content, wanted)
    assert (found.first, found.lines) == expected
    assert found.total == len(view(content, None).lines)


@given(CONTENTS.filter(bool), RANGES, st.integers(1, 8))
@example(b"a\n\n\n", Range(-8, -2), 2)
@pytest.mark.usefixtures("small_blocks")
def test_large_files_follow_the_model(view: Callable[..., Excerpt], content: bytes, wanted: Range, limit: int) -> None:
    content *= limit  # larger than what may be shown at once
    expected = model(content, wanted)
    total = len(view(content, None).lines)
    if expected is None:
        assert "not exist" in refusal(lambda: view(content, wanted, limit))
        return
    shown = sum(len(line) + 1 for line in expected[1]) - (
        expected[0] + len(expected[1]) > total and content[-1:] != b"\n"
    )
    if shown > limit:
        assert f"at most {limit} are shown" in refusal(lambda: view(content, wanted, limit))
        return
    found = view(content, wanted, limit)
    first = found.first if found.first > 0 else total + 1 + found.first
    assert (first, found.lines) == expected
    assert found.total in (None, total)


def test_line_ends_are_line_feeds_alone(view: Callable[..., Excerpt]) -> None:
    found = view("a\r\nb\rc\u2028d\x0be\x85f\n\nlast".encode(), None)
    assert found.lines == [b"a\r", "b\rc\u2028d\x0be\x85f".encode(), b"", b"last"]


def test_empty_file_has_no_lines(view: Callable[..., Excerpt]) -> None:
    assert view(b"", None) == view(b"", Range(1, 100)) == view(b"", Range(-50, -1)) == Excerpt(b"", 1, 0)


class TestLargeFiles:
    @pytest.fixture
    def huge(self, tmp_path: Path) -> Path:
        """Eight GiB that take no room: text at both ends."""
        path = tmp_path / "huge"
        with path.open("wb") as file:
            file.write(b"first\nsecond\nthird\n")
            file.seek(8 << 30)
            file.write(b"\n" + b"".join(b"line %d\n" % number for number in range(100, 0, -1)))
        return path

    @pytest.fixture
    def reads(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        reads: list[int] = []

        def pread(descriptor: int, length: int, offset: int) -> bytes:
            reads.append(length)
            return real(descriptor, length, offset)

        real = os.pread
        monkeypatch.setattr(_bytes, "read_at", pread)
        monkeypatch.setattr(_lines, "read_at", pread)
        return reads

    def test_the_end_is_read_from_the_end(self, huge: Path, reads: list[int]) -> None:
        found = opened(huge, Range(-50, -1))
        assert (found.first, found.total) == (-50, None)
        assert found.lines == [b"line %d" % number for number in range(50, 0, -1)]
        assert sum(reads) < 1_000_000

    def test_the_start_is_read_from_the_start(self, huge: Path, reads: list[int]) -> None:
        assert opened(huge, Range(2, 3)) == Excerpt(b"second\nthird\n", 2, None)
        assert sum(reads) < 1_000_000

    def test_whole_file_is_refused_with_the_remedy(self, huge: Path, reads: list[int]) -> None:
        assert '"-100,-1"' in refusal(lambda: opened(huge, None))
        assert sum(reads) == 0

    def test_long_lines_are_refused(self, huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = huge.with_name("long")
        path.write_bytes(b"x" * 5_000 + b"\nshort\n")
        assert "at most 1,000 are shown" in refusal(lambda: opened(path, Range(1, 2)))
        assert opened(path, Range(2, 2)).lines == [b"short"]

    @pytest.mark.parametrize("wanted", [Range(9, 9), Range(-200, -150), Range(-5, 9)])
    def test_search_is_bounded(self, huge: Path, monkeypatch: pytest.MonkeyPatch, wanted: Range) -> None:
        monkeypatch.setattr(_lines, "_MAX_SCAN", 1 << 22)
        assert "nearer end" in refusal(lambda: opened(huge, wanted))

    def test_file_that_shrinks_meanwhile(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"x\n" * LIMIT)
        monkeypatch.setattr(_lines, "read_at", lambda *_: b"")
        assert "became shorter" in refusal(lambda: opened(path, Range(5, 9)))

    def test_file_that_grows_meanwhile(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"x\n")
        real, sizes = os.fstat, iter([1])
        path.write_bytes(b"x\n" * LIMIT)

        class Earlier:
            st_size = 2

        monkeypatch.setattr(os, "fstat", lambda fd: Earlier() if next(sizes, None) else real(fd))
        assert opened(path, Range(-1, -1), limit=100).lines == [b"x"]
