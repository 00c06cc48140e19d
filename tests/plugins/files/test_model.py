"""Viewing, writing, inserting and editing follow a simple model on bytes, whatever a file holds."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard_files import FileToolError, FileTools
from tests.plugins.files import model
from tests.plugins.files.conftest import names_in

PIECES = [
    *[b"\n"] * 4,
    *[b"\r\n"] * 3,
    b"\r",
    b"a",
    b"bb",
    b"a\n",
    b" ",
    "\u00e9".encode(),
    "\u4e2d\u6587".encode(),
    "\u2028".encode(),
    "\u0085".encode(),
    "\U0001f600".encode(),
    b"\x0b\x0c\x1c",
    b"\xff",
    b"\xe4\xb8",
    b"\xc3",
]
CONTENTS = st.builds(
    lambda mark, pieces: b"".join([mark, *pieces]),
    st.sampled_from([b"", b"", b"", model.BOM]),
    st.lists(st.sampled_from(PIECES), max_size=14),
)
TEXTS = st.lists(
    st.sampled_from(["\n", "\n", "\r\n", "\r", "a", "bb", "a\n", "\u4e2d", "\u2028", "x y"]), max_size=6
).map("".join)
NUMBERS = st.integers(-9, 9).filter(bool)
FAST, SLOW = 100, 2_500


class Files:
    """One file in a directory, and the tools."""

    def __init__(self, base: Path) -> None:
        self.path = base / "file.txt"
        self.tools = FileTools(base, durability="rename", max_bytes=1 << 26)

    def check(self, before: bytes, act: Callable[[FileTools], object], expected: Callable[[bytes], bytes]) -> None:
        """Act on a file with this content: the outcome is that of the model, in content and mode."""
        self.path.write_bytes(before)
        self.path.chmod(0o640)
        try:
            after = expected(before)
        except model.RefusedError:
            with pytest.raises(FileToolError):
                act(self.tools)
            after = before
        else:
            act(self.tools)
        assert self.path.read_bytes() == after
        assert stat.S_IMODE(self.path.stat().st_mode) == 0o640 or os.name == "nt"
        assert names_in(self.path.parent) == ["file.txt"]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def check_view(files: Files, content: bytes, first: int, last: int) -> None:
    files.path.write_bytes(content)
    reversed_range = (first > 0) == (last > 0) and first > last
    try:
        expected = model.viewed(content, first, last)
    except model.RefusedError:
        expected = None
    if expected is None or reversed_range:
        with pytest.raises(FileToolError):
            files.tools.view_text_file("file.txt", f"{first},{last}")
        return
    _, *shown = files.tools.view_text_file("file.txt", f"{first},{last}").split("\n")
    assert shown == expected


def check_write(files: Files, content: bytes, new: str, first: int, last: int) -> None:
    files.check(
        content,
        lambda tools: tools.write_text_file("file.txt", new, [first, last]),
        lambda before: model.replaced_lines(before, first, last, new.encode()),
    )


def check_insert(files: Files, content: bytes, new: str, number: int) -> None:
    files.check(
        content,
        lambda tools: tools.insert_text_file("file.txt", new, number),
        lambda before: model.inserted(before, number, new.encode()),
    )


def check_edit(files: Files, content: bytes, old: str, new: str, count: int) -> None:
    if old == new:
        return
    files.check(
        content,
        lambda tools: tools.edit_text_file("file.txt", old, new, count),
        lambda before: model.edited(before, old.encode(), new.encode(), count),
    )


def check_overwrite(files: Files, content: bytes, new: str) -> None:
    files.check(content, lambda tools: tools.write_text_file("file.txt", new), lambda _: new.encode())


CASES = [
    pytest.param(check_view, (CONTENTS, NUMBERS, NUMBERS), id="view"),
    pytest.param(check_write, (CONTENTS, TEXTS, NUMBERS, NUMBERS), id="replace lines"),
    pytest.param(check_insert, (CONTENTS, TEXTS, st.integers(-1, 9)), id="insert"),
    pytest.param(check_edit, (CONTENTS, TEXTS.filter(bool), TEXTS, st.integers(1, 3)), id="edit"),
    pytest.param(check_overwrite, (CONTENTS, TEXTS), id="overwrite"),
]


def run(
    check: Callable[..., None], strategies: tuple[st.SearchStrategy[object], ...], files: Files, cases: int
) -> None:
    @settings(max_examples=cases, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*strategies))
    def follows(arguments: tuple[object, ...]) -> None:
        check(files, *arguments)

    follows()


@pytest.mark.parametrize(("check", "strategies"), CASES)
def test_tools_follow_the_model(
    check: Callable[..., None], strategies: tuple[st.SearchStrategy[object], ...], files: Files
) -> None:
    run(check, strategies, files, FAST)


@pytest.mark.slow
@pytest.mark.parametrize(("check", "strategies"), CASES)
def test_tools_follow_the_model_ten_thousand_times(
    check: Callable[..., None], strategies: tuple[st.SearchStrategy[object], ...], files: Files
) -> None:
    run(check, strategies, files, SLOW)


SPECIAL = {
    "empty": b"",
    "one byte": b"x",
    "one line feed": b"\n",
    "one bad byte": b"\xff",
    "only a mark": model.BOM,
    "CRLF": b"one\r\ntwo\r\nthree\r\n",
    "CRLF without the last": b"one\r\ntwo\r\nthree",
    "lone CR": b"one\rtwo\rthree",
    "mixed": b"one\r\ntwo\nthree\rfour\n",
    "mark": model.BOM + b"one\ntwo\n",
    "mark and CRLF": model.BOM + b"one\r\ntwo\r\nthree",
    "U+2028": "one\u2028two\nthree\u0085\n".encode(),
    "no UTF-8": b"ok\xff\xfe bad\ntwo\n\xe4\xb8\n",
    "many blocks": b"0123456789abcdef\r\n" * 20_000 + b"two\nthree",
}
FIFTY_MEGABYTES = b"0123456789abcdef\r\n" * 2_900_000 + b"two\nthree"


@pytest.mark.parametrize("content", SPECIAL.values(), ids=list(SPECIAL))
def test_special_contents_follow_the_model(content: bytes, files: Files) -> None:
    for first, last in [(1, 1), (2, 2), (-1, -1), (-2, -1), (1, 3)]:
        check_view(files, content, first, last)
    for first, last in [(1, 1), (2, 3), (1, -1), (-1, -1), (2, -2), (9, 9), (3, 1)]:
        for new in ["", "X", "X\n", "X\nY", "X\r\nY\r\n", "\n"]:
            check_write(files, content, new, first, last)
    for number in [*range(-1, 7), len(model.split(content)) + 1]:
        check_insert(files, content, "new\nlines", number)
    for old, new in [("two", "2\n2"), ("one", ""), ("one\ntwo", "1\n2"), ("e", "\u4e2d")]:
        for count in (1, 2):
            check_edit(files, content, old, new, count)


@pytest.mark.slow
def test_fifty_megabytes_follow_the_model(files: Files) -> None:
    for first, last in [(1, 3), (-2, -1)]:
        check_view(files, FIFTY_MEGABYTES, first, last)
        check_write(files, FIFTY_MEGABYTES, "X\nY\n", first, last)
    check_insert(files, FIFTY_MEGABYTES, "new\nlines", 1)
    check_insert(files, FIFTY_MEGABYTES, "new\nlines", 2_900_003)
    check_edit(files, FIFTY_MEGABYTES, "two", "2\n2", 1)


def test_model_keeps_what_it_must() -> None:
    """The model itself: what is outside the edit stays, and so do line ends, mark and the missing last line feed."""
    before = model.BOM + b"a\xff\r\nb\r\nc"
    assert model.replaced_lines(before, 2, 2, b"X\nY\n") == model.BOM + b"a\xff\r\nX\r\nY\r\nc"
    assert model.replaced_lines(before, -1, -1, b"X\n") == model.BOM + b"a\xff\r\nb\r\nX"
    assert model.inserted(before, 1, b"X") == model.BOM + b"X\r\na\xff\r\nb\r\nc"
    assert model.inserted(before, 4, b"X") == before + b"\r\nX"
    assert model.edited(before, b"b\nc", b"B\nC", 1) == model.BOM + b"a\xff\r\nB\r\nC"
    assert model.viewed(before, 1, -1) == ["1: a<FF>", "2: b", "3: c"]
