"""How arrays and objects are written: the tables of RFC 6570 and OpenAPI, and that what is written can be read back."""

from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_openapi import _styles

RGB = {"R": 100, "G": 200, "B": 150}
COLOURS = ["blue", "black", "brown"]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = texts | st.integers() | st.booleans()
lists = st.lists(scalars, min_size=1, max_size=4)
objects = st.dictionaries(texts, scalars, min_size=1, max_size=4)


def query(name: str, value: Any, style: str, explode: bool) -> str:
    return "&".join(f"{key}={each}" for key, each in _styles.pairs(name, value, style, explode))


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        ("form", True, "blue", "color=blue"),
        ("form", True, "", "color="),
        ("form", True, COLOURS, "color=blue&color=black&color=brown"),
        ("form", True, RGB, "R=100&G=200&B=150"),
        ("form", False, COLOURS, "color=blue,black,brown"),
        ("form", False, RGB, "color=R,100,G,200,B,150"),
        ("spaceDelimited", False, COLOURS, "color=blue%20black%20brown"),
        ("spaceDelimited", False, RGB, "color=R%20100%20G%20200%20B%20150"),
        ("pipeDelimited", False, COLOURS, "color=blue%7Cblack%7Cbrown"),
        ("pipeDelimited", True, COLOURS, "color=blue&color=black&color=brown"),
        ("deepObject", True, RGB, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        ("deepObject", True, {"a": {"b": [1, 2]}}, "color%5Ba%5D%5Bb%5D=1&color%5Ba%5D%5Bb%5D=2"),
        ("form", True, [], ""),
        ("form", True, {}, ""),
        ("form", True, None, ""),
        ("form", True, True, "color=true"),
        ("form", True, 1.5, "color=1.5"),
        ("form", True, "a b&c=d/é", "color=a%20b%26c%3Dd%2F%C3%A9"),
        ("form", True, [{"a": 1}], "color=%7B%22a%22%3A1%7D"),
    ],
)
def test_queries(style: str, explode: bool, value: Any, written: str) -> None:
    assert query("color", value, style, explode) == written


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, COLOURS, "blue,black,brown"),
        ("simple", False, RGB, "R,100,G,200,B,150"),
        ("simple", True, RGB, "R=100,G=200,B=150"),
        ("label", False, "blue", ".blue"),
        ("label", False, COLOURS, ".blue,black,brown"),
        ("label", True, COLOURS, ".blue.black.brown"),
        ("label", True, RGB, ".R=100.G=200.B=150"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, "", ";color"),
        ("matrix", False, COLOURS, ";color=blue,black,brown"),
        ("matrix", True, COLOURS, ";color=blue;color=black;color=brown"),
        ("matrix", False, RGB, ";color=R,100,G,200,B,150"),
        ("matrix", True, RGB, ";R=100;G=200;B=150"),
        ("simple", False, "a/b?c#d%", "a%2Fb%3Fc%23d%25"),
    ],
)
def test_paths(style: str, explode: bool, value: Any, written: str) -> None:
    assert _styles.path("color", value, style, explode) == written


def test_headers_and_cookies() -> None:
    assert _styles.header(COLOURS, explode=False) == "blue,black,brown"
    assert _styles.header(RGB, explode=False) == "R,100,G,200,B,150"
    assert _styles.header(RGB, explode=True) == "R=100,G=200,B=150"
    assert query("color", "a; b", "form", explode=True) == "color=a%3B%20b"


def read(written: str) -> list[tuple[str, str]]:
    """As servers read it: through the client's own URL."""
    url = httpx2.URL(f"http://host/path?{written}")
    assert url.query.decode() == written  # nothing is escaped twice, nothing ends it
    return parse_qsl(url.query.decode(), keep_blank_values=True, strict_parsing=bool(written))


@given(texts, lists)
def test_arrays_are_read_back(name: str, value: list[Any]) -> None:
    assert read(query(name, value, "form", explode=True)) == [(name, _styles.text(each)) for each in value]


@given(objects)
def test_objects_are_read_back(value: dict[str, Any]) -> None:
    expected = [(key, _styles.text(each)) for key, each in value.items()]
    assert read(query("any", value, "form", explode=True)) == expected


@given(st.sampled_from([("form", ","), ("spaceDelimited", "%20"), ("pipeDelimited", "%7C")]), lists)
def test_the_delimiter_is_no_part_of_a_value_that_is_written_with_commas(
    how: tuple[str, str], value: list[Any]
) -> None:
    style, delimiter = how
    _, _, written = query("any", value, style, explode=False).partition("=")
    if style == "form":
        assert [unquote(each) for each in written.split(delimiter)] == list(map(_styles.text, value))
    else:  # these know no escape: what holds the delimiter is not told from two
        joined = unquote(delimiter).join(map(_styles.text, value))
        assert unquote(written) == joined


@given(texts, objects)
def test_deep_objects_are_read_back(name: str, value: dict[str, Any]) -> None:
    expected = [(f"{name}[{key}]", _styles.text(each)) for key, each in value.items()]
    assert read(query(name, value, "deepObject", explode=True)) == expected


@given(st.sampled_from(["simple", "label", "matrix"]), st.booleans(), lists | objects | scalars)
def test_a_path_stays_one_segment(style: str, explode: bool, value: Any) -> None:
    written = _styles.path("any", value, style, explode)
    url = httpx2.URL(f"http://host/a/x{written}/b")
    assert url.raw_path.decode() == f"/a/x{written}/b"
    assert len(url.raw_path.split(b"/")) == 4
    assert url.query == b""


@given(lists)
def test_segments_are_read_back(value: list[Any]) -> None:
    written = _styles.path("any", value, "simple", explode=False)
    assert [unquote(each) for each in written.split(",")] == list(map(_styles.text, value))
