"""Hostile values of every type of the language, drawn at random: the ends of each type, and what breaks naive code."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, ScalarType, StructType
from vsc.runtime.values import INTEGER_BITS

__all__ = ["hostile", "hostile_text"]

_LONG = 5000
_TEXTS = (
    "", " ", "\x00", "\x7f", "\t\n\x0b\x0c\r\x1f ", "\ufffd", "\ufeff", "\u2028", "\x85", "\U0010ffff", "\ud7ff",
    "\ue000", "ß", "İ", "ΑΣ", "ﬃ", "e\u0301", "\U0001d11e", "👩\u200d👩\u200d👧", "'", '"', "\\", "%", "_", "a", "A",
    ",", ";", )  # fmt: skip
_NUMBERS = (
    "0", "-0", "+1", "1.", ".5", "1e3", "7e12345678", "-7e12345678", "7e-12345678", "0e12345678", "1e2147483648",
    "1e99999999999999999999", "1e-99999999999999999999", "0e99999999999999999999", "9" * _LONG, "-" + "9" * _LONG,
    "0" * _LONG + "1", "0." + "0" * _LONG + "1", "0.4" + "9" * _LONG, "9223372036854775807", "-9223372036854775809",
    "128", "-32769", "2147483648", "1.7976931348623157e308", "1e309", "4.9e-324", "1e-400", "nan", "NaN", "Infinity",
    "-inf", "0x1p4", "0x1p99999", "0x1p-99999", "1_000", "١٢", "1f", "1d", "true", "YES", "f", " 1 ", "1e", "e1", "--1",
)  # fmt: skip
_TIMES = (
    "2020-02-29", "2020-02-30", "0000-01-01", "0001-01-01", "9999-12-31T23:59:59.999999Z", "10000-01-01",
    "294247-01-10", "294247-01-10T04:00:54.775807Z", "294247-01-10T04:00:54.775808Z", "-290308-12-21T19:59:05.224192Z",
    "-290308-12-21T19:59:05.224191Z", "9999999-12-31", "-9999999-01-01", "5881580-07-11", "5881580-07-12", "20200101",
    "2020", "2020-1", "2020-01-01 24:00:00", "2020-01-01T23:59:60", "2020-01-01T00:00:00.1234567891234", "T12:00",
    "12:00", "2020-01-01T00:00:00+18:00", "2020-01-01T00:00:00+19:00", "2020-01-01 00:00:00 Europe/Berlin",
    "0001-01-01 00:00:00 Asia/Tokyo", "9999-12-31 23:59:59 America/Lima", "2020-01-01 00:00:00 ../../etc/passwd",
    "2020-01-01 00:00:00 \x00", "2020-01-01 00:00:00 " + "x" * _LONG, "2020-01-01 00:00:00.", "01.02.2020 03:04",
    "1.2.2020", "-0001-01-01", "+2020-01-01", "2020-01-01T",
)  # fmt: skip
_PATTERNS = (
    "%", "%%%%", "_", "%_%_%", "a%", "%a", "%\\%%", "\\", "a\\", "\\a", "%\\", "\\\\", "a" + "%a" * 30, "%" * _LONG,
    "_" * _LONG, "%a_" * 100, "\n%", "%\U0001d11e%",
)  # fmt: skip
_JSONS = (
    "", " ", "null", "0", "[]", "{}", "[null]", '{"a":1,"b":"x"}', '{"a":1}{"a":2}', '{"a":1', '{"a":"\\ud83d"}',
    '{"\\ud83d":1,"b":"\\udc00"}', '{"b":["\\ud83d","\\ud83d\\ude00"]}', '{"a":"\\u0000"}', "{'a':1,'b':'x'}", "{'a':1",
    '"' + '\\"' * _LONG + "'", "'" + "\\'" * _LONG, "[" * _LONG, "[" * _LONG + "]" * _LONG,
    '{"a":' * _LONG + "1" + "}" * _LONG, '{"b":' + "[" * 150 + "]" * 150 + "}", '{"a":' + "9" * _LONG + "}",
    '{"a":1e12345678}', '{"b":1e12345678}', '{"a":NaN,"b":Infinity}', '{"a":-0}', '{"a":-0.0}', '{"a":"2020-01-01"}',
    '{"a":9223372036854775807}', '{"a":9223372036854775}', '{"a":true}', '{"a":"é"}', '{"b":"' + "x" * _LONG + '"}',
    '{"a":1,"a":2}', '{"a":[1,"x"]}', '{"a":"+INF"}', '{"a":12345678901234567890.5}', "\x00", '{"a":"AA=="}',
    '{"a":"AA="}', )  # fmt: skip


def hostile_text(random: Random) -> str:
    """A text: nothing that UTF-8 cannot write."""
    kinds = (_TEXTS, _NUMBERS, _TIMES, _PATTERNS, _JSONS)
    match random.randrange(10):
        case 0:
            return "".join(random.choices(_TEXTS, k=random.randrange(1, 9)))
        case 1:
            return random.choice(_TEXTS) * random.choice((2, 61, _LONG))
        case 2:
            return json.dumps(
                {"a": random.choice(_TEXTS), "b": [random.choice(_NUMBERS)]}, ensure_ascii=random.random() < 0.5
            )
        case 3:
            digits = str(random.randrange(10 ** random.randrange(1, 90)))
            point = random.randrange(len(digits) + 1)
            return random.choice(("", "-")) + random.choice((digits, f"{digits[:point]}.{digits[point:]}"))
        case _:
            return random.choice(random.choice(kinds))


def hostile(random: Random, type: DataType) -> Any:
    """An internal value of `type`; null now and then."""
    if random.random() < 0.08:
        return None
    match type:
        case DecimalType(precision, scale):
            most = 10**precision - 1
            edges = (0, 1, -1, 10**scale, 5 * 10**scale // 10, most, -most, most // 2, 10 ** (precision - 1))
            unscaled = random.choice((random.choice(edges), random.randint(-most, most), random.randint(-999, 999)))
            return Decimal(f"{min(max(unscaled, -most), most)}E-{scale}")
        case ArrayType(element):
            return [hostile(random, element) for _ in range(random.choice((0, 0, 1, 2, 3, 7)))]
        case MapType(key, value):
            keys = [found for _ in range(random.choice((0, 1, 2, 5))) if (found := hostile(random, key)) is not None]
            return {key: hostile(random, value) for key in keys}
        case StructType(fields):
            return tuple(hostile(random, f.type) for f in fields)
        case ScalarType(name) if name in INTEGER_BITS:
            return _integer(random, INTEGER_BITS[name])
        case ScalarType(name):
            return _SCALARS[name](random)


def _integer(random: Random, bits: int) -> int:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = (0, 1, -1, 2, 7, 38, low, low + 1, high, high - 1, low // 2, high // 2, 10**9, 10**12, 86_400_000_000)
    return min(max(random.choice((random.choice(edges), random.randint(low, high), random.randint(-9, 9))), low), high)


def _double(random: Random) -> float:
    edges = (
        0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 0.1, 1e15, 1e16, 1e-7, 2.0**31, -(2.0**31), 2.0**53, 2.0**63, -(2.0**63),
    2.0**64, 9.2e12, 1e38, 1e300, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.nan, math.inf,
    -math.inf, )  # fmt: skip
    return random.choice((random.choice(edges), random.uniform(-1e6, 1e6), round(random.uniform(-100, 100), 3)))


def _float(random: Random) -> float:
    edges = (
        0.0,
        -0.0,
        0.5,
        1.5,
        3.4028234663852886e38,
        -3.4028234663852886e38,
        1.401298464324817e-45,
        math.nan,
        math.inf,
    )
    return random.choice((*edges, -math.inf, 16777216.0, 0.10000000149011612, float(random.randint(-1000, 1000))))


_SCALARS: dict[str, Callable[[Random], Any]] = {
    "boolean": lambda random: random.random() < 0.5,
    "float": _float,
    "double": _double,
    "string": hostile_text,
    "binary": lambda random: random.choice((b"", b"\x00", b"\xff", b"\xed\xa0\xbd", b"a", "ß".encode(), b"\xc3" * _LONG,
                                            random.randbytes(random.randrange(40)))),
    "date": lambda random: random.choice((_integer(random, 32), random.randint(-719_162, 2_932_896))),
    "timestamp": lambda random: random.choice((_integer(random, 64), random.randint(-(2**57), 2**57),
                                               random.randint(0, 2**41) * 1000)),
}  # fmt: skip
