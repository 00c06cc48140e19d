"""Of an output of any length a head and a tail are kept."""

from hypothesis import given
from hypothesis import strategies as st

from pegboard_shell._running.run import Capture


def fed(limit: int, *pieces: bytes) -> Capture:
    capture = Capture(limit)
    for piece in pieces:
        capture.feed(piece)
    return capture


def test_short_output_is_kept_whole() -> None:
    capture = fed(9, b"abc", b"", b"defghi")
    assert (capture.text(), capture.cut, capture.total) == ("abcdefghi", 0, 9)


def test_long_output_keeps_head_and_tail_and_says_what_was_cut() -> None:
    capture = fed(9, *[b"%d" % (n % 10) for n in range(1000)])
    assert capture.text() == "012345\n[... 991 of 1000 bytes cut here ...]\n789"
    assert (capture.cut, capture.total) == (991, 1000)


def test_characters_are_not_cut_in_half() -> None:
    text = fed(30, "ä€𝄞".encode() * 50).text()
    assert "\ufffd" not in text
    assert "bytes cut here" in text


def test_other_bytes_become_replacement_characters() -> None:
    assert fed(9, b"a\xff\xfeb").text() == "a\ufffd\ufffdb"
    assert fed(9, b"\x80" * 100).text().count("\ufffd") == 6


@given(st.integers(1, 40), st.lists(st.binary(max_size=30), max_size=20))
def test_it_keeps_what_a_simple_model_keeps(limit: int, pieces: list[bytes]) -> None:
    capture, everything = fed(limit, *pieces), b"".join(pieces)
    assert capture.total == len(everything)
    assert capture.cut == max(0, len(everything) - limit)
    if not capture.cut:
        assert capture.text() == everything.decode("utf-8", "replace")


@given(st.integers(1, 40), st.text(st.sampled_from("abcdef"), min_size=41, max_size=400), st.integers(1, 50))
def test_head_and_tail_are_those_of_the_output(limit: int, text: str, size: int) -> None:
    capture = fed(limit, *[text[i : i + size].encode() for i in range(0, len(text), size)])
    head, _, tail = capture.text().partition(f"\n[... {len(text) - limit} of {len(text)} bytes cut here ...]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) == limit


def test_memory_is_bounded() -> None:
    capture = Capture(3000)
    for _ in range(1000):
        capture.feed(b"x" * 10_000)
    assert len(capture._head) + len(capture._tail) <= 3 * 3000 + 10_000
