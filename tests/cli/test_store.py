"""``vsc store``: keys and times as they are typed, and what is refused before Spark starts."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from vsc.cli import main
from vsc.cli.errors import UsageError
from vsc.cli.store_key import read_key, read_time
from vsc.cli.store_text import sizes_text, skew_hint
from vsc.compiler import compile_topology
from vsc.plan import dump
from vsc.plan.nodes import Column
from vsc.plan.types import parse_type
from vsc.runtime.operators.views import StoreInfo
from vsc.runtime.spark.checkpoint.identity import Identity
from vsc.runtime.spark.state.node_clocks import ShownClock
from vsc.runtime.spark.state.store_sizes import PartSize, StoreSize

TOPOLOGY = """
table t (k bigint, v string, at bigint) from files (path = 'x', format = 'json') key k timestamp at
  materialize versioned (retention = 1 day);
table u (k bigint, v string) from files (path = 'x', format = 'json') key k materialize unversioned;
sink t to noop (); sink u to noop ();
"""


def store(*types: str) -> StoreInfo:
    key = tuple(Column(f"k{i}", parse_type(t)) for i, t in enumerate(types))
    return StoreInfo("s", "s", "s", 1, "versioned", key, (), ("valid_from", "valid_to"), b"", "s")


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("string", "EUR", "EUR"),
        ("string", "42", "42"),
        ("string", '{"k0": "EUR"}', "EUR"),
        ("string", '{"other": 1}', '{"other": 1}'),
        ("int", "-42", -42),
        ("bigint", '{"k0": 42}', 42),
        ("decimal(6,2)", "1.50", Decimal("1.50")),
        ("decimal(6,2)", '{"k0": 1.50}', Decimal("1.50")),
        ("boolean", "TRUE", True),
        ("date", "2026-03-02", date(2026, 3, 2)),
        ("timestamp", "2026-03-02T10:00:00Z", datetime(2026, 3, 2, 10, tzinfo=UTC)),
        ("timestamp", "12", 12),
        ("binary", "AP8=", b"\x00\xff"),
        ("struct<a:int>", '{"a": 1}', {"a": 1}),
    ],
)
def test_a_key_is_what_its_column_makes_of_it(type: str, text: str, value: Any) -> None:
    assert read_key(store(type), text) == {"k0": value}


@pytest.mark.parametrize(
    ("types", "text", "words"),
    [
        (("int",), "x", "key column 'k0' of 's' is int: 'x' is not a value of it"),
        (("binary",), "x", "key column 'k0' of 's' is binary"),
        (("date",), "yesterday", "key column 'k0' of 's' is date"),
        (("int", "int"), "1", "the key of 's' has 2 columns, and '1' is not a JSON object of them"),
    ],
)
def test_a_wrong_key_is_refused(types: tuple[str, ...], text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_key(store(*types), text)
    assert words in str(refused.value)


def test_a_key_of_several_columns_is_a_json_object() -> None:
    assert read_key(store("int", "string"), '{"k1": "x", "k0": 1}') == {"k0": 1, "k1": "x"}


def test_times_are_milliseconds_or_iso_text() -> None:
    assert read_time("-5", "as_of") == -5
    assert read_time("1970-01-01T01:00:00.5+01:00", "as_of") == 500
    assert read_time("1970-01-02", "as_of") == 86_400_000
    with pytest.raises(UsageError, match="--from takes a time, not 'noon'"):
        read_time("noon", "start")
    with pytest.raises(UsageError, match=f"--to takes a time, not '{'9' * 40}'"):
        read_time("9" * 5000, "end")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("get t --key x --checkpoint ck", 2, "error: key column 'k' of 't' is bigint: 'x' is not a value of it"),
        ("get t --key 1 --as-of noon --checkpoint ck", 2, "error: --as-of takes a time, not 'noon'"),
        ("get nope --key 1 --checkpoint ck", 2, "error[VSC907]: there is no store 'nope'\n = help: there are t, u"),
        ("history u --key 1 --checkpoint ck", 2, "error[VSC907]: 'u' (unversioned) keeps no history"),
        ("scan u --as-of 1 --checkpoint ck", 2, "error[VSC907]: 'u' (unversioned) cannot answer as of a time"),
        ("scan t --as-of 1 --from 2 --checkpoint ck", 2, "error: --as-of asks for one time"),
        ("scan t --limit -1 --checkpoint ck", 2, "error: --limit cannot be -1"),
        (f"scan t --limit {1 << 31} --checkpoint ck", 2, "help: give a number from 0 to 2,147,483,647"),
        ("scan t --checkpoint nowhere", 1, "error[VSC904]: nowhere is not a checkpoint of vsc"),
        ("scan t --checkpoint old", 1, "error[VSC904]: the checkpoint old has format version 9"),
        ("scan t --checkpoint broken", 1, "error[VSC904]: broken/vsc/plan.json is not a plan that this vsc can run"),
        ("scan t --checkpoint flipped", 1, "error[VSC904]: flipped/vsc/plan.json is damaged: its checksum is wrong"),
        ("scan t --checkpoint changed", 1, "error[VSC904]: changed/vsc/identity.json is damaged: its checksum"),
        ("scan t --checkpoint lost", 1, "error[VSC904]: lost/vsc/plan.json is missing"),
        ("get t --checkpoint ck", 2, "the following arguments are required: --key"),
        ("--checkpoint ck", 2, "argument ACTION: invalid choice"),
    ],
)
def test_what_is_refused_before_spark_starts(
    arguments: str, status: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    plan = dump(compile_topology(TOPOLOGY))
    for folder in ("ck", "old", "broken", "flipped", "changed", "lost"):
        begun(tmp_path / folder, plan[:50] if folder == "broken" else plan)
    (tmp_path / "old/vsc/identity.json").write_text(json.dumps({"format": 9}))
    (tmp_path / "flipped/vsc/plan.json").write_text(plan.replace("1", "2", 1))
    changed = tmp_path / "changed/vsc/identity.json"
    changed.write_text(changed.read_text().replace('"partitions": 2', '"partitions": 3'))
    (tmp_path / "lost/vsc/plan.json").unlink()
    assert main(["store", *arguments.split()]) == status
    assert words in capsys.readouterr().err


def begun(folder: Path, plan: str) -> None:
    """A checkpoint without an epoch."""
    identity = Identity("0123456789abcdef" * 2, 2, plan)
    (folder / "vsc").mkdir(parents=True)
    (folder / "vsc/identity.json").write_text(identity.dump("t"))
    (folder / "vsc/plan.json").write_text(identity.plan_text)


def size(*parts: tuple[int, int], replicated: bool = False) -> StoreSize:
    """A store of partitions with so many rows and bytes."""
    store = StoreInfo("s", "s", "s", 1, "unversioned", (), (), (), b"", "s", replicated)
    return StoreSize(store, tuple(PartSize(rows, bytes, None) for rows, bytes in parts))


def test_a_partition_with_more_than_three_times_the_median_is_skewed() -> None:
    even, skewed = size((1000, 10), (1000, 10), (1000, 30)), size((1000, 10), (1000, 31), (1000, 10))
    assert (even.skewed, skewed.skewed) == (None, 1)
    assert size((9, 10), (999, 900), (9, 10)).skewed is None  # a few keys are never spread evenly
    assert size((1000, 10), (1000, 31), (1000, 10), replicated=True).skewed is None
    assert skew_hint([even]) is None
    said = skew_hint([even, skewed])
    assert said is not None and "median one: s (partition 1). If it holds many keys" in said
    assert (skewed.rows, skewed.bytes) == (3000, 51)


def test_a_table_of_sizes_has_a_line_for_each_partition_if_asked() -> None:
    lines = sizes_text([size((1500, 10), (7, 3))], "table", True).splitlines()
    assert [line.split()[-3:] for line in lines] == [
        ["rows", "bytes", "stream_time"], ["-----", "-----", "-----------"], ["0", "1,500", "10"], ["1", "7", "3"],
    ]  # fmt: skip
    assert sizes_text([size((1500, 10), (7, 3))], "csv", False).splitlines()[1] == "s,s,1,unversioned,,1507,13,,"
    behind = replace(size((1500, 10)), clock=ShownClock(61_000, 3_600_000))
    assert sizes_text([behind], "csv", False).splitlines()[1] == "s,s,1,unversioned,,1500,10,61000,3600000"
    assert sizes_text([behind], "table", False).splitlines()[2].endswith("1970-01-01 00:01:01.000  1 hour")
    (listed,) = json.loads(sizes_text([behind], "json", False))
    assert (listed["stream_time"], listed["behind"]) == (61_000, 3_600_000)


WINDOWED = """
stream s (k string, v bigint, at bigint) from files (path = 'x', format = 'json') key k timestamp at;
table w = aggregate s group by k window tumbling (size = 1 hour) select sum(v) as total;
sink w to noop ();
"""


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("a", "has not committed an epoch yet"),
        ('{"k": "a"}', "has not committed an epoch yet"),
        ('{"k": "a", "window_start": 0}', "window_start is a bound of the windows of 'w'"),
        ('{"z": "a"}', "'w' has no key column 'z'"),
    ],
)
def test_a_purge_takes_the_key_of_a_group(
    key: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path / "ck", dump(compile_topology(WINDOWED)))
    assert main(["store", "purge", "w", "--key", key, "--checkpoint", str(tmp_path / "ck")]) in (1, 2)
    assert words in capsys.readouterr().err
