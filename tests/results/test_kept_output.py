"""Output that is kept with `overflow="spill"`: page by page, for the session whose call made it and for no other."""

import asyncio
import gc
import re
from typing import Any

import pytest

from pegboard import Session, Status, Suspend, Toolkit

LONG = "".join(f"line {n}\n" for n in range(100))


def board() -> Toolkit:
    toolkit = Toolkit(plugins=(), max_output=200, overflow="spill")
    toolkit.register(lambda: LONG, name="long")
    return toolkit


def handle_in(text: str) -> str:
    found = re.search(r'handle="(output_\w+)"', text)
    assert found is not None, text
    return found[1]


def pages(reader: Toolkit | Session, handle: str) -> str:
    """All that a model reads of a handle, page by page."""
    text, offset = "", 0
    while True:
        page = reader.call_sync("read_output", {"handle": handle, "offset": offset})
        assert page.status is Status.SUCCESS, page.text
        more = re.search(r"\n\[up to (\d+) of \d+ characters; .*\]$", page.text)
        if more is None:
            return text + page.text
        text, offset = text + page.text[: more.start()], int(more[1])


def kept(maker: Toolkit | Session, way: str) -> str:
    """The handle of long output that a call in a session made."""
    if way == "call":
        return handle_in(asyncio.run(maker.call("long")).text)
    if way == "prepared":
        return handle_in(maker.prepare("long").execute_sync().text)
    if way == "batch":
        return handle_in(maker.call_many_sync([("long", {})])[0].text)
    return handle_in(maker.call_sync("long").text)


@pytest.mark.parametrize("way", ["call_sync", "call", "prepared", "batch"])
class TestWhoReads:
    def test_the_session_that_made_it(self, way: str) -> None:
        session = board().session()
        assert pages(session, kept(session, way)) == LONG

    @pytest.mark.parametrize("kind", ["session", "view", "of_session"])
    def test_no_other_session(self, way: str, kind: str) -> None:
        toolkit = board()
        alice = toolkit.session()
        other = alice.session() if kind == "of_session" else toolkit.view() if kind == "view" else toolkit.session()
        handle = kept(alice, way)
        foreign = other.call_sync("read_output", {"handle": handle})
        wrong = other.call_sync("read_output", {"handle": "output_0123456789abcdef"})
        assert foreign.status is wrong.status is Status.ERROR
        assert foreign.text.replace(handle, "output_0123456789abcdef") == wrong.text
        assert foreign.error is not None
        assert wrong.error is not None
        assert foreign.error.details == wrong.error.details

    def test_no_session_what_the_toolkit_itself_made(self, way: str) -> None:
        toolkit = board()
        result = toolkit.session().call_sync("read_output", {"handle": kept(toolkit, way)})
        assert (result.status, "kept (any more)" in result.text) == (Status.ERROR, True)

    def test_the_session_that_it_was_made_from(self, way: str) -> None:
        """Programs make a narrower session for one call, to bring an approver for instance."""
        session = board().session()
        handle = kept(session.session(approver=lambda request: True), way)
        gc.collect()
        assert pages(session, handle) == LONG


class TestWhatIsKept:
    def test_partial_output_of_a_failure(self) -> None:
        def fails() -> Any:
            yield LONG
            raise ValueError("no")

        toolkit = board()
        toolkit.register(fails)
        alice, bob = toolkit.session(), toolkit.session()
        handle = handle_in(alice.call_sync("fails").text)
        assert pages(alice, handle) == LONG
        assert bob.call_sync("read_output", {"handle": handle}).status is Status.ERROR

    def test_an_answer_that_comes_later(self) -> None:
        def asks() -> None:
            raise Suspend("later")

        toolkit = board()
        toolkit.register(asks)
        alice, bob = toolkit.session(), toolkit.session()
        call = alice.prepare("asks")
        call.execute_sync()
        handle = handle_in(alice.resume(call, LONG).text)
        assert pages(alice, handle) == LONG
        assert bob.call_sync("read_output", {"handle": handle}).status is Status.ERROR
