"""Questions with forms: the approver sees the schema, and what is sent to the server fits it."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.shared.exceptions import MCPError

from pegboard import Approval, ApprovalRequest, Permission, Status, Suspend, Toolkit, ToolResult
from pegboard_mcp import McpServer, mcp_server
from tests.plugins.mcp.form_server import server as form_server
from tests.plugins.mcp.over_http import started
from tests.support.warm import warm_python

pytestmark = pytest.mark.usefixtures("nothing_left")
SCRIPT = str(Path(__file__).with_name("form_server.py"))
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OPTIONAL = {
    "type": "object",
    "properties": {"name": {"type": "string", "default": "nobody"}, "age": {"type": "integer"}},
}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
FULL = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}, "maxItems": 1},
        "since": {"type": "string", "format": "date", "default": "2024-05-06"},
        "code": {"type": "string", "format": "password", "maxLength": 4},
    },
    "required": ["name", "since"],
}
FITS = {"name": "Ada"}
both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])
in_process: Callable[[str], McpServer] = lambda mode: McpServer.in_process(form_server(), mode=mode)  # noqa: E731


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with started([warm_python(), SCRIPT, "http"]) as (_, url):
        yield url


def ask(source: McpServer, approver: Any, form: Any = NAME, **arguments: Any) -> ToolResult:
    with Toolkit(plugins=(), approver=approver) as toolkit:
        toolkit.register(source)
        return toolkit.call_sync("ask", {"form": form, **arguments})


def told(result: ToolResult) -> Any:
    """What the server says that it was answered."""
    return json.loads(result.content[-1].text)


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


DECLINED = {"action": "decline", "content": None}


class TestOverRealTransports:
    @both_eras
    @pytest.mark.parametrize("over", ["stdio", "http"])
    def test_the_approver_fills_in_the_form(self, over: str, mode: str, url: str) -> None:
        asked: list[ApprovalRequest] = []

        def approver(request: ApprovalRequest) -> Mapping[str, Any]:
            asked.append(request)
            return {"name": "Ada", "days": ["mon"]}

        source = (
            McpServer.http(url, mode=mode) if over == "http" else McpServer.stdio(warm_python(), [SCRIPT], mode=mode)
        )
        result = ask(source, approver, FULL)
        assert [(request.form, request.reason, request.tool.name) for request in asked] == [
            (FULL, "Who are you?", "ask")
        ]
        assert told(result) == accepted(since="2024-05-06", name="Ada", days=["mon"])
        assert (result.status, result.notes) == (Status.SUCCESS, ())


@both_eras
class TestAnswers:
    def test_an_async_approver(self, mode: str) -> None:
        async def approver(request: ApprovalRequest) -> Mapping[str, Any]:
            await asyncio.sleep(0)
            return {"name": "Ada"}

        async def main() -> ToolResult:
            with Toolkit(plugins=(), approver=approver) as toolkit:
                toolkit.register(in_process(mode))
                return await toolkit.call("ask", {"form": NAME})

        assert told(asyncio.run(main())) == accepted(name="Ada")

    @pytest.mark.parametrize(
        ("answer", "form", "content"),
        [
            ({"name": "Ada"}, NAME, {"name": "Ada"}),
            (Approval.edit({"name": "Ada"}), NAME, {"name": "Ada"}),
            ({}, OPTIONAL, {"name": "nobody"}),
            ({"age": 3}, OPTIONAL, {"name": "nobody", "age": 3}),
            (True, OPTIONAL, {"name": "nobody"}),
            (Approval.approve(), OPTIONAL, {"name": "nobody"}),
            (True, EMPTY, {}),
            (True, {**OPTIONAL, "required": ["name"]}, {"name": "nobody"}),
        ],
    )
    def test_what_fits_is_sent(self, mode: str, answer: Any, form: Any, content: Any) -> None:
        result = ask(in_process(mode), lambda request: answer, form)
        assert told(result) == accepted(**content)
        assert result.notes == ()

    @pytest.mark.parametrize(
        ("answer", "form", "reason"),
        [
            (True, NAME, "an approval alone is no answer to the form: name: missing (required string)"),
            ({}, NAME, "the answer does not fit the form: name: missing (required string)"),
            ({"name": 7}, NAME, "the answer does not fit the form: name: expected string"),
            ({"name": "Ada", "nom": "Ada"}, NAME, "the answer does not fit the form: nom: the form has no such member"),
            (
                {"name": "A", "age": "4"},
                FULL,
                "the answer does not fit the form: name: expected string of at least 2 characters; age: expected",
            ),
            ({**FITS, "age": -1}, FULL, "the answer does not fit the form: age: expected integer >= 0"),
            ({**FITS, "color": "Red"}, FULL, 'the answer does not fit the form: color: expected "r" or "b"'),
            (
                {**FITS, "days": ["mon", "mon"]},
                FULL,
                "the answer does not fit the form: days: expected array of at most 1",
            ),
            ({**FITS, "since": "6 May"}, FULL, "the answer does not fit the form: since: expected date string"),
            (
                {**FITS, "code": "s3cret"},
                FULL,
                "the answer does not fit the form: code: expected string of at most 4",
            ),
            (Approval.edit({"name": None}), NAME, "the answer does not fit the form: name: expected string"),
            (Approval.deny("I do not know."), NAME, "I do not know."),
            ("Ada", NAME, "the approver gave neither a verdict nor the members of the form"),
            (True, {"type": "object", "properties": {"name": {"type": "nonsense"}}}, "the form cannot be used: "),
        ],
    )
    def test_what_does_not_fit_is_declined_and_told(self, mode: str, answer: Any, form: Any, reason: str) -> None:
        result = ask(in_process(mode), lambda request: answer, form)
        assert told(result) == DECLINED
        (note,) = result.notes
        assert note.kind == "declined"
        assert note.startswith(f'the question "Who are you?" was declined: {reason}')
        assert result.content[0].text == note

    def test_a_refusal_is_only_that(self, mode: str) -> None:
        result = ask(in_process(mode), lambda request: False)
        assert (told(result), result.notes) == (DECLINED, ())

    def test_an_approver_that_fails_declines(self, mode: str) -> None:
        def approver(request: ApprovalRequest) -> bool:
            raise RuntimeError("s3cret")

        result = ask(in_process(mode), approver)
        assert told(result) == DECLINED
        assert result.notes == (
            'the question "Who are you?" was declined: asking for an answer failed with RuntimeError',
        )

    @pytest.mark.parametrize("approver", [None, "suspends"])
    def test_without_an_answer_the_call_is_suspended(self, mode: str, approver: str | None) -> None:
        def suspends(request: ApprovalRequest) -> bool:
            raise Suspend("A person has to fill it in.")

        result = ask(in_process(mode), None if approver is None else suspends)
        assert (result.status, result.text) == (Status.SUSPENDED, "ask asks: Who are you?")

    def test_a_page_to_open_has_no_form(self, mode: str) -> None:
        asked: list[ApprovalRequest] = []

        def approver(request: ApprovalRequest) -> bool:
            asked.append(request)
            return True

        result = ask(in_process(mode), approver, url="https://example.com/pay")
        assert told(result)["action"] == "accept"
        assert [(request.form, request.reason) for request in asked] == [
            (None, "Who are you? (https://example.com/pay)")
        ]

    @pytest.mark.parametrize("value", [{"deep": {}}, [1], [["a"]], float("nan"), float("inf"), "\ud800", {1}, b"x"])
    def test_what_the_protocol_cannot_carry_is_declined(self, mode: str, value: Any) -> None:
        form = {"type": "object", "properties": {"any": {}}}
        result = ask(in_process(mode), lambda request: {"any": value}, form)
        assert told(result) == DECLINED
        assert len(result.notes) == 1


def test_no_answer_is_in_a_message_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    form = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "format": "password", "maxLength": 4},
            "pin": {"type": "integer", "writeOnly": True},
            "no": {"not": {"type": "string"}},
            "of": {"oneOf": [{"type": "string"}, {"type": "string", "minLength": 1}]},
        },
    }
    answer = {"code": "hunter2-hunter2", "pin": "hunter3-hunter3", "no": "hunter4-hunter4", "of": "hunter5-hunter5"}
    result = ask(in_process("legacy"), lambda request: answer, form)
    assert told(result) == DECLINED
    assert "code: " in result.notes[0]
    assert "hunter" not in f"{result!r} {result.to_dict()} {caplog.text}"


def test_what_was_sent_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    form = {"type": "object", "properties": {"code": {"type": "string"}}}
    for mode in ("auto", "legacy"):
        result = ask(McpServer.stdio(warm_python(), [SCRIPT], mode=mode), lambda request: {"code": "hunter2"}, form)
        assert told(result) == accepted(code="hunter2")  # which this server repeats
    assert "hunter2" not in caplog.text


def test_an_agent_tells_of_the_form() -> None:
    agents = pytest.importorskip("pegboard_agent")
    from tests.plugins.agent.desk import Scripted, calls, events_of

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(in_process("auto"))
        model = Scripted(calls(("ask", {"form": NAME})), "ok")
        happened = events_of(agents.Agent("A", model, toolkit, approver=lambda request: {"name": "Ada"}), "go")
    (needed,) = [event for event in happened if isinstance(event, agents.ApprovalNeeded)]
    assert needed.request.form == needed.to_dict()["request"]["form"] == NAME
    (ended,) = [event for event in happened if isinstance(event, agents.CallEnded)]
    assert told(ended.result) == accepted(name="Ada")


def test_the_form_shows_no_secret_of_its_server() -> None:
    key = "k3y-of-the-server"
    form = {"type": "object", "properties": {"key": {"type": "string", "title": f"Not {key}?", "default": key}}}
    asked: list[Any] = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append(request.form)
        return True

    result = ask(McpServer.stdio(warm_python(), [SCRIPT], env={"KEY": key}), approver, form)
    assert asked == [
        {"type": "object", "properties": {"key": {"type": "string", "title": "Not ***?", "default": "***"}}}
    ]
    assert told(result) == accepted(key=key)


MEMBERS = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 3), "default": st.text()}),
    st.fixed_dictionaries(
        {"type": st.just("string"), "format": st.sampled_from(["email", "uri", "date", "date-time"])}
    ),
    st.fixed_dictionaries(
        {"type": st.just("string"), "enum": st.just(["a", "b"])}, optional={"default": st.sampled_from("abc")}
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": st.integers(-3, 3), "maximum": st.integers(-3, 3), "default": st.integers(-5, 5)},
    ),
    st.fixed_dictionaries({"type": st.just("boolean")}, optional={"default": st.booleans()}),
    st.fixed_dictionaries(
        {"type": st.just("array"), "items": st.just({"type": "string", "enum": ["a", "b"]})},
        optional={"minItems": st.integers(0, 2), "default": st.lists(st.sampled_from("abc"))},
    ),
)
NAMES = st.sampled_from(["a", "b", "full name", "x.y"])
FORMS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, MEMBERS, max_size=3)},
    optional={"required": st.lists(NAMES, unique=True)},
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(["a", "b", "ann@example.com", "https://example.com", "2024-05-06", "2024-05-06T07:08:09Z"]),
    st.lists(st.sampled_from("abc"), max_size=3),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=1),
)
ANSWERS = st.one_of(st.booleans(), st.dictionaries(NAMES, VALUES, max_size=4))


@given(question=st.data())
@settings(max_examples=30)
def test_whatever_is_asked_and_answered_what_is_sent_fits(question: st.DataObject) -> None:
    with Toolkit(plugins=(), approver=lambda request: answer) as toolkit:
        toolkit.register(in_process("auto"))
        for _ in range(5):  # to connect takes longest
            form: Any = question.draw(FORMS)
            answer: Any = question.draw(ANSWERS)
            result = toolkit.call_sync("ask", {"form": form})
            sent = told(result)
            if sent["action"] == "accept":
                validator = Draft202012Validator(form, format_checker=Draft202012Validator.FORMAT_CHECKER)
                assert list(validator.iter_errors(sent["content"])) == []
                assert ({} if answer is True else answer).items() <= sent["content"].items()
                assert sent["content"].keys() <= form["properties"].keys()
            else:
                assert (sent, len(result.notes)) == (DECLINED, answer is not False)


@pytest.mark.parametrize("far", ["auto", "legacy"])
@pytest.mark.parametrize("near", ["auto", "legacy"])
class TestBehindTheBoard:
    """The board between a server that asks and a client whose user answers."""

    def ask(
        self, near: str, far: str, form: Any, human: Any, permission: Permission = Permission.ALWAYS
    ) -> tuple[Any, ...]:
        asked: list[Any] = []

        async def elicited(context: Any, parameters: Any) -> types.ElicitResult:
            asked.append((parameters.message, parameters.requested_schema))
            action, content = human(parameters)
            return types.ElicitResult(action=action, content=content)

        async def main() -> Any:
            async with Client(mcp_server(middle, all_tools=True), mode=near, **options) as client:
                try:
                    return await client.call_tool("ask", {"form": form})
                except MCPError as error:  # the newer protocol's answer to a client that lacks a capability
                    return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)

        options: Any = {} if human is None else {"elicitation_callback": elicited}
        with Toolkit(plugins=()) as middle:
            middle.register(in_process(far))
            middle.set_permission("ask", permission)
            answer = asyncio.run(main())
        return asked, [block.text for block in answer.content], answer.is_error

    def test_the_form_comes_down_and_the_answer_goes_up(self, near: str, far: str) -> None:
        asked, texts, failed = self.ask(near, far, FULL, lambda _: ("accept", {"name": "Ada", "since": "2024-05-07"}))
        assert asked == [("Who are you?", FULL)]
        assert [json.loads(text) for text in texts] == [accepted(name="Ada", since="2024-05-07")]
        assert not failed

    def test_an_answer_that_does_not_fit_goes_no_further(self, near: str, far: str) -> None:
        _, texts, _ = self.ask(near, far, FULL, lambda _: ("accept", {"nom": "Ada", "code": "hunter2"}))
        assert json.loads(texts[-1]) == DECLINED
        assert texts[0] == (
            'the question "Who are you?" was declined: the answer does not fit the form: '
            "code: expected string of at most 4 characters; "
            "name: missing (required string of at least 2 characters); nom: the form has no such member"
        )

    @pytest.mark.parametrize("action", ["decline", "cancel"])
    def test_a_refusal_goes_up_as_it_is(self, near: str, far: str, action: str) -> None:
        _, texts, _ = self.ask(near, far, NAME, lambda _: (action, None))
        assert json.loads(texts[-1]) == {"action": action, "content": None}

    def test_a_client_that_cannot_ask_gets_a_reason(self, near: str, far: str) -> None:
        _, texts, failed = self.ask(near, far, NAME, None)
        assert failed
        assert "ask asks: Who are you?" in texts[0]

    def test_who_approved_the_call_has_not_answered_its_question(self, near: str, far: str) -> None:
        def human(parameters: Any) -> tuple[str, Any]:
            return ("decline", None) if parameters.message == "Who are you?" else ("accept", {})

        asked, texts, _ = self.ask(near, far, EMPTY, human, Permission.PROMPT)
        assert [message for message, _ in asked][1:] == ["Who are you?"]
        assert json.loads(texts[-1]) == DECLINED
