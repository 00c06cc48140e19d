"""Schemas as a provider takes them: unsupported keywords go into the description, and every loss is recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from pegboard_dialects._losses import Loss, Severity
from pegboard_dialects._parted import ALTERNATIVES, NOTES, only, without_null
from pegboard_dialects._pointers import recursive, references, resolved, target

__all__ = ["AS_WRITTEN", "Rendered", "Rules", "rendered", "words"]


def words(text: str) -> frozenset[str]:
    """The words of a text, such as keywords."""
    return frozenset(text.split())


BUDGET: Final = 5_000
"""How many schemas references may be written out to for one tool; further ones stay references."""
LONGEST_NOTE: Final = 400
"""The most characters of a keyword's value that a description holds."""

_NOT_AT_THE_ROOT: Final = ("anyOf", "oneOf", "allOf", "not", "enum")
_OF_NUMBERS: Final = "exclusiveMaximum exclusiveMinimum maximum minimum multipleOf"
_OF_TYPE: Final = {
    "array": words("contains items maxContains maxItems minContains minItems prefixItems unevaluatedItems uniqueItems"),
    "integer": words(_OF_NUMBERS),
    "number": words(_OF_NUMBERS),
    "object": words(
        "additionalProperties dependentRequired dependentSchemas maxProperties minProperties patternProperties "
        "properties propertyNames required unevaluatedProperties"
    ),
    "string": words("contentEncoding contentMediaType contentSchema format maxLength minLength pattern"),
}
_SHARED: Final = frozenset().union(*_OF_TYPE.values())
_WORTH_SAYING: Final = (_SHARED - words("properties required")) | words(
    "const default deprecated else enum examples if not oneOf readOnly then writeOnly"
)
"""Keywords that the model should read; other unsupported ones can be dropped."""
_REMARKS: Final = frozenset({"default", "deprecated", "examples", "readOnly", "writeOnly"})
"""Keywords that forbid nothing."""


class Rules(NamedTuple):
    """The rules for a provider's schemas."""

    keywords: frozenset[str] = frozenset()
    """The keywords that stay; empty for all."""
    formats: frozenset[str] | None = None
    """The formats that stay; None for all."""
    enum_types: tuple[type, ...] = (str, int, float, bool, type(None))
    """The types of values that an enum may hold."""
    stays: Callable[[str, Any], bool] = lambda keyword, value: True
    """Whether a keyword of `keywords` may stay with this value."""
    closed: bool = False
    """Objects have only the members that are named."""
    all_required: bool = False
    """Every member is required; an optional one becomes one that may be null."""
    typed: bool = False
    """Every schema has a type or alternatives; with an enum too, unless `bare_choices` holds."""
    bare_choices: bool = False
    """There is no type beside an enum."""
    null_as_type: bool = False
    """Null is written as `{"type": ["string", "null"]}` if possible, not as an alternative."""
    loose_cycles: bool = False
    """Types may contain themselves only in members that are not required."""
    most_members: int = 1_000_000
    deepest: int = 1_000_000
    most_choices: int = 1_000_000
    longest: int = 1_000_000_000
    """Characters of all names and choices together."""


AS_WRITTEN: Final = Rules()


class Rendered(NamedTuple):
    """A schema as the provider takes it. `parameters` is None if the rules cannot hold it: the last loss is why."""

    parameters: dict[str, Any] | None
    losses: list[Loss]


def rendered(tool: str, schema: Mapping[str, Any], rules: Rules) -> Rendered:
    """The parameters of a tool under some rules."""
    root, losses = _object_alone(tool, schema)
    if not rules.keywords:
        return Rendered(root, losses)
    writer = _Writer(tool, root, rules)
    try:
        return Rendered(writer.document(), [*losses, *writer.losses])
    except _CannotSayError as error:
        return Rendered(None, [*losses, *writer.losses, error.loss])


def _object_alone(tool: str, schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[Loss]]:
    """The root as the schema of a plain object: no provider takes alternatives there."""
    root = {"type": "object", **resolved(schema, schema)}
    root |= {keyword: schema[keyword] for keyword in _DEFINITIONS if keyword in schema}
    outside: dict[str, Any] = {keyword: root.pop(keyword) for keyword in _NOT_AT_THE_ROOT if keyword in root}
    if not outside:
        return root, []
    members = [member for keyword in ("anyOf", "oneOf", "allOf") for member in outside.get(keyword, ())]
    root["properties"] = {
        name: inner
        for member in [*members, root]
        for name, inner in (resolved(member, schema).get("properties") or {}).items()
    }
    what = "no provider takes this at the root of the parameters; the description alone tells it"
    return _with_notes(root, outside), [Loss(tool, "", keyword, what, "warning") for keyword in outside]


class _CannotSayError(Exception):
    """The rules cannot hold the schema."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(str(loss))
        self.loss = loss


class _Writer:
    """Writes the schema of one tool under some rules."""

    def __init__(self, tool: str, root: Mapping[str, Any], rules: Rules) -> None:
        self.losses: list[Loss] = []
        self._tool = tool
        self._root = root
        self._rules = rules
        self._recursive = recursive(root)
        self._definitions: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._inside: list[str] = []
        self._written = 0

    def document(self) -> dict[str, Any]:
        """The root, with the definitions that it needs."""
        written = self._node(self._root, "")
        if self._definitions:
            written["$defs"] = {name: self._definitions[name] for name in sorted(self._definitions)}
        self._check_size(written)
        return written

    def _lose(self, path: str, keyword: str, what: str, severity: Severity = "warning") -> None:
        self.losses.append(Loss(self._tool, path, keyword, what, severity))

    def _cannot(self, path: str, keyword: str, what: str) -> _CannotSayError:
        return _CannotSayError(Loss(self._tool, path, keyword, f"strict mode has no {what}; sent without", "warning"))

    # One schema ------------------------------------------------------------------------------------------------

    def _node(self, schema: Any, path: str) -> dict[str, Any]:
        """The schema as the provider takes it, under its description."""
        self._written += 1
        schema, nullable = self._opened(schema, path)
        notes: dict[str, Any] = {}
        written: dict[str, Any] = {}
        if isinstance(schema.get("$ref"), str):
            written["$ref"] = f"#/$defs/{self._definition(schema['$ref'], path)}"
            notes = _worth_saying(schema)
            if notes or "description" in schema:
                written = {"anyOf": [written]}
        elif schema.get("type") == "null":
            written["type"] = "null"
        else:
            written = self._alternatives(schema, path, notes) or self._single(schema, path, notes)
        written |= only(schema, NOTES & self._rules.keywords)
        for keyword, value in notes.items():
            severity: Severity = "info" if keyword in _REMARKS else "warning"
            self._lose(path, keyword, f"{_shown(value)} is told in the description alone", severity)
        written = _with_notes(written, notes)
        return self._nullable(written) if nullable else written

    def _opened(self, schema: Any, path: str) -> tuple[dict[str, Any], bool]:
        """The schema with references written out and parts merged, without its null; and whether it had one.

        References to types that contain themselves stay.
        """
        nullable = False
        while True:
            if not isinstance(schema, Mapping):
                return ({"not": {}} if schema is False else {}), nullable
            schema = dict(schema)
            reference = schema.get("$ref")
            if isinstance(reference, str):
                if reference in self._recursive or self._written > BUDGET:
                    return schema, nullable
                del schema["$ref"]
                schema = self._merged(schema, target(reference, self._root), path)
            elif isinstance(schema.get("allOf"), list):
                parts = schema.pop("allOf")
                for part in parts:
                    schema = self._merged(schema, part, path)
            else:
                found = without_null(schema)
                nullable = nullable or found.nullable
                if found.only is None:
                    return found.rest, nullable
                schema = self._merged(found.rest, found.only, path)

    def _merged(self, schema: dict[str, Any], part: Any, path: str) -> dict[str, Any]:
        """Two schemas that both apply, as one: where they differ, the first counts."""
        if not isinstance(part, Mapping):
            return schema
        merged = {**part, **schema}
        for keyword in schema.keys() & part.keys():
            first, second = schema[keyword], part[keyword]
            if first == second or keyword in ("title", "default", "examples"):
                continue
            if keyword == "description":
                merged[keyword] = f"{first} ({second})"
            elif keyword == "properties":
                merged[keyword] = {**second, **first}
            elif keyword == "required":
                merged[keyword] = list(dict.fromkeys([*first, *second]))
            elif keyword == "$ref":
                merged = self._merged({k: v for k, v in schema.items() if k != "$ref"}, target(first, self._root), path)
                return self._merged(merged, part, path)
            else:
                self._lose(path, keyword, f"two of them hold, {_shown(first)} and {_shown(second)}; the first is told")
        return merged

    def _alternatives(self, schema: dict[str, Any], path: str, notes: dict[str, Any]) -> dict[str, Any] | None:
        """A schema that is one of several; None for any other."""
        members = next((schema[keyword] for keyword in ALTERNATIVES if schema.get(keyword)), None)
        if members is None and isinstance(schema.get("type"), list):
            kinds = schema["type"]
            members = [{"type": kind, **only(schema, _OF_TYPE.get(kind, frozenset()))} for kind in kinds]
            schema = {keyword: value for keyword, value in schema.items() if keyword not in _SHARED}
        elif members is None and self._rules.typed and "type" not in schema and "enum" in schema:
            members = _by_type(schema["enum"])
            if len(members) == 1:
                return None
        if members is None:
            return None
        beside = schema.keys() & {"properties", "required"}
        if beside:  # these apply to all alternatives
            common = only(schema, {"type", *beside})
            members = [{"allOf": [member, common]} for member in members]
        taken = {*ALTERNATIVES, *beside, "type", "enum"}
        notes.update(_worth_saying({keyword: value for keyword, value in schema.items() if keyword not in taken}))
        return {"anyOf": [self._node(member, path) for member in members]}

    def _single(self, schema: dict[str, Any], path: str, notes: dict[str, Any]) -> dict[str, Any]:
        """A schema of one type, or of none."""
        written: dict[str, Any] = {}
        kind = schema.get("type") or _implied(schema)
        if isinstance(kind, str):
            written["type"] = kind
        self._choices(schema, written, path, notes)
        if self._rules.typed and not written.keys() & {"type", "enum", "const"}:
            raise self._cannot(path, "type", "values of any type")
        if kind == "object":
            self._object(schema, written, path, notes)
        elif kind == "array":
            self._array(schema, written, path, notes)
        for keyword, value in schema.items():
            if keyword not in _DONE:
                self._keyword(keyword, value, kind, written, notes)
        if self._rules.bare_choices and written.keys() & {"enum", "const"}:
            written.pop("type", None)
        return written

    def _keyword(self, keyword: str, value: Any, kind: Any, written: dict[str, Any], notes: dict[str, Any]) -> None:
        rules = self._rules
        if keyword == "format" and rules.formats is not None and value not in rules.formats:
            notes[keyword] = value
        elif keyword in rules.keywords and rules.stays(keyword, value):
            written[keyword] = value
        elif kind == "integer" and type(value) is int and _INCLUSIVE.get(keyword, ("",))[0] in rules.keywords:
            inclusive, step, tighter = _INCLUSIVE[keyword]
            written[inclusive] = tighter(value + step, written.get(inclusive, value + step))
        elif keyword in _WORTH_SAYING:
            notes[keyword] = value

    def _choices(self, schema: dict[str, Any], written: dict[str, Any], path: str, notes: dict[str, Any]) -> None:
        """Write the values of an enum or a const."""
        rules = self._rules
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(choices, list):
            return
        if len(types := {_type_name(each) for each in choices}) == 1:
            written.setdefault("type", *types)
        if rules.typed and any(isinstance(each, (dict, list)) for each in choices):
            raise self._cannot(path, "enum", "choices that are objects or arrays")
        if not all(type(each) in rules.enum_types for each in choices):
            notes["const" if "const" in schema else "enum"] = schema.get("const", choices)
        elif "const" in schema and "const" in rules.keywords:
            written["const"] = schema["const"]
        else:
            written["enum"] = choices
            notes |= only(schema, {"const"})

    def _object(self, schema: dict[str, Any], written: dict[str, Any], path: str, notes: dict[str, Any]) -> None:
        rules, properties = self._rules, schema.get("properties") or {}
        others = schema.get("additionalProperties", True)
        if rules.closed:
            stated = "additionalProperties" in schema or not properties
            if "patternProperties" in schema or (stated and others is not False):
                raise self._cannot(path, "additionalProperties", "objects with members of any name")
            written["additionalProperties"] = False
        elif "additionalProperties" in schema:
            written["additionalProperties"] = (
                self._node(others, f"{path}{{}}") if isinstance(others, Mapping) else others
            )
        required = [name for name in schema.get("required") or () if name in properties]
        members: dict[str, Any] = {}
        for name, inner in properties.items():
            if inner is False:
                continue
            member = self._node(inner, f"{path}.{name}" if path else name)
            members[name] = self._nullable(member) if rules.all_required and name not in required else member
        if rules.loose_cycles and self._inside:
            required = self._loosened(properties, required, path)
        written["properties"] = members
        written["required"] = list(members) if rules.all_required else required

    def _loosened(self, properties: Mapping[str, Any], required: list[str], path: str) -> list[str]:
        """The required members of a type that contains itself, without those that lead back to it."""
        leading = [name for name in required if not self._recursive.isdisjoint(references(properties[name]))]
        for name in leading:
            what = "the provider takes types that contain themselves only where a member may be left out"
            self._lose(f"{path}.{name}" if path else name, "required", what)
        return [name for name in required if name not in leading]

    def _array(self, schema: dict[str, Any], written: dict[str, Any], path: str, notes: dict[str, Any]) -> None:
        rules, items, below = self._rules, schema.get("items"), f"{path}[]"
        first = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        rest = [items] if isinstance(items, Mapping) else []
        if first and "prefixItems" in rules.keywords:
            written["prefixItems"] = [self._node(member, below) for member in first]
        elif first:  # their positions are lost
            notes["prefixItems"] = first
            members = distinct([self._node(member, below) for member in [*first, *rest]])
            rest = [members[0] if len(members) == 1 else {"anyOf": members}]
        if rest:
            written["items"] = rest[0] if first else self._node(rest[0], below)
        elif rules.typed and not first:
            raise self._cannot(path, "items", "items of any type")

    def _nullable(self, written: dict[str, Any]) -> dict[str, Any]:
        """A schema for the same values and null."""
        null = {"type": "null"}
        if written == null or not written:
            return written
        if "anyOf" in written:
            return written if null in written["anyOf"] else {**written, "anyOf": [*written["anyOf"], null]}
        kind, rules = written.get("type"), self._rules
        if isinstance(kind, list):
            return written  # it allows null already
        choices = [written["const"]] if "const" in written else written.get("enum")
        if rules.null_as_type and isinstance(kind, str) and (choices is None or type(None) in rules.enum_types):
            kept = {keyword: value for keyword, value in written.items() if keyword not in ("const", "enum")}
            return {**kept, "type": [kind, "null"]} | ({} if choices is None else {"enum": [*choices, None]})
        bare = {keyword: value for keyword, value in written.items() if keyword not in NOTES}
        return {"anyOf": [bare, null], **only(written, NOTES)}

    # Definitions, limits ---------------------------------------------------------------------------------------

    def _definition(self, reference: str, path: str) -> str:
        """The name of the definition that a reference leads to. The first reference to it writes it."""
        if reference not in self._names:
            name = _unused(reference, self._names.values())
            self._names[reference] = name
            found = target(reference, self._root)
            own = {k: v for k, v in found.items() if k not in _DEFINITIONS} if isinstance(found, Mapping) else found
            self._inside.append(name)
            self._definitions[name] = self._node(own, path)
            self._inside.pop()
        return self._names[reference]

    def _check_size(self, written: dict[str, Any]) -> None:
        rules, size = self._rules, _Size()
        size.add(written, 0)
        for most, found, what in (
            (rules.most_members, size.members, "parameters"),
            (rules.deepest, size.depth, "levels"),
            (rules.most_choices, size.choices, "choices"),
            (rules.longest, size.length, "characters of names and choices"),
        ):
            if found > most:
                raise self._cannot("", "size", f"room for {found:,} {what}, only for {most:,}")


class _Size:
    """How big a schema is, as providers measure it."""

    def __init__(self) -> None:
        self.members = self.depth = self.choices = self.length = 0

    def add(self, schema: Any, level: int) -> None:
        """Count a schema at a level."""
        if not isinstance(schema, dict):
            return
        self.depth = max(self.depth, level)
        choices = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
        self.choices += len(choices)
        self.length += sum(len(str(each)) for each in choices)
        for name, inner in [*schema.get("properties", {}).items(), *schema.get("$defs", {}).items()]:
            self.members += 1
            self.length += len(name)
            self.add(inner, level + 1)
        self.add(schema.get("items"), level + 1)
        for inner in schema.get("anyOf", ()):
            self.add(inner, level)


_DEFINITIONS: Final = ("$defs", "definitions")
_DONE: Final = words("additionalProperties const description enum items prefixItems properties required title type")
"""Keywords that are not written one by one."""
_INCLUSIVE: Final[dict[str, Any]] = {"exclusiveMinimum": ("minimum", 1, max), "exclusiveMaximum": ("maximum", -1, min)}


def _implied(schema: Mapping[str, Any]) -> str | None:
    """The type that a schema's keywords apply to, for a schema without a type."""
    if schema.keys() & {"properties", "required", "additionalProperties"}:
        return "object"
    return "array" if schema.keys() & {"items", "prefixItems"} else None


def _type_name(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _by_type(choices: list[Any]) -> list[dict[str, Any]]:
    """Choices of several types, grouped by type."""
    kinds = dict.fromkeys(map(_type_name, choices))
    return [{"type": kind, "enum": [each for each in choices if _type_name(each) == kind]} for kind in kinds]


def distinct(schemas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({json.dumps(schema, sort_keys=True): schema for schema in schemas}.values())


def _unused(reference: str, taken: Collection[str]) -> str:
    """A name for a definition, made from a reference to it."""
    last = re.sub(r"[^A-Za-z0-9_.-]", "_", reference.rpartition("/")[2].lstrip("#")) or "Root"
    number, name = 1, last
    while name in taken:
        number += 1
        name = f"{last}_{number}"
    return name


def _worth_saying(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword in _WORTH_SAYING}


def _with_notes(schema: dict[str, Any], notes: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with keywords in its description: `Forecast days {minimum: 1, default: 3}`."""
    if not notes:
        return schema
    keywords = ", ".join(f"{keyword}: {_shown(value)}" for keyword, value in notes.items())
    return {**schema, "description": f"{schema.get('description', '')} {{{keywords}}}".lstrip()}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_NOTE else f"{text[:LONGEST_NOTE]}..."
