"""Columns of parquet files of every kind that programs write, and what each is when it is read as a type of vsc's.

Three values a column, the last of them null. What is not in `READ` cannot be read as that type.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "READ", "TYPES", "write_kinds"]

DECIMALS = ("decimal(5,2)", "decimal(6,3)", "decimal(9,0)", "decimal(10,0)", "decimal(12,2)", "decimal(20,0)",
            "decimal(20,2)", "decimal(38,10)")  # fmt: skip
TYPES = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
         *DECIMALS)  # fmt: skip

_SECONDS = (1_600_000_000, -62_000_000_000)
_TIMES = {"s": 1, "ms": 1_000, "us": 1_000_000}


def _of(type: pa.DataType, first: Any, second: Any) -> pa.Array:
    return pa.array([first, second, None], type)


def _columns() -> dict[str, pa.Array]:
    found = {f"int{bits}": _of(type, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
             for bits, type in ((8, pa.int8()), (16, pa.int16()), (64, pa.int64()))}  # fmt: skip
    found["int32"] = _of(pa.int32(), -719_162, 2_932_896)  # the first and the last day that Python has
    found |= {f"uint{bits}": _of(type, 0, 2**bits - 1)
              for bits, type in ((8, pa.uint8()), (16, pa.uint16()), (32, pa.uint32()), (64, pa.uint64()))}  # fmt: skip
    for unit, many in _TIMES.items():
        for zone in (None, "Europe/Berlin"):
            found[f"ts_{unit}{'_zone' if zone else ''}"] = _of(pa.timestamp(unit, zone), *(s * many for s in _SECONDS))
    return found | {
        "bool": _of(pa.bool_(), True, False),
        "half": _of(pa.float16(), 1.5, -math.inf),
        "float": _of(pa.float32(), 1.5, -math.inf), "double": _of(pa.float64(), 1.1, 1e300),
        "string": _of(pa.string(), "é", ""), "large": _of(pa.large_string(), "é", ""),
        "view": _of(pa.string_view(), "é", ""), "words": _of(pa.string(), "é", "").dictionary_encode(),
        "json": pa.ExtensionArray.from_storage(pa.json_(), _of(pa.string(), "é", "")),
        "binary": _of(pa.binary(), b"\xff\xfe", b""), "fixed": _of(pa.binary(2), b"\xff\xfe", b"ab"),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), _of(pa.binary(16), b"0123456789abcdef", bytes(16))),
        "dec5": _of(pa.decimal128(5, 2), Decimal("1.25"), Decimal("-999.99")),
        "dec4": _of(pa.decimal128(4, 0), Decimal(9999), Decimal(-9999)),
        "dec18": _of(pa.decimal128(18, 2), Decimal("1.25"), Decimal("-9999999999999999.99")),
        "date": _of(pa.date32(), 18_000, -719_162), "date64": _of(pa.date64(), 86_400_000 * 18_000, 0),
        "ns": _of(pa.timestamp("ns"), 1_600_000_000_000_000_001, -1), "span": _of(pa.duration("s"), 1, -1),
        "time_s": _of(pa.time32("s"), 1, 0), "time_ms": _of(pa.time32("ms"), 1, 0),
        "time_us": _of(pa.time64("us"), 1, 0), "time_ns": _of(pa.time64("ns"), 1, 0),
        "far_ms": _of(pa.timestamp("ms"), 2**62, -(2**62)), "nothing": pa.nulls(3),
        "far_s": _of(pa.timestamp("s"), 9_223_372_036_855, 253_402_300_799),
    }  # fmt: skip


COLUMNS = _columns()
"""By name, as pyarrow writes them."""


def _numbers(a: int, b: int, names: str, digits: int, **others: Any) -> dict[str, Any]:
    """What whole numbers of so many digits are: the types that hold all of the file's type."""
    found: dict[str, Any] = {name: (float(a), float(b)) if name in ("float", "double") else (a, b)
                             for name in names.split()}  # fmt: skip
    wide = [text for text in ("9,0", "10,0", "12,2", "20,0", "20,2", "38,10") if _whole(text) >= digits]
    return found | _decimals(a, b, *wide) | others


def _whole(decimal: str) -> int:
    precision, scale = map(int, decimal.split(","))
    return precision - scale


def _days(a: int, b: int) -> tuple[date, date]:
    return date(1970, 1, 1) + timedelta(a), date(1970, 1, 1) + timedelta(b)


def _midnights(*days: int) -> tuple[datetime, ...]:
    return tuple(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(day) for day in days)


def _decimals(a: Any, b: Any, *names: str) -> dict[str, Any]:
    return {f"decimal({name})": (Decimal(a), Decimal(b)) for name in names}


_INSTANTS = tuple(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=s) for s in _SECONDS)
_NO_UUID = "00000000-0000-0000-0000-000000000000"
_FAR = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_TEXT = {"string": ("é", ""), "binary": ("é".encode(), b"")}
_BYTES = {"string": (b"\xff\xfe", b""), "binary": (b"\xff\xfe", b"")}
_DEC5 = _decimals("1.25", "-999.99", "5,2", "6,3", "12,2", "20,2", "38,10")
_DEC18 = _decimals("1.25", "-9999999999999999.99", "20,2", "38,10")

READ: dict[str, dict[str, Any]] = {
    "bool": {"boolean": (True, False)} | dict.fromkeys(("tinyint", "smallint", "int", "bigint"), (1, 0)),
    "int8": _numbers(-128, 127, "tinyint smallint int bigint float double", 3, boolean=(None, None))
    | _decimals(-128, 127, "5,2", "6,3"),
    "int16": _numbers(-32768, 32767, "smallint int bigint float double", 5),
    "int32": _numbers(-719_162, 2_932_896, "int bigint double", 10),
    "int64": _numbers(-(2**63), 2**63 - 1, "bigint", 19, double=(-(2.0**63), None)),
    "uint8": _numbers(0, 255, "smallint int bigint float double", 3, boolean=(False, None))
    | _decimals(0, 255, "5,2", "6,3"),
    "uint16": _numbers(0, 65535, "int bigint float double", 5),
    "uint32": _numbers(0, 2**32 - 1, "bigint double", 10),
    "uint64": _numbers(0, 2**64 - 1, "", 20, double=(0.0, None)),
    "half": {"float": (1.5, -math.inf), "double": (1.5, -math.inf)},
    "float": {"float": (1.5, -math.inf), "double": (1.5, -math.inf)},
    "double": {"double": (1.1, 1e300)},
    **dict.fromkeys(("string", "large", "view", "words", "json"), _TEXT),
    "binary": _BYTES,
    "fixed": {"binary": (b"\xff\xfe", b"ab")},
    "uuid": {"binary": (b"0123456789abcdef", bytes(16)), "string": ("30313233-3435-3637-3839-616263646566", _NO_UUID)},
    "far_ms": {"timestamp": (None, None), "bigint": (2**62, -(2**62))},
    "far_s": {"timestamp": (None, _FAR), "bigint": (1000 * 9_223_372_036_855, 253_402_300_799_000)},
    "dec5": _DEC5,
    "dec18": _DEC18,
    "date": {"date": _days(18_000, -719_162), "timestamp": _midnights(18_000, -719_162)},
    "date64": {"date": _days(18_000, 0), "timestamp": _midnights(18_000, 0)},
    **{f"ts_{unit}{zone}": {"timestamp": _INSTANTS, "bigint": tuple(s * (many if unit != "s" else 1000)
                                                                    for s in _SECONDS)}
       for unit, many in _TIMES.items() for zone in ("", "_zone")},
    "ns": {"bigint": (1_600_000_000_000_000_001, -1), "timestamp": (_INSTANTS[0], datetime(1969, 12, 31, 23, 59, 59,
                                                                                          999_999, UTC))},
    "span": {"bigint": (1, -1)},
    "time_s": {"int": (1000, 0), "bigint": (1000, 0)},
    "time_ms": {"int": (1, 0), "bigint": (1, 0)},
    "time_us": {"bigint": (1, 0)},
    "time_ns": {"bigint": (1, 0)},
    "nothing": dict.fromkeys(TYPES, (None, None)),
    "int96": {"timestamp": _INSTANTS},
    "dec5_int": _DEC5,
    "dec18_int": _DEC18,
    "dec4": {name: (9999, -9999) for name in ("smallint", "int", "bigint")}
    | _decimals(9999, -9999, "9,0", "10,0", "12,2", "20,0", "20,2", "38,10"),
}  # fmt: skip
"""By name and type, the values but for the null; strings as bytes where they are not UTF-8."""


def write_kinds(folder: Path, **options: Any) -> dict[str, Path]:
    """Files with all columns; for each name the file that has it."""
    instants = pa.array([*_INSTANTS, None], pa.timestamp("us", "UTC"))
    tables = {
        "most": (pa.table(COLUMNS), {}),
        "int96": (pa.table({"int96": instants}), {"use_deprecated_int96_timestamps": True}),
        "ints": (
            pa.table({"dec5_int": COLUMNS["dec5"], "dec18_int": COLUMNS["dec18"]}),
            {"store_decimal_as_integer": True},
        ),
    }
    for name, (table, more) in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", **more, **options)
    return {column: folder / f"{name}.parquet" for name, (table, _) in tables.items() for column in table.schema.names}
