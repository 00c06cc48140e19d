"""URLs are read in one way or refused, and shown without what may be secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_net import RefusedUrlError, read_url, redacted


@pytest.mark.parametrize(
    ("text", "host", "port", "origin"),
    [
        ("http://example.com", "example.com", 80, "http://example.com:80"),
        ("HTTPS://Example.COM./a?b#c", "example.com", 443, "https://example.com:443"),
        ("https://example.com:8443/", "example.com", 8443, "https://example.com:8443"),
        ("http://[2606:4700::1111]:80/", "2606:4700::1111", 80, "http://2606:4700::1111:80"),
        ("http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80, "http://xn--bcher-kva.example:80"),
        ("http://my_service:8000/", "my_service", 8000, "http://my_service:8000"),
    ],
)
def test_read(text: str, host: str, port: int, origin: str) -> None:
    found = read_url(text)
    assert (found.host, found.port, found.origin) == (host, port, origin)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ftp://example.com/", "only http:// and https:// URLs are fetched"),
        ("http://user:secret@example.com/", "it holds a user name or a password"),
        ("http://bücher.example/", "its host is not ASCII; write it as xn--..."),
        ("http://0x7f.1/", "its host is neither a name nor an address in its usual form"),
        ("http://a\\b/", "it is too long, or holds blanks, backslashes or control characters"),
        ("http://a:b/", "it is no valid URL"),
    ],
)
def test_a_refusal_says_why(text: str, why: str) -> None:
    with pytest.raises(RefusedUrlError) as raised:
        read_url(text)
    assert str(raised.value).endswith(f" is refused: {why}.")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://example.com/a?token=secret&b=1#secret", "https://example.com/a"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://secret@example.com", "https://example.com"),
        ("https://user:sec/ret@example.com/", "https://user:sec/ret@example.com/"),  # this user is "host" to readers
        ("//user:secret@example.com/a?secret", "//example.com/a"),
        ("https://example.com/a\r\nSet-Cookie: b", "https://example.com/a??Set-Cookie: b"),
        ("https://example.com/" + "a" * 300, "https://example.com/" + "a" * 180 + "..."),
        ("https://a@b:secret@example.com/?secret", "https://example.com/"),
    ],
)
def test_redacted(text: str, shown: str) -> None:
    assert redacted(text) == shown


@given(st.text(), st.text(alphabet="abc/@:.[]"))
def test_redacted_shows_no_query_and_no_fragment(secret: str, before: str) -> None:
    for mark in "?#":
        shown = redacted(f"https://{before}{mark}{secret}")
        assert shown == redacted(f"https://{before}")
        assert shown.isprintable()
