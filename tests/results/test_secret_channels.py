"""Channels: what leaves a call, and what is shown of it, never shows a `Secret`, however it was written."""

import asyncio
import logging
import pickle
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import uuid4

import attrs
import pytest

from pegboard import (
    Computed,
    DataBlock,
    ExecutionPolicy,
    Fault,
    LinkBlock,
    Locked,
    Note,
    Redaction,
    Secret,
    Status,
    Suspend,
    TextBlock,
    ToolCall,
    ToolError,
    Toolkit,
    ToolOutput,
    ToolResult,
    hookimpl,
)
from pegboard.extension import Middleware
from tests.support.secrets import FORMS, SECRET, leaked
from tests.support.thinning import first, one_in

Act = Callable[[str, ToolCall], Any]


def _raise(error: BaseException) -> Any:
    raise error


def _chained(text: str) -> Any:
    try:
        raise OSError(text)
    except OSError as error:
        raise ValueError("no") from error


def _noted(text: str) -> Any:
    error = ValueError("no")
    error.add_note(text)
    raise error


class _Unconvertible:
    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        raise ValueError(self.text)

    __repr__ = __str__


def _failed(**members: Any) -> ToolResult:
    return ToolResult("", "use", Status.ERROR, members.pop("content", "no"), **members)


def _yielding(*chunks: Any) -> Iterator[Any]:
    yield from chunks
    raise ValueError("no")


def _logged(call: ToolCall, text: str) -> str:
    call.log(text)
    return "fine"


def _remarked(call: ToolCall, text: str) -> str:
    call.notes.append(Note(text, kind="own", path="a"))
    return "fine"


def _held(text: str) -> dict[str, Any]:
    held: dict[str, Any] = {"text": text}
    held["self"] = held
    return held


FAILURES: dict[str, Act] = {
    "an exception": lambda text, call: _raise(ValueError(text)),
    "an exception of two parts": lambda text, call: _raise(ValueError("a", [text])),
    "a ToolError": lambda text, call: _raise(ToolError(text)),
    "a KeyError": lambda text, call: _raise(KeyError(text)),
    "a cause": lambda text, call: _chained(text),
    "a note of an exception": lambda text, call: _noted(text),
    "a group": lambda text, call: _raise(ExceptionGroup(text, [ValueError(text), OSError(2, text, text)])),
    "SystemExit": lambda text, call: _raise(SystemExit(text)),
    "a reason to suspend": lambda text, call: _raise(Suspend(text)),
    "details of one": lambda text, call: _raise(Suspend("later", form={"title": [text]})),
    "an exception returned": lambda text, call: ValueError(text),
    "a value without text": lambda text, call: _Unconvertible(text),
    "a failed result's text": lambda text, call: _failed(content=text),
    "a failed result's long text": lambda text, call: _failed(content="x" * 95 + text + "y" * 200),
    "its data": lambda text, call: _failed(data={"a": [{"b": text}, (text,)]}),
    "its keys": lambda text, call: _failed(data={text: 1}, metadata={text: 1}),
    "its data block": lambda text, call: _failed(content=[DataBlock({"a": text})]),
    "its link": lambda text, call: _failed(content=[LinkBlock(f"https://a/{text}", text, text, "text/plain")]),
    "its attachment": lambda text, call: _failed(attachments=(TextBlock(text),)),
    "its metadata": lambda text, call: _failed(metadata={"a": {"b": [text, {"c": text}]}}),
    "its metadata as bytes": lambda text, call: _failed(metadata={"a": text.encode()}),
    "its metadata that hold themselves": lambda text, call: _failed(metadata=_held(text)),
    "its message": lambda text, call: _failed(error=Fault("own", text)),
    "its details": lambda text, call: _failed(error=Fault("own", "no", {"a": {"b": [text]}})),
    "its notes": lambda text, call: _failed(notes=(Note(text),)),
    "its logs": lambda text, call: _failed(logs=(text,)),
    "its value": lambda text, call: _failed(value={"a": text}),
    "partial output": lambda text, call: _yielding("so far ", text),
    "partial output in pieces": lambda text, call: _yielding(*text),
    "partial data": lambda text, call: _yielding({"a": text}, {"b": 1}),
    "long partial output": lambda text, call: _yielding("x" * 95, text, "y" * 200),
}
REMARKS: dict[str, Act] = {
    "a log": lambda text, call: _logged(call, text),
    "a note": lambda text, call: _remarked(call, text),
}
ANSWERS: dict[str, Act] = {
    "text": lambda text, call: text,
    "data": lambda text, call: {"a": text},
    "a block": lambda text, call: TextBlock(text),
    "an output": lambda text, call: ToolOutput(text, {"a": 1}),
    "a result": lambda text, call: ToolResult("", "use", Status.SUCCESS, text),
    "chunks": lambda text, call: iter([text]),
}


def board(act: Act, preset: Any = None, **options: Any) -> Toolkit:
    """A toolkit with a tool that does it with its secret, written in the form that the caller names."""

    def use(key: str, form: str, call: ToolCall) -> Any:
        """Use the key."""
        return act(FORMS[form](SECRET), call)

    toolkit = Toolkit(**{"plugins": (), **options})
    toolkit.register(use, presets={"key": Secret(SECRET) if preset is None else preset})
    return toolkit


def seen(result: ToolResult) -> str:
    """Everything that a result shows, but the exception itself."""
    error = result.error
    fault = [repr(error), error and error.message, error and error.details, error and repr(error.details)]
    copied = pickle.loads(pickle.dumps(result))
    shown = [repr(result), result.text, result.content, result.data, result.value, result.metadata, result.notes]
    return " ".join(map(str, [*shown, result.logs, result.attachments, result.to_dict(), copied.to_dict(), *fault]))


def remarks(result: ToolResult) -> str:
    return f"{result!r} {result.notes} {result.logs} {result.to_dict()['notes']} {result.to_dict()['logs']}"


@pytest.mark.parametrize("channel", one_in(2, FAILURES))
class TestAFailure:
    def test_shows_none(self, channel: str, caplog: pytest.LogCaptureFixture) -> None:
        toolkit = board(FAILURES[channel], max_output=100)
        for form in FORMS:
            caplog.clear()
            with caplog.at_level(logging.DEBUG, "pegboard"):
                result = toolkit.call_sync("use", {"form": form})
            assert result.status in ("error", "suspended")
            assert (form, leaked(f"{seen(result)} {caplog.text}")) == (form, [])

    def test_shows_none_in_its_traceback(self, channel: str) -> None:
        toolkit = board(FAILURES[channel], expose_errors="traceback")
        for form in FORMS:
            assert (form, leaked(seen(toolkit.call_sync("use", {"form": form})))) == (form, [])


class TestASuccess:
    """What a tool returns is its own affair; nothing else shows a secret."""

    @pytest.mark.parametrize("channel", REMARKS)
    def test_shows_none_in_what_is_said_beside(self, channel: str, caplog: pytest.LogCaptureFixture) -> None:
        toolkit = board(REMARKS[channel])
        for form in FORMS:
            with caplog.at_level(logging.DEBUG, "pegboard"):
                result = toolkit.call_sync("use", {"form": form})
            assert result.text == "fine"
            assert (form, leaked(f"{seen(result)} {caplog.text}")) == (form, [])

    @pytest.mark.parametrize("channel", one_in(2, ANSWERS))
    @pytest.mark.parametrize("preset", [Secret(SECRET), Secret(Computed(lambda call: SECRET))])
    def test_shows_none_in_its_repr(self, channel: str, preset: Any) -> None:
        toolkit = board(ANSWERS[channel], preset)
        for form in FORMS:
            result = toolkit.call_sync("use", {"form": form})
            assert (form, leaked(repr(result))) == (form, [])
            assert "***" not in f"{result.text} {result.value}"
            assert (form, leaked(repr(result))) == (form, [])


@pytest.mark.parametrize("form", one_in(2, FORMS))
class TestWays:
    """Ways to a result other than a plain call."""

    def test_prepared(self, form: str) -> None:
        call = board(FAILURES["an exception"]).prepare("use", {"form": form})
        assert leaked(f"{seen(call.execute_sync())} {call!r} {call.arguments}") == []

    def test_many(self, form: str) -> None:
        results = board(FAILURES["an exception"]).call_many_sync([("use", {"form": form})] * 2)
        assert leaked("".join(map(seen, results))) == []

    def test_retried(self, form: str) -> None:
        policy = ExecutionPolicy(max_attempts=2, initial_backoff=0.001, jitter=False)
        result = board(FAILURES["an exception"]).call_sync("use", {"form": form}, policy=policy)
        assert result.metadata["retries"]
        assert leaked(seen(result)) == []

    @pytest.mark.parametrize("kind", ["sync", "async", "async generator"])
    def test_awaited(self, form: str, kind: str) -> None:
        text = FORMS[form](SECRET)

        async def later(key: str) -> str:
            await asyncio.sleep(0)
            raise ValueError(text)

        async def drawn(key: str) -> AsyncIterator[str]:
            yield text
            raise ValueError(text)

        def now(key: str) -> str:
            raise ValueError(text)

        with Toolkit(plugins=()) as toolkit:
            function: Any = {"sync": now, "async": later, "async generator": drawn}[kind]
            toolkit.register(function, name="use", presets={"key": Secret(SECRET)})
            assert leaked(seen(asyncio.run(toolkit.call("use")))) == []

    def test_resumed(self, form: str) -> None:
        text = FORMS[form](SECRET)
        toolkit = board(FAILURES["a reason to suspend"])
        for answer in (ValueError(text), _failed(content=text, metadata={"a": [text]})):
            suspended = toolkit.call_sync("use", {"form": form})
            assert leaked(repr(toolkit.pending)) == []
            assert leaked(seen(toolkit.resume(suspended.call_id, answer))) == []


@pytest.mark.parametrize("channel", one_in(2, FAILURES))
def test_middleware_sees_none(channel: str) -> None:
    met: list[str] = []

    def around(call: ToolCall, proceed: Callable[[], ToolResult]) -> ToolResult:
        result = proceed()
        met.append(f"{seen(result)} {call!r}")
        return result

    class Plugin:
        @hookimpl
        def provide_middleware(self) -> list[Middleware]:
            return [Middleware(around)]

    toolkit = board(FAILURES[channel], plugins=[Plugin()])
    for form in FORMS:
        toolkit.call_sync("use", {"form": form})
    assert len(met) == len(FORMS)
    assert leaked("".join(met)) == []


@attrs.frozen
class Login:
    user: str
    password: str


@dataclass
class Client:
    login: Login
    back: Any = None


@dataclass(slots=True)
class Slotted:
    password: str


class SecretStr:
    """As libraries have it: its text says nothing."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __str__(self) -> str:
        return "**********"


class TestValues:
    """Of a record or a container every part is a secret; of anything else its text."""

    @pytest.mark.parametrize(
        "value",
        [
            SECRET,
            SECRET.encode(),
            Login("me", SECRET),
            Client(Login("me", SECRET)),
            {"a": [{"b": (SECRET,)}]},
            Secret(SECRET),
            Locked(Secret(SECRET)),
            [{SECRET}, frozenset({SECRET})],
            SecretStr(SECRET),
            Slotted(SECRET),
        ],
        ids=lambda value: type(value).__name__,
    )
    @pytest.mark.parametrize("form", first(3, FORMS))
    def test_parts(self, value: Any, form: str) -> None:
        assert leaked(Redaction([value])(f"<{FORMS[form](SECRET)}>")) == []

    def test_an_object_that_leads_to_itself(self) -> None:
        client = Client(Login("me", SECRET))
        client.back = [client]
        assert leaked(Redaction([client])(f"key {SECRET}")) == []

    def test_an_object_that_leads_to_half_of_the_program(self) -> None:
        assert Redaction([[str(n) * 9 for n in range(5_000)]])("anything") == "***"

    def test_an_object_without_text(self) -> None:
        assert Redaction([_Unconvertible(SECRET)])("anything") == "***"

    def test_bytes_that_are_no_text(self) -> None:
        key = bytes(range(250, 256)) + b"key"
        redact = Redaction([key])
        from base64 import b64encode

        for text in (key.hex(), b64encode(key).decode(), b64encode(b"a:" + key).decode(), repr(key)):
            assert "key" not in redact(text)
            assert "6b6579" not in redact(text)
            assert "***" in redact(text)

    @pytest.mark.parametrize("value", [4711, 47.11, -1234])
    def test_numbers(self, value: Any) -> None:
        assert Redaction([value])(f"pin {value}!") == "pin ***!"

    def test_what_has_a_text_of_its_own(self) -> None:
        token, day = uuid4(), date(2031, 5, 7)
        assert Redaction([[token, day]])(f"{token} on {day}") == "*** on ***"

    def test_the_longest_first(self) -> None:
        assert Redaction(["abcd", "abcdef"])("abcdef abcd") == "*** ***"

    def test_what_is_no_secret_stays(self) -> None:
        text = "a b%20c \\n 'é' dXM6cGFzcw== 0a1b " + "\\" * 200
        assert Redaction([SECRET, None, True, ""])(text) == text
        assert Redaction()(text) == text


class TestShortSecrets:
    """A secret of fewer than four characters cannot be masked: what is masked would tell it letter by letter."""

    @pytest.mark.parametrize("value", ["k", "abc", 2, b"x", {"pin": "123"}, ["a", "b"], Login("a", "b")])
    @pytest.mark.parametrize("text", ["bad key k", "something else", "***"])
    def test_no_text_at_all(self, value: Any, text: str) -> None:
        assert Redaction([value])(text) == "***"
        assert Redaction([value, "long enough"])(text) == "***"

    def test_a_short_part_of_a_longer_one(self) -> None:
        redact = Redaction([Login("ann", "long enough")])
        assert redact("it is long enough") == "it is ***"
        assert redact("ann is long enough") == "*** is ***"
        assert redact("nobody") == "nobody"

    @pytest.mark.parametrize("guess", ["a", "b", "k", "s"])
    def test_errors_are_no_oracle(self, guess: str) -> None:
        def use(key: str, query: str, call: ToolCall) -> str:
            call.log(query)
            raise ValueError(f"no {query}")

        toolkit = Toolkit(plugins=())
        toolkit.register(use, presets={"key": Secret("k")})
        result = toolkit.call_sync("use", {"query": guess})
        assert (result.text, result.logs, repr(result)) == ("***", ("***",), "ToolResult('use', error, '***')")
        refused = toolkit.call_sync("use", {"query": [guess]})
        assert refused.text.endswith("query: expected string, got array ***")

    def test_a_result_is_what_the_tool_says(self) -> None:
        toolkit = board(ANSWERS["text"], Secret("k"))
        assert toolkit.call_sync("use", {"form": "plain"}).text == SECRET


def test_the_exception_itself_is_for_the_program() -> None:
    result = board(FAILURES["an exception"]).call_sync("use", {"form": "plain"})
    assert result.error is not None
    assert SECRET in "".join(traceback.format_exception(result.error.exception))


def test_a_wrong_preset_is_not_quoted() -> None:
    def use(key: int) -> None: ...

    toolkit = Toolkit(plugins=())
    with pytest.raises(Exception, match="the preset of 'key' is no int") as caught:
        toolkit.register(use, presets={"key": Secret(SECRET)})
    assert leaked("".join(traceback.format_exception(caught.value))) == []
