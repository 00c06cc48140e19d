"""Who may come in: real HTTP on the loopback interface."""

import json

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.served import JSON, Client, served

PATHS = ("/", "/api/board", "/api/events", "/api/tools/forecast", "/page/app.js", "/page/style.css", "/nowhere")
BODY = json.dumps({"name": "forecast", "arguments": "{}"}).encode()


class TestWithoutAToken:
    @pytest.mark.parametrize("path", PATHS)
    def test_nothing_is_served(self, client: Client, path: str) -> None:
        assert client.send("GET", path, cookie=None).status == 401

    @pytest.mark.parametrize("path", ["/?token=", "/?token=guessed", "/api/board?token=guessed"])
    def test_a_guess_does_not_help(self, client: Client, path: str) -> None:
        answer = client.send("GET", path, cookie=None)
        assert (answer.status, "set-cookie" in answer.headers) == (401, False)

    def test_another_cookie_does_not_help(self, client: Client) -> None:
        name = client.headers["cookie"].partition("=")[0]
        assert client.send("GET", "/api/board", cookie=f"{name}=guessed").status == 401

    def test_nothing_is_done(self, client: Client) -> None:
        answer = client.send("POST", "/api/calls", BODY, content_type=JSON, origin=client.origin, cookie=None)
        assert answer.status == 401


def test_the_token_is_good_for_one_cookie() -> None:
    with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
        path = client.url.removeprefix(client.origin)
        wrong = client.send("GET", f"{path}x")
        first, second = client.send("GET", path), client.send("GET", path)
        assert (wrong.status, first.status, second.status) == (401, 303, 401)
        assert first.headers["location"].startswith("/#key=")
        cookie = first.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        client.headers["cookie"] = cookie.partition(";")[0]
        assert client.send("GET", "/").status == 200
        again = client.send("GET", path)
        assert (again.status, again.headers["location"]) == (303, "/"), "who is in already only loses the token"
        assert client.url.rpartition("=")[2] not in cookie


class TestWithTheCookieAlone:
    """What every other server of this machine has, once the browser has visited it."""

    @pytest.fixture
    def other(self, client: Client) -> Client:
        return Client(client.url, {"cookie": client.headers["cookie"]})

    @pytest.mark.parametrize("path", ["/api/board", "/api/events", "/api/tools/forecast", "/api/calls/inspector-1"])
    def test_nothing_is_shown(self, other: Client, path: str) -> None:
        assert other.send("GET", path).status == 401
        assert other.send("GET", path, x_pegboard_key="guessed").status == 401

    def test_nothing_is_done(self, other: Client) -> None:
        assert other.send("POST", "/api/calls", BODY, content_type=JSON, origin=other.origin).status == 401

    def test_the_key_is_not_to_be_had(self, client: Client, other: Client) -> None:
        key = client.headers["x-pegboard-key"]
        for path in ("/", "/?token=guessed", f"/?{client.url.partition('?')[2]}", "/page/app.js", "/page/api.js"):
            answer = other.send("GET", path)
            assert key not in f"{answer.headers}{answer.body!r}"

    def test_the_page_is_served(self, other: Client) -> None:
        assert other.send("GET", "/").status == other.send("GET", "/page/app.js").status == 200


class TestWithTheCookie:
    @pytest.mark.parametrize(
        "host",
        [
            "example.com",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.0.0.1.example.com:{port}",
            "localhost.:{port}",
            "[::1]:{port}",
        ],
    )
    def test_another_host_is_refused(self, client: Client, host: str) -> None:
        assert client.send("GET", "/api/board", host=host.format(port=client.port)).status == 403

    def test_localhost_is_this_host(self, client: Client) -> None:
        host = f"localhost:{client.port}"
        assert client.send("GET", "/", host=host).status == 200
        assert client.send("POST", "/api/calls", b"{}", host=host, origin=client.origin).status == 403

    @pytest.mark.parametrize(
        "origin",
        ["http://example.com", "null", "", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://127.0.0.1"],
    )
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_another_origin_is_refused(self, client: Client, method: str, origin: str) -> None:
        origin = origin.format(port=client.port)
        path, body = ("/api/board", None) if method == "GET" else ("/api/calls", BODY)
        assert client.send(method, path, body, content_type=JSON, origin=origin).status == 403

    def test_a_post_has_to_say_where_it_comes_from(self, client: Client) -> None:
        assert client.send("POST", "/api/calls", BODY, content_type=JSON).status == 403

    def test_another_site_gets_no_file(self, client: Client) -> None:
        assert client.send("GET", "/page/app.js", sec_fetch_site="cross-site").status == 403
        assert client.send("GET", "/page/app.js", sec_fetch_site="same-site").status == 403

    @pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
    def test_a_post_has_to_be_json(self, client: Client, kind: str | None) -> None:
        assert client.send("POST", "/api/calls", BODY, content_type=kind, origin=client.origin).status == 415

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
    def test_a_body_that_is_no_object_is_refused(self, client: Client, body: bytes) -> None:
        assert client.send("POST", "/api/calls", body, content_type=JSON, origin=client.origin).status == 400

    @pytest.mark.parametrize("path", ["/api/calls", "/api/cancel", "/api/approvals", "/api/groups", "/api/reload"])
    def test_nothing_is_done_by_get(self, client: Client, path: str) -> None:
        assert client.send("GET", path).status in (404, 405)

    @pytest.mark.parametrize("path", ["/page/../_guard.py", "/page/%2e%2e/_guard.py", "/page/..%2f_guard.py"])
    def test_only_the_files_of_the_page_are_served(self, client: Client, path: str) -> None:
        assert client.send("GET", path).status == 404


@pytest.mark.parametrize("path", ["/", "/api/board", "/page/app.js", "/nowhere"])
@pytest.mark.parametrize("known", [True, False])
def test_every_answer_says_what_a_page_may_do(client: Client, path: str, known: bool) -> None:
    answer = client.send("GET", path, **({} if known else {"cookie": None}))
    policy = dict(each.split(" ", 1) for each in answer.headers["content-security-policy"].split("; "))
    assert (policy["default-src"], policy["script-src"]) == ("'none'", "'self'")
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers or "uvicorn" in answer.headers["server"]
