"""What the last change of the tools cost a provider's cache, as the page reads it: real HTTP on the loopback."""

import json
from collections.abc import Iterable
from math import ceil
from typing import Any

import pytest

from pegboard import Dialect, Tool, Toolkit, hookimpl
from tests.plugins.inspector.served import Client, served
from tests.support.board_tools import named
from tests.support.thinning import first

pytest.importorskip("pegboard_dialects")

PROVIDERS = ("anthropic", "dashscope", "gemini", "mcp", "openai", "openai-responses")


def program() -> Toolkit:
    toolkit = Toolkit(plugins=["dialects"])
    toolkit.create_group("archive", "Old letters", active=False)
    toolkit.register(named("first"))
    toolkit.register(named("find"), named("file"), group="archive")
    toolkit.register(named("last"))
    return toolkit


def opened(client: Client) -> Client:
    """As the page opens: from then on changes are compared."""
    client.enter()
    client.get("board")
    return client


def changes(cost: Any) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["tool"], each["reason"]) for each in cost["changes"]]


class TestCosts:
    @pytest.mark.parametrize("dialect", first(2, PROVIDERS))
    def test_nothing_where_nothing_has_changed(self, dialect: str) -> None:
        with program() as toolkit, served(toolkit) as client:
            toolkit.register(named("before_the_page"))
            opened(client)
            toolkit.set_permission("first", "prompt")  # a change of the board, and none of the tools
            assert client.get(f"costs/{dialect}") is None

    @pytest.mark.parametrize("dialect", first(2, PROVIDERS))
    def test_what_comes_later_costs_nothing(self, dialect: str) -> None:
        with program() as toolkit, served(toolkit) as client:
            opened(client).post("groups", name="archive", active=True)
            cost = client.get(f"costs/{dialect}")
        reason = "group 'archive' is active"
        assert changes(cost) == [("added", "find", reason), ("added", "file", reason)]
        assert cost["definitions"] == [2, 2]
        assert cost["bytes"][0] == cost["bytes"][1] > 100
        assert cost["tokens"][0] == cost["tokens"][1] > 20

    @pytest.mark.parametrize(
        ("dialect", "kept", "whole"),
        [("openai", 4, 4), ("openai-responses", 3, 3), ("gemini", 4, 4), ("anthropic", 2, 4), ("dashscope", 2, 4)],
    )  # in Responses a group is one definition
    def test_what_goes_costs_what_stands_behind_it(self, dialect: str, kept: int, whole: int) -> None:
        with program() as toolkit, served(toolkit) as client:
            opened(client).post("groups", name="archive", active=True)
            client.get("board")
            client.post("groups", name="archive", active=False)
            cost = client.get(f"costs/{dialect}")
        reason = "group 'archive' is not active"
        assert changes(cost) == [("removed", "find", reason), ("removed", "file", reason)]
        assert cost["definitions"] == [kept, whole]

    def test_bytes_and_tokens_are_those_of_the_definitions(self) -> None:
        with program() as toolkit, served(toolkit) as client:
            toolkit.register(named("cafe"), description="é" * 99)
            definitions = toolkit.session().dialect("anthropic").request(cache=False)["tools"]
            opened(client)
            toolkit.set_presets("last", {"note": "x"})
            cost = client.get("costs/anthropic")
            toolkit.set_presets("cafe", {"note": "x"})
            later = client.get("costs/anthropic")
        assert changes(cost) == [("redefined", "last", "presets of note")]
        texts = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in definitions]
        assert cost["definitions"] == [1, 3]
        assert cost["bytes"] == [len(texts[0]), len("".join(texts).encode())]
        assert cost["tokens"] == [ceil(len(texts[0]) / 4), sum(ceil(len(each) / 4) for each in texts)]
        assert later["definitions"] == [2, 3]

    def test_the_last_change_alone_and_for_as_long_as_it_is_the_last(self) -> None:
        with program() as toolkit, served(toolkit) as client:
            opened(client)
            toolkit.register(named("one"))
            client.get("board")
            toolkit.unregister("first")
            for dialect, kept in (("openai", 0), ("anthropic", 0)):
                cost = client.get(f"costs/{dialect}")
                assert changes(cost) == [("removed", "first", "no longer registered by the program")]
                assert cost["definitions"] == [kept, 3]
            toolkit.set_permission("last", "prompt")
            assert changes(client.get("costs/openai")) == [("removed", "first", "no longer registered by the program")]

    def test_a_tool_that_only_kept_its_definition(self) -> None:
        with program() as toolkit, served(toolkit) as client:
            opened(client).post("groups", name="archive", active=True)
            client.get("board")
            toolkit.register(named("one"))
            client.get("board")
            client.post("groups", name="archive", active=False)
            client.get("board")
            toolkit.unregister("find")
            cost = client.get("costs/openai")
        assert changes(cost) == [("removed", "find", "no longer registered by the program")]
        assert cost["definitions"] == [2, 5]

    def test_a_tool_that_lists_the_groups_is_redefined(self) -> None:
        with program() as toolkit, served(toolkit) as client:
            toolkit.register_meta_tool()
            opened(client)
            toolkit.create_group("letters", "New letters")
            cost = client.get("costs/openai")
        assert changes(cost) == [("redefined", "reset_equipped_tools", "the groups changed")]
        assert cost["definitions"] == [2, 3]

    def test_a_reload_of_the_packs_begins_anew(self) -> None:
        with served(program) as client:
            opened(client).post("groups", name="archive", active=True)
            assert client.get("costs/openai") is not None
            client.post("reload")
            assert client.get("costs/openai") is None

    def test_an_unknown_dialect(self) -> None:
        with program() as toolkit, served(toolkit) as client:
            assert opened(client).send("GET", "/api/costs/nobody").status == 404


class Others:
    """A dialect that has no whole requests, and one whose requests name their tools otherwise."""

    @hookimpl
    def provide_dialects(self) -> list[Dialect]:
        def lines(tools: Iterable[Tool]) -> list[str]:
            return [tool.name for tool in tools]

        def request(tools: Iterable[Tool]) -> dict[str, Any]:
            return {"functions": lines(tools)}

        return [Dialect("lines", lines), Dialect("functions", lines, request=request)]


@pytest.mark.parametrize("dialect", ["lines", "functions"])
def test_a_dialect_of_another_pack(dialect: str) -> None:
    toolkit = Toolkit(plugins=[Others()])
    toolkit.register(named("one"), named("two"), named("three"))
    with toolkit, served(toolkit) as client:
        opened(client)
        toolkit.unregister("two")
        cost = client.get(f"costs/{dialect}")
    assert cost["definitions"] == [1, 3]
    assert cost["bytes"] == [len('"one"'), len('"one""two""three"')]
