"""Any Python value as JSON-able data: what results, defaults and logs are made of."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Final, TypeAlias, final

# Finds the function that turns values of a class into JSON-able data, or None where the class is not mapped.
Unstructure: TypeAlias = Callable[[type], Callable[[Any], Any] | None]

MAX_DEPTH: Final = 100
# Classes of values that cannot change.
IMMUTABLE: Final = frozenset({str, int, float, bool, type(None)})
_SMALL: Final = 1 << 62
_SPELLED_BITS: Final = 14_280  # 4,299 digits: Python spells no more


# JSON text of JSON-able data: non-ASCII kept, members in their own order, never `NaN`. `json.dumps` would make an
# encoder for each text.
dump_json: Final[Callable[[Any], str]] = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def digest(data: Any) -> str:
    """SHA-256 (hex) over the canonical JSON text of JSON-able data.

    Args:
        data: The data.
    """
    import hashlib

    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def jsonable(value: Any, unstructure: Unstructure | None = None) -> Any:
    """`value` as JSON-able data.

    Mappings and sequences are walked, classes go through `unstructure`, records through their fields, anything else
    becomes its text. NaN and infinities, which JSON cannot carry, become null. Raises ValueError for a value that
    contains itself or is nested deeper than 100 levels.
    """
    return _Walk(unstructure).data(value)


def carried(text: str) -> str:
    """`text` as UTF-8 can carry it; the same object where it can as it is.

    Two surrogates that are a pair become their character, as in JSON; a lone one becomes U+FFFD.
    """
    try:
        _ = text.isascii() or text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def carried_data(data: Any) -> Any:
    """JSON-able data with all text `carried`; the same object where it was so, or is no JSON."""
    try:
        text = dump_json(data)
    except (TypeError, ValueError, RecursionError):
        return data
    fit = carried(text)
    return data if fit is text else json.loads(fit)


def spellable(value: int) -> int | str:
    """An integer as it is; one of more than 4,299 digits, which could not be read back, as hexadecimal text."""
    return value if value.bit_length() <= _SPELLED_BITS else hex(value)


@final
class _Walk:
    def __init__(self, unstructure: Unstructure | None) -> None:
        self._unstructure = unstructure
        self._open: set[int] = set()

    def data(self, value: Any) -> Any:
        kind = type(value)
        if kind is int:
            return spellable(value)
        if kind is float:
            return value if math.isfinite(value) else None
        if kind in IMMUTABLE:
            return value
        if id(value) in self._open:
            raise ValueError(f"a {kind.__name__} contains itself, which JSON cannot express")
        if len(self._open) >= MAX_DEPTH:
            raise ValueError(f"the value is nested deeper than {MAX_DEPTH} levels")
        self._open.add(id(value))
        try:
            return self._inside(value, kind)
        finally:
            self._open.discard(id(value))

    def _inside(self, value: Any, kind: type) -> Any:
        if kind in (list, tuple):
            return [self.data(item) for item in value]
        if kind is dict:
            return self._object(value)
        mapped = self._unstructure(kind) if self._unstructure is not None else None
        data = value if mapped is None else mapped(value)
        return self._unmapped(value) if data is value else self.data(data)

    def _unmapped(self, value: Any) -> Any:
        import enum

        if isinstance(value, enum.Enum):
            return self.data(value.value)
        for base in (bool, int, float, str):
            if isinstance(value, base):
                return self.data(base(value))
        fields = _record_fields(value)
        if fields is not None:
            return {name: self.data(field) for name, field in fields.items()}
        if isinstance(value, Mapping):
            return self._object(value)
        if isinstance(value, bytes | bytearray | memoryview):
            import base64

            return base64.b64encode(bytes(value)).decode("ascii")
        if isinstance(value, Set):
            items = [self.data(item) for item in value]
            return sorted(items, key=lambda item: (type(item).__name__, dump_json(item)))
        if isinstance(value, Iterable) and not isinstance(value, type) and hasattr(value, "__len__"):
            return [self.data(item) for item in value]
        return _as_text(value)

    def _object(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        data = self.data
        return {  # most keys and members as they are, without a frame for each
            key if type(key) is str else _key(key, self): member
            if type(member) is str or (type(member) is int and -_SMALL < member < _SMALL)
            else data(member)
            for key, member in value.items()
        }


def _key(key: Any, walk: _Walk) -> str:
    data = walk.data(key)
    return data if isinstance(data, str) else dump_json(data)


def _record_fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of a dataclass, attrs, named tuple, msgspec or pydantic instance, none of which is imported for it.

    As pegboard-dataclasses has it, whose results must not differ: without what is None as its field's default is.
    """
    cls = type(value)
    is_dataclass = hasattr(cls, "__dataclass_fields__")
    fields = sys.modules["dataclasses"].fields(cls) if is_dataclass else getattr(cls, "__attrs_attrs__", None)
    names = getattr(cls, "_fields", None) if isinstance(value, tuple) else getattr(cls, "model_fields", None)
    names = names or getattr(cls, "__struct_fields__", None)
    if isinstance(value, type) or (fields is None and names is None):
        return None
    own = [(name, name, getattr(cls, "_field_defaults", {}).get(name, ...)) for name in names or ()]
    own += [(getattr(each, "alias", each.name), each.name, each.default) for each in fields or () if each.init]
    read = [(key, getattr(value, name, ...), default) for key, name, default in own]
    return {key: field for key, field, default in read if field is not ... and not (field is None is default)}


def _as_text(value: Any) -> Any:
    cls = type(value)
    if hasattr(cls, "isoformat"):
        return str(value.isoformat())
    if all(getattr(cls, name) is getattr(object, name) for name in ("__str__", "__repr__")):
        # A plain object says nothing as text, and where it lies in memory least of all; its public attributes do.
        state: Any = object.__getstate__(value) or {}
        members = state if isinstance(state, dict) else {**(state[0] or {}), **state[1]}
        return {name: member for name, member in members.items() if not name.startswith("_")}
    return str(value)


def owned(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of checked arguments that shares no mapping and no list with them, of whatever class these are."""
    for value in arguments.values():
        if type(value) not in IMMUTABLE:
            return {name: _owned(value) for name, value in arguments.items()}
    return {**arguments}


def _owned(value: Any) -> Any:
    if isinstance(value, list):
        return [item if type(item) in IMMUTABLE else _owned(item) for item in value]
    if type(value) is tuple:
        return tuple(map(_owned, value))
    return owned(value) if isinstance(value, (dict, Mapping)) else value
