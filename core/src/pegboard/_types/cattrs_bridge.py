"""Between cattrs and the type table: a converter that stands on the table, and types that a converter maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import cattrs
from attrs import evolve
from cattrs.errors import (
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)
from cattrs.v import format_exception

from pegboard._base.errors import Mismatch, RegistrationError, describe_exception
from pegboard._base.jsonable import jsonable
from pegboard._model.shapes import JsonSchema, TypePlan
from pegboard._schema.foreign import ForeignSchema
from pegboard._schema.nodes import render
from pegboard._types.annotations import qualified_name, split, structural_key
from pegboard.extension import TypeHandler, Types

Schemas: TypeAlias = Mapping[str, Any] | Mapping[Any, Mapping[str, Any]] | Callable[[Any], Mapping[str, Any]]
_CHOOSING = ("configure_tagged_union", "_include_subclasses")
"""What the hooks of strategies are called that choose a class by the JSON: fields do not say what they read."""


def make_converter(types: Types) -> cattrs.Converter:
    """A converter for which the plans of `types` decide everything that no handler has registered a hook for.

    cattrs' own conversions (`bool("False")`, `int(5.7)`, `list("abc")`) are shut out, and a type without a plan is
    refused with a `RegistrationError`. Hooks that handlers register come first, as anywhere in cattrs.
    """
    converter = cattrs.Converter(detailed_validation=False)

    # A hook that asks for the plan at each call, not a factory: cattrs caches what a factory gives by equality of the
    # annotation, and `int | str == str | int`.
    def structure(value: Any, annotation: Any) -> Any:
        return types.plan(annotation).structure(value)

    def unstructurer(annotation: Any) -> Callable[[Any], Any]:
        return types.plan(annotation).unstructure

    def unstructure(cls: type, value: Any) -> Any:
        return types.plan(cls).unstructure(value)

    converter.register_structure_hook_func(lambda annotation: True, structure)
    converter.register_unstructure_hook_factory(lambda annotation: True, unstructurer)
    # cattrs looks for these classes before it looks at the hooks above.
    for cls in (str, bytes, int, float, Path):
        converter.register_structure_hook(cls, structure)
        converter.register_unstructure_hook(cls, partial(unstructure, cls))
    return converter


def from_cattrs(converter: cattrs.BaseConverter, *types: Any, schema: Schemas | None = None) -> TypeHandler:
    """A type handler that reads and writes `types` with a cattrs converter: for `provide_types` and `register_type`.

    Hooks and strategies of the converter hold for exactly these types: classes (with any type arguments), unions,
    `NewType`s. `schema` is the JSON Schema of what the converter reads: one for all types, a mapping from type to
    schema, or a function of the type. Without one, the schema is what the type's fields say (of dataclasses and attrs
    classes, with pegboard-dataclasses); and a class that the converter reads as cattrs does by itself is then compiled.

    Every value is checked strictly against the schema before the converter sees it, so that cattrs' own conversions
    (`bool("False")`, `int(5.7)`, `list("abc")`) are never reached: whatever they would convert is not what the schema
    says. What the converter refuses after that is a problem of the argument, told with its path.

    Raises `RegistrationError` for something that is no converter and for no types. Planning one of the types raises it
    for a schema that is invalid, and where there is none and the fields do not tell what the converter reads.
    """
    if not isinstance(converter, cattrs.BaseConverter):
        raise RegistrationError(f"from_cattrs takes a cattrs converter first, not {converter!r}")
    if not types:
        raise RegistrationError("from_cattrs needs the types to map: from_cattrs(converter, Money, Order)")
    return _CattrsTypes(types, _Bridge(converter, types, schema).build)


class _CattrsTypes(TypeHandler):
    """What `from_cattrs` gives: a handler, and the list of itself, which `provide_types` may return as it is."""

    def __iter__(self) -> Iterator[TypeHandler]:
        yield self


class _Bridge:
    """The types of one `from_cattrs`, and how each of them is planned."""

    def __init__(self, converter: cattrs.BaseConverter, types: tuple[Any, ...], schema: Schemas | None) -> None:
        self._converter = converter
        self._listed = frozenset(map(structural_key, types))
        self._schema = schema

    def build(self, annotation: Any, types: Types) -> TypePlan:
        given = self._given(annotation)
        if given is not None:
            return self._checked(annotation, types, given, given)
        is_special = self._is_special(annotation, set())
        try:
            derived = types.plan_without(lambda handler: isinstance(handler, _CattrsTypes), annotation)
        except RegistrationError as error:
            raise RegistrationError(f"{error}; or give from_cattrs the schema= of what the converter reads") from error
        # What cattrs would generate for the fields, the plan compiler does.
        return self._checked(annotation, types, render(derived.schema), derived.schema) if is_special else derived

    def _given(self, annotation: Any) -> JsonSchema | None:
        schema: Any = self._schema
        if callable(schema):
            schema = schema(annotation)
        elif schema and not all(isinstance(keyword, str) for keyword in schema):
            schema = schema.get(annotation, schema.get(get_origin(annotation)))
        return None if schema is None else dict(schema)

    def _checked(self, annotation: Any, types: Types, schema: JsonSchema, shown: JsonSchema) -> TypePlan:
        """The plan that checks a value against `schema` and then lets the converter read it."""
        name = qualified_name(annotation)
        converter = self._converter
        try:
            converter.get_structure_hook(annotation)
        except Exception as error:
            raise RegistrationError(f"the converter cannot read {name}: {describe_exception(error)}") from error
        plan = ForeignSchema(schema, f"the schema of {name}").plan()

        def structure(value: Any) -> Any:
            fitting = plan.structure(value)
            try:
                return converter.structure(fitting, annotation)
            except Exception as error:
                raise Mismatch(f"no {name}", located=list(_located(error))) from error

        def unstructure(value: Any) -> Any:
            return jsonable(converter.unstructure(value, unstructure_as=annotation), write)

        def write(cls: type) -> Callable[[Any], Any] | None:
            """The table writes what the converter left as it was, such as dates."""
            try:
                return None if structural_key(cls) in self._listed else types.plan(cls).unstructure
            except RegistrationError:
                return None

        # Whoever reads a class with a hook and leaves its instances as they are promises nothing of results.
        one_way = converter.get_unstructure_hook(annotation) is cattrs.fns.identity and isinstance(annotation, type)
        return evolve(plan, schema=shown, structure=structure, unstructure=unstructure, one_way=one_way)

    def _is_special(self, annotation: Any, seen: set[int]) -> bool:
        """Whether the converter reads or writes a class in here otherwise than by its fields.

        Raises `RegistrationError` where it chooses the class by the JSON.
        """
        bare, _ = split(annotation)
        cls = get_origin(bare) or bare
        if id(cls) in seen:
            return False
        hook, inner = self._hook(bare), get_args(bare)
        module = getattr(hook, "__module__", None)
        found = module is not None and not module.startswith(("builtins", "cattrs."))
        if getattr(hook, "__qualname__", "").startswith(_CHOOSING):
            raise RegistrationError(
                f"the converter chooses by the JSON what {qualified_name(bare)} is, which fields do not tell; name it "
                "in from_cattrs, with the schema= of what the converter reads"
            )
        if isinstance(cls, type) and (hasattr(cls, "__attrs_attrs__") or hasattr(cls, "__dataclass_fields__")):
            seen.add(id(cls))
            hooks = hook, self._converter.get_unstructure_hook(bare)
            # What cattrs generates carries the overrides that it was asked for.
            found = any(each is not None and getattr(each, "overrides", None) != {} for each in hooks)
            inner = (*inner, *get_type_hints(cls, None, {cls.__name__: cls}, include_extras=True).values())
        for each in inner:
            if structural_key(split(each)[0]) not in self._listed:
                found = self._is_special(each, seen) or found
        return found

    def _hook(self, annotation: Any) -> Any:
        """What the converter reads an annotation with; None for what it cannot read, as the table perhaps can."""
        try:
            return self._converter.get_structure_hook(annotation)
        except Exception:  # noqa: BLE001 - cattrs raises all kinds
            return None


def _located(error: BaseException, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The single problems in what a converter raised, as `cattrs.transform_error` finds them, with their paths."""
    if not isinstance(error, ClassValidationError | IterableValidationError):
        # An author's own message says more than cattrs' "invalid value".
        own = not isinstance(error, KeyError | ForbiddenExtraKeysError)
        yield path, describe_exception(error) if own else format_exception(error, None)
        return
    noted, others = error.group_exceptions()
    for inner, note in noted:
        yield from _located(inner, (*path, note.index if isinstance(note, IterableValidationNote) else note.name))
    for inner in others:
        yield from _located(inner, path)
