"""Stubs: what a model reads of tools, and what programs are checked against."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from pegboard import Tool, Toolkit
from pegboard_code import CodeMode, stubs
from tests.plugins.code.desk import Tools, ran


@dataclass
class Where:
    """A place."""

    lat: float
    lon: float = 0.0


@dataclass
class Node:
    """A tree."""

    name: str
    children: "list[Node] | None" = None


def of(*tools: Any) -> str:
    """The stubs of some tools."""
    with Toolkit(plugins=["dataclasses"]) as toolkit:
        toolkit.register(*tools)
        return stubs(toolkit)


class TestText:
    def test_signatures_and_types_are_pythons(self) -> None:
        def find(what: str, where: Where | None = None, limit: int = 10, kind: Literal["a", 1] = "a") -> list[Where]:
            """Find things.

            Args:
                what: What to find
            """
            return []

        assert of(find) == (
            "class Where(TypedDict):\n"
            "    lat: float\n"
            "    lon: NotRequired[float]\n\n"
            "async def find(*, what: str, where: Where | None = None, limit: int = 10, "
            'kind: Literal["a", 1] = "a") -> list[Where]:\n'
            '    """Find things.\n\n    what: What to find\n    where: A place.\n    """'
        )

    def test_types_may_refer_to_themselves(self) -> None:
        def tree(node: Node) -> dict[str, Node]:
            return {}

        text = of(tree)
        assert text.count("class Node(TypedDict)") == 1
        assert "    children: NotRequired[list[Node]]" in text
        assert "async def tree(*, node: Node) -> dict[str, Node]: ..." in text

    def test_two_types_of_one_name_are_two(self) -> None:
        def schema(*names: str) -> dict[str, Any]:
            item = {"type": "object", "title": "Item", "properties": {name: {"type": "string"} for name in names}}
            return {"type": "object", "properties": {"item": item}, "additionalProperties": False}

        text = of(
            Tool.external("one", "", schema("a")),
            Tool.external("two", "", schema("b")),
            Tool.external("three", "", schema("a")),
        )
        assert text.count("class Item(TypedDict)") == 1
        assert text.count("class Item2(TypedDict)") == 1
        assert "def one(*, item: Item | None = None)" in text
        assert "def three(*, item: Item | None = None)" in text
        assert "def two(*, item: Item2 | None = None)" in text

    def test_names_that_are_none_in_python_are_passed_otherwise(self) -> None:
        schema = {
            "type": "object",
            "properties": {"user-id": {"type": "integer", "description": "Who"}, "class": {"type": "string"}},
            "required": ["user-id"],
        }
        text = of(Tool.external("get-user", "A user", schema), Tool.external("print", "", {}))
        assert "async def get_user(**arguments: Any) -> Any:" in text
        assert '**{"user-id": ...} (int, required): Who' in text
        assert "async def print_(**others: Any) -> Any" in text

    def test_a_description_stays_in_its_docstring(self) -> None:
        hostile = 'Ends """ here\\\nimport os\n"'
        text = of(Tool.external("odd", hostile, {}))
        compile(text, "stubs", "exec")

    def test_the_order_is_that_of_names(self) -> None:
        a, b = Tool.external("a", "", {}), Tool.external("b", "", {})
        assert of(a, b) == of(b, a)


SCHEMAS = st.recursive(
    st.sampled_from(
        [{}, True, {"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["a", 1, None]}, {"const": 3}]
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda items: {"type": "array", "prefixItems": items}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda members: {"type": "object", "properties": members, "required": list(members)[:1]},
            st.dictionaries(st.sampled_from(["a", "b-c", "class", "ü", "_x"]), inner, max_size=3),
        ),
        st.builds(lambda rest: {"type": "object", "additionalProperties": rest}, inner),
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["a", "b-c", "class", "from_", "print"]), SCHEMAS, max_size=3))
def test_any_schema_gives_stubs_that_python_reads(members: dict[str, Any]) -> None:
    text = of(Tool.external("tool", "What it does", {"type": "object", "properties": members}))
    compile(f"from typing import *\n{text}", "stubs", "exec")


class TestCatalog:
    def test_a_small_one_is_listed_whole(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(Tools(), CodeMode(toolkit))
            text = toolkit["run_code"].description
        assert "async def get_weather(" in text
        assert text.count("\n") < 90

    def test_a_large_one_is_searched(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            for number in range(200):
                tool = Tool.external(
                    f"tool_{number}", f"About topic {number}. " * 6, {"type": "object", "properties": {}}
                )
                toolkit.register(tool)
            toolkit.register(CodeMode(toolkit))
            text = toolkit["run_code"].description
            assert "async def" not in text
            assert "tool_199" in text
            found = ran(toolkit, "await find_tools('topic 42')").data
            assert found.startswith("async def tool_42(")
            assert "About topic 7" in ran(toolkit, "await describe_tool('tool_7')").data
            assert "no tool 'nope'" in ran(toolkit, "await describe_tool('nope')").data

    def test_it_can_be_chosen(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(Tools(), CodeMode(toolkit, catalog="search"))
            assert "async def" not in toolkit["run_code"].description

    def test_it_changes_with_the_board_alone(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(Tools(), CodeMode(toolkit))
            before = json.dumps(toolkit["run_code"].schema().to_dict())
            ran(toolkit, "await get_weather(city='a')")
            assert json.dumps(toolkit["run_code"].schema().to_dict()) == before
            toolkit.register(lambda: 1, name="late")
            assert "def late(" in toolkit["run_code"].description

    def test_deferred_tools_can_be_called_without_a_search(self) -> None:
        with Toolkit(plugins=(), defer_threshold=0) as toolkit:
            toolkit.register(lambda: 7, name="hidden", defer=True)
            toolkit.register(CodeMode(toolkit))
            assert "hidden" not in [each.name for each in toolkit.tools]
            assert ran(toolkit, "await hidden()").data == 7
