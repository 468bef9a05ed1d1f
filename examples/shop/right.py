"""Compares what `vsc run` has written with DuckDB's results: ``python -m examples.shop.right out/shop``."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
COMPARED = {
    "placed": "order_id, customer, country, euros, ordered_at",
    "revenue": "country, day, lines, revenue",
    "alerts": "customer, ordered_at",
}
"""The results, and their columns in both."""


def results(data: Path = HERE / "data") -> duckdb.DuckDBPyConnection:
    """A database with DuckDB's results as tables."""
    database = duckdb.connect()
    for statement in (HERE / "right.sql").read_text().split(";\n"):
        if statement.strip():
            database.execute(statement, {"data": str(data)} if "$data" in statement else None)
    return database


def differences(out: Path) -> dict[str, tuple[int, int]]:
    """For each result how many rows DuckDB has, and how many rows only one of the two has."""
    database, found = results(), {}
    for name, columns in COMPARED.items():
        files = f"read_parquet('{out / name}/**/part-*.parquet')"
        ours, right = f"select {columns} from {files}", f"select {columns} from {name}"
        apart = f"(({ours}) except all ({right})) union all (({right}) except all ({ours}))"
        [row] = database.execute(f"select (select count(*) from {name}), (select count(*) from ({apart}))").fetchall()
        found[name] = row
    return found


def main() -> int:
    """Prints the differences; returns the exit status."""
    found = differences(Path(sys.argv[1]))
    for name, (rows, apart) in found.items():
        print(f"{name}: {rows:,} rows, {apart} differ")
    return 1 if any(apart for _, apart in found.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
