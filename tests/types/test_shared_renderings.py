"""Renderings share what they have in common; no reader and no tool sees another's changes."""

from dataclasses import dataclass

import pytest

from pegboard import PegboardError, Tool
from pegboard._schema.nodes import SchemaNode, SchemaRef, extend, object_schema, render


@dataclass
class Item:
    name: str
    count: int


@dataclass
class Order:
    items: list[Item]


@dataclass
class Tree:
    children: "list[Tree]"


def one(order: Order) -> Order:
    """Take one order."""
    return order


def several(order: Order, spare: Item) -> None:
    """Take an order and an item: Item is met twice here, and once in the other tool."""


def twice(first: Order, second: Order) -> None:
    """Take two orders."""


def grow(tree: Tree) -> None:
    """Take a tree."""


@pytest.mark.parametrize("functions", [(one, several, twice), (twice, several, one), (several, one, twice)])
def test_order_of_reading_changes_nothing(functions: tuple[object, ...]) -> None:
    tools = {tool.name: tool.parameters for tool in (Tool.from_function(each) for each in functions)}  # type: ignore[arg-type]
    assert "$defs" not in tools["one"]
    assert tools["one"]["properties"]["order"]["properties"]["items"]["items"]["required"] == ["name", "count"]
    assert list(tools["several"]["$defs"]) == ["Item"]
    assert tools["several"]["properties"]["order"]["properties"]["items"]["items"] == {"$ref": "#/$defs/Item"}
    assert list(tools["twice"]["$defs"]) == ["Order"]
    inner = tools["twice"]["$defs"]["Order"]["properties"]["items"]["items"]
    assert inner["properties"] == tools["several"]["$defs"]["Item"]["properties"]


def test_a_reader_edits_only_its_own() -> None:
    first, second = Tool.from_function(one), Tool.from_function(one)
    first.parameters["properties"]["order"]["properties"].clear()
    first.json_schema("returns")["properties"].clear()
    for tool in (first, second):
        assert tool.parameters["properties"]["order"]["properties"]
        assert tool.json_schema("returns")["properties"]


def test_titles_do_not_stay_behind() -> None:
    tool = Tool.from_function(one)
    plain = tool.json_schema()
    titled = tool.json_schema(titles="qualified")
    assert titled["properties"]["order"]["title"].endswith("Order")
    assert tool.json_schema() == plain
    assert Tool.from_function(one).parameters == plain


def test_a_recursive_type_is_refused_each_time() -> None:
    tool = Tool.from_function(grow)
    for _ in range(2):
        with pytest.raises(PegboardError, match="contains itself"):
            tool.json_schema(refs="inline")
        assert list(tool.parameters["$defs"]) == ["Tree"]


def test_words_beside_a_reference_belong_to_that_place() -> None:
    body = SchemaNode({"type": "object"}, lambda: "pkg.Thing")
    reference = SchemaRef("pkg.Thing", lambda: body)
    described = extend(reference, {"description": "here"})
    root = object_schema({"a": described}, [])
    assert render(root)["properties"]["a"] == {"type": "object", "description": "here"}
    assert render(object_schema({"a": reference}, []))["properties"]["a"] == {"type": "object"}


def test_an_extension_with_schemas_refers_to_what_they_refer_to() -> None:
    body = SchemaNode({"type": "string"}, lambda: "pkg.Word")
    word = SchemaRef("pkg.Word", lambda: body)
    array = SchemaNode({"type": "array"}, lambda: "list")
    assert array.references() == ()
    extended = extend(array, {"items": word})
    both = object_schema({"a": extended, "b": word}, [])
    assert render(both)["$defs"] == {"Word": {"type": "string"}}
