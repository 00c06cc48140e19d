"""Presets: parameters that the program fills, and the secrets among them."""

import asyncio
import json
import logging
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pytest

from pegboard import (
    Computed,
    ExecutionPolicy,
    Injected,
    Locked,
    RegistrationError,
    Secret,
    Suspend,
    Tool,
    ToolCall,
    ToolError,
    Toolkit,
    UnknownNameError,
    tool,
)
from tests.support.measuring import least, seconds
from tests.support.thinning import first
from tests.support.waiting import PATIENCE

TOKEN = "tok-'7f\\3a"


class Mail:
    @tool
    def send_email(self, to: str, subject: str, api_key: str = "none") -> str:
        """Send an email.

        Args:
            to: Receiver
            subject: What it is about
            api_key: Never shown
        """
        return f"{to} {subject} {api_key}"

    @tool
    def search(self, query: str, user_id: str, api_key: str) -> str:
        return f"{query} {user_id} {api_key}"


def call_api(query: str, api_key: str, user_id: str) -> str:
    return f"{query} {api_key} {user_id}"


def board(source: Any = call_api, presets: Any = None, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=(), **options)
    toolkit.register(source, presets=presets)
    return toolkit


def shown(toolkit: Toolkit, name: str) -> list[str]:
    return list(toolkit[name].parameters["properties"])


class TestShapes:
    def test_nested(self) -> None:
        toolkit = board(Mail(), {"send_email": {"api_key": "k"}, "search": {"api_key": "k2", "user_id": "u"}})
        assert shown(toolkit, "send_email") == ["to", "subject"]
        assert shown(toolkit, "search") == ["query"]
        assert toolkit.call_sync("send_email", {"to": "a", "subject": "b"}).text == "a b k"
        assert toolkit.call_sync("search", {"query": "q"}).text == "q u k2"

    def test_flat_for_one_tool(self) -> None:
        toolkit = board(presets={"api_key": "k", "user_id": "u"})
        assert toolkit["call_api"].parameters == {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
            "additionalProperties": False,
        }
        assert toolkit.call_sync("call_api", '{"query": "q"}').text == "q k u"

    def test_flat_for_one_enabled_tool(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(Mail(), enable=["search"], prefix="m_", presets={"api_key": "k"})
        assert shown(toolkit, "m_search") == ["query", "user_id"]

    def test_empty(self) -> None:
        assert shown(board(presets={}), "call_api") == ["query", "api_key", "user_id"]

    def test_a_tool_with_a_parameter_of_its_own_name(self) -> None:
        def config(config: dict[str, int], other: int = 0) -> str:
            return f"{config} {other}"

        for presets in ({"config": {"a": 1}}, {"config": {"config": {"a": 1}}}):
            with pytest.raises(
                RegistrationError, match=r"'config' is a tool and also a parameter.*set_presets\('config',"
            ):
                board(config, presets)
        assert board(config, {"other": 5}).call_sync("config", {"config": {}}).text == "{} 5"
        toolkit = board(config)
        toolkit.set_presets("config", {"config": {"a": 1}, "other": 2})
        assert toolkit.call_sync("config").text == "{'a': 1} 2"

    @pytest.mark.parametrize(
        ("source", "presets", "message"),
        [
            (call_api, {"api_kei": "k"}, "nothing is called 'api_kei'. Did you mean 'api_key'"),
            (call_api, {"call_api": {"api_kei": "k"}}, "tool 'call_api' has no parameter 'api_kei'.*'api_key'"),
            (Mail(), {"send_mail": {"api_key": "k"}}, "'send_mail' is no tool of this registration.*'send_email'"),
            (
                Mail(),
                {"api_key": "k"},
                "'api_key' is a parameter, and 2 tools are registered at once; write presets={'search':",
            ),
            (Mail(), {"search": "k"}, "mapping for each tool"),
        ],
    )
    def test_unknown_names(self, source: Any, presets: Any, message: str) -> None:
        toolkit = Toolkit(plugins=())
        with pytest.raises(RegistrationError, match=message):
            toolkit.register(source, presets=presets)
        assert len(toolkit) == 0

    def test_unknown_tool_later(self) -> None:
        with pytest.raises(UnknownNameError, match="'call_api'"):
            board().set_presets("call_apo", {})
        with pytest.raises(RegistrationError, match="no parameter 'x'"):
            board().update_presets("call_api", {"x": 1})


class TestOverride:
    @pytest.mark.parametrize("as_text", [True, False])
    def test_a_model_may_override_a_plain_preset(self, as_text: bool) -> None:
        toolkit = board(presets={"api_key": "default-key", "user_id": "default-user"})
        sent: Any = {"query": "test", "user_id": "agent-user"}
        for _ in range(2):
            result = toolkit.call_sync("call_api", json.dumps(sent) if as_text else sent)
            assert result.text == "test default-key agent-user"

    @pytest.mark.parametrize("way", ["mapping", "text", "prepared"])
    @pytest.mark.parametrize("repair", ["safe", "off"])
    def test_the_program_learns_of_it(self, way: str, repair: Any, caplog: pytest.LogCaptureFixture) -> None:
        toolkit = board(presets={"api_key": "k", "user_id": "u"}, repair=repair)
        sent: Any = {"query": "q", "user_id": "agent-user"}
        with caplog.at_level("WARNING", logger="pegboard"):
            if way == "prepared":
                result = toolkit.prepare("call_api", sent).execute_sync()
            else:
                result = toolkit.call_sync("call_api", json.dumps(sent) if way == "text" else sent)
        assert result.text == "q k agent-user"
        (note,) = result.notes
        assert (note.kind, note.path) == ("overridden", "user_id")
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert "'user_id'" in record.getMessage()
        assert "Locked or Secret" in record.getMessage()
        assert "agent-user" not in record.getMessage() + note

    def test_nothing_is_said_without_one(self, caplog: pytest.LogCaptureFixture) -> None:
        toolkit = board(presets={"api_key": "k", "user_id": "u"})
        toolkit.register(call_api, name="other")
        with caplog.at_level("WARNING", logger="pegboard"):
            assert toolkit.call_sync("call_api", {"query": "q"}).notes == ()
            assert toolkit.call_sync("other", {"query": "q", "api_key": "a", "user_id": "b"}).notes == ()
            omitted = toolkit.call_sync("call_api", {"query": "q", "user_id": None})
        assert omitted.text == "q k u"
        assert [note.kind for note in omitted.notes] == ["repair"]
        assert not caplog.records

    def test_it_is_said_once_of_an_approved_call(self, caplog: pytest.LogCaptureFixture) -> None:
        toolkit = board(presets={"api_key": "k", "user_id": "u"}, approver=lambda request: True)
        toolkit.set_permission("call_api", "prompt")
        with caplog.at_level("WARNING", logger="pegboard"):
            result = toolkit.call_sync("call_api", {"query": 5, "user_id": "b"})
        assert result.text == "5 k b"
        assert [note.kind for note in result.notes] == ["repair", "overridden"]
        assert len(caplog.records) == 1

    @pytest.mark.parametrize("kind", [Secret, Locked, lambda value: Locked(Secret(value))])
    @pytest.mark.parametrize("as_text", [True, False])
    def test_never_a_locked_one(self, kind: Callable[[Any], Any], as_text: bool) -> None:
        toolkit = board(presets={"api_key": kind("real"), "user_id": "u"})
        sent: Any = {"query": "q", "api_key": "forged"}
        for _ in range(2):
            result = toolkit.call_sync("call_api", json.dumps(sent) if as_text else sent)
            assert result.text == "q real u"
            (note,) = result.notes
            assert note.kind == "dropped"
            assert "api_key" not in note

    def test_not_even_one_of_the_wrong_type(self) -> None:
        toolkit = board(presets={"api_key": Locked("real"), "user_id": "u"})
        assert toolkit.call_sync("call_api", {"query": "q", "api_key": [1]}).text == "q real u"
        refused = toolkit.call_sync("call_api", {"query": ["q"], "api_key": [1]})
        assert refused.status == "invalid"
        assert "api_key" not in refused.text

    def test_a_toolkit_may_lock_them_all(self) -> None:
        toolkit = board(presets={"api_key": "real", "user_id": "u"}, preset_override=False)
        result = toolkit.call_sync("call_api", {"query": "q", "api_key": "forged", "user_id": "forged"})
        assert result.text == "q real u"
        assert "2 parameters" in result.notes[0]
        session = toolkit.session(presets={"call_api": {"user_id": "s"}})
        assert session.call_sync("call_api", {"query": "q", "user_id": "forged"}).text == "q real s"

    def test_a_wrong_override_is_explained(self) -> None:
        toolkit = board(presets={"api_key": "k", "user_id": "u"})
        assert toolkit.call_sync("call_api", {"query": "q", "user_id": [1]}).status == "invalid"

    def test_no_message_names_what_is_preset(self) -> None:
        toolkit = board(presets={"api_key": "k", "user_id": Locked("u")})
        for sent in (
            {"query": "q", "x": 1},
            {"query": "q", "api_kei": "x"},
            {"query": "q", "user_ix": 1, "api_key": "y"},
        ):
            refused = toolkit.call_sync("call_api", sent)
            assert refused.status == "invalid"
            assert "query" in refused.text
            assert "user_id" not in refused.text
            assert "api_key" not in refused.text


class TestChanges:
    def test_set_replaces_and_update_merges(self) -> None:
        toolkit = board(presets={"api_key": "k"})
        toolkit.update_presets("call_api", {"user_id": "u"})
        assert toolkit.call_sync("call_api", {"query": "q"}).text == "q k u"
        toolkit.update_presets("call_api", {"user_id": "u2"})
        assert toolkit.call_sync("call_api", {"query": "q"}).text == "q k u2"
        toolkit.set_presets("call_api", {"user_id": "u3"})
        assert shown(toolkit, "call_api") == ["query", "api_key"]
        toolkit.set_presets("call_api", {})
        assert shown(toolkit, "call_api") == ["query", "api_key", "user_id"]

    def test_schemas_and_calls_follow_at_once(self) -> None:
        toolkit = board()
        assert toolkit.call_sync("call_api", {"query": "q"}).status == "invalid"
        before = toolkit.schemas()[0].parameters
        toolkit.set_presets("call_api", {"api_key": "k", "user_id": "u"})
        assert list(before["properties"]) == ["query", "api_key", "user_id"]
        assert list(toolkit.schemas()[0].parameters["properties"]) == ["query"]
        assert list(toolkit.tools[0].parameters["properties"]) == ["query"]
        assert toolkit.tools[0].params[1].source == "preset"
        assert toolkit.call_sync("call_api", {"query": "q"}).text == "q k u"

    def test_a_refused_change_changes_nothing(self) -> None:
        toolkit = board(presets={"api_key": "k"})
        with pytest.raises(RegistrationError):
            toolkit.set_presets("call_api", {"user_id": "u", "api_key": 3})
        assert shown(toolkit, "call_api") == ["query", "user_id"]
        assert toolkit.call_sync("call_api", {"query": "q", "user_id": "u"}).text == "q k u"

    def test_none_is_a_value(self) -> None:
        def f(a: str | None = "default", b: int = 1) -> str:
            return f"{a} {b}"

        toolkit = board(f, {"a": None})
        assert toolkit.call_sync("f").text == "None 1"
        toolkit.update_presets("f", {"b": 2, "a": None})
        assert toolkit.call_sync("f").text == "None 2"

    def test_unregistering_forgets_them(self) -> None:
        toolkit = board(presets={"api_key": "k"})
        toolkit.unregister("call_api")
        toolkit.register(call_api)
        assert shown(toolkit, "call_api") == ["query", "api_key", "user_id"]

    def test_replacing_forgets_them(self) -> None:
        def other(days: str) -> str:
            return days

        def first(days: int) -> str:
            return repr(days)

        toolkit = Toolkit(plugins=())
        toolkit.register(first, name="f", presets={"days": 3})
        toolkit.register(other, name="f", on_conflict="replace")
        assert toolkit.call_sync("f", {"days": "x"}).text == "x"
        toolkit.register(other, name="f", on_conflict="replace", presets={"days": "y"})
        assert toolkit.call_sync("f").text == "y"


@dataclass
class Point:
    x: int
    y: int = 0


class Limits(TypedDict, total=False):
    top: int
    page: int


class TestTypes:
    def test_values_are_structured(self) -> None:
        pytest.importorskip("pegboard_dataclasses")

        def f(day: date, home: Path, point: Point, numbers: tuple[int, ...]) -> str:
            return f"{day!r} {home!r} {point!r} {numbers!r}"

        toolkit = Toolkit()
        given = {"day": "2026-01-02", "home": "/tmp", "point": {"x": 1}, "numbers": [1, 2]}
        toolkit.register(f, presets={"f": given})
        expected = f"{date(2026, 1, 2)!r} {Path('/tmp')!r} {Point(1)!r} (1, 2)"
        assert toolkit.call_sync("f").text == expected
        toolkit.set_presets("f", {"day": date(2026, 1, 2), "home": Path("/tmp"), "point": Point(1), "numbers": (1, 2)})
        assert toolkit.call_sync("f").text == expected

    @pytest.mark.parametrize("wrap", [lambda value: value, Secret, Locked])
    def test_misfits_are_refused_without_their_value(self, wrap: Callable[[Any], Any]) -> None:
        def f(day: date) -> None: ...

        with pytest.raises(RegistrationError) as caught:
            board(f, {"f": {"day": wrap("not-a-day-7f3a")}})
        message = str(caught.value)
        assert all(part in message for part in ("tool 'f'", "'day'", "date", "str")), message
        assert "7f3a" not in message
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None

    def test_of_star(self) -> None:
        def f(a: int, *numbers: int) -> str:
            return f"{a} {numbers}"

        toolkit = board(f, {"numbers": [1, 2]})
        assert toolkit.call_sync("f", {"a": 0}).text == "0 (1, 2)"
        assert toolkit.call_sync("f", {"a": 0, "numbers": [3]}).text == "0 (3,)"
        toolkit.set_presets("f", {"numbers": Locked([4])})
        assert toolkit.call_sync("f", {"a": 0, "numbers": [3]}).text == "0 (4,)"

    def test_of_kwargs(self) -> None:
        def f(**more: int) -> None: ...

        with pytest.raises(
            RegistrationError, match=r"\*\*more cannot be preset; give the value a parameter of its own"
        ):
            board(f, {"f": {"more": {"a": 1}}})

    @pytest.mark.parametrize("wrap", [lambda value: value, Locked])
    def test_of_unpacked_keys(self, wrap: Callable[[Any], Any]) -> None:
        pytest.importorskip("pegboard_dataclasses")

        def f(q: str, **limits: Unpack[Limits]) -> str:
            return f"{q} {limits}"

        toolkit = Toolkit()
        toolkit.register(f, presets={"top": wrap(5)})
        assert toolkit.call_sync("f", {"q": "a"}).text == "a {'top': 5}"
        assert toolkit.call_sync("f", {"q": "a", "page": 2}).text == "a {'top': 5, 'page': 2}"

    def test_of_positional_only_and_keyword_only(self) -> None:
        def f(a: int, b: int, /, c: int, *, d: int) -> str:
            return f"{a} {b} {c} {d}"

        toolkit = board(f, {"a": 1, "d": Locked(4)})
        assert toolkit.call_sync("f", {"b": 2, "c": 3}).text == "1 2 3 4"

    def test_of_a_context_parameter(self) -> None:
        class Db:
            def __init__(self, name: str) -> None:
                self.name = name

        def f(db: Injected[Db]) -> str:
            return db.name

        for preset in (Db("preset"), Locked(Db("preset")), Computed(lambda call: Db("preset"))):
            toolkit = board(f, {"db": preset}, context=Db("context"))
            assert toolkit.call_sync("f").text == "preset"
            assert toolkit.call_sync("f", {"db": "forged"}).text == "preset"


class TestComputed:
    def test_of_the_call(self) -> None:
        toolkit = board(presets={"api_key": Computed(lambda call: f"{call.id}/{call.name}"), "user_id": "u"})
        assert toolkit.call_sync("call_api", {"query": "q"}, call_id="c1").text == "q c1/call_api u"
        assert toolkit.call_sync("call_api", {"query": "q", "api_key": "mine"}).text == "q mine u"

    def test_is_structured(self) -> None:
        def f(day: date) -> str:
            return repr(day)

        assert board(f, {"day": Computed(lambda call: "2026-01-02")}).call_sync("f").text == repr(date(2026, 1, 2))

    def test_locked(self) -> None:
        toolkit = board(presets={"api_key": Locked(Computed(lambda call: "real")), "user_id": "u"})
        assert toolkit.call_sync("call_api", {"query": "q", "api_key": "forged"}).text == "q real u"

    @pytest.mark.parametrize("compute", [lambda call: 1 / 0, lambda call: "not a day"])
    def test_failures_tell_the_model_nothing(self, compute: Callable[[Any], Any]) -> None:
        def f(day: date) -> None: ...

        result = board(f, {"day": Computed(compute)}).call_sync("f")
        assert result.status == "error"
        assert "a value that the program provides is not available" in result.text
        assert "day" not in result.text
        assert "division" not in result.text
        assert result.error is not None
        assert result.error.exception is not None
        assert result.error.exception.__cause__ is not None

    def test_name_is_checked_at_once(self) -> None:
        with pytest.raises(RegistrationError, match="api_kei"):
            board(presets={"api_kei": Computed(lambda call: "k")})


class TestSessions:
    def test_are_apart(self) -> None:
        toolkit = board(presets={"api_key": "k"})
        ann = toolkit.session(presets={"call_api": {"user_id": "ann"}})
        bob = toolkit.session(presets={"call_api": {"user_id": "bob"}})
        assert ann.call_sync("call_api", {"query": "q"}).text == "q k ann"
        assert bob.call_sync("call_api", {"query": "q"}).text == "q k bob"
        assert toolkit.call_sync("call_api", {"query": "q", "user_id": "x"}).text == "q k x"
        assert shown(toolkit, "call_api") == ["query", "user_id"]
        assert list(ann.tools[0].parameters["properties"]) == ["query"]

    def test_never_lay_open_what_the_toolkit_presets(self) -> None:
        toolkit = board(presets={"api_key": Secret("k")})
        session = toolkit.session()
        for change, values in (
            (session.set_presets, {"user_id": "u"}),
            (session.update_presets, {"user_id": "u"}),
            (session.set_presets, {}),
        ):
            change("call_api", values)
            assert "api_key" not in session["call_api"].parameters["properties"]
            assert session.call_sync("call_api", {"query": "q", "user_id": "u", "api_key": "x"}).text == "q k u"

    def test_follow_the_toolkit(self) -> None:
        toolkit = board(presets={"api_key": "k"})
        session = toolkit.session(presets={"call_api": {"user_id": "u"}})
        toolkit.update_presets("call_api", {"api_key": "k2"})
        assert session.call_sync("call_api", {"query": "q"}).text == "q k2 u"

    def test_inner_values_win(self) -> None:
        toolkit = board(presets={"api_key": "k", "user_id": "u"})
        session = toolkit.session(presets={"call_api": {"user_id": "s"}}).session(
            presets={"call_api": {"api_key": "i"}}
        )
        assert session.call_sync("call_api", {"query": "q"}).text == "q i s"

    def test_unknown_tool(self) -> None:
        with pytest.raises(UnknownNameError, match="call_apx"):
            board().session(presets={"call_apx": {}})


class Handwritten:
    name = "tool1"
    description = "By hand"

    def __init__(self) -> None:
        self.parameters = {
            "type": "object",
            "properties": {"query": {"type": "string"}, "apiKey": {"type": "string"}, "region": {"type": "string"}},
            "required": ["query", "apiKey"],
        }

    def call(self, call: ToolCall) -> dict[str, Any]:
        return dict(sorted(call.arguments.items()))


class TestHandwritten:
    def test_merged(self) -> None:
        toolkit = board(Handwritten(), {"tool1": {"apiKey": "key1", "region": "us-west"}})
        assert toolkit["tool1"].parameters == {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        }
        assert toolkit.call_sync("tool1", {"query": "q"}).data == {"apiKey": "key1", "query": "q", "region": "us-west"}
        for sent in ({"query": "q", "region": "x"}, '{"query": "q", "region": "x"}'):
            overridden = toolkit.call_sync("tool1", sent)
            assert overridden.data["region"] == "x"
            assert [note.kind for note in overridden.notes] == ["overridden"]
        assert Handwritten().parameters["required"] == ["query", "apiKey"]

    @pytest.mark.parametrize("as_text", [True, False])
    @pytest.mark.parametrize("kind", [Locked, Secret])
    def test_locked(self, as_text: bool, kind: Callable[[Any], Any]) -> None:
        toolkit = board(Handwritten(), {"apiKey": kind("key1")})
        sent: Any = {"query": "q", "apiKey": "forged"}
        for _ in range(2):
            result = toolkit.call_sync("tool1", json.dumps(sent) if as_text else sent)
            assert result.data == {"apiKey": "key1", "query": "q"}
            assert [note.kind for note in result.notes] == ["dropped"]

    def test_unknown(self) -> None:
        with pytest.raises(RegistrationError, match=r"no parameter 'api'.*'apiKey'"):
            board(Handwritten(), {"tool1": {"api": 1}})

    def test_external(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(Tool.external("tool2", "Elsewhere", Handwritten().parameters), presets={"apiKey": "k"})
        assert list(toolkit["tool2"].parameters["properties"]) == ["query", "region"]
        assert toolkit.call_sync("tool2", {"query": "q"}).status == "suspended"


def leaky(api_key: str, how: str = "", call: ToolCall | None = None) -> Any:
    """Raise something that quotes the key."""
    assert call is not None
    call.log(f"using {api_key}")
    match how:
        case "error":
            raise ValueError(f"key {api_key} refused")
        case "tool":
            raise ToolError(f"key {api_key} refused")
        case "repr":
            raise KeyError(api_key)
        case "cause":
            try:
                raise OSError(api_key)
            except OSError as error:
                raise ValueError("no") from error
        case "group":
            raise ExceptionGroup(f"all {api_key}", [ValueError(api_key), OSError(api_key)])
        case "suspend":
            raise Suspend(f"ask {api_key}", key=api_key)
        case "value":
            return ValueError(api_key)
        case "convert":
            return Unconvertible(api_key)
    return "fine"


class Unconvertible:
    def __init__(self, key: str) -> None:
        self.key = key

    def __str__(self) -> str:
        raise ValueError(self.key)

    __repr__ = __str__


HOWS = ["error", "tool", "repr", "cause", "group", "suspend", "value", "convert", "fine"]


class TestSecrets:
    @pytest.mark.parametrize("how", HOWS)
    @pytest.mark.parametrize("preset", [Secret(TOKEN), Secret(Computed(lambda call: TOKEN)), Locked(Secret(TOKEN))])
    @pytest.mark.parametrize("expose", ["message", "traceback"])
    def test_never_shown(self, how: str, preset: Any, expose: Any, caplog: pytest.LogCaptureFixture) -> None:
        toolkit = board(leaky, {"api_key": preset}, expose_errors=expose)
        with caplog.at_level(logging.DEBUG, "pegboard"):
            result = toolkit.call_sync("leaky", {"how": how})
            prepared = toolkit.prepare("leaky", {"how": how})
            prepared.execute_sync()
        spellings = (TOKEN, repr(TOKEN)[1:-1], json.dumps(TOKEN)[1:-1])
        for text in (
            repr(result),
            str(result.to_dict()),
            result.text,
            repr(result.error),
            str(result.notes),
            str(result.logs),
            repr(prepared),
            repr(toolkit.session()),
            repr(toolkit["leaky"].params),
            str(toolkit.schemas()),
            repr(pickle.loads(pickle.dumps(result)).to_dict()),
            caplog.text,
        ):
            assert not [spelling for spelling in spellings if spelling in text], text
        assert result.logs == ("using ***",)
        assert how == "fine" or result.status in ("error", "suspended")

    def test_markers_and_presets_show_nothing(self) -> None:
        toolkit = board(presets={"api_key": Secret(TOKEN), "user_id": "u"})
        session = toolkit.session()
        texts = [
            repr(Secret(TOKEN)),
            str(Secret(TOKEN)),
            repr(Locked(Secret(TOKEN))),
            repr(session.presets_of("call_api")),
        ]
        assert not [text for text in texts if "7f" in text]
        assert repr(session.presets_of("call_api")) == "{'api_key': <secret preset>, 'user_id': <plain preset>}"

    def test_inside_records_and_containers(self) -> None:
        pytest.importorskip("pegboard_dataclasses")

        @dataclass
        class Login:
            user: str
            password: str

        def f(login: Login, keys: dict[str, list[str]], raw: bytes, home: Path, pin: int, on: bool) -> None:
            raise ValueError(f"{login.password} {keys['a']} {raw.decode()} {home} {pin} {on}")

        toolkit = Toolkit()
        given = {
            "login": Secret(Login("ann", "pass-1")),
            "keys": Secret({"a": ["key-2"]}),
            "raw": Secret(b"raw-3"),
            "home": Secret("/mail/4"),
            "pin": Secret(50005),
            "on": Secret(True),
        }
        toolkit.register(f, presets={"f": given})
        assert toolkit.call_sync("f").text == "Error: *** ['***'] *** *** *** True"

    def test_also_when_retried_streamed_or_async(self) -> None:
        async def later(api_key: str) -> str:
            await asyncio.sleep(0)
            raise ValueError(f"key {api_key}")

        toolkit = board(later, {"api_key": Secret(TOKEN)})
        policy = ExecutionPolicy(max_attempts=2, initial_backoff=0.001)
        assert asyncio.run(toolkit.call("later", policy=policy)).text == "Error: key ***"
        (result,) = toolkit.call_many_sync([("later", {})])
        assert result.text == "Error: key ***"

    def test_an_empty_secret_masks_nothing(self) -> None:
        def f(api_key: str) -> None:
            raise ValueError("plain")

        assert board(f, {"api_key": Secret("")}).call_sync("f").text == "Error: plain"

    def test_the_exception_itself_is_for_the_program(self) -> None:
        result = board(leaky, {"api_key": Secret(TOKEN)}).call_sync("leaky", {"how": "error"})
        assert result.error is not None
        assert isinstance(result.error.exception, ValueError)


class TestManyAtOnce:
    @pytest.fixture
    def _switching(self) -> Iterator[None]:
        """Threads take turns as often as they can."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        yield
        sys.setswitchinterval(before)

    @pytest.mark.usefixtures("_switching")
    @pytest.mark.parametrize("in_session", first(1, [False, True]))
    def test_update_presets_loses_nothing_under_threads(self, in_session: bool) -> None:
        names = [f"p{number}" for number in range(8)]
        ready = threading.Barrier(len(names))

        parameters = ", ".join(f"{name}: int = 0" for name in names)
        space: dict[str, Any] = {}
        exec(f"def takes({parameters}) -> int:\n    return sum([{', '.join(names)}])", space)
        for _ in range(50):
            toolkit = Toolkit(plugins=())
            toolkit.register(space["takes"])
            board = toolkit.session() if in_session else toolkit

            def update(name: str, board: Any = board) -> None:
                ready.wait(PATIENCE)
                board.update_presets("takes", {name: 1})

            with ThreadPoolExecutor(len(names)) as pool:
                list(pool.map(update, names))
            assert board.call_sync("takes").value == len(names)

    def test_registering_with_presets_is_linear(self) -> None:
        def register(count: int) -> float:
            def work() -> None:
                toolkit = Toolkit(plugins=())
                for number in range(count):
                    toolkit.register(_pair, name=f"t{number}", presets={"b": 1})

            return seconds(work, time.thread_time)

        # Eight times as many took forty times as long.
        assert least(lambda: register(3_200) / register(400), enough=18.0, tries=3) < 18.0


def _pair(a: int, b: int) -> int:
    """Take two."""
    return a
