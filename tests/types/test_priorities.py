"""A pack's handler for one class or family wins over packs that map a whole library, whatever their names."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from pegboard import Text, Toolkit, TypeHandler, TypePlan, Types, hookimpl, shaped


@dataclass
class Shape:
    """The base of a family."""

    size: int = 0


@dataclass
class Round(Shape):
    """One of the family."""


def mapping(name: str, cls: type) -> ModuleType:
    def build(annotation: Any, types: Types) -> TypePlan:
        return shaped({"type": "string"}, Text(lambda text: annotation()), lambda value: name)

    module = ModuleType(name)
    vars(module)["provide_types"] = hookimpl(lambda settings: [TypeHandler(cls, build)])
    return module


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_the_base_of_a_family_of_dataclasses(name: str) -> None:
    pytest.importorskip("pegboard_dataclasses")

    def draw(shape: Round) -> Round:
        return shape

    with Toolkit(plugins=["dataclasses", mapping(name, Shape)]) as toolkit:
        toolkit.register(draw)
        assert toolkit["draw"].parameters["properties"]["shape"] == {"type": "string"}
        assert (toolkit.call_sync("draw", {"shape": "x"}).data, toolkit.problems) == (name, [])


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_one_model_of_pydantic(name: str) -> None:
    pytest.importorskip("pegboard_pydantic")
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", size=(int, 0))

    def draw(shape: Any) -> Any:
        return shape

    draw.__annotations__ = {"shape": model, "return": model}
    with Toolkit(plugins=["pydantic", "dataclasses", mapping(name, model)]) as toolkit:
        toolkit.register(draw)
        assert toolkit["draw"].parameters["properties"]["shape"] == {"type": "string"}
        assert (toolkit.call_sync("draw", {"shape": "x"}).data, toolkit.problems) == (name, [])


def test_a_dataclass_of_pydantic_is_pydantics() -> None:
    pytest.importorskip("pegboard_pydantic")
    pydantic = pytest.importorskip("pydantic.dataclasses")
    cls = pydantic.dataclass(type("Point", (), {"__annotations__": {"x": int}}))
    with Toolkit(plugins=["pydantic", "dataclasses"]) as toolkit:
        _, origin, shadowed = toolkit.types.handler_for(cls)
        assert (origin.plugin, [each.plugin for _, each in shadowed]) == ("pydantic", ["dataclasses"])
