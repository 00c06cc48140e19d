"""Types that a cattrs converter maps: what stands behind `from_cattrs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin, get_type_hints

import cattrs
from cattrs import errors, override
from cattrs.v import format_exception

from pegboard import (
    ForeignSchema,
    Mismatch,
    Param,
    RegistrationError,
    TypeHandler,
    TypePlan,
    Types,
    describe_exception,
    qualified_name,
)
from pegboard_dataclasses import _attrs, _dataclass
from pegboard_dataclasses._record import Field, class_of, record

__all__ = ["from_cattrs"]

JsonSchema: TypeAlias = dict[str, Any]
Schemas: TypeAlias = Mapping[str, Any] | Mapping[Any, Mapping[str, Any]] | Callable[[Any], Mapping[str, Any]]
# What the hooks of strategies are called that choose a class by the JSON: fields do not say what they read.
_CHOOSING: Final = ("configure_tagged_union", "_include_subclasses")
# What the schema of an object may have so that its properties are all that it can have.
_PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties", "title", "description"})


def from_cattrs(converter: cattrs.BaseConverter, *types: Any, schema: Schemas | None = None) -> TypeHandler:
    """What `pegboard_dataclasses.from_cattrs` gives."""
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
        self._listed = frozenset(types)
        self._schema = schema

    def build(self, annotation: Any, types: Types) -> TypePlan:
        given = self._given(annotation)
        if given is not None:
            self._check_keys(annotation, given)
            ForeignSchema(given, f"the schema of {qualified_name(annotation)}")
            return self._read(annotation, types, given)
        is_special = self._is_special(annotation, set())
        keys = self._keys(annotation) if is_special else None
        try:
            derived = self._by_fields(annotation, types) if keys is None else _record(annotation, types, keys)
        except RegistrationError as error:
            raise RegistrationError(f"{error}; or give from_cattrs the schema= of what the converter reads") from error
        # What cattrs would generate for the fields, the plan compiler does.
        return self._read(annotation, types, derived.schema) if is_special else derived

    def _by_fields(self, annotation: Any, types: Types) -> TypePlan:
        return types.plan_without(lambda handler: isinstance(handler, _CattrsTypes), annotation)

    def _given(self, annotation: Any) -> JsonSchema | None:
        schema: Any = self._schema
        if callable(schema):
            schema = schema(annotation)
        elif schema and not all(isinstance(keyword, str) for keyword in schema):
            schema = schema.get(annotation, schema.get(get_origin(annotation)))
        return None if schema is None else dict(schema)

    def _keys(self, annotation: Any) -> dict[str, str] | None:
        """Under which key the converter reads each field of a class; None where it has a hook of the author's own."""
        overrides = getattr(self._hook(annotation), "overrides", None)
        if overrides is None or not _has_fields(class_of(annotation)):
            return None
        own = override()
        found = {name: overrides.get(name, own) for name in (field.name for field in _fields(annotation))}
        return {name: each.rename or name for name, each in found.items() if each.omit is not True}

    def _check_keys(self, annotation: Any, schema: JsonSchema) -> None:
        """Raises `RegistrationError` for a schema of an object that has no key for what the converter always reads."""
        keys = self._keys(annotation)
        if keys is None or schema.get("type") != "object" or not schema.keys() <= _PLAIN:
            return
        needed = {field.name for field in _fields(annotation) if field.required}
        for name, key in keys.items():
            if name in needed and key not in schema.get("properties", {}):
                read = f"the converter reads {name!r} of {qualified_name(annotation)} under {key!r}"
                raise RegistrationError(f"{read}, which its schema= does not have; give the property that name there")

    def _read(self, annotation: Any, types: Types, schema: JsonSchema) -> TypePlan:
        """The plan of values that the converter reads, once the table has held them to the schema."""
        name = qualified_name(annotation)
        converter = self._converter
        try:
            converter.get_structure_hook(annotation)
        except Exception as error:
            raise RegistrationError(f"the converter cannot read {name}: {describe_exception(error)}") from error

        def structure(value: Any) -> Any:
            try:
                return converter.structure(value, annotation)
            except Exception as error:
                raise Mismatch(f"no {name}", located=list(_located(error))) from error

        def unstructure(value: Any) -> Any:
            return write(converter.unstructure(value, unstructure_as=annotation))

        def write(given: Any) -> Any:
            """The table writes what the converter did not change, such as dates; other values stay as they are."""
            if isinstance(given, Mapping):
                return {str(key): write(value) for key, value in given.items()}
            if isinstance(given, list | tuple | set | frozenset):
                return list(map(write, given))
            try:
                return given if type(given) in self._listed else types.plan(type(given)).unstructure(given)
            except RegistrationError:
                return given

        writes = converter.get_unstructure_hook(annotation)
        # A class with a hook to read and none to write promises nothing of results, nor one with other names there.
        one_way = isinstance(annotation, type) and writes is cattrs.fns.identity
        one_way = one_way or _renames(writes) != _renames(converter.get_structure_hook(annotation))
        return TypePlan(schema, structure, unstructure, one_way=one_way)

    def _hook(self, annotation: Any) -> Any:
        try:
            return self._converter.get_structure_hook(annotation)
        except Exception:  # noqa: BLE001 - what it cannot read the table perhaps can
            return None

    def _is_special(self, annotation: Any, visited: set[int]) -> bool:
        """Whether the converter reads or writes a class in here otherwise than by its fields.

        Raises `RegistrationError` where it chooses the class by the JSON.
        """
        bare = _bare(annotation)
        cls = get_origin(bare) or bare
        if id(cls) in visited:
            return False
        hook, inner = self._hook(bare), get_args(bare)
        module = getattr(hook, "__module__", None)
        found = module is not None and not module.startswith(("builtins", "cattrs."))
        if getattr(hook, "__qualname__", "").startswith(_CHOOSING):
            why = f"the converter chooses by the JSON what {qualified_name(bare)} is, which fields do not tell"
            raise RegistrationError(f"{why}; name it in from_cattrs, with the schema= of what the converter reads")
        if _has_fields(cls):
            visited.add(id(cls))
            hooks = hook, self._converter.get_unstructure_hook(bare)
            # What cattrs generates carries the overrides that it was asked for.
            found = any(each is not None and getattr(each, "overrides", None) != {} for each in hooks)
            inner = (*inner, *get_type_hints(cls, None, {cls.__name__: cls}, include_extras=True).values())
        for each in inner:
            if _bare(each) not in self._listed:
                found = self._is_special(each, visited) or found
                self._refuse_renamed(_bare(each))
        return found

    def _refuse_renamed(self, inner: Any) -> None:
        if _has_fields(get_origin(inner) or inner) and _renames(self._hook(inner)):
            why = f"the converter has other names for the fields of {qualified_name(inner)}"
            raise RegistrationError(f"{why}, which stands inside; name it in from_cattrs, too")


def _has_fields(cls: Any) -> bool:
    """Whether this is an attrs class or a dataclass."""
    return isinstance(cls, type) and (hasattr(cls, "__attrs_attrs__") or hasattr(cls, "__dataclass_fields__"))


def _fields(annotation: Any) -> Iterator[Field]:
    return _attrs.fields(annotation) if _attrs.matches(annotation) else _dataclass.fields(annotation)


def _record(annotation: Any, types: Types, keys: Mapping[str, str]) -> TypePlan:
    """The plan of a class whose fields have these keys in JSON."""
    found = (
        # The outer metadata has the last word.
        replace(field, annotation=Annotated[field.annotation, Param(name=keys[field.name])])
        for field in _fields(annotation)
        if field.name in keys
    )
    return record(annotation, types, found, class_of(annotation))


def _renames(hook: Any) -> dict[str, str]:
    """The fields that what cattrs generated has under another name."""
    overrides = getattr(hook, "overrides", None) or {}
    return {name: each.rename for name, each in overrides.items() if each.rename not in (None, name)}


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return annotation


def _located(error: BaseException, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The single problems in what a converter raised, as `cattrs.transform_error` finds them, with their paths."""
    if not isinstance(error, errors.ClassValidationError | errors.IterableValidationError):
        # An author's own message says more than cattrs' "invalid value".
        own = not isinstance(error, KeyError | errors.ForbiddenExtraKeysError)
        yield path, describe_exception(error) if own else format_exception(error, None)
        return
    noted, groups = error.group_exceptions()
    for inner, note in noted:
        yield from _located(
            inner, (*path, note.index if isinstance(note, errors.IterableValidationNote) else note.name)
        )
    for inner in groups:
        yield from _located(inner, path)
