"""JSON Schema as data: nodes that know their Python type, and their rendering for readers.

Inside the library a schema is a tree of dicts in which a named type stands as a `SchemaRef`, so that recursive types
need no circle and every reader can have its own rendering: with `$defs` or inlined, with titles or without, as
JSON Schema 2020-12 or as OpenAPI 3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from pegboard._base.errors import PegboardError
from pegboard._model.subschemas import JsonSchema, map_subschemas, measured, packed, subschemas, unpacked
from pegboard._model.tool import SchemaRequest

_PLAIN: Final = SchemaRequest()
_MOST_INLINED: Final = 100_000


class SchemaNode(dict[str, Any]):
    """A JSON Schema that also knows the full name of the type that it describes, beside its members."""

    __slots__ = ("_inlined", "_reach", "_references", "_title")

    def __init__(self, schema: Mapping[str, Any], title: Callable[[], str | None] | None = None) -> None:
        super().__init__(schema)
        self._title = title
        self._references: tuple[SchemaRef, ...] | None = None
        self._reach: tuple[frozenset[int], bool] | None = None
        self._inlined: Any = None

    def references(self) -> tuple[SchemaRef, ...]:
        """The references inside, in the order of the document; found once, for many tools share a type."""
        if self._references is None:
            self._references = tuple(_references(self))
        return self._references

    def reach(self) -> tuple[frozenset[int], bool]:
        """The types that are mentioned inside at any depth, by `id`, and whether each of them just once."""
        if self._reach is None:
            met = _met(self)
            once = id(self) not in met and all(count == 1 for count, _ in met.values())
            self._reach = frozenset(met), once
        return self._reach

    def inlined(self, render: Callable[[], JsonSchema], shared: Collection[int]) -> JsonSchema:
        """What `render` gives, remembered for every rendering in which no type inside is one of the `shared` ones."""
        if shared and not self.reach()[0].isdisjoint(shared):
            return render()
        if self._inlined is None:
            rendered = render()
            self._inlined = packed(rendered)
            return rendered
        return cast("JsonSchema", unpacked(self._inlined))

    @property
    def title(self) -> str | None:
        """The full name, such as `list[dict[str, pkg.mod.MyObject]]`; None where there is none."""
        return self._title() if self._title else None

    def copy(self) -> SchemaNode:
        """A shallow copy that still knows its type."""
        return SchemaNode(self, self._title)


class SchemaRef(SchemaNode):
    """A named type inside another schema: `{"$ref": "#/$defs/<name>"}`, with the schema itself in `target`.

    Keywords beside `$ref` (a description, say) are kept when the reference is rendered and when it is inlined.

    Args:
        name: Name of the type in `$defs`.
        resolve: Gives the schema itself, on first use.
        beside: Keywords beside `$ref`. None for none.
    """

    __slots__ = ("_resolve", "name")

    def __init__(self, name: str, resolve: Callable[[], JsonSchema], beside: Mapping[str, Any] | None = None) -> None:
        super().__init__({"$ref": f"#/$defs/{name}", **(beside or {})}, lambda: name)
        self.name = name
        self._resolve = resolve

    @property
    def target(self) -> JsonSchema:
        """The schema that is meant; always the same object for the same type."""
        found = self._resolve()
        while isinstance(found, SchemaRef):
            found = found._resolve()
        return found

    @property
    def beside(self) -> JsonSchema:
        """The keywords beside `$ref`."""
        return {key: value for key, value in self.items() if key != "$ref"}

    def copy(self) -> SchemaRef:
        """A shallow copy with the same target."""
        return SchemaRef(self.name, self._resolve, self.beside)


class Described(NamedTuple):
    """A schema with further keywords in one place, such as a parameter's description: `extend` without a copy."""

    schema: JsonSchema
    beside: Mapping[str, Any]


def extend(schema: JsonSchema, keywords: Mapping[str, Any]) -> JsonSchema:
    """A copy of `schema` with more keywords, which win over its own; it still knows its type or target."""
    if not keywords:
        return schema
    extended = schema.copy()
    extended.update(_beside(schema, keywords))
    return extended


def _beside(schema: Mapping[str, Any], keywords: Mapping[str, Any]) -> JsonSchema:
    """Keywords that stand beside a schema win, but its own description is kept behind theirs."""
    merged = {**schema, **keywords}
    own, said = merged.get("description", ""), schema.get("description", "")
    if said not in own:
        merged["description"] = said if own in said else f"{own} ({said})"
    return merged


def object_schema(properties: Mapping[str, JsonSchema], required: list[str], *, surplus: bool = False) -> JsonSchema:
    """The schema of an object with named members: the root of every tool, and every record."""
    members = {"type": "object", "properties": dict(properties), "required": required}
    return members if surplus else {**members, "additionalProperties": False}


def render(root: JsonSchema, wanted: SchemaRequest = _PLAIN) -> JsonSchema:
    """Write a schema as plain dicts that depend on nothing else.

    Types used once are inlined; repeated and recursive ones become `$defs` of the root under short names. In OpenAPI
    3.0 only recursive ones are not inlined: they stand in the root's `components`. Renderings share nothing. Raises
    `PegboardError` where a recursive type would be inlined, or so many that 100,000 parts were not enough.

    Args:
        root: The schema, with `SchemaRef`s in it.
        wanted: Which rendering, as `Tool.json_schema` has it.
    """
    renderer = _Renderer(wanted.titles == "qualified")
    if wanted.refs == "defs":
        renderer.share(root, only_recursive=wanted.dialect != "2020-12")
    if wanted.refs == "inline" or wanted.dialect != "2020-12":
        renderer.left = _MOST_INLINED
    rendered = renderer.document(root)
    if wanted.dialect == "2020-12":
        return rendered
    from pegboard._base.known_packs import write_schema

    return write_schema(rendered, wanted.dialect)


def embed(schema: Mapping[str, Any], name: str = "Schema") -> JsonSchema:
    """A self-contained schema of a third party, made fit to stand inside another.

    Its local references (`#/$defs/X`, `#/definitions/X`, `#`) become `SchemaRef` nodes; `name` is what the schema
    itself is called. Raises `PegboardError` for a reference that leads elsewhere: nothing is ever fetched.
    """
    bodies = {
        f"#/{section}/{key.replace('~', '~0').replace('/', '~1')}": (key, body)
        for section in ("$defs", "definitions")
        for key, body in schema.get(section, {}).items()
    }
    own = {keyword: value for keyword, value in schema.items() if keyword not in ("$defs", "definitions")}
    targets: dict[str, JsonSchema] = {}

    def convert(node: Any) -> Any:
        if not isinstance(node, Mapping) or isinstance(node, SchemaRef):
            return node
        if "$ref" not in node:
            return map_subschemas(node, convert)
        reference = node["$ref"]
        if reference not in bodies and reference != "#":
            raise PegboardError(f"a schema refers to {reference!r}, which is not in its own $defs; nothing is fetched")
        beside = map_subschemas({key: value for key, value in node.items() if key != "$ref"}, convert)
        label = bodies[reference][0] if reference != "#" else name
        return SchemaRef(label, lambda: targets[reference], beside)

    targets.update({reference: convert(body) for reference, (_, body) in bodies.items()})
    targets["#"] = convert(own)
    return targets["#"]


class _Renderer:
    """One rendering: which types are shared, under which names, and what is being inlined right now."""

    def __init__(self, titles: bool) -> None:
        self._titles = titles
        self._shared: dict[int, tuple[str, JsonSchema]] = {}
        self._open: list[int] = []
        # How many parts may still be inlined, where what is met twice is written twice: what doubles has no end.
        self.left: int | None = None

    def share(self, root: JsonSchema, *, only_recursive: bool = False) -> None:
        """Find the types that are met more than once, or those of them that contain themselves, and name them."""
        if _all_differ(_inside(root)):
            return
        repeated = [node for count, node in _met(root).values() if count > 1]
        if only_recursive:
            repeated = [node for node in repeated if id(node.target) in _met(node.target)]
        names = _short_names([node.name for node in repeated])
        self._shared = {id(node.target): (name, node.target) for name, node in zip(names, repeated, strict=True)}

    def document(self, root: JsonSchema) -> JsonSchema:
        """The root with the definitions that it needs, sorted by name."""
        rendered: JsonSchema = self._node(root)
        if not self._shared:
            return rendered
        shared = sorted(self._shared.values(), key=lambda pair: pair[0])
        return {**rendered, "$defs": {name: self._titled(target, self._body(target)) for name, target in shared}}

    def _node(self, node: Any) -> Any:
        if type(node) is Described:
            return _beside(self._node(node.schema), node.beside)
        if isinstance(node, SchemaRef):
            return self._reference(node)
        return self._titled(node, self._body(node)) if _is_object(node) else node

    def _reference(self, node: SchemaRef) -> JsonSchema:
        target = node.target
        beside = map_subschemas(node.beside, self._node) if len(node) > 1 else {}
        if id(target) in self._shared:
            return {"$ref": f"#/$defs/{self._shared[id(target)][0]}", **beside}
        if self.left is not None:
            self.left -= measured(target, _MOST_INLINED, _MOST_INLINED)[0]
        if id(target) in self._open or (self.left is not None and self.left < 0):
            why = "contains itself" if id(target) in self._open else "is too large written out"
            remedy = "write it with refs='defs' in JSON Schema 2020-12"
            raise PegboardError(f"{node.name} {why}, so its schema cannot be inlined; {remedy}")
        self._open.append(id(target))
        rendered = _beside(self._body(target), beside)
        self._open.pop()
        return self._titled(target, rendered)

    def _body(self, node: Mapping[str, Any]) -> JsonSchema:
        """A type's own schema, without what stands beside a reference to it."""
        if isinstance(node, SchemaNode) and not self._titles:
            return node.inlined(lambda: map_subschemas(node, self._node), self._shared)
        return map_subschemas(node, self._node)

    def _titled(self, node: Mapping[str, Any], rendered: JsonSchema) -> JsonSchema:
        if not self._titles or not isinstance(node, SchemaNode) or (title := node.title) is None:
            return rendered
        return {"title": title, **{keyword: value for keyword, value in rendered.items() if keyword != "title"}}


def _is_object(node: Any) -> bool:
    # Asked in this order: whether a boolean is one of the abstract Mappings takes longer than all else here.
    return type(node) is not bool and isinstance(node, (dict, Mapping))


def _inside(node: Any) -> Iterable[SchemaRef]:
    if type(node) is Described:
        return _inside(node.schema)
    return node.references() if isinstance(node, SchemaNode) else _references(node)


def _references(node: Any) -> list[SchemaRef]:
    """The references in a schema, itself included, but not what is inside their targets."""
    found = [node] if isinstance(node, SchemaRef) else []
    if _is_object(node):
        for _, _, inner in subschemas(node):
            found += _inside(inner)
    return found


def _met(node: Any) -> dict[int, tuple[int, SchemaRef]]:
    """How often each type is met in a schema, at any depth, and by which reference first."""
    met: dict[int, tuple[int, SchemaRef]] = {}

    def visit(inner: Any) -> None:
        for reference in _inside(inner):
            target = reference.target
            count, first = met.get(id(target), (0, reference))
            met[id(target)] = count + 1, first
            if not count:
                visit(target)

    visit(node)
    return met


def _all_differ(references: Iterable[SchemaRef]) -> bool:
    """Whether no type is met twice behind some references: so it is in most tools, and quickly told."""
    met: set[int] = set()
    for reference in references:
        target = reference.target
        inside, once = target.reach() if isinstance(target, SchemaNode) else SchemaNode(target).reach()
        if not once or id(target) in met or not met.isdisjoint(inside):
            return False
        met.add(id(target))
        met |= inside
    return True


def _short_names(full: list[str]) -> list[str]:
    """For each full name its last part, or as many parts as it takes to tell it from the others."""
    import re

    def shortened(name: str, parts: int) -> str:
        def last(match: re.Match[str]) -> str:
            return ".".join([part for part in match[0].split(".") if part != "<locals>"][-parts:])

        short = re.sub(r"[^\[\], |]+", last, name)
        return re.sub(r"[^A-Za-z0-9_.-]+", "_", short).strip("_") or "Type"

    longest = max((name.count(".") for name in full), default=0) + 1
    names: list[str] = []
    for name in full:
        candidates = ((shortened(name, parts), [shortened(one, parts) for one in full]) for parts in range(1, longest))
        unique = (short for short, others in candidates if others.count(short) == 1)
        names.append(_unused(next(unique, shortened(name, longest)), names))
    return names


def _unused(name: str, used: list[str]) -> str:
    # Two types of the same full name (classes made in a function): numbered in the order of the document.
    number, candidate = 1, name
    while candidate in used:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
