"""What the page is told and may do: real HTTP on the loopback interface."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from types import ModuleType
from typing import Annotated, Any, ClassVar

import pytest

from pegboard import Param, PegboardError, Tool, Toolkit, hookimpl, tool
from pegboard_inspector._secrecy import Secrecy, unmasked, withheld, without
from tests.plugins.inspector.program import board
from tests.plugins.inspector.served import Client, served
from tests.support.waiting import PATIENCE


def names(found: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in found]


class Server:
    """A source whose tools change, as an MCP server's do."""

    name = "server"
    problems = ()

    def __init__(self) -> None:
        self.names = ["first"]
        self.changed: Callable[[], None] = lambda: None

    def tools(self) -> list[Tool]:
        return [Tool.external(name) for name in self.names]

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        self.changed = changed
        return lambda: None


class TestBoard:
    def test_lists_every_tool_offered_or_not(self, client: Client) -> None:
        found = client.get("board")
        tools = {each["name"]: each for each in found["tools"]}
        assert list(tools) == sorted(tools)
        assert tools["forecast"]["summary"] == "Forecast the weather of a city."
        assert (tools["forecast"]["offered"], tools["find_letter"]["offered"]) == (True, False)
        assert tools["delete_file"]["permission"] == "prompt"
        assert found["groups"] == [
            {"name": "archive", "description": "Letters of the last century", "managed_by": "model", "active": False}
        ]
        assert found["target"] == "program:board"
        states = {each["name"]: each["state"] for each in found["packs"]}
        assert states.get("dialects", "active") == "active"

    def test_tells_everything_of_a_tool(self, client: Client) -> None:
        found = client.get("tools/book")
        assert list(found["parameters"]["properties"]) == ["room"]
        assert found["hidden"] == [
            {"name": "store", "source": "context", "secret": False},
            {"name": "key", "source": "preset", "secret": True},
        ]
        pytest.importorskip("pegboard_dialects")
        texts = {each["dialect"]: each for each in found["model"]}
        assert json.loads(texts["openai"]["text"])["function"]["name"] == "book"
        assert texts["openai"]["tokens"] > 10

    def test_no_secret_is_told(self, client: Client) -> None:
        call = client.ended(client.call("book", room=2))
        assert call["result"]["text"] == "room 2 of 3, with ***"
        told = client.send("GET", "/api/tools/book").body + client.send("GET", f"/api/calls/{call['id']}").body
        assert b"s3cret" not in told

    def test_an_unknown_tool_is_said_with_the_nearest_names(self, client: Client) -> None:
        answer = client.send("GET", "/api/tools/forcast")
        assert answer.status == 404
        assert "forecast" in answer.data["error"]

    def test_tells_the_whole_list_in_a_dialect(self, client: Client) -> None:
        pytest.importorskip("pegboard_dialects")
        found = client.get("dialects/anthropic")
        assert found["tokens"] == sum(each["tokens"] for each in found["tools"])
        assert json.loads(found["tools"][0]["text"])["name"] == "forecast"
        assert client.send("GET", "/api/dialects/nobody").status == 404

    def test_a_group_is_switched_for_the_page_alone(self) -> None:
        with board() as toolkit, served(toolkit) as client:
            client.enter()
            news = client.news()
            before = next(news)["board"]
            assert client.post("groups", name="archive", active=True).status == 200
            assert next(news)["board"] > before
            tools = {each["name"]: each for each in client.get("board")["tools"]}
            assert tools["find_letter"]["offered"]
            assert toolkit.active_groups == ()

    def test_what_happens_to_the_board_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_inspector._desk.LOOK", 0.05)
        with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
            client.enter()
            news = client.news()
            before = next(news)["board"]
            toolkit.register(lambda: 1, name="later")
            assert next(news)["board"] > before
            assert names(client.get("board")["tools"]) == ["later"]

    def test_so_is_what_a_source_changes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_inspector._desk.LOOK", 0.05)
        source = Server()
        with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
            client.enter()
            toolkit.register(source)
            news = client.news()
            before = next(news)["board"]
            source.names.append("second")
            source.changed()
            assert next(news)["board"] > before
            assert names(client.get("board")["tools"]) == ["first", "second"]
            assert client.get("board")["sources"] == [{"name": "server", "tools": 2, "problems": [], "features": []}]


class TestCalls:
    def test_ends_in_a_result(self, client: Client) -> None:
        call = client.ended(client.call("forecast", city="Oslo", days=1))
        assert (call["status"], len(call["result"]["data"])) == ("success", 1)
        assert call["copies"] == {
            "python": 'await toolkit.call("forecast", {"city": "Oslo", "days": 1})',
            "command": """pegboard --toolkit program:board call forecast '{"city":"Oslo","days":1}'""",
        }

    def test_tells_how_far_it_is(self, client: Client) -> None:
        news = client.news()
        next(news)
        call_id = client.call("copy_files", count=3, pause=0.1)
        chunks: dict[int, str] = {}
        progress = []
        for each in news:
            for call in each["calls"]:
                if call["id"] == call_id:
                    chunks |= {chunk["number"]: chunk["text"] for chunk in call["chunks"]}
                    progress.append(call["progress"])
            if any(call["id"] == call_id and call["done"] for call in each["calls"]):
                break
        assert list(chunks.values()) == [f"copying file {number}" for number in (1, 2, 3)]
        assert progress[-1] == [2, 3, "file 3"]

    def test_wrong_arguments_are_said_by_path(self, client: Client) -> None:
        pytest.importorskip("pegboard_dataclasses")
        call = client.ended(client.call("plan_trip", stops=[{"place": {"city": 1}, "nights": 0, "tags": []}]))
        assert call["status"] == "invalid"
        problems = call["result"]["error"]["details"]["problems"]
        assert {each.partition(": ")[0] for each in problems} >= {"stops[0].nights", "start"}

    @pytest.mark.parametrize(
        "sent", ["", "{", "[1]", "null", '{"city": NaN}', '{"city":' + "[" * 900 + "]" * 900 + "}"]
    )
    def test_whatever_is_sent_is_a_call(self, client: Client, sent: str) -> None:
        answer = client.post("calls", name="forecast", arguments=sent)
        assert client.ended(answer.data["id"])["status"] == "invalid"

    def test_a_tool_that_is_not_there_is_a_call_too(self, client: Client) -> None:
        assert client.ended(client.call("nobody"))["status"] == "not_found"

    def test_a_call_is_cancelled(self, client: Client) -> None:
        call_id = client.call("wait_for_ever")
        assert client.post("cancel", call=call_id).status == 200
        assert client.ended(call_id)["status"] == "cancelled"

    def test_one_that_is_forgotten_is_said(self, client: Client) -> None:
        for path in ("cancel", "again", "resume"):
            assert client.post(path, call="nobody").status == 404

    def test_a_suspended_call_gets_its_answer(self, client: Client) -> None:
        call_id = client.call("ask_desk", question="why")
        assert client.ended(call_id)["status"] == "suspended"
        assert client.post("resume", call=call_id, value={"because": 1}).status == 200
        assert client.get(f"calls/{call_id}")["result"]["data"] == {"because": 1}
        assert client.post("resume", call=call_id, value=2).status == 400

    def test_whatever_a_program_says_of_a_result_is_json(self) -> None:
        from pegboard_inspector._json import dumps

        circle: list[object] = []
        circle.append(circle)
        said = {"a": float("nan"), "b": [float("-inf"), 2**70], ("c",): object(), "d": circle}
        found = json.loads(dumps(said), parse_constant=pytest.fail)
        assert (found["a"], found["b"], found["('c',)"]) == ("nan", ["-inf", 2**70], "<object>")


class TestApprovals:
    def asked(self, client: Client, call_id: str) -> dict[str, Any]:
        for news in client.news():
            for each in news["approvals"]:
                if each["call"] == call_id:
                    found: dict[str, Any] = each
                    return found
        raise AssertionError("there was no question")

    @pytest.mark.parametrize(
        ("answer", "status", "text"),
        [
            ({"approve": True}, "success", "deleted a"),
            ({"approve": True, "arguments": '{"path": "b"}'}, "success", "deleted b"),
            ({"approve": False}, "denied", "the user said no"),
            ({"approve": False, "reason": "not today"}, "denied", "not today"),
            ({"approve": "true"}, "denied", "the user said no"),
        ],
    )
    def test_are_answered_in_the_page(self, client: Client, answer: dict[str, Any], status: str, text: str) -> None:
        call_id = client.call("delete_file", path="a")
        asked = self.asked(client, call_id)
        assert (asked["tool"], asked["arguments"]) == ("delete_file", {"path": "a"})
        assert client.get(f"calls/{call_id}")["status"] == "awaiting_approval"
        assert client.post("approvals", approval=asked["id"], **answer).status == 200
        call = client.ended(call_id)
        assert call["status"] == status
        assert text in call["result"]["text"]
        assert client.post("approvals", approval=asked["id"], approve=True).status == 404

    @pytest.mark.parametrize("arguments", ["{", "[]", "1", "[" * 100_000])
    def test_an_edit_that_is_no_object_decides_nothing(self, client: Client, arguments: str) -> None:
        call_id = client.call("delete_file", path="a")
        asked = self.asked(client, call_id)
        assert client.post("approvals", approval=asked["id"], approve=True, arguments=arguments).status == 400
        assert client.post("cancel", call=call_id).status == 200
        assert client.ended(call_id)["status"] in ("denied", "cancelled")


class TestSecretArguments:
    def test_are_not_shown_and_yet_sent_again(self, client: Client) -> None:
        call_id = client.call("sign_in", user="ada", password="hunter2!")
        call = client.ended(call_id)
        assert call["result"]["text"] == "ada signed in with ***"
        assert json.loads(call["arguments"]) == {"user": "ada", "password": "***"}
        again = client.ended(client.post("again", call=call_id).data["id"])
        assert again["result"]["text"] == "ada signed in with ***"
        assert b"hunter2" not in client.send("GET", f"/api/calls/{again['id']}").body

    def test_are_no_part_of_what_goes_back_into_the_form(self, client: Client) -> None:
        edit = client.ended(client.call("sign_in", user="ada", password="hunter2!"))["edit"]
        assert (json.loads(edit["arguments"]), edit["withheld"]) == ({"user": "ada"}, [["password"]])
        plain = client.ended(client.call("forecast", city="***"))["edit"]
        assert plain == {"arguments": '{"city": "***"}', "withheld": []}

    def test_are_left_out_wherever_they_stand(self) -> None:
        value = {"one": {"a": "x", "b": 1}, "many": ["x", {"a": "x"}, "y"], "c": "y"}
        shown = {"one": {"a": "***", "b": 1}, "many": ["***", {"a": "***"}, "y"], "c": "y"}
        paths = list(withheld(value, shown))
        assert paths == [("one", "a"), ("many", 0), ("many", 1, "a")]
        assert without(value, paths) == {"one": {"b": 1}, "many": ["", {}, "y"], "c": "y"}
        assert list(withheld({"x": 1}, {"***": 1})) == list(withheld("x", "***")) == [()]

    def test_come_back_behind_their_mask_and_no_mask_is_ever_a_value(self) -> None:
        value = {"login": {"user": "ada", "password": "x"}, "many": ["x", "y"]}
        shown = {"login": {"user": "ada", "password": "***"}, "many": ["***", "y"]}
        sent = {"login": {"user": "bob", "password": "***"}, "many": ["***", "z"]}
        assert unmasked(sent, shown, value) == {"login": {"user": "bob", "password": "x"}, "many": ["x", "z"]}
        assert unmasked({"login": {"password": "new"}}, shown, value) == {"login": {"password": "new"}}
        assert unmasked({"said": "***"}, {"said": "***"}, {"said": "***"}) == {"said": "***"}
        for lost in ({"many": ["y", "***"]}, {"many": ["***"]}, {"other": "***"}, {"login": "***"}):
            with pytest.raises(PegboardError, match="it is not known here for which"):
                unmasked(lost, shown, value)

    def test_stay_what_they_are_where_an_approval_changes_others(self) -> None:
        @tool(requires_approval=True)
        def enter(user: str, password: Annotated[str, Param(schema_extra={"writeOnly": True})]) -> bool:
            return (user, password) == ("bob", "hunter2!")

        with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
            client.enter()
            toolkit.register(enter)
            call_id = client.call("enter", user="ada", password="hunter2!")
            (asked,) = next(each["approvals"] for each in client.news() if each["approvals"])
            assert asked["arguments"] == {"user": "ada", "password": "***"}
            edited = json.dumps({**asked["arguments"], "user": "bob"})
            assert client.post("approvals", approval=asked["id"], approve=True, arguments=edited).status == 200
            assert client.ended(call_id)["result"]["data"] is True

    def test_are_found_wherever_they_stand(self) -> None:
        secret = {"type": "string", "writeOnly": True}
        schema = {
            "$defs": {"Login": {"properties": {"password": secret, "user": {"type": "string"}}}},
            "properties": {
                "one": {"$ref": "#/$defs/Login"},
                "many": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Login"}, {"type": "null"}]}},
                "pair": {"prefixItems": [True, secret], "items": False},
                "named": {"additionalProperties": {"allOf": [secret]}},
            },
        }
        value = {
            "one": {"password": "a", "user": "x"},
            "many": [None, {"password": "b"}],
            "pair": ["x", "c"],
            "named": {"k": "d"},
            "unknown": "x",
        }
        assert Secrecy(schema).values(value) == ["a", "b", "c", "d"]

    SECRET: ClassVar = {"type": "string", "format": "password"}

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"properties": {"a": SECRET, "b": {"$ref": "#/properties/a"}}}, {"b": "x"}),
            ({"$defs": {"S": {**SECRET, "$anchor": "it"}}, "properties": {"b": {"$ref": "#it"}}}, {"b": "x"}),
            ({"$defs": {"a/b~c": SECRET}, "properties": {"b": {"$ref": "#/$defs/a~1b~0c"}}}, {"b": "x"}),
            ({"$defs": {"a b": SECRET}, "properties": {"b": {"$ref": "#/$defs/a%20b"}}}, {"b": "x"}),
            ({"examples": [{}, SECRET], "properties": {"b": {"$ref": "#/examples/1"}}}, {"b": "x"}),
            ({"patternProperties": {"^b": SECRET}}, {"b1": "x"}),
            ({"dependentSchemas": {"a": {"properties": {"b": SECRET}}}}, {"a": "y", "b": "x"}),
            ({"if": {}, "then": {"properties": {"b": SECRET}}}, {"b": "x"}),
            ({"if": False, "else": {"properties": {"b": SECRET}}}, {"b": "x"}),
            ({"unevaluatedProperties": SECRET}, {"b": "x"}),
            ({"properties": {"b": {"contains": SECRET}}}, {"b": ["x"]}),
            ({"properties": {"b": {"items": [SECRET]}}}, {"b": ["x", "y"]}),
            ({"properties": {"b": {"properties": {"c": SECRET}}}}, {"b": "x"}),  # JSON in JSON, or what is none
            ({"properties": {"password": {"type": "string"}}}, {"password": "x"}),
            ({}, {"list": [{"API_KEY": "x", "max_tokens": "y", "compass": "y"}]}),
            ({"allOf": [{"$ref": "#"}], "properties": {"b": SECRET, "c": {"$ref": "#"}}}, {"c": {"b": "x"}}),
        ],
    )  # fmt: skip
    def test_are_found_however_the_schema_says_so(self, schema: Any, value: Any) -> None:
        assert Secrecy(schema).values(value) == ["x"]

    @pytest.mark.parametrize("name", ["password", "user_password", "passphrase", "db-credentials", "apiKey", "TOKEN"])
    def test_are_known_by_their_names(self, name: str) -> None:
        assert Secrecy({"properties": {name: {"type": "string"}}}).is_needed
        assert Secrecy({}).values({name: "x"}) == ["x"]

    @pytest.mark.parametrize("name", ["max_tokens", "compass", "key", "bypass", "secretary", "next_page_token"])
    def test_are_not_known_by_names_that_only_look_alike(self, name: str) -> None:
        assert not Secrecy({"properties": {name: {"type": "string"}}}).is_needed

    @pytest.mark.parametrize(
        "written",
        [
            '{"user": "ada", "password": "hunt\\u0065r2!"}',
            '```json\n{"user": "ada", "password": "hunter2!"}\n```',
            json.dumps('{"user": "ada", "password": "hunter2!"}'),
            '{"user": "ada", "password": "hunter2!"',
            '{"user": "ada", "password": "x", "password": "hunter2!"}',
            "hunter2!",
            '["hunter2!"]',
            '"hunter2!"',
        ],
    )
    def test_are_not_shown_however_they_are_written(self, client: Client, written: str) -> None:
        made = client.post("calls", name="sign_in", arguments=written)
        call = client.ended(made.data["id"])
        whole = json.dumps(call)
        assert "hunter2" not in whole
        assert "hunt\\\\u0065r2" not in whole
        assert "***" in call["arguments"]

    def test_of_a_tool_that_is_not_there_are_known_by_name(self, client: Client) -> None:
        call = client.ended(client.call("sign_up", password="hunter2!"))
        assert "hunter2" not in json.dumps(call)

    def test_in_pieces_are_not_shown(self) -> None:
        @tool
        async def spell(password: str, pieces: int) -> AsyncIterator[str]:
            text = f"it is {password}, as {json.dumps([password])} and no other"
            size = len(text) // pieces + 1
            for start in range(0, len(text), size):
                yield text[start : start + size]

        with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
            client.enter()
            toolkit.register(spell)
            for pieces in (1, 2, 3, 5, 8, 40):
                call = client.ended(client.call("spell", password="hunter2! x", pieces=pieces))
                text = "".join(chunk["text"] for chunk in call["chunks"])
                assert text == 'it is ***, as ["***"] and no other', pieces


class TestWhileItRuns:
    def test_a_tool_that_holds_the_loop_is_named(self) -> None:
        ready, end = threading.Event(), threading.Event()

        @tool
        async def blocks() -> str:
            ready.set()
            end.wait(PATIENCE)
            return "done"

        with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
            client.enter()
            toolkit.register(blocks)
            held = client.call("blocks")
            assert ready.wait(PATIENCE)
            other = client.call("blocks")
            # A machine that does other things too may hold the loop before the tool does.
            told = (news["held"] for news in client.news() if news["held"])
            assert next(held for held in told if held["name"] == "blocks")["where"].startswith("test_api.py, line ")
            end.set()
            assert {client.ended(each)["status"] for each in (held, other)} == {"success"}
            assert next(news for news in client.news() if not news["held"])

    def test_a_call_that_fails_has_its_traceback_without_secrets(self) -> None:
        @tool
        def sign_in(password: str) -> None:
            raise ValueError(f"wrong: {password}")

        with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
            client.enter()
            toolkit.register(sign_in)
            error = client.ended(client.call("sign_in", password="hunter2!"))["result"]["error"]
            assert "in sign_in\n" in error["traceback"]
            assert error["traceback"].endswith("ValueError: wrong: ***\n")


def test_the_oldest_calls_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard_inspector._desk.KEPT", 3)
    with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
        client.enter()
        toolkit.register(lambda: 1, name="one")
        ids = [client.call("one") for _ in range(3)]
        for call_id in ids:
            client.ended(call_id)
        client.ended(client.call("one"))
        assert client.send("GET", f"/api/calls/{ids[0]}").status == 404
        assert client.send("GET", f"/api/calls/{ids[2]}").status == 200


def test_many_calls_at_once(client: Client) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda days: client.call("forecast", city="Oslo", days=days % 14 + 1), range(60)))
    assert len(set(ids)) == 60
    lengths = [len(client.ended(call_id)["result"]["data"]) for call_id in ids[::10]]
    assert lengths == [days % 14 + 1 for days in range(0, 60, 10)]


def test_a_lazy_tool_that_is_broken_is_a_problem_and_no_more() -> None:
    pack = ModuleType("acme_lazy")
    pack.provide_tools = hookimpl(lambda settings: ["acme_nowhere:tool"], specname="provide_tools")  # type: ignore[attr-defined]
    with Toolkit(plugins=[pack]) as toolkit, served(toolkit) as client:
        client.enter()
        (problem,) = client.get("board")["problems"]
        assert "acme_nowhere" in problem


def test_who_comes_back_is_told_what_is_new(client: Client) -> None:
    client.ended(client.call("forecast", city="Rome"))
    everything = next(client.news())
    assert len(everything["calls"]) >= 1
    later = client.news(since=10**9)
    assert names(next(later)["calls"]) == names(everything["calls"]), "of an inspector that ran here before"


@pytest.mark.parametrize("last", ["\xb2", "-1", "9" * 5000])
def test_an_unknown_event_number_gets_everything(client: Client, last: str) -> None:
    client.ended(client.call("forecast", city="Rome"))
    assert len(next(client.news(since=last))["calls"]) >= 1


def test_a_tool_that_blocks_its_loop_does_not_block_the_page() -> None:
    import threading

    go = threading.Event()

    async def stuck() -> str:
        assert go.wait(PATIENCE)
        return "free"

    with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
        client.enter()
        toolkit.register(tool(stuck))
        call_id = client.call("stuck")
        assert names(client.get("board")["tools"]) == ["stuck"]
        go.set()
        assert client.ended(call_id)["result"]["text"] == "free"


def test_ends_while_calls_run_and_a_page_listens() -> None:
    with board() as toolkit:
        with served(toolkit) as client:
            client.enter()
            client.call("wait_for_ever")
            client.call("delete_file", path="a")
            news: Iterator[dict[str, Any]] = client.news()
            next(news)
        assert list(islice(news, 1000)) is not None


class TestReloading:
    """Packs are reloaded by making a new toolkit, which only what makes one can."""

    def test_takes_a_new_toolkit_and_closes_the_one_before(self) -> None:
        made: list[Toolkit] = []

        def make() -> Toolkit:
            toolkit = Toolkit(plugins=())
            toolkit.register(Server(), prefix=f"of_{len(made)}_")  # which is followed until the toolkit is closed
            made.append(toolkit)
            return toolkit

        with served(make) as client:
            client.enter()
            assert client.post("reload").data == {"added": ["of_1_first"], "removed": ["of_0_first"]}
            assert names(client.get("board")["tools"]) == ["of_1_first"]
            assert [len(toolkit.sources) for toolkit in made] == [0, 1]
        assert made[1].sources == []

    def test_of_a_toolkit_that_a_program_made_says_what_to_do(self) -> None:
        with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
            client.enter()
            answer = client.post("reload")
            assert (answer.status, "give inspect() the function that makes it" in answer.data["error"]) == (400, True)
