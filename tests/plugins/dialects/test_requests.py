"""Whole requests: definitions, choice and marks, and how much of them stays a prefix when the tools change."""

import json
from collections.abc import Sequence
from statistics import median, quantiles
from typing import Any

import pytest

from pegboard import Change, PegboardError, Session, Toolkit, UnknownNameError, tool
from tests.plugins.dialects.prefix import listed_in, shares
from tests.support.board_tools import named
from tests.support.thinning import first

PROVIDERS = ("openai", "openai-responses", "anthropic", "gemini", "dashscope")
KEEPING = ("openai", "openai-responses", "gemini")


def desk(*tools: str, **groups: Sequence[str]) -> Toolkit:
    """A toolkit with dialects, with these tools, and with groups of further ones that are active."""
    toolkit = Toolkit(plugins=["dialects"])
    toolkit.register(*map(named, tools)) if tools else None
    for group, members in groups.items():
        toolkit.create_group(group)
        toolkit.register(*map(named, members), group=group)
    return toolkit


def late(*tools: str) -> list[Any]:
    return [tool(defer=True)(named(name)) for name in tools]


def definitions(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The definitions in a request of any provider, those in namespaces too."""
    inner = [each.get("tools", [each]) for each in listed_in(request)]
    return [each.get("function", each) for one in inner for each in one]


def listed(request: dict[str, Any]) -> list[str]:
    return [each.get("name", each.get("type", "")) for each in definitions(request)]


def chosen(request: dict[str, Any]) -> Any:
    """The choice in a request of any provider; None if it holds none."""
    if "config" in request:
        return request["config"].get("tool_config", {}).get("function_calling_config")
    return request.get("tool_choice")


class TestWhole:
    @pytest.mark.parametrize("name", PROVIDERS)
    def test_without_more_it_is_the_definitions(self, name: str) -> None:
        chat = desk("a", "b").dialect(name)
        request = chat.request(cache=False)
        tools = chat.tools()
        assert request == ({"config": {"tools": tools}} if name == "gemini" else {"tools": tools})

    @pytest.mark.parametrize("name", PROVIDERS)
    @pytest.mark.parametrize("choice", ["auto", "required", "none", []])
    @pytest.mark.parametrize("parallel", first(1, [None, True, False]))
    def test_without_tools_it_is_empty(self, name: str, choice: Any, parallel: bool | None) -> None:
        assert desk().dialect(name).request(choice, parallel=parallel) == {}

    @pytest.mark.parametrize("name", PROVIDERS)
    def test_is_equal_byte_for_byte(self, name: str) -> None:
        def request() -> str:
            toolkit = desk("a", g=["b", "c"])
            chat = toolkit.session().dialect(name)
            chat.request()
            toolkit.update_groups("g", False)
            return json.dumps(chat.request())

        assert request() == request()

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("openai", {"parallel_tool_calls": False}),
            ("dashscope", {"parallel_tool_calls": False}),
            ("openai-responses", {"parallel_tool_calls": False}),
            ("anthropic", {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
            ("gemini", {}),
        ],
    )
    def test_one_call_at_a_time(self, name: str, said: dict[str, Any]) -> None:
        chat = desk("a").dialect(name)
        request = chat.request(parallel=False)
        assert {key: value for key, value in request.items() if key not in ("tools", "config")} == said
        assert chat.request(parallel=True) == chat.request()

    def test_of_anthropic_says_so_beside_each_choice_but_none(self) -> None:
        chat = desk("a").dialect("anthropic")
        assert chosen(chat.request("required", parallel=False)) == {"type": "any", "disable_parallel_tool_use": True}
        one = {"type": "tool", "name": "a", "disable_parallel_tool_use": True}
        assert chosen(chat.request("a", parallel=False)) == one
        assert chosen(chat.request("none", parallel=False)) == {"type": "none"}

    def test_strict(self) -> None:
        (function,) = definitions(desk("a").dialect("openai").request(strict=True))
        assert function["strict"] is True

    def test_of_mcp_there_is_none(self) -> None:
        with pytest.raises(PegboardError, match="the dialect 'mcp' has no request"):
            desk("a").dialect("mcp").request()


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def flat(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}


class TestChoice:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            (
                "openai",
                {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [function("a"), function("c")]}},
            ),
            ("openai-responses", {"type": "allowed_tools", "mode": "auto", "tools": [flat("a"), flat("c")]}),
            (
                "gemini",
                {"function_calling_config": {"mode": "VALIDATED", "allowed_function_names": ["a", "c"]}},
            ),
        ],
    )
    def test_of_some(self, name: str, expected: Any) -> None:
        chat = desk("a", "b", "c").dialect(name)
        for names in (["a", "c"], ("c", "a", "c"), ["c", "a"]):
            assert chat.tool_choice(names) == expected
        request = chat.request(["c", "a"])
        assert chosen(request) == expected.get("function_calling_config", expected)
        assert listed(request) == ["a", "b", "c"]

    @pytest.mark.parametrize("name", ["anthropic", "dashscope"])
    def test_of_some_where_the_provider_has_no_form(self, name: str) -> None:
        chat = desk("a", "b").dialect(name)
        for ask in (chat.tool_choice, chat.request):
            with pytest.raises(PegboardError, match=r"view\(include=\['a', 'b'\]\)") as raised:
                ask(["b", "a"])
            assert name in str(raised.value)

    @pytest.mark.parametrize("name", PROVIDERS)
    def test_of_no_names_is_none(self, name: str) -> None:
        chat = desk("a").dialect(name)
        assert chat.tool_choice([]) == chat.tool_choice("none")
        assert chosen(chat.request([])) == chosen(chat.request("none")) is not None

    @pytest.mark.parametrize("name", PROVIDERS)
    @pytest.mark.parametrize("choice", ["c", ["a", "c"], [None], [["a"]], {}, None, 1])
    def test_of_what_is_not_offered(self, name: str, choice: Any) -> None:
        chat = desk("a", "b").dialect(name)
        for ask in (chat.tool_choice, chat.request):
            with pytest.raises(UnknownNameError, match=r"got .*Offered: a, b$"):
                ask(choice)


class TestKeep:
    def kept(self, name: str, **options: Any) -> dict[str, Any]:
        toolkit = desk("a", g=["b"])
        toolkit.register(named("c"))
        chat = toolkit.dialect(name)
        assert chosen(chat.request()) is None
        toolkit.update_groups("g", False)
        return chat.request(**options)

    @pytest.mark.parametrize("name", KEEPING)
    def test_the_definition_stays_and_may_not_be_called(self, name: str) -> None:
        request = self.kept(name)
        assert listed(request) == ["a", "b", "c"]
        assert (
            chosen(request)
            == {
                "openai": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [function("a"), function("c")]},
                },
                "openai-responses": {"type": "allowed_tools", "mode": "auto", "tools": [flat("a"), flat("c")]},
                "gemini": {"mode": "VALIDATED", "allowed_function_names": ["a", "c"]},
            }[name]
        )

    @pytest.mark.parametrize("name", KEEPING)
    def test_with_other_choices(self, name: str) -> None:
        mode = chosen(self.kept(name, choice="required"))
        assert mode.get("mode", mode.get("allowed_tools", {}).get("mode")) in ("required", "ANY")
        assert "c" in json.dumps(mode)
        assert '"b"' not in json.dumps(mode)
        assert chosen(self.kept(name, choice="none")) in ("none", {"mode": "NONE"})
        with pytest.raises(UnknownNameError, match="Offered: a, c"):
            self.kept(name, choice="b")

    @pytest.mark.parametrize("name", PROVIDERS)
    def test_goes_where_the_provider_cannot_be_told_or_the_program_says_so(self, name: str) -> None:
        for options in [{"keep": False}] if name in KEEPING else [{}, {"keep": False}]:
            request = self.kept(name, **options)
            assert listed(request) == ["a", "c"]
            assert chosen(request) is None

    @pytest.mark.parametrize("name", KEEPING)
    def test_nothing_is_offered_any_more(self, name: str) -> None:
        toolkit = desk(g=["a"])
        chat = toolkit.dialect(name)
        chat.request()
        toolkit.update_groups("g", False)
        for choice in ("auto", "required"):
            request = chat.request(choice)
            assert (listed(request), chosen(request)) == (["a"], {"mode": "NONE"} if name == "gemini" else "none")

    def test_what_is_no_longer_registered_is_not_kept(self) -> None:
        toolkit = desk("a", "b")
        chat = toolkit.dialect("openai")
        chat.request()
        toolkit.unregister("a")
        assert (listed(chat.request()), chosen(chat.request())) == (["b"], None)

    def test_a_call_of_it_ends_inactive(self) -> None:
        toolkit = desk("a", g=["b"])
        chat = toolkit.dialect("openai")
        chat.request()
        toolkit.update_groups("g", False)
        assert "b" in listed(chat.request())
        assert toolkit.call_sync("b").status == "inactive"

    def test_a_session_that_goes_on_elsewhere_keeps_the_same(self) -> None:
        def program() -> Toolkit:
            return desk("a", g=["b"])

        first = program().session()
        first.dialect("openai").request()
        first.update_groups("g", False)
        later = program().session(shown=first.shown, groups=[])
        assert later.dialect("openai").request() == first.dialect("openai").request()


class TestCacheMarks:
    def marked(self, request: dict[str, Any]) -> list[str]:
        for each in request["tools"]:
            assert each.get("cache_control") in (None, {"type": "ephemeral"})
        return [each["name"] for each in request["tools"] if "cache_control" in each]

    def test_behind_the_first_reveal_and_behind_all(self) -> None:
        toolkit = desk("a", "b")
        chat = toolkit.session().dialect("anthropic")
        assert self.marked(chat.request()) == ["b"]
        toolkit.register(named("c"))
        assert self.marked(chat.request()) == ["b", "c"]
        toolkit.register(named("d"))
        assert self.marked(chat.request()) == ["b", "d"]
        toolkit.unregister("b")
        assert self.marked(chat.request()) == ["a", "d"]
        assert self.marked(chat.request(cache=False)) == []

    def test_never_on_one_that_is_deferred(self) -> None:
        toolkit = desk("a")
        toolkit.register(*late("b", "c"))
        request = toolkit.dialect("anthropic").request()
        assert [each["name"] for each in request["tools"]] == ["a", "b", "tool_search_tool_bm25", "c"]
        assert "b" not in self.marked(request)
        assert "c" not in self.marked(request)

    @pytest.mark.parametrize("name", sorted({*PROVIDERS} - {"anthropic"}))
    def test_other_providers_have_none(self, name: str) -> None:
        assert "cache_control" not in json.dumps(desk("a").dialect(name).request())


class TestResponses:
    def namespaces(self, toolkit: Toolkit | Session) -> list[Any]:
        items = toolkit.dialect("openai-responses").tools()
        return [(each["name"], [one["name"] for one in each["tools"]]) if "tools" in each else each for each in items]

    def test_a_late_tool_of_a_group_is_in_a_namespace_of_its_own(self) -> None:
        toolkit = desk(g=["a", "b"], h=["c"])
        assert self.namespaces(toolkit) == [("g", ["a", "b"]), ("h", ["c"])]
        toolkit.register(named("d"), group="g")
        assert self.namespaces(toolkit) == [("g", ["a", "b"]), ("h", ["c"]), ("g_2", ["d"])]
        toolkit.register(named("e"), group="h")
        toolkit.register(named("f"), group="g")
        assert self.namespaces(toolkit)[2:] == [("g_2", ["d"]), ("h_2", ["e"]), ("g_3", ["f"])]

    def test_the_search_has_a_fixed_place(self) -> None:
        toolkit = desk("a")
        toolkit.register(*late("b", "c"))
        before = toolkit.dialect("openai-responses").tools()
        assert [each.get("name", each["type"]) for each in before] == ["a", "b", "tool_search", "c"]
        toolkit.register(*late("d"))
        toolkit.register(named("e"))
        assert toolkit.dialect("openai-responses").tools()[:4] == before

    def test_of_deferred_tools_in_a_group(self) -> None:
        toolkit = desk("a")
        toolkit.create_group("g")
        toolkit.register(*late("b", "c"), group="g")
        toolkit.register(named("d"))
        assert [each.get("name", each["type"]) for each in toolkit.dialect("openai-responses").tools()] == [
            "a",
            "g",
            "tool_search",
            "d",
        ]


class TestChanges:
    def test_nothing_before_the_first_request(self) -> None:
        assert desk("a").dialect("openai").changes() == []

    def test_of_groups(self) -> None:
        toolkit = desk("a", g=["b"])
        chat = toolkit.dialect("openai")
        chat.request()
        toolkit.update_groups("g", False)
        assert chat.changes() == [Change("removed", "b", "group 'g' is not active")]
        chat.tools()
        assert chat.changes() == []
        toolkit.update_groups("g", True)
        assert chat.changes() == [Change("added", "b", "group 'g' is active")]

    def test_of_registrations(self) -> None:
        toolkit = desk("a", "b")
        chat = toolkit.dialect("anthropic")
        chat.tools()
        toolkit.unregister("a")
        toolkit.register(named("c"))
        assert chat.changes() == [
            Change("removed", "a", "no longer registered by the program"),
            Change("added", "c", "registered by the program"),
        ]

    def test_of_a_definition(self) -> None:
        toolkit = desk("a", "b")
        chat = toolkit.session().dialect("gemini")
        chat.request()

        @tool(name="a")
        def other(count: int) -> str:
            """Another one."""
            return str(count)

        toolkit.register(other, on_conflict="replace")
        assert chat.changes() == [Change("redefined", "a", "the program changed it")]

    def test_of_presets(self) -> None:
        session = desk("a").session()
        chat = session.dialect("openai")
        chat.request()
        session.set_presets("a", {"note": "!"})
        assert chat.changes() == [Change("redefined", "a", "presets of note")]

    def test_of_the_groups_that_the_meta_tool_names(self) -> None:
        toolkit = desk("a")
        toolkit.register_meta_tool()
        chat = toolkit.dialect("openai")
        chat.request()
        toolkit.create_group("g")
        assert chat.changes() == [Change("redefined", "reset_equipped_tools", "the groups changed")]
        chat.request()
        toolkit.update_groups("g", False)
        assert chat.changes() == []

    def test_of_searches(self) -> None:
        toolkit = Toolkit(plugins=["dialects"], defer_threshold=1)
        toolkit.register(*late("a", "b"))
        chat = toolkit.dialect("openai")
        chat.request()
        toolkit.add_found_tools("b")
        assert chat.changes() == [Change("added", "b", "a search found it")]

    def test_a_tool_that_cannot_be_read_is_no_reason_to_fail(self) -> None:
        toolkit = desk("a")
        toolkit.register("made_up.module:b")
        chat = toolkit.dialect("openai")
        assert listed(chat.request()) == ["a"]
        assert chat.changes() == []


class TestPrefix:
    """Random sequences of what changes the tools; the shares are those of `docs/internals/performance.md`."""

    @pytest.mark.parametrize(
        ("name", "middle", "lowest"),
        first(
            1, [("openai", 0.97, 0.9), ("openai-responses", 0.97, 0.9), ("gemini", 0.97, 0.9), ("anthropic", 0.85, 0.5)]
        ),
    )
    @pytest.mark.parametrize("sequences", [8, pytest.param(100, marks=pytest.mark.slow)])
    def test_stays(self, name: str, middle: float, lowest: float, sequences: int) -> None:
        measured = shares(name, sequences=sequences)
        assert median(measured) >= middle
        assert quantiles(measured, n=20)[0] >= lowest
