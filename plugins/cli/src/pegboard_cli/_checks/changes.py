"""Changes between two locks, by what they do to a caller: what a release may contain, and which number it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import unquote

from attrs import frozen

from pegboard import RegistrationError
from pegboard_cli._checks.lockfile import Lock
from pegboard_cli._output.printing import dumps

__all__ = ["CLASSES", "Change", "Class", "Step", "changes_between", "step_of"]

Class = Literal["breaking", "unproven", "widening", "text"]
"""What a change does to callers; `unproven` for one that no value shows and no proof excludes."""
Step = Literal["major", "minor", "patch"]

CLASSES: Final[tuple[Class, ...]] = ("breaking", "unproven", "widening", "text")
"""The gravest first."""
_STEPS: Final[Mapping[Class, Step]] = {"breaking": "major", "unproven": "major", "widening": "minor", "text": "patch"}
_LONGEST: Final = 200
_ASKS: Final = ("never", "sometimes", "always")
# Values of hints, the safest first; None says nothing, which may be either.
_HINTS: Final = {
    "destructive": (False, None, True),
    "idempotent": (True, None, False),
    "open_world": (False, None, True),
    "read_only": (True, None, False),
}

Pinned = Mapping[str, Any]


@frozen
class Change:
    """A change of one tool at one place. `witness` is a value that shows it, `reason` says so in words."""

    tool: str
    path: str
    kind: Class
    witness: Any = None
    reason: str = ""
    is_early: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON-able data."""
        return {"tool": self.tool, "path": self.path, "class": self.kind, "witness": self.witness}

    @property
    def step(self) -> Step:
        """The number that a release with this change raises; before 1.0 the minor one stands for the major one."""
        step = _STEPS[self.kind]
        return "minor" if self.is_early and step == "major" else step


def changes_between(before: Lock, now: Lock) -> list[Change]:
    """Every change of a tool, by the names of the tools. Raises `ModuleNotFoundError` without pegboard-schemas."""
    found = []
    for name in sorted({*before.tools, *now.tools}):
        old, new = before.tools.get(name), now.tools.get(name)
        is_early = _is_early(new if old is None else old)
        found += [Change(name, *each, is_early=is_early) for each in _changes(old, new)]
    return found


def step_of(changes: list[Change]) -> Step:
    """The number that a release with these changes raises; a patch without any."""
    steps = {each.step for each in changes}
    return "major" if "major" in steps else "minor" if "minor" in steps else "patch"


def _is_early(pinned: Pinned | None) -> bool:
    """Whether the tool's distribution has a version below 1.0."""
    version = str((pinned or {}).get("origin", {}).get("version") or "")
    return version.partition("!")[2 if "!" in version else 0].partition(".")[0] == "0"


Found = tuple[str, Class, Any, str]


def _changes(old: Pinned | None, new: Pinned | None) -> Iterator[Found]:
    if old is None or new is None:
        yield ("", "widening", None, "the tool is new") if old is None else ("", "breaking", None, "the tool is gone")
        return
    for path in ("description", "origin"):
        if _plain(old.get(path)) != _plain(new.get(path)):
            yield path, "text", None, f"another {path}"
    yield from _graded("approval", _ASKS[::-1], old["approval"], new["approval"])
    for name, order in _HINTS.items():
        yield from _graded(f"hints.{name}", order, old["hints"].get(name), new["hints"].get(name))
    yield from _parameters(old["parameters"], new["parameters"])
    yield from _returns(old["returns"], new["returns"])


def _plain(value: Any) -> Any:
    """Where a tool comes from, without the version: a new release alone changes no tool."""
    return {**value, "version": None} if isinstance(value, Mapping) else value


def _graded(path: str, order: tuple[Any, ...], old: Any, new: Any) -> Iterator[Found]:
    """A change of something that has a safe end: away from it is breaking."""
    if old != new:
        spelled = f"{dumps(old)} before, {dumps(new)} now"
        yield path, "breaking" if order.index(new) > order.index(old) else "widening", None, spelled


def _parameters(old: Pinned, new: Pinned) -> Iterator[Found]:
    from pegboard_schemas import members_of

    if _sorted(old) == _sorted(new):
        return
    members = members_of(old, new)
    if not members:
        yield "parameters", *_judged(old, new, None, ("refused now", "accepted now"))
        return
    for member in members:
        if _reached(old, member) != _reached(new, member):
            yield f"parameters.{member}", *_judged(old, new, member, ("refused now", "accepted now"))
    if _sorted(_rest(old)) != _sorted(_rest(new)):
        yield "parameters", "text", None, "another text"


def _returns(old: Pinned | None, new: Pinned | None) -> Iterator[Found]:
    """Results, the other way round: what may be returned now and could not before is news to a caller."""
    if _sorted(old) != _sorted(new):
        first, second = ({} if each is None else each for each in (new, old))
        yield "returns", *_judged(first, second, None, ("may be returned now", "is not returned any more"))


def _judged(old: Pinned, new: Pinned, member: str | None, words: tuple[str, str]) -> tuple[Class, Any, str]:
    """The class of a change of a schema, its witness, and the reason in words."""
    from pegboard_schemas import compared_schemas

    try:
        found = compared_schemas(old, new, member=member)
    except RegistrationError as error:
        return "unproven", None, str(error)
    if found.lost:
        return "breaking", found.lost[0], f"{words[0]}: {_shown(found.lost[0])}"
    if found.keeps_all and found.gained:
        return "widening", found.gained[0], f"{words[1]}: {_shown(found.gained[0])}"
    if found.keeps_all and found.adds_nothing:
        return "text", None, "another text"
    known = "nothing breaks, and whether anything is new" if found.keeps_all else "whether anything breaks"
    return "unproven", None, f"{known} is not known"


def _shown(witness: Any) -> str:
    text = dumps(witness, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _sorted(schema: Any) -> str:
    return dumps(schema, sort_keys=True)


def _rest(schema: Pinned) -> dict[str, Any]:
    """What a schema of parameters says besides its members."""
    return {
        word: value for word, value in schema.items() if word not in ("properties", "required", "$defs", "definitions")
    }


def _reached(schema: Pinned, member: str) -> tuple[str, bool]:
    """All that a schema says of a member: its part, what its references lead to, and whether it is required."""
    found: dict[str, Any] = {}
    part = schema.get("properties", {}).get(member)
    waiting = _references(part)
    for reference in waiting:  # the list grows in the loop
        if reference not in found:
            found[reference] = _target(schema, reference)
            waiting += _references(found[reference])
    return _sorted([part, found]), member in schema.get("required", ())


def _target(schema: Any, reference: str) -> Any:
    for step in unquote(reference).removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list):
            schema = dict(enumerate(schema)).get(int(name)) if name.isdecimal() else None
        else:
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return schema


def _references(part: Any) -> list[str]:
    if isinstance(part, Mapping):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [each for value in part.values() for each in _references(value)]
    return [each for value in part for each in _references(value)] if isinstance(part, list) else []
