"""Files as they come: headers in any order, missing columns, broken rows, no folder; checkpoints that do not fit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.errors import CheckpointError, ConfigurationError, SinkError, SourceError, StateError
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.spark import start
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.identity import FORMAT
from vsc.runtime.spark.connectors import file_rows
from vsc.runtime.spark.query.failures import translated

pytestmark = [pytest.mark.spark, pytest.mark.release]


def topology(form: str, columns: str, more: str = "", timestamp: str = "timestamp at") -> str:
    return f"""
stream rows ({columns}) from files (path = '${{in}}', format = '{form}'{more}) {timestamp};
stream kept = map rows select *;
sink kept to files (path = '${{out}}', format = 'parquet', with_timestamp = true);
"""


LOST = ("Corrupt", "Missing")

RATE = """stream r (value bigint, at timestamp) from rate (rows_per_second = {rows}) timestamp at;
sink r to {sink};"""


class Case:
    """A stateless topology over one folder."""

    def __init__(self, spark: Any, folder: Path, text: str) -> None:
        self.spark, self.folder = spark, folder
        self.plan = compiled(text)
        self.input = folder / "in"
        self.input.mkdir()

    def run(self, **arguments: Any) -> list[dict[str, Any]]:
        variables = {"in": str(self.input), "out": str(self.folder / "out")}
        self.reports = run_once(self.plan, self.spark, self.folder / "ck", variables=variables, **arguments)
        return parquet_rows(self.folder / "out")

    def dropped(self, reason: Dropped) -> int:
        metrics = Metrics()
        for report in self.reports:
            metrics.merge(report.metrics)
        return metrics.get("rows", Group.DROPPED_RECORDS, reason)


@pytest.mark.seam("files source")
def test_csv_goes_by_the_header_of_each_file(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("csv", "id int, name string, at bigint", ", 'nullValue' = '-'"))
    (case.input / "a.csv").write_text('name,at,id,extra\n"x, y",1,1,z\n"two\nlines",2,2,z\n')
    (case.input / "b.csv").write_text("\ufeffid,at\n3,3\n\n4,4\n")
    (case.input / "c.csv").write_text('at,id,name\n5,5,-\n6,six,a\n7,7\n8,8,"b"\n9,9,a,b\n10,10,""\n')
    (case.input / "_hidden.csv").write_text("id,at\n99,99\n")
    found = sorted((r["id"], r["name"], r["_timestamp"]) for r in case.run())
    assert found == [
        (1, "x, y", 1), (2, "two\nlines", 2), (3, None, 3), (4, None, 4), (5, None, 5), (8, "b", 8), (10, "", 10),
    ]  # fmt: skip
    assert case.dropped(Dropped.UNREADABLE) == 3
    assert sum(sum(r.read.values()) for r in case.reports) == 10


@pytest.mark.seam("files source")
def test_json_rows_that_do_not_fit_are_counted(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("json", "id int, tags array<string>, at bigint"))
    (case.input / "sub").mkdir()
    (case.input / "sub" / "a.json").write_text(
        '{"id": 1, "tags": ["a", null], "at": 1, "more": 2}\n{"at": 2}\nnonsense\n{"id": "x", "at": 3}\n'
        '{"id": 4}\n{"id": 5, "at": -1}\n'
    )
    found = sorted((r["_timestamp"], r["id"], r["tags"]) for r in case.run())
    assert found == [(1, 1, ["a", None]), (2, None, None)]
    assert case.dropped(Dropped.UNREADABLE) == 2
    assert case.dropped(Dropped.NULL_TIMESTAMP) == 1
    assert case.dropped(Dropped.NEGATIVE_TIMESTAMP) == 1


def test_a_source_has_a_bound_and_its_own_one_counts(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_rows, "MAX_BYTES", 50)
    for more, read in (
        ("", [2, 2, 1]),
        (", 'maxBytesPerTrigger' = '80'", [4, 1]),
        (", 'maxFilesPerTrigger' = '5'", [5]),
    ):
        folder = tmp_path / str(len(read))
        folder.mkdir()
        case = Case(spark, folder, topology("json", "id int, at bigint", more))
        for number in range(5):
            write_json(case.input / f"{number}.json", [{"id": number, "at": number}], number)
        assert len(case.run()) == 5
        assert [report.read["rows"] for report in case.reports] == read


def test_a_bad_row_stops_the_query_where_that_is_asked_for(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("json", "id int, at bigint"))
    (case.input / "a.json").write_text('{"id": 1, "at": 1}\n{"id": 2, "at": 1}\nnonsense\n')
    with pytest.raises(StreamingQueryException, match="VSC901") as caught:
        case.run(on_bad_row="fail")
    error = translated(caught.value)
    assert error is not None
    assert error.message.startswith("source 'rows': row 3 of file:")
    assert "in/a.json cannot be read: 'nonsense' is not JSON (unreadable)" in error.message
    assert error.help == "fix the row, or run with --on-bad-row drop"


@pytest.mark.seam("files source")
def test_parquet_and_orc_by_name_and_the_time_of_the_file(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"more": ["z"], "n": pa.array([7], pa.int32()), "t": pa.array([1_500], pa.timestamp("us"))})
    for form in ("parquet", "orc"):
        folder = tmp_path / form
        folder.mkdir()
        case = Case(spark, folder, topology(form, "id string, n bigint, t timestamp", ", missing_columns = 'null'", ""))
        file = case.input / "a"
        pq.write_table(table, file) if form == "parquet" else orc.write_table(table, file)
        os.utime(file, (1_600_000_000.25, 1_600_000_000.25))
        (row,) = case.run()
        assert (row["id"], row["n"], row["_timestamp"]) == (None, 7, 1_600_000_000_250)
        assert row["t"].timestamp() == pytest.approx(0.0015)


def test_a_parquet_column_of_another_type_is_named(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("parquet", "id int, at bigint"))
    pq.write_table(pa.table({"id": ["x"], "at": [1]}), case.input / "a.parquet")
    with pytest.raises(StreamingQueryException) as caught:
        case.run()
    error = translated(caught.value)
    assert isinstance(error, SourceError)
    assert error.message.endswith("a.parquet: column id is declared int, and holds string there")


def test_a_broken_parquet_file_is_named(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("parquet", "id int, at bigint"))
    (case.input / "a.parquet").write_bytes(b"PAR1 this is not parquet")
    with pytest.raises(StreamingQueryException) as caught:
        case.run()
    error = translated(caught.value)
    assert isinstance(error, SourceError)
    assert "a.parquet" in error.message


def test_what_is_refused_before_a_row_is_read(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("json", "id int, at bigint"))
    case.input.rmdir()
    with pytest.raises(SourceError, match=r"source 'rows' \(line 2\): there is no file or folder .*in'"):
        case.run()
    with pytest.raises(ConfigurationError, match=r"\$\{in\} has no value \(source 'rows' \(line 2\), option 'path'\)"):
        run_once(case.plan, spark, tmp_path / "ck")
    with pytest.raises(ConfigurationError, match="'soon' is not a trigger"):
        case.run(trigger="soon")
    text = "stream s (id int) from memory (); stream m = map s select *; sink m to noop ();"
    with pytest.raises(SourceError, match=r"source 's' \(line 1\) reads from memory") as caught:
        run_once(compiled(text), spark, tmp_path / "ck")
    assert caught.value.help
    with pytest.raises(SinkError, match=r"the sink of 'r' \(line 2\) writes to memory \(\)"):
        run_once(compiled(RATE.format(rows=1, sink="memory ()")), spark, tmp_path / "ck")
    rated = compiled(RATE.format(rows="${rows}", sink="noop ()"))
    for rows in ("0", "many"):
        with pytest.raises(SourceError, match=f"source 'r' \\(line 1\\): rows_per_second is a whole number .*'{rows}'"):
            run_once(rated, spark, tmp_path / "ck", variables={"rows": rows})
    assert not (tmp_path / "ck").exists()


def test_a_place_that_no_file_system_takes_is_refused_with_its_name(spark: Any, tmp_path: Path) -> None:
    def run(checkpoint: object, sink: str = "noop ()") -> None:
        run_once(compiled(RATE.format(rows=1, sink=sink)), spark, checkpoint)  # type: ignore[arg-type]

    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="the checkpoint has no name") as caught:
        run("")
    with pytest.raises(CheckpointError, match=r"the checkpoint folder .*/file/ck cannot be used: .+") as caught:
        run(tmp_path / "file" / "ck")
    assert caught.value.help == "give a folder that can be made and written"
    with pytest.raises(CheckpointError, match=r"the checkpoint folder nowhere://x/ck cannot be used: .*nowhere"):
        run("nowhere://x/ck")
    with pytest.raises(SinkError, match=r"the sink of 'r' \(line 2\): 'nowhere://x' cannot be used: .*nowhere"):
        run(tmp_path / "ck", "files (path = 'nowhere://x', format = 'json')")
    with pytest.raises(SinkError, match=r"the sink of 'r' \(line 2\): '.*/file/x' cannot be written: .*not a folder"):
        run(tmp_path / "ck", f"files (path = '{tmp_path}/file/x', format = 'json')")
    source = "stream s (a int) from files (path = 'nowhere://x', format = 'json'); sink s to noop ();"
    with pytest.raises(SourceError, match=r"source 's' \(line 1\): 'nowhere://x' cannot be used: .*nowhere"):
        run_once(compiled(source), spark, tmp_path / "ck2")


def test_a_local_folder_that_cannot_be_made_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "in").mkdir()
    text = """
table t (k string, at bigint) from files (path = '${in}', format = 'json') key k timestamp at
materialize versioned (retention = 1 day);
sink t to noop ();
"""
    write_json(tmp_path / "in" / "a.json", [{"k": "a", "at": 1}], 1)
    with pytest.raises(StateError) as raised:
        run_once(
            compiled(text), spark, tmp_path / "ck", variables={"in": str(tmp_path / "in")},
            local_dir=str(tmp_path / "file"),
        )  # fmt: skip
    assert f"the local folder {tmp_path / 'file'}" in raised.value.message
    assert raised.value.help is not None and "--local-dir" in raised.value.help


def test_a_checkpoint_is_for_one_plan_and_one_number_of_partitions(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("json", "id int, at bigint"))
    write_json(case.input / "a.json", [{"id": 1, "at": 1}], 1)
    assert len(case.run(partitions=2)) == 1
    assert len(case.run()) == 1
    with pytest.raises(CheckpointError, match="has 2 partitions, not 3"):
        case.run(partitions=3)
    case.plan = compiled(topology("json", "id int, at bigint").replace("select *", "select id"))
    with pytest.raises(CheckpointError, match=r"made:\n  sink kept .*: widened .*the column `at` is gone"):
        case.run()
    case.plan = compiled("-- a comment\n" + topology("json", "id int, at bigint"))
    assert len(case.run()) == 1
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(CheckpointError, match="not empty"):
        run_once(case.plan, spark, tmp_path / "other", variables={"in": str(case.input), "out": str(tmp_path / "o2")})
    identity = tmp_path / "ck/vsc/identity.json"
    identity.write_text(identity.read_text().replace(f'"format": {FORMAT}', '"format": 77'))
    (identity.parent / ".identity.json.crc").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="format version 77"):
        case.run()


def test_a_sink_folder_of_another_checkpoint_is_refused_unless_appended_to(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("json", "id int, at bigint"))
    write_json(case.input / "a.json", [{"id": 1, "at": 1}], 1)
    assert len(case.run()) == 1
    (tmp_path / "ck").rename(tmp_path / "first")
    with pytest.raises(SinkError, match="which this checkpoint did not write"):
        case.run()
    case.plan = compiled(
        topology("json", "id int, at bigint").replace("with_timestamp", "append = true, with_timestamp")
    )
    assert not (tmp_path / "ck").exists()  # the fixed topology may have the checkpoint's folder
    assert len(case.run()) == 2


@pytest.mark.seam("files sink")
def test_an_epoch_that_failed_in_the_middle_of_its_sinks_shows_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = topology("json", "id int, at bigint") + "sink rows to files (path = '${out}/second', format = 'csv');"
    case = Case(spark, tmp_path, text.replace("path = '${out}', format", "path = '${out}/first', format"))
    for number in range(3):
        write_json(case.input / f"{number}.json", [{"id": number, "at": number}], number)

    renames, keeps = iter(range(2)), iter(range(1))
    rename = Files.rename
    keep = Checkpoint.keep

    def failing_rename(files: Files, old: str, new: str) -> None:
        """Fails twice when a file has got its final name."""
        rename(files, old, new)
        if new.startswith("part-") and next(renames, None) is not None:
            raise OSError("a crash behind a rename")

    def failing_keep(checkpoint: Checkpoint, report: Any) -> None:
        if next(keeps, None) is not None:
            raise OSError("a crash behind all sinks")
        keep(checkpoint, report)

    monkeypatch.setattr(Files, "rename", failing_rename)
    monkeypatch.setattr(Checkpoint, "keep", failing_keep)
    failures = 0
    while True:
        try:
            case.run()
        except StreamingQueryException as error:
            assert "a crash behind" in str(error)
            failures += 1
        else:
            break
    assert failures == 3
    assert sorted(r["id"] for r in parquet_rows(tmp_path / "out/first")) == [0, 1, 2]
    lines = [line for file in (tmp_path / "out/second").glob("part-*.csv") for line in file.read_text().splitlines()]
    assert sorted(line for line in lines if line != "id,at") == ["0,0", "1,1", "2,2"]
    aside = [f for f in (tmp_path / "out/first").rglob("*") if f.parent.name.isdigit()]
    assert aside == []


def test_a_file_is_one_tasks_however_big_it_is(spark: Any, tmp_path: Path) -> None:
    write_json(tmp_path / "in/f.json", [{"id": i, "at": i} for i in range(5000)], 0)
    text = "stream s (id int, at bigint) from files (path = '${in}', format = 'json') timestamp at; sink s to noop ();"
    name = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, "10000")
    try:
        (report,) = run_once(compiled(text), spark, tmp_path / "ck", variables={"in": str(tmp_path / "in")})
        assert spark.conf.get(name) == "10000"
    finally:
        spark.conf.set(name, before)
    assert report.read == {"s": 5000}


def test_a_file_that_goes_away_or_is_damaged_is_no_quiet_loss(spark: Any, tmp_path: Path) -> None:
    given = {name: spark.conf.get(name, None) for name in (f"spark.sql.files.ignore{of}Files" for of in LOST)}
    for name in given:
        spark.conf.set(name, "true")
    try:
        case = Case(spark, tmp_path, topology("parquet", "id int, at bigint", ", 'maxFilesPerTrigger' = '1'"))
        for i, name in enumerate(("a", "b")):
            pq.write_table(pa.table({"id": pa.array([i], pa.int32()), "at": [i]}), case.input / f"{name}.parquet")
            os.utime(case.input / f"{name}.parquet", (1_700_000_000 + i,) * 2)
        variables = {"in": str(case.input), "out": str(tmp_path / "out")}
        query = start(
            case.plan, spark, checkpoint=str(tmp_path / "ck"), variables=variables,
            on_epoch=lambda report: (case.input / "b.parquet").unlink(),
        )  # fmt: skip
        with pytest.raises(StreamingQueryException, match=r"b\.parquet"):
            query.awaitTermination()
        (case.input / "b.parquet").write_bytes(b"PAR1 is not all")
        query = start(case.plan, spark, checkpoint=str(tmp_path / "ck"), variables=variables)
        with pytest.raises(StreamingQueryException, match=r"b\.parquet"):
            query.awaitTermination()
        assert [row["id"] for row in parquet_rows(tmp_path / "out")] == [0]
    finally:
        for name, value in given.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def test_files_that_are_there_are_named_as_in_sparks_log(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, topology("json", "a bigint, at bigint").replace("${in}", str(tmp_path / "in")))
    write_json(case.input / "a b#ü.json", [{"a": 1, "at": 1}], 1)
    write_json(case.input / "x=1/c%20d.json", [{"a": 2, "at": 2}], 2)
    assert [row["a"] for row in case.run()] == [1, 2]
    lines = (line for log in tmp_path.glob("ck/sources/*/[0-9]*") for line in log.read_text().splitlines())
    logged = [json.loads(line) for line in lines if "c%2520d.json" in line or "a%20b%23" in line]
    assert len(logged) == 2
    there = dict(file_rows.files_there(spark, Options.of_source(case.plan.nodes[0])))
    assert there == {entry["path"]: entry["timestamp"] for entry in logged}
