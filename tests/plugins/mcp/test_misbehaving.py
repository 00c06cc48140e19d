"""Servers that misbehave: each case ends in a clear result within its timeout, and affects no other server."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer
from tests.support.measuring import seconds
from tests.support.thinning import one_in
from tests.support.waiting import PATIENCE, within

pytestmark = pytest.mark.usefixtures("nothing_left")

SCRIPT = str(Path(__file__).with_name("bad_server.py"))
CONNECT, CALL = PATIENCE, 1.5


class Case(NamedTuple):
    """What a server does, and what is to become of it: a problem at registration, or the result of a call."""

    name: str
    problem: str = ""
    status: Status = Status.SUCCESS
    text: str = "hello"
    connect: float = CONNECT
    call: float = CALL

    @property
    def call_timeout(self) -> float:
        """Short where nothing else ends the call."""
        return self.call if self.status is Status.TIMEOUT else PATIENCE


def bad(case: str, **options: Any) -> McpServer:
    options = {"connect_timeout": CONNECT, "call_timeout": CALL, **options}
    return McpServer.stdio(sys.executable, [SCRIPT, case], name=case, **options)


FAST = [
    Case("good"),
    Case("exits", "stderr ends: no configuration found"),
    Case("silent", "did not answer within 0.5 seconds", connect=0.5),
    Case("die", status=Status.ERROR, text="ended during the call; it may have run, and is not repeated"),
    Case("output-unfit", status=Status.ERROR, text="does not fit its own output schema: n: expected integer"),
]
SLOW = [
    Case("banner"),
    Case("never", status=Status.TIMEOUT, text="did not answer in time"),
    Case("schema-remote-ref", "'broken' is left out, its schema cannot be used"),
    Case("entry-no-schema", "'broken' is left out, it is no tool: inputSchema: Field required"),
    Case("stderr-flood"),
    Case("frame-without-end", "did not answer within 0.7 seconds", connect=0.7),
    Case("stubborn"),
    Case("grandchild"),
    Case("drip"),
    Case("begin-error", "not today"),
    Case("begin-malformed", "it sent something that is no MCP"),
    Case("begin-dies", "stderr ends: cannot open the database"),
    Case("old-version", "1999-01-01"),
    Case("list-error", "no list today"),
    Case("list-malformed", "it sent something that is no MCP"),
    Case("list-twice", "it lists 'echo' twice; the first one counts"),
    Case("list-endless", "its list has no end"),
    Case("schema-nonsense", "'broken' is left out"),
    Case("schema-endless-ref", "'broken' is left out"),
    Case("schema-slow-pattern"),
    Case("schema-array", "'broken' is left out, it is no tool: inputSchema.type"),
    Case("entry-no-name", "entry 1 of its list is left out, it is no tool: name: Field required"),
    Case("entry-name-number", "entry 1 of its list is left out, it is no tool: name"),
    Case("entry-schema-text", "'broken' is left out, it is no tool: inputSchema"),
    Case("entry-schema-null", "'broken' is left out, it is no tool: inputSchema"),
    Case("entry-null", "entry 1 of its list is left out, it is no tool"),
    Case("entry-text", "entry 1 of its list is left out, it is no tool"),
    Case("entry-hints", "'broken' is offered without its annotations: annotations.readOnlyHint"),
    Case("entry-output", "'broken' is offered without its outputSchema"),
    Case("entry-title", "'broken' is offered without its icons, title"),
    Case("list-empty-cursor"),
    Case("schema-huge", "'broken' is left out, its schema cannot be used"),
    Case("infinity"),
    Case("half-line", status=Status.ERROR, text="ended during the call; it may have run, and is not repeated"),
    Case("error-text", status=Status.TIMEOUT, text="did not answer in time"),
    Case("both", status=Status.ERROR, text="the disk is full"),
    Case("batch", status=Status.TIMEOUT, text="did not answer in time"),
    Case("surrogate", status=Status.TIMEOUT, text="did not answer in time"),
    Case("pings"),
    Case("late-question"),
    Case("takes-it-back", status=Status.TIMEOUT, text="did not answer in time"),
    Case("entry-properties", "'broken' is left out, it is no tool: inputSchema.properties"),
    Case("list-of-nothing", "its list has 480 problems more"),
    Case("output-missing", status=Status.ERROR, text="it has no structured content"),
    Case("output-nonsense", "offered without its output schema"),
    Case("dies-after-list", status=Status.ERROR, text="the MCP server 'dies-after-list'"),
    Case("malformed-result", status=Status.ERROR, text="it sent something that is no MCP"),
    Case("no-result", status=Status.TIMEOUT, text="did not answer in time"),
    Case("unknown-content", status=Status.ERROR, text="it sent something that is no MCP"),
    Case("empty-error", status=Status.ERROR, text="the tool failed and did not say why"),
    Case("huge", text="x" * 1000),
    Case("twice"),
    Case("wrong-id", status=Status.TIMEOUT, text="did not answer in time"),
    Case("id-as-text"),
    Case("rpc-error", status=Status.ERROR, text="the disk is full"),
    Case("stray"),
    Case("flood"),
    Case("false-progress"),
    Case("list-changes"),
    Case("unknown-notice"),
    Case("asks-model", text="refused"),
    Case("asks-nonsense", text="refused"),
    Case("asks-human", status=Status.SUSPENDED, text="Who are you?"),
    Case("closes-stdout", status=Status.ERROR, text="ended during the call"),
    Case("nan", text='{"n": null}'),
]
CASES = [pytest.param(case, id=case.name) for case in FAST]
CASES += [pytest.param(case, id=case.name, marks=pytest.mark.slow) for case in SLOW]


def test_there_are_thirty_cases_and_more() -> None:
    assert len(CASES) >= 30


@pytest.mark.parametrize("case", one_in(2, CASES))
def test_ends_in_a_clear_result(case: Case) -> None:
    good = bad("good")
    server = bad(case.name, connect_timeout=case.connect, call_timeout=case.call_timeout)
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(good, prefix="good__")
        within(lambda: toolkit.register(server))
        problems = " ".join(toolkit.problems)
        assert case.problem in problems
        assert bool(problems) == bool(case.problem)
        result = within(lambda: toolkit.call_sync("echo", {"text": "hello"}))
        if "echo" in toolkit:
            assert (result.status, case.text in result.text) == (case.status, True), result.text[:500]
        else:
            assert result.status is Status.NOT_FOUND
            assert case.problem in result.text
        assert toolkit.call_sync("good__echo", {"text": "still here"}).text == "still here"


@pytest.mark.parametrize("command", ["/no/such/command", "/"])
def test_a_command_that_cannot_run(command: str) -> None:
    server = McpServer.stdio(command, connect_timeout=CONNECT)
    with Toolkit(plugins=()) as toolkit:
        assert toolkit.register(server) == []
        assert command in " ".join(toolkit.problems)


def test_a_variable_that_is_not_set() -> None:
    server = McpServer.stdio(sys.executable, ["${PEGBOARD_NO_SUCH}"], connect_timeout=CONNECT)
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        assert "the environment variable 'PEGBOARD_NO_SUCH' is not set" in " ".join(toolkit.problems)


@pytest.mark.slow
def test_five_thousand_tools() -> None:
    with Toolkit(plugins=()) as toolkit:
        assert len(toolkit.register(bad("list-5000", connect_timeout=30.0))) == 5000
        assert toolkit.call_sync("echo4999", {"text": "far"}).text == "far"


def test_all_pages_and_any_names() -> None:
    with Toolkit(plugins=()) as toolkit:
        pages, odd = toolkit.register(bad("list-pages")), toolkit.register(bad("list-names"))
        assert [tool.name for tool in pages] == [f"echo{number}" for number in range(10)]
        assert all(toolkit.call_sync(tool.name, {"text": "x"}).text == "x" for tool in odd)


def test_reconnects_after_a_death_and_repeats_nothing() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(bad("die"))
        results = [toolkit.call_sync("echo", {"text": "x"}) for _ in range(2)]
        assert [result.error.kind for result in results if result.error] == ["connection_lost"] * 2


def test_an_unavailable_server_is_not_asked_all_the_time() -> None:
    server = bad("exits")
    with Toolkit(plugins=()) as toolkit:
        started = seconds(lambda: toolkit.register(server))
        assert min(seconds(server.tools) for _ in range(5)) < started / 5


def test_an_elicitation_is_answered_by_the_approver() -> None:
    with Toolkit(plugins=(), approver=lambda request: request.reason == "Who are you?") as toolkit:
        toolkit.register(bad("asks-human"))
        text = toolkit.call_sync("echo", {"text": "x"}).text
        assert text == '{"action": "accept", "content": {"name": "nobody"}}'


def test_a_suspended_call_is_resumed_with_its_result() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(bad("asks-human"))
        result = toolkit.call_sync("echo", {"text": "x"})
        assert toolkit.resume(result.call_id, "done by hand").text == "done by hand"
