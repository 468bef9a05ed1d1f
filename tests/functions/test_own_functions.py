"""Functions of the user's in the test driver: values, nulls, what is not called, failures, and which modules may be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from tests.functions import own_rules
from vsc.compiler import compile_topology
from vsc.plan import PlanError, dump, load
from vsc.plan.types import BIGINT, STRING
from vsc.runtime.errors import ConfigurationError, ExpressionError, FunctionError
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.operators.source.stage_zero import StageZero
from vsc.runtime.records import Origin
from vsc.runtime.values import to_array, to_values
from vsc.testing import TopologyTestDriver

MODULE = "tests.functions.own_rules"
SOURCE = "stream s (k string, n bigint, m bigint) from memory () key k;"


@pytest.fixture(autouse=True)
def nothing_seen() -> Iterator[None]:
    own_rules.seen.clear()
    yield


def _topology(function: str, expression: str, vectorized: bool = False) -> str:
    declared = f"function f (n bigint) returns bigint from '{MODULE}:{function}'{' vectorized' if vectorized else ''};"
    return f"{declared}\n{SOURCE}\nstream r = map s select {expression} as v;"


def _values(text: str, *numbers: int | None, on_error: Literal["drop", "fail"] = "fail") -> list[Any]:
    """What `r` gives for rows with these values of `n`, all in one batch."""
    count = len(numbers)
    columns = (
        to_array([str(n) for n in range(count)], STRING),
        to_array(numbers, BIGINT),
        to_array([*range(count)], BIGINT),
    )
    zeros, offsets = np.zeros(count, np.int64), np.arange(count, dtype=np.int64)
    rows = SourceRows(Origin("s", 0, ""), columns, offsets, zeros, zeros.astype(np.bool_))
    options = RunOptions(on_error=on_error, functions=(MODULE,))
    result = StageZero(compile_topology(text), options, frozenset({"r"})).process("s", rows)
    return [value for _, batch in result.batches for value in to_values(batch.values[0], BIGINT)]


@pytest.mark.parametrize(("function", "vectorized", "null"), [("doubled", False, -1), ("tripled", True, None)])
def test_a_function_is_called_for_every_row_nulls_too(function: str, vectorized: bool, null: int | None) -> None:
    factor = 3 if vectorized else 2
    assert _values(_topology(function, "f(n) + 1", vectorized), 1, None, 5) == [
        factor + 1, None if null is None else null + 1, 5 * factor + 1,
    ]  # fmt: skip
    assert own_rules.seen == ([[1, None, 5]] if vectorized else [1, None, 5])


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize(
    ("expression", "asked"),
    [
        ("case when n > 2 then f(n) end", [3, 4]),
        ("if(n > 2, 0, f(n))", [1, 2]),
        ("coalesce(if(n > 1, n, null), f(n))", [1]),
        ("n > 3 and f(n) > 0", [4]),
        ("n > 3 or f(n) > 0", [1, 2, 3]),
        ("case when n > 9 then f(7) end", []),
    ],
)
def test_it_is_not_called_for_rows_that_do_not_ask(expression: str, asked: list[int], vectorized: bool) -> None:
    _values(_topology("tripled" if vectorized else "doubled", expression, vectorized), 1, 2, 3, 4)
    assert own_rules.seen == ([asked] if vectorized and asked else asked)


@pytest.mark.parametrize(("function", "vectorized"), [("picky", False), ("tripled_without_thirteen", True)])
def test_what_it_raises_is_the_failure_of_that_record_alone(function: str, vectorized: bool) -> None:
    text, numbers = _topology(function, "f(n)", vectorized), [*range(10, 1000)]
    factor = 3 if vectorized else 1
    assert _values(text, *numbers, on_error="drop") == [factor * n for n in numbers if n != 13]
    with pytest.raises(ExpressionError) as caught:
        _values(text, *numbers)
    assert caught.value.message.startswith(
        "'r': f(n) failed on record 3 of its only partition of source 's': "
        f"{MODULE}:{function} raised LookupError: no thirteen (own_rules.py, line "
    )


def test_a_value_of_another_type_is_a_failure_of_its_record() -> None:
    text = _topology("wrong", "f(n)")
    assert _values(text, 1, 2, 3, on_error="drop") == [1, None]
    with pytest.raises(ExpressionError, match=r"record 1 of .*: 'two' is not a value of type bigint"):
        _values(text, 1, 2, 3)


def test_numbers_of_numpy_are_values() -> None:
    text = _topology("whole", "f(n)")
    assert _values(text, 1, 2) == [1, 2]
    with pytest.raises(ExpressionError, match=r"3.0 is not a value of type bigint"):
        _values(text, 3)
    text = (
        f"function f (n bigint) returns struct<a: smallint, b: array<double>, c: decimal(5, 2), d: boolean> from "
        f"'{MODULE}:in_numpy'; {SOURCE} stream r = map s select f(n) as v;"
    )
    with TopologyTestDriver(text, functions=[MODULE]) as driver:
        driver.pipe("s", {"k": "a", "n": 3, "m": 0}, timestamp=0)
        (record,) = driver.read("r")
    assert record.value == {"v": {"a": 3, "b": [3.0, 0.5], "c": Decimal("0.75"), "d": True}}


def test_times_of_numpy_are_values() -> None:
    """Without a zone they are in UTC; nanoseconds are cut off."""
    text = (
        f"function f (n bigint) returns struct<t: timestamp, d: date, ts: array<timestamp>, no: timestamp, x: double> "
        f"from '{MODULE}:times_in_numpy'; {SOURCE} stream r = map s select f(n) as v;"
    )
    with TopologyTestDriver(text, functions=[MODULE]) as driver:
        driver.pipe("s", {"k": "a", "n": 1_000_001_999, "m": 0}, timestamp=0)
        (record,) = driver.read("r")
    at = datetime(1970, 1, 1, 0, 0, 1, 1, UTC)
    assert record.value == {"v": {"t": at, "d": date(2026, 1, 5), "ts": [at, None], "no": None, "x": 500000999.5}}
    with pytest.raises(ExpressionError, match="is not a value of type bigint"):
        _values(_topology("a_duration", "f(n)"), 1)


@pytest.mark.parametrize(
    ("function", "returns", "expected"),
    [
        ("by_rows", "struct<a: bigint, b: string>", [{"a": 1, "b": None}, {"a": 2, "b": None}, {"a": 6, "b": "s"}]),
        ("whole_decimals", "decimal(5, 2)", [Decimal("0.25"), Decimal("2.00"), Decimal("6.00")]),
        ("in_berlin", "timestamp", [datetime(1970, 1, 1, 0, 0, n, tzinfo=UTC) for n in (1, 2, 6)]),
    ],
)
def test_what_pyarrow_infers_does_not_depend_on_the_rows_of_a_batch(
    function: str, returns: str, expected: list[Any]
) -> None:
    text = (
        f"function f (n bigint) returns {returns} from '{MODULE}:{function}' vectorized; "
        f"{SOURCE} stream r = map s select f(n) as v;"
    )
    with TopologyTestDriver(text, functions=[MODULE]) as driver:
        rows = [{"k": "a", "n": n, "m": 0} for n in (1, 2, 6)]
        for row in rows:
            driver.pipe("s", row, timestamp=0)
        with driver.batch():
            for row in rows:
                driver.pipe("s", row, timestamp=0)
        assert [record.value for record in driver.read("r")] == [{"v": value} for value in expected * 2]


def test_a_type_that_pyarrow_infers_from_the_values_of_a_batch_is_the_declared_one() -> None:
    """Without any value it is null, and so is that of an empty list; decimals have the digits of the widest."""
    text = (
        f"function f (n bigint) returns struct<x: array<bigint>, y: decimal(9, 2), z: double> from '{MODULE}:inferred' "
        f"vectorized; {SOURCE} stream r = map s select f(n) as v;"
    )
    expected = [None, {"x": [], "y": Decimal("0.00"), "z": 0.0}, {"x": [5], "y": Decimal("1.25"), "z": 2.5}]
    with TopologyTestDriver(text, functions=[MODULE]) as driver:
        rows = [{"k": "a", "n": n, "m": 0} for n in (9, 0, 5)]
        for row in rows:
            driver.pipe("s", row, timestamp=0)
        with driver.batch():
            for row in rows:
                driver.pipe("s", row, timestamp=0)
        assert [record.value for record in driver.read("r")] == [{"v": value} for value in expected * 2]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("floats", "returned an array of double, not of int64"),
        ("short", "returned an array of 2 values for 3 rows"),
        ("listed", "returned a value of type list for 3 rows, not an array"),
    ],
)
def test_a_wrong_array_ends_the_run(function: str, problem: str) -> None:
    with pytest.raises(FunctionError) as caught:
        _values(_topology(function, "f(n)", vectorized=True), 1, 2, 3, on_error="drop")
    assert caught.value.message == f"'{MODULE}:{function}' {problem}"


def test_an_interrupt_is_not_a_failure_of_a_record() -> None:
    with pytest.raises(KeyboardInterrupt):
        _values(_topology("interrupted", "f(n)"), 1, on_error="drop")


def test_values_are_those_of_python() -> None:
    text = (
        f"function f (at timestamp, d date, p array<double>, m map<string, bytes>, s struct<a: int, b: string>)"
        f" returns string from '{MODULE}:described';"
        "stream s (k string, at timestamp, d date, p array<double>, m map<string, binary>, s struct<a: int, b: string>)"
        " from memory () key k timestamp at; stream r = map s select f(at, d, p, m, s) as v;"
    ).replace("bytes", "binary")
    row = {"k": "a", "at": "2020-01-02T03:04:05Z", "d": "2020-02-29", "p": [1.5, None], "m": {"x": b"\0"},
           "s": {"a": 1, "b": "y"}}  # fmt: skip
    with TopologyTestDriver(text, functions=[MODULE]) as driver:
        driver.pipe("s", row)
        (record,) = driver.read("r")
    assert record.value == {
        "v": "(datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc), datetime.date(2020, 2, 29), "
        "[1.5, None], {'x': b'\\x00'}, {'a': 1, 'b': 'y'})"
    }


def test_functions_stand_in_keys_times_aggregates_and_tables() -> None:
    text = f"""
        function f (n bigint) returns bigint from '{MODULE}:doubled';
        function g (n bigint) returns bigint from '{MODULE}:tripled' vectorized;
        stream s (k string, n bigint) from memory () key k timestamp f(n);
        table t = aggregate s group by g(n) as g select sum(f(n)) + g(count(*)) as v;"""
    with TopologyTestDriver(text, functions=[MODULE]) as driver:
        driver.pipe("s", {"k": "a", "n": 5})
        driver.pipe("s", {"k": "b", "n": 5})
        assert [(r.key, r.value, r.timestamp) for r in driver.read("t")] == [
            ({"g": 15}, {"v": 13}, 10), ({"g": 15}, {"v": 26}, 10),
        ]  # fmt: skip
        found = driver.store("t").get({"g": 15})
        assert found is not None
        assert found.value == {"v": 26}


def test_only_modules_that_the_run_allows_are_imported() -> None:
    text = _topology("doubled", "f(n)").replace(f"{MODULE}:doubled", "antigravity:fly")
    assert "antigravity" not in sys.modules
    with pytest.raises(FunctionError) as caught:
        TopologyTestDriver(text, functions=[MODULE])
    assert (caught.value.code, caught.value.message, caught.value.help) == (
        "VSC925",
        "the topology calls 'antigravity:fly', of a module that this run does not allow",
        "if you trust it: --functions antigravity, in Python functions=['antigravity'], in a scenario file "
        "functions: [antigravity]",
    )
    assert "antigravity" not in sys.modules
    unused = f"function fly (n bigint) returns bigint from 'antigravity:fly';\n{SOURCE}"
    TopologyTestDriver(unused).close()


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("tests.functions.nothing:f", "the function 'tests.functions.nothing:f' cannot be imported: No module named"),
        (f"{MODULE}:nothing", f"the module '{MODULE}' has no function 'nothing'"),
        (f"{MODULE}:not_a_function", f"the module '{MODULE}' has no function, but a value, 'not_a_function'"),
    ],
)
def test_a_function_that_is_not_there_is_refused(reference: str, problem: str) -> None:
    text = _topology("doubled", "f(n)").replace(f"{MODULE}:doubled", reference)
    with pytest.raises(FunctionError) as caught:
        TopologyTestDriver(text, functions=[reference.partition(":")[0]])
    assert caught.value.message.startswith(problem)


@pytest.mark.parametrize("given", ["scoring", [1], ["./scoring.py"], 5])
def test_functions_are_a_list_of_modules(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="`functions` are the names of modules"):
        TopologyTestDriver(SOURCE, functions=given)


def test_a_module_in_the_working_directory_is_not_found_by_chance(tmp_path: Path) -> None:
    (tmp_path / "stray.py").write_text("def f(n):\n    return n\n")
    text = _topology("doubled", "f(n)").replace(f"{MODULE}:doubled", "stray:f")
    program = f"from vsc.testing import TopologyTestDriver\nTopologyTestDriver({text!r}, functions=['stray'])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert "[VSC925] the function 'stray:f' cannot be imported: No module named 'stray'" in done.stderr


def test_a_plan_holds_its_declarations_and_no_other_call() -> None:
    plan = compile_topology(_topology("tripled", "f(n)", vectorized=True))
    (function,) = plan.functions
    assert (function.name, function.reference, function.vectorized, str(function.returns)) == (
        "f", f"{MODULE}:tripled", True, "bigint",
    )  # fmt: skip
    assert [(one.name, str(one.type)) for one in function.parameters] == [("n", "bigint")]
    assert load(dump(plan)) == plan
    for other in ((), (replace(function, reference="os:system"),), (replace(function, vectorized=False),)):
        with pytest.raises(PlanError, match=r"no function '.*:tripled' is declared that takes and gives these types"):
            load(dump(replace(plan, functions=other)))
