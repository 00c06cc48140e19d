"""A cattrs converter that stands on the type table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cattrs

from pegboard.extension import Types

__all__ = ["make_converter"]


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
