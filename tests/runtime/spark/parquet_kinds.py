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
        "float": _of(pa.float32(), 1.5, -math.inf), "double": _of(pa.float64(), 1.1, 1e300),
        "string": _of(pa.string(), "é", ""), "large": _of(pa.large_string(), "é", ""),
        "view": _of(pa.string_view(), "é", ""), "words": _of(pa.string(), "é", "").dictionary_encode(),
        "json": pa.ExtensionArray.from_storage(pa.json_(), _of(pa.string(), "é", "")),
        "binary": _of(pa.binary(), b"\xff\xfe", b""), "fixed": _of(pa.binary(2), b"\xff\xfe", b"ab"),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), _of(pa.binary(16), b"0123456789abcdef", bytes(16))),
        "dec5": _of(pa.decimal128(5, 2), Decimal("1.25"), Decimal("-999.99")),
        "dec18": _of(pa.decimal128(18, 2), Decimal("1.25"), Decimal("-9999999999999999.99")),
        "date": _of(pa.date32(), 18_000, -719_162), "date64": _of(pa.date64(), 86_400_000 * 18_000, 0),
        "ns": _of(pa.timestamp("ns"), 1_600_000_000_000_000_001, -1), "span": _of(pa.duration("s"), 1, -1),
        "time_s": _of(pa.time32("s"), 1, 0), "time_ms": _of(pa.time32("ms"), 1, 0),
        "time_us": _of(pa.time64("us"), 1, 0), "time_ns": _of(pa.time64("ns"), 1, 0),
        "nothing": pa.nulls(3),
    }  # fmt: skip


COLUMNS = _columns()
"""By name, as pyarrow writes them."""


def _numbers(a: int, b: int, **others: Any) -> dict[str, Any]:
    """What numbers of 32 bits are: narrower ones are cut."""
    found: dict[str, Any] = {name: (_cut(a, bits), _cut(b, bits)) for name, bits in (("tinyint", 8), ("smallint", 16))}
    return found | {"int": (a, b), "bigint": (a, b), "double": (float(a), float(b)), **others}


def _cut(value: int, bits: int) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _days(a: int, b: int) -> tuple[date, date]:
    return date(1970, 1, 1) + timedelta(a), date(1970, 1, 1) + timedelta(b)


def _decimals(a: Any, b: Any, *names: str) -> dict[str, Any]:
    return {f"decimal({name})": (Decimal(a), Decimal(b)) for name in names}


_WHOLE = ("10,0", "12,2", "20,0", "20,2", "38,10")
_INSTANTS = tuple(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=s) for s in _SECONDS)
_TEXT = {"string": ("é", ""), "binary": ("é".encode(), b"")}
_BYTES = {"string": (b"\xff\xfe", b""), "binary": (b"\xff\xfe", b"")}
_DEC5 = _decimals("1.25", "-999.99", "5,2", "6,3", "12,2", "20,2", "38,10")
_DEC18 = _decimals("1.25", "-9999999999999999.99", "20,2", "38,10")

READ: dict[str, dict[str, Any]] = {
    "bool": {"boolean": (True, False)},
    "int8": _numbers(-128, 127, date=_days(-128, 127)) | _decimals(-128, 127, *_WHOLE),
    "int16": _numbers(-32768, 32767, date=_days(-32768, 32767)) | _decimals(-32768, 32767, *_WHOLE),
    "int32": _numbers(-719_162, 2_932_896, date=_days(-719_162, 2_932_896)) | _decimals(-719_162, 2_932_896, *_WHOLE),
    "int64": {"bigint": (-(2**63), 2**63 - 1)} | _decimals(-(2**63), 2**63 - 1, "20,0", "38,10"),
    "uint8": _numbers(0, 255, date=_days(0, 255)),
    "uint16": _numbers(0, 65535, date=_days(0, 65535)),
    "uint32": {"bigint": (0, 2**32 - 1), "double": (0.0, 2.0**32 - 1)},
    "uint64": _decimals(0, 2**64 - 1, "20,0"),
    "float": {"float": (1.5, -math.inf), "double": (1.5, -math.inf)},
    "double": {"double": (1.1, 1e300)},
    **dict.fromkeys(("string", "large", "view", "words", "json"), _TEXT),
    "binary": _BYTES,
    "fixed": {"binary": (b"\xff\xfe", b"ab")},
    "uuid": {"binary": (b"0123456789abcdef", bytes(16))},
    "dec5": _DEC5,
    "dec18": _DEC18,
    "date": _numbers(18_000, -719_162, date=_days(18_000, -719_162)),
    "date64": _numbers(18_000, 0, date=_days(18_000, 0)),
    **{f"ts_{unit}{zone}": {"timestamp": _INSTANTS, "bigint": tuple(s * (many if unit != "s" else 1000)
                                                                    for s in _SECONDS)}
       for unit, many in _TIMES.items() for zone in ("", "_zone")},
    "ns": {"bigint": (1_600_000_000_000_000_001, -1)},
    "span": {"bigint": (1, -1)} | _decimals(1, -1, "20,0", "38,10"),
    "time_s": _numbers(1000, 0, date=_days(1000, 0)),
    "time_ms": _numbers(1, 0, date=_days(1, 0)),
    "time_us": {"bigint": (1, 0)},
    "time_ns": {"bigint": (1, 0)},
    "nothing": dict.fromkeys(("tinyint", "smallint", "int", "bigint", "double", "date"), (None, None)),
    "int96": {"timestamp": _INSTANTS},
    "dec5_int": _numbers(125, -99_999, date=_days(125, -99_999)) | _DEC5,
    "dec18_int": {"bigint": (125, -999_999_999_999_999_999)} | _DEC18,
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
