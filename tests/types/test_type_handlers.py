"""What a type handler may ask for: the whole of an `Annotated`, metadata included."""

from typing import Annotated, Any, NamedTuple

from pegboard import Origin, Param, Status, Text, Toolkit, TypeHandler, TypePlan, Types, shaped
from pegboard._types.table import TypeTable
from tests.types.table import type_table


class Unit(NamedTuple):
    """Metadata that only the handler understands."""

    name: str


def is_measure(annotation: Any) -> bool:
    return any(isinstance(item, Unit) for item in getattr(annotation, "__metadata__", ()))


def measure(annotation: Any, types: Types) -> TypePlan:
    """Numbers with the unit that the metadata says; written and read as text."""
    (unit,) = (item.name for item in annotation.__metadata__ if isinstance(item, Unit))

    def parse(text: str) -> float:
        number, _, found = text.partition(" ")
        if found != unit:
            raise ValueError(f"give it in {unit}")
        return float(number)

    return shaped({"type": "string", "pattern": f" {unit}$"}, Text(parse), lambda value: f"{value} {unit}")


MEASURES = TypeHandler(is_measure, measure, whole=True)
Metres = Annotated[float, Unit("m")]


def go(distance: Metres, then: list[Annotated[float, Unit("km"), "far away"]] | None = None) -> Metres:
    """Go somewhere."""
    return distance * 2


def test_a_handler_of_the_whole_reads_the_metadata() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register_type(MEASURES)
        toolkit.register(go)
        properties = toolkit["go"].parameters["properties"]
        assert properties["distance"]["pattern"] == " m$"
        assert properties["then"]["items"] == {"type": "string", "pattern": " km$", "description": "far away"}
        assert toolkit.call_sync("go", {"distance": "1.5 m", "then": ["2 km"]}).data == "3.0 m"
        refused = toolkit.call_sync("go", {"distance": "1.5 km", "then": ["2 m"]})
        assert refused.status is Status.INVALID
        assert "distance: " in refused.text
        assert "give it in m" in refused.text
        assert "then[0]: " in refused.text
        assert "give it in km" in refused.text


def test_without_it_a_predicate_sees_bare_types_only() -> None:
    asked: list[Any] = []

    def matches(annotation: Any) -> bool:
        asked.append(annotation)
        return False

    table = type_table(TypeHandler(matches, measure))
    assert table.plan(Metres).schema == {"type": "number"}
    assert asked == [float]
    whole = type_table(TypeHandler(matches, measure, whole=True))
    asked.clear()
    assert whole.plan(Metres).schema == {"type": "number"}
    assert asked == [Metres, float]


def test_it_is_asked_about_bare_types_too() -> None:
    table = type_table(TypeHandler(lambda annotation: annotation is float, lambda a, t: t.plan(str), whole=True))
    assert table.plan(float).schema == {"type": "string"}
    assert table.plan(Metres).schema == {"type": "string"}


def test_bounds_are_its_own_to_enforce_and_descriptions_are_not() -> None:
    plan = type_table(MEASURES).plan(Annotated[float, Unit("m"), Param("how far", ge=1)])
    assert plan.schema == {"type": "string", "pattern": " m$", "description": "how far"}
    assert plan.structure("0.5 m") == 0.5


def test_a_handler_in_the_annotation_itself_is_nearer() -> None:
    own = TypeHandler(float, lambda annotation, types: types.plan(int))
    assert type_table(MEASURES).plan(Annotated[float, Unit("m"), own]).schema == {"type": "integer"}


def test_handler_for_names_it_and_what_it_shadows() -> None:
    winner, _, shadowed = type_table(MEASURES).handler_for(Metres)
    assert winner is MEASURES
    assert shadowed[0][0].matches is float


def test_of_two_plugins_that_read_the_same_metadata_the_first_counts() -> None:
    table = TypeTable()
    table.add(TypeHandler(float, lambda annotation, types: shaped({}, Text(str))), Origin("core"), "builtin")
    for name in ("yards", "metres"):
        table.add(TypeHandler(is_measure, measure, whole=True), Origin(name), "plugin")
    assert table.plan(Annotated[float, Unit("km")]).schema != {}
    (problem,) = table.problems
    assert problem.startswith("metres and yards both map float; yards counts; ")
    assert table.plan(float).schema == {}
