"""What stands in JSON for the items of an array: for each dtype the core type whose values it holds exactly."""

from typing import Annotated, Any, get_origin

import numpy as np

from pegboard import Param, RegistrationError, qualified_name

__all__ = ["concrete", "element"]

_ABSTRACT: dict[Any, type[np.generic]] = {
    Any: np.float64,
    np.generic: np.float64,
    np.number: np.float64,
    np.inexact: np.float64,
    np.floating: np.float64,
    np.integer: np.int64,
    np.signedinteger: np.int64,
    np.unsignedinteger: np.uint64,
    np.character: np.str_,
    np.flexible: np.str_,
}
"""What a family of dtypes stands for: the one that NumPy itself picks for such numbers."""

_WITHOUT_LAST_NUL = r"(^|[^\u0000])$"
"""NumPy drops NUL characters at the end of a text."""


def concrete(dtype: Any) -> type[np.generic]:
    """The scalar class of `np.dtype[...]`'s argument. Raises `RegistrationError` for what is not one class."""
    family = get_origin(dtype) or dtype
    found = _ABSTRACT.get(family, family)
    if not isinstance(found, type) or not issubclass(found, np.generic):
        raise RegistrationError(f"{dtype!r} is not one dtype; write a scalar class such as numpy.float64")
    return found


def element(cls: type[np.generic]) -> Any:
    """The annotation of the JSON values that stand for `cls`. Raises `RegistrationError` where JSON has none."""
    dtype = np.dtype(cls)
    if dtype.kind == "b":
        return bool
    if dtype.kind in "iu":
        integers = np.iinfo(dtype)
        return Annotated[int, Param(ge=int(integers.min), le=int(integers.max))]
    if dtype.kind == "f" and dtype.itemsize <= 8:
        largest = float(np.finfo(dtype).max)
        return float if cls is np.float64 else Annotated[float, Param(ge=-largest, le=largest)]
    if dtype.kind == "U":
        return Annotated[str, Param(pattern=_WITHOUT_LAST_NUL)]
    if dtype.kind == "M":
        return np.datetime64
    raise RegistrationError(f"JSON has no form for {qualified_name(cls)} that keeps its value; {_remedy(dtype)}")


def _remedy(dtype: np.dtype[Any]) -> str:
    remedies = {
        "c": "take real and imaginary parts as two arrays of numpy.float64",
        "f": "use numpy.float64",
        "m": "use datetime.timedelta",
        "S": "use bytes",
    }
    return remedies.get(dtype.kind, "use a dtype of numbers, booleans or text")
