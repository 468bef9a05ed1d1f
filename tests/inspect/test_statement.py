"""``vsc inspect`` as its user sees it: a folder in, a statement out that is true of every row."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from vsc.cli import main
from vsc.compiler import check_topology
from vsc.inspect.files import find_files
from vsc.plan.nodes import Source
from vsc.testing import TopologyTestDriver

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def inspect(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command writes, which the compiler has to accept."""
    assert main(["inspect", *arguments]) == 0
    out = capsys.readouterr().out
    assert [d.message for d in check_topology(out) if d.severity == "error"] == []
    return out


def findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["inspect", *arguments, "--output", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [d.message for d in check_topology(found["statement"]) if d.severity == "error"] == []
    return dict(found)


def types(found: dict[str, Any]) -> dict[str, str]:
    return {column["name"]: column["type"] for column in found["columns"]}


def lines(name: str, *rows: object) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))


def table() -> pa.Table:
    """Six hours of readings of two sensors, the last of which comes 90 minutes late."""
    times = [START + timedelta(minutes=30 * i) for i in range(11)] + [START + timedelta(minutes=211)]
    return pa.table(
        {
            "reading_id": pa.array([f"r{i}" for i in range(12)]),
            "sensor": pa.array(["s1", "s2"] * 6),
            "value": pa.array([i / 4 for i in range(12)]),
            "measured_at": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


BODY = """\
stream readings (
  reading_id  string,
  sensor      string,
  value       double,
  measured_at timestamp
)
from files (path = 'readings', format = '{format}')
key reading_id
timestamp measured_at;
"""


def write(format: str) -> None:
    Path("readings").mkdir()
    path = f"readings/a.{format}"
    match format:
        case "parquet":
            pq.write_table(table(), path)
        case "orc":
            plain = table().schema.set(3, pa.field("measured_at", pa.timestamp("us")))
            orc.write_table(table().cast(plain), path)
        case "csv":
            rows = table()
            texts = pa.array([t.isoformat() for t in rows["measured_at"].to_pylist()])
            pacsv.write_csv(rows.set_column(3, "measured_at", texts), path)
        case _:
            lines(path, *({**row, "measured_at": row["measured_at"].isoformat()} for row in table().to_pylist()))


@pytest.mark.parametrize("format", ["parquet", "json", "csv", "orc"])
def test_every_format_gives_the_same_statement(format: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(format)
    out = inspect(capsys, "readings")
    assert out.startswith(f"-- readings: {format}, 1 file, ")
    head = out.partition("\n")[2]
    assert head == (
        "-- Event time: measured_at, from 2026-03-02T09:00:00Z to 2026-03-02T14:00:00Z.\n"
        "-- Disorder: 8.3 % of the rows come after a newer one.\n"
        "--   They are 1 hour 29 minutes late.\n"
        "--   A retention or grace of 2 hours covers all.\n"
        "-- Key: unique in 12 rows: reading_id.\n"
        "--   As a table's key, unique with measured_at: sensor (2 values).\n"
        "--   So few rows say little about keys.\n" + BODY.format(format=format)
    )


def test_decisions_can_be_overruled(capsys: pytest.CaptureFixture[str]) -> None:
    write("json")
    out = inspect(
        capsys, "readings/*.json", "--kind", "table", "--key", "sensor", "--key", "reading_id", "--name", "where",
        "--timestamp", "measured_at",
    )  # fmt: skip
    assert "--   A stream that joins it misses such rows, unless it waits (`grace 2 hours`) or is corrected" in out
    assert out.endswith(
        "table `where` (\n"
        "  reading_id  string,\n  sensor      string,\n  value       double,\n  measured_at timestamp\n)\n"
        "from files (path = 'readings/*.json', format = 'json')\n"
        "key sensor, reading_id\ntimestamp measured_at\nmaterialize versioned (retention = 7 days);\n"
    )


def test_a_table_s_own_late_rows_fit_into_its_retention(capsys: pytest.CaptureFixture[str]) -> None:
    days = [20, 1, 21, 22]
    lines("prices.json", *({"sku": f"a{d}", "price": 1, "at": f"2026-03-{d:02}T00:00:00Z"} for d in days))
    assert "materialize versioned (retention = 21 days);" in inspect(capsys, "prices.json", "--kind", "table")


def test_several_paths_are_several_statements_that_compile_together(capsys: pytest.CaptureFixture[str]) -> None:
    lines("a/x.json", {"id": 1})
    lines("b/x.json", {"id": 2})
    out = inspect(capsys, "a/x.json", "b/x.json")
    assert [line for line in out.splitlines() if line.startswith("stream")] == ["stream x (", "stream x_2 ("]


def test_what_a_user_is_told_beside_the_statement(capsys: pytest.CaptureFixture[str]) -> None:
    lines("x.json", {"id": 1, "at": "2026-03-02T09:00:00Z"}, {"id": 2}, "{oops", 5)
    assert main(["inspect", "x.json"]) == 0
    out, err = capsys.readouterr()
    assert err == (
        "x.json: stream x, 2 columns, 2 rows read\n"
        "warning: 2 rows cannot be read, first x.json:3: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1).\n"
        "warning: 1 row without at: a run drops rows without an event time.\n"
    )
    assert "-- 1 row without at: a run drops rows without an event time.\n" in out
    lines("y.json", {"id": 1})
    assert main(["inspect", "y.json"]) == 0
    assert capsys.readouterr().err == "y.json: stream y, 1 column, 1 row read\n"


def test_names_that_a_topology_has_to_quote_or_cannot_have(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"order-id": 1, "from": "a", "ID": 2, "Id": 3, "_vsc_x": 4, "a`b": 5, "inner": {"end": 1, "x y": 2}}
    lines("x.json", row)
    found = findings(capsys, "x.json")
    assert types(found) == {
        "order-id": "bigint", "from": "string", "ID": "bigint", "a`b": "bigint",
        "inner": "struct<`end`: bigint, `x y`: bigint>",
    }  # fmt: skip
    assert found["left_out"] == [
        {"name": "Id", "reason": "differs from ID in case only"},
        {"name": "_vsc_x", "reason": "vsc does not allow this column name"},
    ]
    assert "  `from`     string,\n" in found["statement"] and "  `a``b`" in found["statement"]


def test_columns_of_some_files_and_files_that_are_no_one_source(capsys: pytest.CaptureFixture[str]) -> None:
    lines("mixed/a.json", {"id": 1, "x": 1}, {"id": 2, "x": 2})
    lines("mixed/b.json", {"id": 3})
    found = findings(capsys, "mixed")
    assert "x  bigint  -- 33.3 % null; not in 1 of 2 files" in found["statement"]
    assert found["warnings"] == []
    lines("mixed/b.json", {"other": 3, "more": 4})
    assert findings(capsys, "mixed")["warnings"] == [
        "The files have little in common: if they are not one source, inspect them one by one."
    ]


def test_folders_of_hive_partitions_are_columns(capsys: pytest.CaptureFixture[str]) -> None:
    lines("sales/dt=2026-05-04/region=n%2Fw/a.json", {"id": "1"})
    lines("sales/dt=2026-05-05/region=__HIVE_DEFAULT_PARTITION__/a.json", {"id": "2"})
    found = findings(capsys, "sales")
    assert types(found) == {"id": "string", "dt": "date", "region": "string"}
    assert [column["nulls"] for column in found["columns"]] == [0, 0, 1]
    assert found["event_time"]["clause"] == "cast(dt as timestamp)"
    assert found["event_time"]["first_iso"] == "2026-05-04T00:00:00Z"
    assert "dt     date,   -- from the path" in found["statement"]


def test_other_files_in_the_folder_are_kept_out_of_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    lines("data/a.json", {"id": 1})
    lines("data/README.md", "about\nthe data")
    lines("data/_SUCCESS", "x")
    found = findings(capsys, "data")
    assert (found["options"], found["files"]) == ({"pathGlobFilter": "*.json"}, 1)
    assert found["warnings"] == ["Files of another format are left out: README.md."]


def test_a_big_folder_is_sampled_from_its_first_file_to_its_last(capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(1, 11):
        lines(f"big/{day:02}.json", *({"id": n, "at": f"2026-03-{day:02}T00:00:00Z"} for n in range(2000)))
        os.utime(f"big/{day:02}.json", (day, day))
    found = findings(capsys, "big", "--rows", "5000")
    assert (found["complete"], found["files"], found["files_read"], found["rows_read"]) == (False, 10, 5, 5000)
    assert (found["event_time"]["first_iso"], found["event_time"]["last_iso"]) == (
        "2026-03-01T00:00:00Z", "2026-03-10T00:00:00Z",
    )  # fmt: skip
    assert "A sample: the first rows of each of 5 of them, 5,000 rows in all." in found["statement"]
    whole = findings(capsys, "big", "--rows", "all")
    assert (whole["complete"], whole["rows_read"]) == (True, 20000)
    assert findings(capsys, "big", "--rows", "30,000")["complete"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "error: there is no file or folder nowhere\n"),
        (["empty"], "error: there is no file with data in empty\n"),
        (["s3a://b/x"], "error: s3a://b/x is not on this machine\n"),
        (["two"], "error: two holds files of several formats (1 csv, 1 json); a source reads one\n"),
        (["one.json", "--key", "idd"], "error: there is no column idd\n = help: did you mean id?\n"),
        (["one.json", "--timestamp", "id"], "error: column id is string and holds no times"),
        (["one.json", "--rows", "few"], "error: --rows takes a number of rows or `all`, not `few`\n"),
        (["one.json", "two", "--key", "id"], "error: --name, --key and --timestamp are for one PATH\n"),
        (["one.json", "--key", "price"], "error: one.json: `price` cannot be a key: floating-point"),
        (["one.json", "--format", "parquet"], "error: one.json cannot be read: "),
        (["latin.csv"], "error: latin.csv is not UTF-8 text, the only encoding that vsc reads\n"),
        (["list.json", "--kind", "table"], "error: list.json: no columns were found that say what a row is about\n"),
    ],
)
def test_what_cannot_be_inspected(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    lines("two/a.json", {"id": "1"})
    lines("two/a.csv", "a,b", "1,2")
    lines("one.json", {"id": "a", "price": 1.5})
    lines("list.json", {"x": [1]})
    Path("latin.csv").write_bytes("stadt,n\nKöln,1\n".encode("latin-1"))
    assert main(["inspect", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and words in err


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import builtins

    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "vsc.inspect":
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["inspect", "x"]) == 2
    err = capsys.readouterr().err
    assert "`pyarrow`" in err and "[test]" in err


def test_a_source_of_decimals_declares_what_parquet_has(capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(
        pa.table({"a": pa.array([Decimal("1.50")], pa.decimal128(12, 2)), "u": pa.array([1], pa.uint32())}), "x.parquet"
    )
    assert types(findings(capsys, "x.parquet")) == {"a": "decimal(12, 2)", "u": "bigint"}


def test_the_declared_source_is_what_the_compiler_reads(capsys: pytest.CaptureFixture[str]) -> None:
    from vsc.compiler import compile_topology

    write("parquet")
    (node, *_) = compile_topology(inspect(capsys, "readings") + "sink readings to noop ();").nodes
    assert isinstance(node.operation, Source)
    assert {c.name: str(c.type) for c in node.operation.columns} == {
        "reading_id": "string", "sensor": "string", "value": "double", "measured_at": "timestamp",
    }  # fmt: skip


def test_an_id_with_repeats_is_the_key_of_a_stream_and_gets_a_distinct(capsys: pytest.CaptureFixture[str]) -> None:
    times = [f"2026-03-02T{hour:02}:{minute:02}:00Z" for hour in range(3) for minute in range(60)]
    rows = [{"order_id": f"o{i}", "customer": f"c{i % 7}", "at": at} for i, at in enumerate(times)]
    late = [*rows[:30], *rows[31:150], rows[30], {**rows[5], "at": "2026-03-02T00:09:00Z"}, *rows[150:], rows[179]]
    lines("orders/a.json", *late)
    out = inspect(capsys, "orders")
    assert (
        "-- Repeats: order_id is 98.9 % unique; 2 rows repeat one that came before, up to 4 minutes after the first.\n"
        "--   If they are the same event again, `distinct orders within 3 hours` drops them.\n"
        "--   A shorter `within` also drops rows later than that, repeated or not: here rows are 2 hours 20 minutes "
        "late.\n"
    ) in out
    assert "\nkey order_id\n" in out
    told = findings(capsys, "orders", "--key", "customer")
    assert "`distinct orders by order_id within 3 hours`" in told["statement"]
    assert told["keys"]["repeats"] == {"column": "order_id", "rows": 2, "span": 240_000}
    assert "Repeats" not in inspect(capsys, "orders", "--kind", "table", "--key", "order_id")
    statement = "stream orders (order_id string, at timestamp) from memory () key order_id timestamp at;"
    with TopologyTestDriver(statement + "stream once = distinct orders within 3 hours;") as driver:
        for row in late:
            driver.pipe("orders", {name: row[name] for name in ("order_id", "at")})
        assert len(driver.read("once")) == 180


def test_the_key_of_change_events_is_inside(capsys: pytest.CaptureFixture[str]) -> None:
    lines("ledger/a.json", *(
        {"before": {"id": i % 9, "x": 1} if i % 3 else None, "after": None if i % 3 == 2 else {"id": i % 9, "x": 2},
         "op": "cud"[i % 3], "ts_ms": 1_750_000_000_000 + i}
        for i in range(60)
    ))  # fmt: skip
    out = inspect(capsys, "ledger")
    assert "\nkey " not in out and out.endswith("timestamp ts_ms;\n")
    assert (
        "-- Change events: the rows are in `before` and `after`, and so is their key.\n"
        "--   Take it out with `rekey ledger by coalesce(after.id, before.id) as id`, then "
        "`to_table ... delete when op = 'd'`.\n"
    ) in out
    out += "stream by_id = rekey ledger by coalesce(after.id, before.id) as id;\n"
    out += "table rows_ = to_table by_id delete when op = 'd';\n"
    assert [d.message for d in check_topology(out) if d.severity == "error"] == []
    assert main(["inspect", "ledger", "--kind", "table"]) == 2
    assert "inspect it as a stream; then `rekey` it by coalesce(after.id, before.id) as id" in capsys.readouterr().err


def _event(i: int, schema: bool) -> object:
    """The `i`-th change of one of nine accounts, of which the last is deleted each time."""
    row = {"account": f"acc-{i % 9}", "balance": "AeJA" if schema else "1234.56", "at": 1_772_442_000_000_000 + i}
    op = "r" if i < 9 else "d" if i % 9 == 8 else "u"
    event = {"before": row if op != "r" else None, "after": None if op == "d" else row, "op": op,
             "source": {"ts_ms": 1_772_442_000_000 + i}, "ts_ms": 1}  # fmt: skip
    decimal = {"field": "balance", "name": "org.apache.kafka.connect.data.Decimal",
               "parameters": {"scale": "2", "connect.decimal.precision": "12"}}  # fmt: skip
    fields = [{"field": "account"}, decimal, {"field": "at", "name": "io.debezium.time.MicroTimestamp"}]
    return {"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": event} if schema else event


@pytest.mark.parametrize("schema", [True, False])
def test_change_events_of_debezium_are_a_table(capsys: pytest.CaptureFixture[str], schema: bool) -> None:
    lines("accounts/a.json", *(line for i in range(120) for line in ([_event(i, schema)] + ["null"] * (i % 9 == 8))))
    out = inspect(capsys, "accounts")
    known = ("decimal(12, 2)", "timestamp") if schema else ("string", "bigint")
    assert out.endswith(
        f"table accounts (\n  account string,\n  balance {known[0]},\n  at      {known[1]}\n)\n"
        "from files (path = 'accounts', format = 'debezium')\nkey account\n"
        "materialize versioned (retention = 7 days);\n"
    )
    assert "-- Event time: `source.ts_ms`, the time of a change in its database.\n" in out
    assert ("The events have no schema" in out) is not schema
    assert "cannot be read" not in out
    assert "format = 'json'" in inspect(capsys, "accounts", "--kind", "stream")
    assert "format = 'debezium'" in inspect(capsys, "accounts", "--format", "debezium", "--key", "balance")


def test_a_price_history_goes_by_when_a_price_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    prices = [
        {"product": f"p{i % 4}", "price": i, "recorded_at": f"2026-03-{1 + i // 2:02}T08:00:00Z",
         "valid_from": f"2026-03-{1 + i // 4:02}T00:00:00Z"}
        for i in range(40)
    ]  # fmt: skip
    lines("prices/a.json", *prices, {**prices[3], "price": 0.5, "recorded_at": "2026-03-30T00:00:00Z"})
    out = inspect(capsys, "prices", "--kind", "table")
    assert "\nkey product\ntimestamp valid_from\nmaterialize versioned" in out


@pytest.mark.parametrize(
    "text",
    [
        '[\n  {"id": 1, "s": "a"},\n  {"id": 2, "s": "b"}\n]\n',
        '{\n  "id": 1, "s": "a"\n}\n{"id": 2,\n "s": "b"}',
        '\ufeff{\n"id": 1,\n\n"s": "a"}[{"id": 2, "s": "b"}]',
    ],
)
def test_objects_that_go_over_lines_are_rows(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As a run reads them, with the option that makes it do so."""
    Path("a.json").write_text(text)
    out = inspect(capsys, "a.json")
    assert "1 file, " in out and ", 2 rows." in out and "cannot be read" not in out
    assert "  id bigint,\n  s  string\n)\nfrom files (path = 'a.json', format = 'json', 'multiLine' = 'true')\n" in out
    driver = TopologyTestDriver(f"topology t;\n{out}")
    driver.pipe_file("a", "a.json", timestamp=0)
    assert [record.value for record in driver.read("a")] == [{"s": "a"}, {"s": "b"}]


def test_the_objects_of_an_array_in_a_line_are_rows(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.json").write_text('[{"id": 1}, {"id": 2}]\n{"id": 3}{"id": 4}\nnull\n')
    out = inspect(capsys, "a.json")
    assert "4 rows." in out and "1 row cannot be read, first a.json:3: NoneType, not an object." in out
    assert "format = 'json')" in out


def test_parquet_columns_that_differ_in_case_only_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """A run refuses a file in which a declared column is there twice."""
    pq.write_table(pa.table({"id": ["a"], "name": ["x"], "Name": ["y"]}), "a.parquet")
    out = inspect(capsys, "a.parquet")
    why = "is left out: a.parquet has name and Name, and a run cannot tell which one it is to read."
    assert f"-- Column name {why}\n-- Column Name {why}\n" in out and "(\n  id string\n)" in out


def test_uuids_are_texts(capsys: pytest.CaptureFixture[str]) -> None:
    stored = pa.array([b"0123456789abcdef", None], pa.binary(16))
    pq.write_table(pa.table({"u": pa.ExtensionArray.from_storage(pa.uuid(), stored)}), "a.parquet")
    assert "  u string  -- 50 % null\n" in inspect(capsys, "a.parquet")


def test_a_file_is_read_once_whatever_links_lead_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    """As by a run, in the order of a run: by time, then by path."""
    for number, name in enumerate(("day=2/a.json", "day=1/a.json", "b.json")):
        lines(f"in/{name}", {"id": number})
        os.utime(f"in/{name}", (1, 1))
    Path("out").mkdir()
    lines("out/c.json", {"id": 9})
    for name, target in (("latest", "day=2"), ("self", "."), ("up", ".."), ("day=3", "../out"), ("gone", "nowhere")):
        (Path("in") / name).symlink_to(target)
    found = find_files("in", None)
    assert [file.path for file in found.files] == ["in/b.json", "in/day=1/a.json", "in/day=2/a.json", "in/day=3/c.json"]
    assert [file.parts for file in found.files] == [(), (("day", "1"),), (("day", "2"),), (("day", "3"),)]
    assert "4 files" in inspect(capsys, "in")


def test_a_name_that_is_not_utf8_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines(os.fsdecode(b"B\xfccher.json"), {"id": 1})
    assert main(["inspect", "."]) == 2
    said = capsys.readouterr().err
    assert said == "error: the name of ./B\\xfccher.json is not UTF-8, and no run can read it\n = help: rename it\n"
