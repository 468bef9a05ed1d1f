"""Damage to a checkpoint is found and named before it is read as data, and an older state can be gone back to."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.errors import CheckpointError, StateError, VscRuntimeError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.query.failures import explained

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPOLOGY = """
stream s (k string, n bigint, at bigint)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
table sums = aggregate s group by k select sum(n) as n, count(*) as c;
sink sums to files (path = '${out}', format = 'parquet');
"""
EPOCHS = 5


class Case:
    """A checkpoint with some epochs, to be damaged, and what it wrote."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.plan = compiled(TOPOLOGY)

    def add(self, number: int) -> None:
        rows = [{"k": "ab"[i % 2], "n": 10**number, "at": number} for i in range(3)]
        write_json(self.folder / f"in/{number}.json", rows, number)

    def run(self, **arguments: Any) -> list[int]:
        variables = {"in": str(self.folder / "in"), "out": str(self.folder / "out")}
        reports = run_once(self.plan, self.spark, self.folder / "ck", partitions=1, variables=variables, **arguments)
        return [report.epoch for report in reports]

    def rows(self) -> list[tuple[Any, ...]]:
        return [(r["k"], r["n"], r["c"]) for r in parquet_rows(self.folder / "out")]

    def one(self, pattern: str) -> Path:
        found = [path for path in (self.folder / "ck").glob(pattern) if path.suffix != ".crc"]
        assert len(found) == 1, found
        return found[0]

    def failure(self) -> VscRuntimeError:
        """What a run fails with, as `vsc run` tells it."""
        try:
            self.run()
        except VscRuntimeError as error:
            return error
        except Exception as error:
            found = explained(error, SparkLogs(Files(self.spark, str(self.folder / "ck"))))
            assert found is not None, error
            return found
        raise AssertionError("it did not fail")


@pytest.fixture(scope="module")
def whole(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the job as it should be."""
    folder = tmp_path_factory.mktemp("damage")
    case = Case(spark, folder / "job")
    for number in range(EPOCHS):
        case.add(number)
    assert case.run() == list(range(EPOCHS))
    return shutil.copytree(case.folder, folder / "whole")


@pytest.fixture
def case(spark: Any, whole: Path) -> Case:
    """The job, always in the same place: sources know their files by path."""
    folder = whole.with_name("job")
    shutil.rmtree(folder)
    shutil.copytree(whole, folder)
    return Case(spark, folder)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def bare(path: Path) -> None:
    """A changed digit or letter that leaves the form as it is, in a copy without hidden files."""
    data = bytearray(path.read_bytes())
    at = next(at for at in range(len(data) // 2, len(data)) if chr(data[at]).isalnum())
    data[at] ^= 1
    path.write_bytes(data)
    path.with_name(f".{path.name}.crc").unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")
    path.with_name(f".{path.name}.crc").unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # as a copy that lost it


def gone(path: Path) -> None:
    path.unlink()


BACK = r"go back: vsc run with --back-to {} .*kept: 0 to"


@pytest.mark.parametrize(
    ("name", "damage", "message", "help"),
    [
        ("offsets/4", flip, "offsets/4 is damaged: .*Checksum", BACK.format(3)),
        ("offsets/4", cut, "offsets/4 is damaged: its checksum", BACK.format(3)),
        ("offsets/4", bare, "offsets/4 is damaged: its checksum", BACK.format(3)),
        ("offsets/4", gone, "offsets/4 is missing", BACK.format(3)),
        ("offsets/3", gone, "offsets/3 is missing", BACK.format(2)),
        ("commits/4", flip, "commits/4 is damaged: .*Checksum", BACK.format(3)),
        ("commits/4", cut, "commits/4 is damaged", BACK.format(3)),
        ("sources/1/2", flip, "sources/1/2 is damaged: .*Checksum", BACK.format(1)),
        ("sources/1/2", cut, "sources/1/2 is damaged: its checksum", BACK.format(1)),
        ("sources/1/2", bare, "sources/1/2 is damaged: its checksum", BACK.format(1)),
        ("sources/0/0", bare, "sources/0/0 is damaged: its checksum", "restore"),
        ("commits/3", bare, "commits/3 is damaged: its checksum", BACK.format(2)),
        ("sources/1/2", gone, "sources/1/2 is missing", BACK.format(1)),
        ("metadata", flip, "metadata is damaged: .*Checksum", "restore"),
        ("metadata", empty, "metadata is damaged: it is empty", "restore"),
        ("metadata", gone, "metadata is missing", "restore"),
        ("metadata", cut, "metadata is damaged", "restore"),
        ("vsc/identity.json", flip, "identity.json is damaged", "restore"),
        ("vsc/identity.json", cut, "identity.json is damaged: it is truncated", "restore"),
        ("vsc/identity.json", gone, "identity.json is missing", "restore"),
        ("vsc/plan.json", flip, "plan.json is damaged", "restore"),
        ("vsc/plan.json", gone, "plan.json is missing", "restore"),
        ("vsc/inputs/4.json", flip, "vsc/inputs/4.json is damaged", BACK.format(3)),
        ("vsc/inputs/4.json", cut, "vsc/inputs/4.json is damaged: it is truncated", BACK.format(3)),
        ("vsc/inputs/4.json", gone, "vsc/inputs/4.json is missing", r"back: vsc run with --back-to 3 .*kept: 0 to 3\)"),
        ("vsc/epochs/4.json", flip, "vsc/epochs/4.json is damaged", BACK.format(3)),
        ("vsc/epochs/4.json", gone, "vsc/epochs/4.json is missing", r"back: vsc run with --back-to 3 .*kept: 0 to 3\)"),
        ("vsc/plan.json", cut, "plan.json is damaged: its checksum", "restore"),
        ("state/0/_metadata/v2/0", bare, "_metadata/v2/0 is damaged: its checksum", "restore"),
        ("state/0/_metadata/v2/0", flip, "_metadata/v2/0 is damaged: .*Checksum", "restore"),
    ],
)
def test_damage_to_a_log_is_found_before_anything_runs(
    case: Case, name: str, damage: Callable[[Path], None], message: str, help: str
) -> None:
    damage(case.folder / "ck" / name)
    with pytest.raises(CheckpointError, match=message) as caught:
        case.run()
    assert caught.value.help is not None
    assert re.search(help, caught.value.help), caught.value.help
    assert not list((case.folder / "ck/offsets").glob("5"))


def test_a_run_that_was_ended_before_spark_began_is_gone_on_with(case: Case) -> None:
    for name in ("ck", "out"):
        shutil.rmtree(case.folder / name)
    before = Checkpoint.open(case.spark, str(case.folder / "ck"), case.plan, 1)
    before.create(case.plan)
    assert case.run() == list(range(EPOCHS))
    assert before.id[:16] in next((case.folder / "out").glob("part-*")).name


def test_a_gap_in_the_logs_is_found(case: Case) -> None:
    gone(case.folder / "ck/commits/3")
    gone(case.folder / "ck/commits/4")
    gone(case.folder / "ck/vsc/epochs/3.json")
    gone(case.folder / "ck/vsc/epochs/4.json")
    with pytest.raises(CheckpointError, match="commits/3 is missing"):
        case.run()


@pytest.mark.parametrize("name", ["vsc/epochs/1.json", "vsc/logs.json"])
def test_a_report_or_checksums_that_are_damaged_do_not_stop_a_run(case: Case, name: str) -> None:
    (case.folder / "ck" / name).write_text("[")
    case.add(EPOCHS)
    assert case.run() == [EPOCHS]


@pytest.mark.parametrize("damage", [flip, gone])
def test_a_damaged_state_is_named_and_the_way_back_leads_to_the_same_end(
    case: Case, damage: Callable[[Path], None]
) -> None:
    before = case.rows()
    case.add(EPOCHS)
    state = case.one("state/0/0/5_*.changelog")
    damage(state)
    error = case.failure()
    assert str(state) in error.message
    assert error.help is not None
    back = re.search(r"--back-to (\d+) .*\(kept: 0 to (\d+)\)", error.help)
    assert back is not None and back.groups() == ("3", "3"), error.help
    # What came after that epoch is read again, and its files are not there twice.
    assert case.run(back_to=3) == [4, 5]
    assert case.rows()[: len(before)] == before
    assert sorted(case.rows()[-2:]) == [("a", 2 * 111111, 12), ("b", 111111, 6)]
    assert case.run() == []


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("1_*.zip", gone, r"state/0/0/\*\.zip is missing"),
        ("SSTs/*.sst", gone, r"state/0/0/SSTs/\d+-\S+\.sst is missing"),
        ("SSTs/*.sst", flip, r"state/0/0/SSTs/\d+-\S+\.sst is damaged: .*Checksum"),
    ],
)
def test_a_damaged_snapshot_is_named(case: Case, name: str, damage: Callable[[Path], None], message: str) -> None:
    case.add(EPOCHS)
    damage(case.one(f"state/0/0/{name}"))
    error = case.failure()
    assert isinstance(error, CheckpointError) and re.search(message, error.message), error
    assert error.help is not None and "no older state" in error.help


def test_going_back_beyond_what_is_kept_is_refused(case: Case) -> None:
    with pytest.raises(CheckpointError, match="cannot go back to epoch 9: kept are the epochs 0 to 4"):
        case.run(back_to=9)
    shutil.rmtree(case.folder / "ck")
    shutil.rmtree(case.folder / "out")
    with pytest.raises(CheckpointError, match="is new: there is no epoch 1"):
        case.run(back_to=1)


def test_a_damaged_blob_inside_of_spark_state_is_named_with_the_way_back(case: Case) -> None:
    error = StateError("blob '4-1-0-abc' of the state is damaged (chunk 0)", "restore the checkpoint's folder")
    found = explained(error, SparkLogs(Files(case.spark, str(case.folder / "ck"))))
    assert isinstance(found, StateError)
    assert found.message == error.message
    assert found.help is not None and "--back-to 3" in found.help


def test_a_state_that_cannot_be_loaded_though_no_file_is_damaged(case: Case) -> None:
    error = Exception("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.")
    found = explained(error, SparkLogs(Files(case.spark, str(case.folder / "ck"))))
    assert isinstance(found, StateError) and found.message.startswith("Spark cannot load the state")
    assert found.help is not None and found.help.startswith("vsc has found no damaged file in it")


def test_nothing_is_missing_where_the_first_run_was_killed_before_spark_began(spark: Any, tmp_path: Path) -> None:
    SparkLogs(Files(spark, str(tmp_path))).check()


def test_folders_that_somebody_has_removed(spark: Any, tmp_path: Path) -> None:
    case, checkpoint = Case(spark, tmp_path), tmp_path / "ck"
    case.add(0)
    case.run()
    shutil.rmtree(checkpoint / "vsc/control")  # what was in it has been read
    case.add(1)
    case.run()
    assert {("a", 22, 4), ("b", 11, 2)} <= set(case.rows())
    (checkpoint / "state").rename(tmp_path / "state")
    error = case.failure()
    assert (error.code, error.message) == ("VSC904", f"file:{checkpoint}/state/0 is missing, the state of the query")
    (tmp_path / "state").rename(checkpoint / "state")
    shutil.rmtree(checkpoint / "vsc")
    assert "is a checkpoint of another Spark query, or its folder vsc is gone" in case.failure().message
