"""Between cattrs and the type table: a converter that stands on the table, and types that a converter maps."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, cast

import cattrs

from pegboard._base.known_packs import provider
from pegboard.extension import TypeHandler, Types


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

    def unstructure(cls: type, value: Any) -> Any:
        return types.plan(cls).unstructure(value)

    converter.register_structure_hook_func(lambda annotation: True, structure)
    converter.register_unstructure_hook_factory(lambda _: True, lambda annotation: types.plan(annotation).unstructure)
    # cattrs looks for these classes before it looks at the hooks above.
    for cls in (str, bytes, int, float, Path):
        converter.register_structure_hook(cls, structure)
        converter.register_unstructure_hook(cls, partial(unstructure, cls))
    return converter


def from_cattrs(converter: cattrs.BaseConverter, *types: Any, schema: Any = None) -> TypeHandler:
    """A type handler that reads and writes `types` with a cattrs converter: for `provide_types` and `register_type`.

    Hooks and strategies of the converter hold for exactly these types: classes (with any type arguments), unions,
    `NewType`s. `schema` is the JSON Schema of what the converter reads: one for all types, a mapping from type to
    schema, or a function of the type. Without one, the schema is what the type's fields say (of dataclasses and attrs
    classes, with pegboard-dataclasses); and a class that the converter reads as cattrs does by itself is then compiled.

    Every value is checked strictly against the schema before the converter sees it, so that cattrs' own conversions
    (`bool("False")`, `int(5.7)`, `list("abc")`) are never reached: whatever they would convert is not what the schema
    says. What the converter refuses after that is a problem of the argument, told with its path.

    The records and their fields are pegboard-dataclasses, and so is this: raises `PegboardError` without that pack, and
    `RegistrationError` for something that is no converter and for no types. Planning one of the types raises it for a
    schema that is invalid, and where there is none and the fields do not tell what the converter reads.
    """
    pack = provider("from_cattrs", "from_cattrs is not installed.")
    return cast("TypeHandler", pack.from_cattrs(converter, *types, schema=schema))
