"""Pydantic as the judge of values that fit its schema, and what it says in words for a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from pegboard import (
    Deferred,
    FixedItems,
    Items,
    Mapped,
    Mismatch,
    Nullable,
    Record,
    Shape,
    Tagged,
    Text,
    TypePlan,
    Union,
    shaped,
)

__all__ = ["Judge", "judge_of", "judged", "writer"]

Judge: TypeAlias = Callable[[Any], Any]


def judge_of(adapter: TypeAdapter[Any]) -> Judge:
    """The function that turns JSON data into what the annotation says. Raises `Mismatch` with every error located."""
    validate = adapter.validator.validate_json

    def judge(data: Any) -> Any:
        # As JSON, since pydantic reads Python values by other rules; writing it takes a fraction of reading it.
        try:
            return validate(to_json(data))
        except ValidationError as error:
            raise Mismatch("pydantic refuses the value", located=list(_located(error, data))) from error
        except PydanticSerializationError as error:
            raise Mismatch(str(error)) from error

    return judge


def writer(adapter: TypeAdapter[Any], tidy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function that writes a value as JSON data that fits the schema."""

    def unstructure(value: Any) -> Any:
        # Something else than was promised is an error here, and not a guess with a warning.
        return tidy(adapter.dump_python(value, mode="json", by_alias=True, warnings="error"))

    return unstructure


def judged(plan: TypePlan, judge: Judge) -> TypePlan:
    """`plan` with its values judged once they have passed; its parts stay as they are."""
    structure = plan.structure

    def shaped_so(shape: Shape) -> TypePlan:
        return evolve(shaped(plan.schema, shape, plan.unstructure), one_way=plan.one_way)

    match plan.shape:
        case Record() as shape:
            return shaped_so(evolve(shape, build=lambda **members: judge(members)))
        case Items() | Mapped() | FixedItems() as shape:
            return shaped_so(evolve(shape, build=judge))
        case Text(parse=parse) as shape:
            return shaped_so(evolve(shape, parse=lambda text: judge(parse(text))))
        case Tagged(members=members) as shape:
            tags = {tag: judged(member, judge) for tag, member in members.items()}
            return shaped_so(evolve(shape, members=tags))
        case Union(members=alternatives):
            return shaped_so(Union(tuple(judged(each, judge) for each in alternatives)))
        case Nullable(inner=inner):
            null = TypePlan({"type": "null"}, _null)
            return shaped_so(Union((judged(inner, judge), judged(null, judge))))
        case Deferred(resolve=resolve):
            return shaped_so(Deferred(lambda: judged(resolve(), judge)))
    return evolve(plan, structure=lambda value: judge(structure(value)), shape=None)


def _null(value: Any) -> None:
    if value is not None:
        raise Mismatch


def _located(error: ValidationError, data: Any) -> Sequence[tuple[Sequence[str | int], str]]:
    problems = error.errors(include_url=False, include_input=False)
    return [(_path(problem["loc"], data, problem["type"]), _words(problem)) for problem in problems]


def _path(loc: Sequence[str | int], data: Any, kind: str) -> list[str | int]:
    """The steps of a location that lead through the value: pydantic also names branches of unions and validators."""
    path: list[str | int] = []
    for step in loc:
        members = data if isinstance(data, Mapping) else dict(enumerate(data)) if isinstance(data, list) else {}
        if step in members:
            data = members[step]
            path.append(step)
    return [*path, loc[-1]] if kind == "missing" else path


def _words(problem: Mapping[str, Any]) -> str:
    raised = problem.get("ctx", {}).get("error")
    if isinstance(raised, BaseException) and str(raised):
        return str(raised)
    text = str(problem["msg"])
    # "Input should ..." goes on after a colon; "URL scheme ..." stays as it is.
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
