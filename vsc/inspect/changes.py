"""Change events, as Debezium writes them: an operation, and the row before and after it."""

from __future__ import annotations

from collections.abc import Sequence

from vsc.inspect.keys import can_be_key, liking
from vsc.inspect.model import DataColumn
from vsc.inspect.wording import written
from vsc.plan.types import StructType

__all__ = ["changed_key"]


def changed_key(columns: Sequence[DataColumn]) -> str | None:
    """The key of the rows inside change events, as an item of `rekey`; None if these are not change events."""
    by_name = {column.name: column for column in columns}
    rows = {name: of for name in ("after", "before") if name in by_name and (of := _fields(by_name[name]))}
    if "op" not in by_name or not rows:
        return None
    fields = next(iter(rows.values()))
    likely = min((c for c in fields if can_be_key(c.type)), key=liking, default=None)
    if likely is None:
        return None
    parts = [f"{name}.{written(likely.name)}" for name, of in rows.items() if likely.name in {c.name for c in of}]
    item = parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"
    return f"{item} as {written(likely.name)}"


def _fields(column: DataColumn) -> list[DataColumn]:
    """The columns of a row inside a column."""
    return [DataColumn(f.name, f.type) for f in column.type.fields] if isinstance(column.type, StructType) else []
