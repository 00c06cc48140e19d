"""Hand-written schemas: vetted when they are registered, harmless when they are used."""

import socket
import threading
from collections.abc import Container, Iterator, Mapping
from typing import Any

import pytest
from jsonschema import ValidationError

from pegboard import Judge, PegboardError, RegistrationError, Tool, spend
from pegboard._schema.foreign import ForeignPlan, ForeignSchema
from tests.support.examining import explain, repair
from tests.support.measuring import paces
from tests.support.waiting import PATIENCE

# Paces: what is refused here would go on for hours.
ENDLESS = 20_000

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "sort": {"enum": ["newest", "oldest"]},
        "filters": {"type": "array", "items": {"$ref": "#/$defs/filter"}},
    },
    "required": ["query"],
    "additionalProperties": False,
    "$defs": {
        "filter": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
    },
}


def property_plan(schema: Any, root: Any) -> ForeignPlan:
    """The plan of one property of the schema `root`."""
    return ForeignSchema(root).plan(schema)


def told(schema: dict[str, Any], value: Any) -> list[str]:
    return [str(problem) for problem in ForeignSchema(schema).problems(value)]


class TestMessages:
    def test_are_those_of_typed_tools(self) -> None:
        assert told(SEARCH, {"limit": "ten", "sort": "newset", "filters": [{}, {"key": 3}], "lmit": 3}) == [
            'limit: expected integer >= 1 and <= 100, got string "ten"',
            'sort: expected one of "newest", "oldest", got string "newset", did you mean "newest"?',
            "filters[0].key: missing (required string)",
            "filters[1].key: expected string, got integer 3",
            "query: missing (required string of at least 1 characters)",
            "lmit: unknown argument, did you mean 'limit'?",
        ]

    def test_none_for_what_fits(self) -> None:
        assert told(SEARCH, {"query": "x", "filters": [{"key": "a", "more": 1}]}) == []

    @pytest.mark.parametrize(
        ("schema", "value", "said"),
        [
            ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, None, "expected string or integer, got null"),
            ({"anyOf": [False, {"type": "string"}]}, 3, "expected no value or string, got integer 3"),
            (
                {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]},
                1,
                "expected integer >= 3, got integer 1",
            ),
            (
                {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
                3,
                "fits more than one of the alternatives any value >= 1 or any value >= 2; exactly one is allowed",
            ),
            ({"const": "x"}, "y", 'expected "x", got string "y"'),
            ({"format": "date"}, "x", 'expected any value, got string "x"'),
            (
                {"type": "string", "format": "date"},
                "x",
                'expected date string, got string "x": write it as "2024-05-06"',
            ),
            (
                {"type": "string", "pattern": "^[a-z]+$", "examples": ["abc"]},
                "X",
                'expected string matching "^[a-z]+$", got string "X": write it as "abc"',
            ),
            (
                {"not": {"type": "string"}},
                "x",
                'expected a value that satisfies not {"type": "string"}, got string "x"',
            ),
            ({"uniqueItems": True}, [1, 1.0], "expected any value of unique items, got array [1, 1.0]"),
            (False, 1, None),
        ],
    )
    def test_of_other_keywords(self, schema: Any, value: Any, said: str | None) -> None:
        whole = {"properties": {"x": schema}}
        assert told(whole, {"x": value}) == [f"x: {said}" if said else "a value that the schema forbids: integer 1"]

    @pytest.mark.parametrize("value", [[1, True], [[1], [True]], ["a", "b"], [{"a": 1}, {"a": 2}]])
    def test_unique_items_compare_as_json(self, value: Any) -> None:
        assert told({"properties": {"x": {"uniqueItems": True}}}, {"x": value}) == []

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (
                {"kind": "circl"},
                's.kind: expected one of "circle", "square", got string "circl", did you mean "circle"?',
            ),
            ({"kind": "circle"}, "s.r: missing (required number)"),
            ({"kind": "square", "w": "x"}, 's.w: expected number, got string "x"'),
            ({}, 's.kind: missing (required one of "circle", "square")'),
            (3, "s: expected c or object, got integer 3"),
        ],
    )
    @pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
    def test_of_a_union_name_what_tells_its_members_apart(self, keyword: str, value: Any, said: str) -> None:
        circle = {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}}
        square = {"type": "object", "properties": {"kind": {"enum": ["square"]}, "w": {"type": "number"}}}
        members = [{"$ref": "#/$defs/c"}, {**square, "required": ["kind", "w"]}]
        whole = {"$defs": {"c": {**circle, "required": ["kind", "r"]}}, "properties": {"s": {keyword: members}}}
        assert told(whole, {"s": value}) == [said]

    def test_of_a_part_that_names_the_dialect_of_the_whole(self) -> None:
        draft = "http://json-schema.org/draft-07/schema"
        schema = {"$schema": f"{draft}#", "properties": {"x": {"$schema": draft, "type": "string"}}}
        assert told(schema, {"x": 1}) == ["x: expected string, got integer 1"]

    def test_values_are_redacted(self) -> None:
        (problem,) = ForeignSchema(SEARCH).problems(
            {"query": "x", "limit": "hunter2"}, redact=lambda text: text.replace("hunter2", "***")
        )
        assert "hunter2" not in str(problem)


class TestRefusedAtRegistration:
    @pytest.mark.parametrize(
        ("schema", "said"),
        [
            ({"type": "objekt"}, "the schema: #/type is not valid JSON Schema"),
            ({"properties": {"a": {"minimum": "1"}}}, "#/properties/a/minimum is not valid JSON Schema"),
            (
                {"$ref": "https://example.com/x.json"},
                '$ref at # refers to "https://example.com/x.json"; only references within',
            ),
            ({"properties": {"a": {"$ref": "other.json#/x"}}}, "$ref at #/properties/a refers to"),
            ({"items": {"$dynamicRef": "https://example.com/#x"}}, "$dynamicRef at #/items refers to"),
            ({"$ref": "file:///etc/passwd"}, 'refers to "file:///etc/passwd"'),
            ({"$ref": "#/$defs/missing"}, 'refers to "#/$defs/missing", which is not there'),
            ({"$ref": "#nowhere"}, 'refers to "#nowhere", which is not there'),
            ({"$ref": "#"}, "leads back to itself without end"),
            (
                {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
                "back to itself",
            ),
            (
                {"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(200)} | {"d200": {}}},
                "more than 100 ref",
            ),
            ({"pattern": "("}, 'pattern at # has "(", which Python cannot read (missing )'),
            ({"patternProperties": {"(x": {}}}, 'patternProperties at # has "(x", which Python cannot read'),
            ({"properties": {"a": {"pattern": r"\p{L}"}}}, "pattern at #/properties/a has"),
            (
                {"$defs": {"x": {"$schema": "http://json-schema.org/draft-07/schema#"}}},
                "$schema at #/$defs/x has a dialect of its own",
            ),
            ({"$schema": []}, "#/$schema is not valid JSON Schema"),
            ({"$schema": {}}, "#/$schema is not valid JSON Schema"),
            ({"properties": {"a": {"$schema": []}}}, "#/properties/a/$schema is not valid JSON Schema"),
            ([], "a JSON Schema is an object"),
        ],
    )
    def test_by_keyword_and_path(self, schema: Any, said: str) -> None:
        with pytest.raises(RegistrationError) as caught:
            ForeignSchema(schema)
        assert said in str(caught.value)
        assert len(str(caught.value)) < 400

    def test_says_whose_it_is(self) -> None:
        with pytest.raises(RegistrationError, match=r"^tool 'x' of server 'y': \$ref at #"):
            ForeignSchema({"$ref": "#"}, "tool 'x' of server 'y'")

    def test_depth(self) -> None:
        schema: dict[str, Any] = {}
        for _ in range(5000):
            schema = {"items": schema}
        with pytest.raises(RegistrationError, match="nested more than 100 levels"):
            ForeignSchema(schema)

    def test_size(self) -> None:
        with pytest.raises(RegistrationError, match="more than 50000 parts"):
            ForeignSchema({"enum": list(range(60_000))})

    def test_in_little_time(self) -> None:
        wide = {"properties": {f"p{number}": {"type": "string", "pattern": f"^a{number}+$"} for number in range(3000)}}
        assert paces(lambda: ForeignSchema(wide), most=ENDLESS) < ENDLESS


class TestAccepted:
    @pytest.mark.parametrize(
        ("schema", "good", "bad"),
        [
            (
                {
                    "$schema": "http://json-schema.org/draft-07/schema#",
                    "definitions": {"a": {"type": "string"}},
                    "properties": {"x": {"$ref": "#/definitions/a"}},
                },
                {"x": "a"},
                {"x": 1},
            ),
            (
                {
                    "$schema": "http://json-schema.org/draft-07/schema#",
                    "properties": {"x": {"items": [{"type": "string"}]}},
                },
                {"x": ["a", 1]},
                {"x": [1]},
            ),
            ({"$schema": "https://example.com/unknown", "properties": {"x": {"type": "string"}}}, {"x": "a"}, {"x": 1}),
            (
                {
                    "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}, "v": {"type": "integer"}}}},
                    "$ref": "#/$defs/n",
                },
                {"next": {"next": {"v": 1}}},
                {"next": {"next": {"v": "x"}}},
            ),
            (
                {
                    "$id": "https://example.com/t",
                    "$defs": {"s": {"$anchor": "text", "type": "string"}},
                    "properties": {"x": {"$ref": "#text"}},
                },
                {"x": "a"},
                {"x": 1},
            ),
            ({"properties": {"x": {"$ref": "#/properties/y"}, "y": {"type": "integer"}}}, {"x": 1}, {"x": "a"}),
            ({"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}}}, {"$ref": "a"}, {"$ref": 1}),
            (
                {"properties": {"a/b~c": {"type": "string"}, "x": {"$ref": "#/properties/a~1b~0c"}}},
                {"x": "a"},
                {"x": 1},
            ),
            ({"patternProperties": {"^x-": {"type": "string"}, ".*": {}}}, {"x-a": "b"}, {"x-a": 1}),
        ],
    )
    def test_and_applied(self, schema: Any, good: Any, bad: Any) -> None:
        assert told(schema, good) == []
        assert told(schema, bad)

    def test_a_recursive_schema_of_alternatives(self) -> None:
        branches = [
            {
                "type": "object",
                "properties": {"op": {"const": op}, "left": {"$ref": "#/$defs/e"}, "right": {"$ref": "#/$defs/e"}},
            }
            for op in ("add", "mul")
        ]
        schema = {
            "$defs": {"e": {"anyOf": [{"type": "number"}, *branches]}},
            "properties": {"e": {"$ref": "#/$defs/e"}},
        }
        assert told(schema, {"e": {"op": "mul", "left": 1, "right": {"op": "add", "left": 1, "right": 2}}}) == []


class TestHostileUse:
    """Registration lets these pass; using them still ends soon, and in a problem instead of an exception."""

    def ends_soon(self, schema: dict[str, Any], value: Any) -> list[str]:
        problems: list[str] = []
        assert paces(lambda: problems.extend(told(schema, value)), most=ENDLESS, tries=1) < ENDLESS
        return problems

    @pytest.mark.parametrize(
        "schema", [{"not": {"$ref": "#"}}, {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}]
    )
    def test_what_leads_back_to_itself_over_alternatives(self, schema: dict[str, Any]) -> None:
        assert "cannot be checked" in self.ends_soon(schema, {})[0]

    def test_what_leads_back_to_itself_wherever_the_stack_ends(self) -> None:
        """In jsonschema, or in the compiled library in which it looks references up, which panics there."""

        def below(depth: int) -> str:
            return below(depth - 1) if depth else told({"not": {"$ref": "#"}}, {})[0]

        assert all("cannot be checked" in below(depth) for depth in range(40))

    def test_alternatives_that_double(self) -> None:
        levels: dict[str, Any] = {"d0": {"type": "integer"}}
        for level in range(1, 23):
            levels[f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
        assert "too large" in self.ends_soon({"$defs": levels, "$ref": "#/$defs/d22"}, "x")[0]

    def test_alternatives_that_double_with_each_level_of_the_value(self) -> None:
        schema = {
            "$defs": {
                "n": {"properties": {"x": {"anyOf": [{"$ref": "#/$defs/n"}] * 2 + [False]}, "v": {"type": "null"}}}
            }
        }
        value: Any = {"v": 1}
        for _ in range(60):
            value = {"x": value}
        assert "too large" in self.ends_soon({**schema, "$ref": "#/$defs/n"}, value)[0]

    def test_thousands_of_unique_items(self) -> None:
        value = {"x": [{"a": number} for number in range(5000)]}
        assert self.ends_soon({"properties": {"x": {"uniqueItems": True}}}, value) == []

    def test_a_value_too_deep(self) -> None:
        schema = {"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "properties": {"x": {"$ref": "#/$defs/n"}}}
        value: Any = []
        for _ in range(3000):
            value = [value]
        assert "cannot be checked" in self.ends_soon(schema, {"x": value})[0]

    @pytest.mark.parametrize("divisor", [3, 0.1, 1e-300])
    def test_a_huge_integer(self, divisor: float) -> None:
        assert len(self.ends_soon({"properties": {"x": {"multipleOf": divisor}}}, {"x": 10**400})) <= 1

    def test_an_integer_that_cannot_be_spelled(self) -> None:
        (problem,) = self.ends_soon({"properties": {"x": {"type": "string"}}}, {"x": 10**5000})
        assert problem.startswith("x: expected string") or "cannot be checked" in problem


class TestJudges:
    """The schema of a third party has a judge, which surveys it and says what is done for its keywords."""

    def checked(self, known: Mapping[str, Any], formats: Container[str]) -> Mapping[str, Any]:
        def even(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
            if len(value) % 2:
                yield ValidationError("odd")

        kept = {word: check for word, check in known.items() if word != "minLength"}
        return {**kept, "pattern": even}

    def judge(self, survey: Any = lambda parts, where: None) -> Judge:
        return Judge(survey, self.checked)

    def test_its_keywords_are_theirs(self) -> None:
        schema = {"properties": {"x": {"type": "string", "pattern": "(", "minLength": 3}}}
        found = ForeignSchema(schema, judge=self.judge())
        assert found.problems({"x": "ab"}) == []
        assert [str(problem) for problem in found.problems({"x": "abc"})] == [
            'x: expected string of at least 3 characters and matching "(", got string "abc"'
        ]
        with pytest.raises(RegistrationError, match="which Python cannot read"):
            ForeignSchema(schema)

    def test_a_check_may_count_its_steps(self) -> None:
        def heavy(validator: Any, limit: Any, value: Any, schema: Any) -> Iterator[Any]:
            spend(len(value) * 1_000)
            return iter(())

        judge = Judge(lambda parts, where: None, lambda known, formats: {**known, "pattern": heavy})
        found = ForeignSchema({"properties": {"x": {"pattern": "a"}}}, judge=judge)
        assert found.problems({"x": "a"}) == []
        (problem,) = found.problems({"x": "a" * 6})
        assert problem.unchecked
        assert "too large" in str(problem)

    def test_it_is_shown_all_parts_with_what_their_references_lead_to(self) -> None:
        shown: list[Any] = []
        ForeignSchema(
            {"properties": {"x": {"$ref": "#/examples/0"}}, "examples": [{"items": {"type": "null"}}]},
            "it",
            judge=self.judge(lambda parts, where: shown.extend([where, *parts])),
        )
        assert shown[0] == "it"
        assert [part.path for part in shown[1:]] == ["#", "#/properties/x", "#/examples/0", "#/examples/0/items"]
        assert [dict(part.targets) for part in shown[1:3]] == [{}, {"$ref": {"items": {"type": "null"}}}]

    def test_what_it_refuses_is_refused(self) -> None:
        def refuse(parts: Any, where: str) -> None:
            raise RegistrationError(f"{where}: no")

        with pytest.raises(RegistrationError, match=r"^it: no$"):
            ForeignSchema({}, "it", judge=self.judge(refuse))

    @pytest.mark.parametrize(
        ("schema", "said"),
        [
            ({"enum": list(range(21_000))}, "more than 20000 parts"),
            ({"$vocabulary": {}, "enum": list(range(1_001))}, "with so many parts"),
        ],
    )
    def test_what_would_take_long_is_refused(self, schema: dict[str, Any], said: str) -> None:
        ForeignSchema(schema)  # the program's own is trusted
        with pytest.raises(RegistrationError) as caught:
            ForeignSchema(schema, judge=self.judge())
        assert said in str(caught.value)

    def test_a_check_that_looks_for_repairs_has_a_budget_too(self) -> None:
        branches = [
            {"properties": {"v": {"type": "integer"}, "x": {"$ref": "#/$defs/n"}, f"k{each}": {}}} for each in range(4)
        ]
        schema = {"type": "object", "$defs": {"n": {"anyOf": branches}}, "properties": {"x": {"$ref": "#/$defs/n"}}}
        value: Any = {"v": "3"}
        plan = ForeignSchema(schema, judge=self.judge()).plan()
        assert repair(plan, {"x": value})[0] == {"x": {"v": 3}}
        for _ in range(30):
            value = {"x": value}
        assert repair(plan, {"x": value}) == ({"x": value}, [])
        assert "cannot be checked" in explain(plan, {"x": value})[0].message


@pytest.fixture
def listener() -> Iterator[tuple[str, list[Any]]]:
    """A server that must never be spoken to: its address, and who came."""
    visitors: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, address = server.accept()
                except OSError:
                    return
                visitors.append(address)
                connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", visitors
        server.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_nothing_is_ever_fetched(listener: tuple[str, list[Any]], keyword: str) -> None:
    address, visitors = listener
    with pytest.raises(RegistrationError):
        ForeignSchema({"properties": {"x": {keyword: f"{address}/x.json"}}})
    # Where no vetting looked, the empty registry still keeps the peace.
    plan = property_plan({keyword: f"{address}/x.json"}, {"type": "object"})
    explain(plan, 1)
    ForeignSchema({"$id": f"{address}/root.json", "$schema": f"{address}/meta", "type": "object"}).problems(1)
    assert visitors == []


@pytest.mark.parametrize("options", [{"refs": "inline"}, {"dialect": "openapi-3.0"}])
def test_references_that_double_are_not_written_out(options: dict[str, Any]) -> None:
    """What is small as it stands would have a million million parts."""
    levels: dict[str, Any] = {
        f"d{level}": {"properties": {key: {"$ref": f"#/$defs/d{level + 1}"} for key in "ab"}} for level in range(40)
    }
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**levels, "d40": {}}}
    tool = Tool.external("t", "Doubles.", schema)
    assert len(tool.json_schema()["$defs"]) == 41
    with pytest.raises(PegboardError, match="is too large written out, so its schema cannot be inlined"):
        tool.json_schema(**options)


class TestPlans:
    def test_values_pass_unchanged(self) -> None:
        value = {"query": "x"}
        assert ForeignSchema(SEARCH).plan().structure(value) is value

    def test_references_lead_into_the_whole(self) -> None:
        plan = property_plan(SEARCH["properties"]["filters"], SEARCH)  # type: ignore[index]
        assert plan.structure([{"key": "a"}]) == [{"key": "a"}]
        assert [str(problem) for problem in explain(plan, [{}], "filters")] == [
            "filters[0].key: missing (required string)"
        ]

    def test_have_no_shape_that_could_be_inlined(self) -> None:
        assert property_plan({"type": "integer"}, SEARCH).shape is None


class TestRepair:
    """Arguments for hand-written tools are repaired as those for typed ones, and the schema has the last word."""

    @pytest.mark.parametrize(
        ("part", "sent", "repaired"),
        [
            ({"type": "integer"}, "3", 3),
            ({"type": "integer", "minimum": 3}, "3", 3),
            ({"type": "number"}, "3.5", 3.5),
            ({"type": "boolean"}, "True", True),
            ({"type": "string"}, 3, "3"),
            ({"enum": ["newest", "oldest"]}, "Newest", "newest"),
            ({"const": "a"}, "A", "a"),
            ({"type": ["integer", "null"]}, "", None),
            ({"type": ["integer", "null"]}, "3", 3),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "null", None),
            ({"anyOf": [{"type": "boolean"}, {"type": "integer"}]}, "3", 3),
            ({"type": "array", "items": {"type": "integer"}}, "[1]", [1]),
            ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
            ({"type": "array"}, 1, [1]),
            ({"type": "object"}, '{"a": 1}', {"a": 1}),
            ({"$ref": "#/$defs/filter"}, '{"key": 3}', {"key": "3"}),
            ({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"a": "1", "b": "2"}, {"a": 1, "b": "2"}),
            ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": None}, {}),
        ],
    )
    def test_repairs(self, part: dict[str, Any], sent: Any, repaired: Any) -> None:
        plan = property_plan(part, SEARCH)
        value, notes = repair(plan, sent)
        assert (value, type(value)) == (repaired, type(repaired))
        assert notes
        assert plan.structure(value) == value

    @pytest.mark.parametrize(
        ("part", "sent"),
        [
            ({"type": "integer", "minimum": 3}, "2"),
            ({"type": "array", "items": {"type": "string"}}, "a, b"),
            ({"type": "string", "pattern": "^a"}, 3),
            ({"enum": ["a", ["b"]]}, "c"),
            ({"not": {}}, "3"),
            ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"a": None}),
            (False, "3"),
        ],
    )
    def test_leaves_alone(self, part: Any, sent: Any) -> None:
        assert repair(property_plan({"allOf": [part], **(part or {})}, SEARCH), sent) == (sent, [])

    def test_the_whole(self) -> None:
        value, notes = repair(
            ForeignSchema(SEARCH).plan(), {"query": 5, "limit": "10", "filters": '[{"key": "a"}]', "sort": None}
        )
        assert value == {"query": "5", "limit": 10, "filters": [{"key": "a"}]}
        assert [note.path for note in notes] == ["query", "limit", "filters", "sort"]

    def test_a_recursive_schema(self) -> None:
        node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "v": {"type": "integer"}}}
        plan = ForeignSchema({"$defs": {"n": node}, "$ref": "#/$defs/n"}).plan()
        assert repair(plan, {"next": {"next": '{"v": "1"}'}})[0] == {"next": {"next": {"v": 1}}}
