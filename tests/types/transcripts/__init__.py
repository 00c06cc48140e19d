"""What becomes of calls that models really made: in Pegboard, and in pydantic's lax mode."""

import inspect
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pydantic
from typing_extensions import TypedDict

from pegboard import Param, Toolkit

HERE = Path(__file__).parent
OMITTED = "<omitted>"
Outcome = Literal["as meant", "refused", "wrongly"]


class Call(NamedTuple):
    """One call: where it stands, what its tool takes, what was sent, and what was meant (None: unknown)."""

    source: str
    parameters: dict[str, Any]
    sent: Any
    meant: dict[str, Any] | None


def recorded() -> Iterator[Call]:
    """Calls as models were recorded to make them."""
    for group in json.loads((HERE / "as_meant.json").read_text("utf-8")):
        for model in [key for key in group if key not in ("source", "tools")]:
            for tool, sent in group[model]:
                yield Call(f"{group['source']}, {model}", group["tools"][tool], sent, sent)


def reported() -> Iterator[Call]:
    """Calls that people wrote reports about."""
    for source, parameters, sent, meant in json.loads((HERE / "reported.json").read_text("utf-8")):
        whole = None if meant is None else {**(sent if isinstance(sent, dict) else {}), **meant}
        yield Call(source, parameters, sent, whole)


def record(**members: Any) -> Any:
    """A record of which every member may be left out."""
    return TypedDict("Record", members, total=False)  # type: ignore[operator]


NAMES = {
    "Annotated": Annotated,
    "Any": Any,
    "Literal": Literal,
    "Param": Param,
    "Record": record,
    "date": date,
    "datetime": datetime,
}


def typed(parameters: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Each parameter with its annotation and its default."""
    pairs = {
        name: said if isinstance(said, list) else [said, inspect.Parameter.empty] for name, said in parameters.items()
    }
    return {name: (eval(text, NAMES), default) for name, (text, default) in pairs.items()}


def by_pegboard(call: Call, toolkit: Toolkit) -> dict[str, Any] | None:
    """What the function receives from Pegboard; None where the call is refused."""
    arrived: list[dict[str, Any]] = []

    def tool(**values: Any) -> str:
        arrived.append(values)
        return "done"

    takes = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in typed(call.parameters).items()
    ]
    tool.__signature__ = inspect.Signature(takes)  # type: ignore[attr-defined]
    tool.__annotations__ = {each.name: each.annotation for each in takes}
    toolkit.register(tool, on_conflict="replace")
    toolkit.call_sync("tool", call.sent)
    return arrived[0] if arrived else None


def by_pydantic(call: Call, toolkit: Toolkit) -> dict[str, Any] | None:
    """What a model of pydantic makes of the same text in lax mode, surplus members forbidden."""
    fields: dict[str, Any] = {
        name: (annotation, ... if default is inspect.Parameter.empty else default)
        for name, (annotation, default) in typed(call.parameters).items()
    }
    model = pydantic.create_model("Tool", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    try:
        read = model.model_validate_json(call.sent if isinstance(call.sent, str) else json.dumps(call.sent))
    except pydantic.ValidationError:
        return None
    return {name: getattr(read, name) for name in read.model_fields_set}


def outcome(call: Call, arrived: dict[str, Any] | None) -> Outcome:
    """What became of a call. What arrives as the default was left out, even if something filled it in."""
    if arrived is None:
        return "refused"
    if call.meant is None:
        return "wrongly"
    defaults = {name: default for name, (_, default) in typed(call.parameters).items()}
    missing = object()
    for name, default in defaults.items():
        meant = call.meant.get(name, OMITTED)
        got = arrived.get(name, missing)
        if meant in (OMITTED, None) and (got is missing or alike(got, default)):
            continue
        if got is missing or not alike(got, meant):
            return "wrongly"
    return "as meant"


def alike(got: Any, meant: Any) -> bool:
    """Whether a value is what was meant: moments by their text, true is not 1, 1.0 is 1."""
    if isinstance(got, date):
        return isinstance(meant, str) and got.isoformat() == meant
    if isinstance(got, list) and isinstance(meant, list):
        return len(got) == len(meant) and all(map(alike, got, meant))
    if isinstance(got, dict) and isinstance(meant, dict):
        return got.keys() == meant.keys() and all(alike(got[key], meant[key]) for key in got)
    return isinstance(got, bool) == isinstance(meant, bool) and bool(got == meant)


READERS: dict[str, Callable[[Call, Toolkit], dict[str, Any] | None]] = {
    "Pegboard": by_pegboard,
    "pydantic, lax": by_pydantic,
}
SETS: dict[str, Callable[[], Iterator[Call]]] = {"recorded": recorded, "reported": reported}


def outcomes(reader: str, calls: Iterator[Call]) -> Iterator[tuple[Call, Outcome]]:
    """How each call ends. One whose meaning cannot be known ends as meant where it is refused."""
    with Toolkit(plugins=["dataclasses"]) as toolkit:
        for call in calls:
            ended = outcome(call, READERS[reader](call, toolkit))
            yield call, "as meant" if call.meant is None and ended == "refused" else ended
