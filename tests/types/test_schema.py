"""Rendering: `$defs` or inlined, with titles or without, 2020-12 or OpenAPI 3.0."""

import copy
import json
import sys
from typing import Any, ClassVar

import pytest

from pegboard._base.errors import PegboardError
from pegboard._model.subschemas import map_subschemas
from pegboard._model.tool import SchemaRequest
from pegboard._schema.nodes import SchemaNode, SchemaRef, embed, extend, object_schema, render

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


def named(name: str, properties: dict[str, Any]) -> SchemaRef:
    """A record as type plans write it: a reference to one node."""
    node = SchemaNode(object_schema(properties, list(properties)), lambda: name)
    return SchemaRef(name, lambda: node)


def root(**properties: Any) -> dict[str, Any]:
    return object_schema(properties, list(properties))


def linked_list() -> SchemaRef:
    properties: dict[str, Any] = {}
    node = named("pkg.Link", properties)
    node.target["properties"]["next"] = {"anyOf": [node, {"type": "null"}]}
    return node


def plain(value: Any) -> bool:
    """Whether only JSON's own types are left."""
    if type(value) is dict:
        return all(type(key) is str and plain(inner) for key, inner in value.items())
    return all(map(plain, value)) if type(value) is list else value is None or type(value) in (str, int, float, bool)


class TestObjectSchema:
    def test_keys_come_in_the_order_of_the_seed(self) -> None:
        schema = object_schema({"city": TEXT, "date": TEXT}, ["city"])
        assert list(schema) == ["type", "properties", "required", "additionalProperties"]
        assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["city"], False)

    def test_nothing_required_is_still_said(self) -> None:
        assert object_schema({}, [])["required"] == []

    def test_surplus_members_may_be_allowed(self) -> None:
        assert "additionalProperties" not in object_schema({}, [], surplus=True)


class TestReferences:
    def test_a_type_used_once_is_inlined(self) -> None:
        item = named("pkg.Item", {"name": TEXT})
        assert render(root(item=item)) == root(item=root(name=TEXT))

    def test_a_type_used_twice_becomes_a_definition(self) -> None:
        item = named("pkg.Item", {"name": TEXT})
        rendered = render(root(a=item, b={"type": "array", "items": item}))
        reference = {"$ref": "#/$defs/Item"}
        assert rendered == {
            **root(a=reference, b={"type": "array", "items": reference}),
            "$defs": {"Item": root(name=TEXT)},
        }

    def test_a_type_used_once_inside_a_repeated_one_is_inlined_there(self) -> None:
        inner = named("pkg.Inner", {"x": WHOLE})
        outer = named("pkg.Outer", {"inner": inner})
        assert render(root(a=outer, b=outer))["$defs"] == {"Outer": root(inner=root(x=WHOLE))}

    def test_a_recursive_type_becomes_a_definition(self) -> None:
        rendered = render(root(link=linked_list()))
        assert rendered["properties"] == {"link": {"$ref": "#/$defs/Link"}}
        assert list(rendered["$defs"]) == ["Link"]
        assert rendered["$defs"]["Link"]["properties"]["next"]["anyOf"][0] == {"$ref": "#/$defs/Link"}

    def test_a_recursive_type_may_be_the_root(self) -> None:
        assert render(linked_list())["$ref"] == "#/$defs/Link"

    def test_a_recursive_type_cannot_be_inlined(self) -> None:
        with pytest.raises(PegboardError, match=r"pkg\.Link contains itself.*refs='defs'"):
            render(root(link=linked_list()), SchemaRequest(refs="inline"))

    def test_repeated_types_are_inlined_on_request(self) -> None:
        item = named("pkg.Item", {"name": TEXT})
        assert render(root(a=item, b=item), SchemaRequest(refs="inline")) == root(a=root(name=TEXT), b=root(name=TEXT))

    def test_keywords_beside_a_reference_stay_in_both_forms(self) -> None:
        item = named("pkg.Item", {"name": TEXT})
        described = extend(item, {"description": "the first"})
        assert render(root(a=described))["properties"]["a"] == {**root(name=TEXT), "description": "the first"}
        rendered = render(root(a=described, b=item))
        assert rendered["properties"]["a"] == {"$ref": "#/$defs/Item", "description": "the first"}

    def test_definitions_are_sorted(self) -> None:
        types = [named(f"pkg.{name}", {"x": WHOLE}) for name in ("Zoo", "Ant", "Mid")]
        properties = {f"{number}{name}": node for number in (1, 2) for name, node in zip("abc", types, strict=True)}
        assert list(render(root(**properties))["$defs"]) == ["Ant", "Mid", "Zoo"]

    def test_what_is_rendered_is_plain_and_a_copy(self) -> None:
        item = named("pkg.Item", {"name": {**TEXT, "enum": ["a"]}})
        rendered = render(root(a=item, b=item), SchemaRequest(titles="qualified"))
        assert plain(rendered)
        rendered["$defs"]["Item"]["properties"]["name"]["enum"].append("b")
        assert item.target["properties"]["name"]["enum"] == ["a"]

    def test_the_tree_itself_can_be_printed_and_copied(self) -> None:
        node = linked_list()
        assert "$ref" in repr(node.target)
        assert copy.deepcopy(extend(node, {"description": "x"})) == {"$ref": "#/$defs/pkg.Link", "description": "x"}


class TestNames:
    def names(self, *full: str) -> list[str]:
        nodes = [named(name, {"x": WHOLE}) for name in full]
        rendered = render(root(**{f"p{number}": node for number, node in enumerate([*nodes, *nodes])}))
        return [rendered["properties"][f"p{number}"]["$ref"].removeprefix("#/$defs/") for number in range(len(full))]

    def test_the_last_part_is_enough_where_it_is_alone(self) -> None:
        assert self.names("pkg.mod.Item", "pkg.other.Order") == ["Item", "Order"]

    def test_a_collision_takes_more_parts_for_both(self) -> None:
        assert self.names("a.x.Item", "b.x.Item", "c.Other") == ["a.x.Item", "b.x.Item", "Other"]

    def test_two_types_of_one_full_name_are_numbered(self) -> None:
        assert self.names("pkg.f.<locals>.Item", "pkg.f.<locals>.Item") == ["pkg.f.Item", "pkg.f.Item_2"]

    def test_generics_are_spelled_with_legal_characters(self) -> None:
        assert self.names("pkg.Box[int]", "pkg.Box[pkg.mod.Item | None]") == ["Box_int", "Box_Item_None"]

    def test_a_name_without_a_legal_character_still_gets_one(self) -> None:
        assert self.names("pkg.\u0416") == ["Type"]

    def test_data_that_looks_like_a_schema_is_left_alone(self) -> None:
        data = {"const": {"properties": {"$ref": 1}}, "default": {"items": True}, "enum": [{"anyOf": 1}]}
        assert render(root(a=data))["properties"]["a"] == data


class TestTitles:
    def test_types_are_named_in_full_on_request(self) -> None:
        item = named("pkg.Item", {"name": SchemaNode(TEXT, lambda: "str")})
        listed = SchemaNode({"type": "array", "items": item}, lambda: "list[pkg.Item]")
        found = render(root(items=listed), SchemaRequest(titles="qualified"))["properties"]["items"]
        assert next(iter(found)) == "title"
        assert (found["title"], found["items"]["title"]) == ("list[pkg.Item]", "pkg.Item")
        assert found["items"]["properties"]["name"] == {"title": "str", "type": "string"}

    def test_by_default_there_are_none(self) -> None:
        assert "title" not in json.dumps(render(root(item=named("pkg.Item", {"name": TEXT}))))

    def test_an_author_s_title_stays_unless_the_type_is_asked_for(self) -> None:
        node = extend(SchemaNode(TEXT, lambda: "str"), {"title": "City"})
        assert render(root(a=node))["properties"]["a"]["title"] == "City"
        assert render(root(a=node), SchemaRequest(titles="qualified"))["properties"]["a"]["title"] == "str"

    def test_a_definition_is_named_once(self) -> None:
        item = named("pkg.Item", {"name": TEXT})
        rendered = render(root(a=item, b=item), SchemaRequest(titles="qualified"))
        assert rendered["properties"]["a"] == {"$ref": "#/$defs/Item"}
        assert rendered["$defs"]["Item"]["title"] == "pkg.Item"


class TestEmbed:
    FOREIGN: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "x"}, "b": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "object", "properties": {"again": {"$ref": "#/$defs/A"}}}},
    }

    def test_local_references_move_with_the_schema(self) -> None:
        rendered = render(root(nested=embed(self.FOREIGN)))
        assert "$defs" not in rendered["properties"]["nested"]
        assert rendered["properties"]["nested"]["properties"]["a"] == {"$ref": "#/$defs/A", "description": "x"}
        assert rendered["$defs"] == {"A": {"type": "object", "properties": {"again": {"$ref": "#/$defs/A"}}}}

    def test_two_third_party_schemas_may_use_one_name(self) -> None:
        rendered = render(root(x=embed(self.FOREIGN), y=embed(self.FOREIGN)))
        assert sorted(rendered["$defs"]) == ["A", "A_2"]

    def test_a_reference_to_the_whole_schema_is_named_after_it(self) -> None:
        rendered = render(root(tree=embed({"type": "array", "items": {"$ref": "#"}}, "pkg.Tree")))
        assert rendered["$defs"] == {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}} or rendered == {}

    def test_old_definitions_and_escaped_names_are_understood(self) -> None:
        rendered = render(embed({"items": {"$ref": "#/definitions/a~1b"}, "definitions": {"a/b": TEXT}}))
        assert rendered == {"items": TEXT}

    @pytest.mark.parametrize("reference", ["https://example.com/x.json", "#/$defs/B", "other.json"])
    def test_a_reference_that_leads_elsewhere_is_refused(self, reference: str) -> None:
        with pytest.raises(PegboardError, match="nothing is fetched"):
            embed({"items": {"$ref": reference}, "$defs": {}})


class TestOpenApi:
    def test_there_are_no_definitions(self) -> None:
        item = named("pkg.Item", {"name": TEXT})
        rendered = render(root(a=item, b=item), SchemaRequest(dialect="openapi-3.0", titles="qualified"))
        assert rendered["properties"]["b"] == {"title": "pkg.Item", **root(name=TEXT)}

    def test_only_a_recursive_type_is_a_component(self) -> None:
        item = named("pkg.Item", {"name": TEXT})
        rendered = render(root(a=item, b=item, link=linked_list()), SchemaRequest(dialect="openapi-3.0"))
        assert rendered["properties"]["link"] == {"$ref": "#/components/schemas/Link"}
        assert rendered["components"]["schemas"].keys() == {"Link"}

    def test_a_recursive_type_cannot_be_inlined(self) -> None:
        with pytest.raises(PegboardError, match=r"pkg\.Link contains itself"):
            render(root(link=linked_list()), SchemaRequest(dialect="openapi-3.0", refs="inline"))

    def test_without_the_pack_it_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pegboard_dialects", None)
        with pytest.raises(PegboardError, match="To install it: pip install pegboard-dialects"):
            render(root(a=TEXT), SchemaRequest(dialect="openapi-3.0"))

    def test_another_dialect(self) -> None:
        with pytest.raises(PegboardError, match=r"dialect 'draft-4'. It is 2020-12 or openapi-3\.0"):
            render(root(a=TEXT), SchemaRequest(dialect="draft-4"))  # type: ignore[arg-type]


def test_subschemas_are_found_wherever_a_schema_may_stand() -> None:
    one = ("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else")
    places: dict[str, Any] = {name: {} for name in one}
    places |= {name: [{}, {}] for name in ("anyOf", "oneOf", "allOf", "prefixItems")}
    places |= {name: {"a": {}} for name in ("properties", "patternProperties", "dependentSchemas", "$defs")}
    mapped = map_subschemas(places, lambda inner: "seen")
    assert str(mapped).count("seen") == 8 + 8 + 4
