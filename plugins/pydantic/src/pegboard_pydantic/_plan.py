"""From an annotation that pydantic understands to a plan."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from attrs import evolve
from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError

from pegboard import RegistrationError, TypePlan, Types, qualified_name
from pegboard_pydantic._generate import describe
from pegboard_pydantic._inside import inside
from pegboard_pydantic._judge import judge_of, judged, writer
from pegboard_pydantic._promise import Classes, promise

__all__ = ["build"]

_known: WeakKeyDictionary[Any, Classes] = WeakKeyDictionary()
"""For each type table the classes that it has met: two models that share a third share its definition."""


def build(annotation: Any, types: Types) -> TypePlan:
    """The plan of a type: pydantic's schema, enforced as it stands, and pydantic's verdict on what passes.

    Raises `RegistrationError` for a model with names that mean nothing yet, and for what JSON cannot express.
    """
    adapter = _adapter(annotation)
    described = describe(adapter, annotation)
    types.contains(*inside(annotation, described.classes.values()))
    promised = promise(described, types, _known.setdefault(types, {}))
    return evolve(judged(promised, judge_of(adapter)), unstructure=writer(adapter, promised.unstructure))


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    name = qualified_name(annotation)
    try:
        adapter = TypeAdapter(annotation)
        adapter.rebuild(raise_errors=True)
    except PydanticUndefinedAnnotation as error:
        raise RegistrationError(
            f"an annotation of {name} cannot be resolved: {error.message}; define the name, or call model_rebuild()"
        ) from error
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise RegistrationError(f"pydantic cannot read {name}: {error.message}") from error
    return adapter
