"""pandas: a DataFrame is an array of records, a Series an array of scalars. Neither carries its index."""

from collections.abc import Iterable
from typing import Any

from pegboard import Items, RegistrationError, TypePlan, Types, qualified_name, shaped

__all__ = ["frame", "series"]

Cell = str | int | float | bool | None
_INT64 = 2**63


def frame(annotation: Any, types: Types) -> TypePlan:
    """The plan of `pandas.DataFrame`: one object for each row; a column that a row leaves out is empty there."""
    _refuse_other(annotation, "DataFrame")
    return _table(types.plan(dict[str, Cell]), _read_frame, _write_frame)


def series(annotation: Any, types: Types) -> TypePlan:
    """The plan of `pandas.Series`."""
    _refuse_other(annotation, "Series")
    return _table(types.plan(Cell), _column, _cells)


def _table(item: TypePlan, read: Any, write: Any) -> TypePlan:
    return shaped({"type": "array", "items": item.schema}, Items(item, read), write)


def _refuse_other(annotation: Any, name: str) -> None:
    import pandas as pd

    if annotation is not getattr(pd, name):
        raise RegistrationError(
            f"{qualified_name(annotation)} would arrive as a pandas.{name}; annotate that, or register a TypeHandler"
        )


def _read_frame(rows: list[dict[str, Any]]) -> Any:
    import pandas as pd

    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows)))


def _column(cells: list[Any]) -> Any:
    """Cells with the dtype that pandas infers, except that integers with gaps stay integers."""
    import pandas as pd

    kinds = set(map(type, cells))
    if kinds == {int, type(None)}:
        fits = all(cell is None or -_INT64 <= cell < _INT64 for cell in cells)
        return pd.Series(cells, dtype="Int64" if fits else object)
    return pd.Series(cells)


def _write_frame(table: Any) -> list[dict[str, Any]]:
    names = list(map(str, table.columns))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the columns {', '.join(map(repr, twice))} are there twice; rename one of each")
    if not names:
        return [{} for _ in table.index]
    return [dict(zip(names, _cells(row), strict=True)) for row in table.itertuples(index=False, name=None)]


def _cells(values: Iterable[Any]) -> list[Any]:
    import pandas as pd

    return [None if pd.api.types.is_scalar(value) and pd.isna(value) else value for value in values]
