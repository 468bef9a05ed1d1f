"""What the soak finds: a sink that differs, and what a crash has left behind. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from soak.compare import content, differences, leftovers
from soak.job import Job
from soak.subjects import SUBJECTS, Subject

SUBJECT = Subject("one", {"s": ("key",)}, False, lambda folder, epochs, seed: None)
ROWS = [("a", 1), ("b", 2), ("a", 3), ("b", 4)]


def job(folder: Path, *epochs: Sequence[tuple[str, int]]) -> Job:
    out = folder / "out" / "s"
    out.mkdir(parents=True)
    for epoch, rows in enumerate(epochs):
        table = pa.table({"key": [k for k, _ in rows], "value": [v for _, v in rows]})
        pq.write_table(table, out / f"part-0123456789abcdef-0-{epoch:010}-00000.snappy.parquet")
    return Job(SUBJECT, folder)


def found(tmp_path: Path, *epochs: Sequence[tuple[str, int]]) -> list[str]:
    expected = content(job(tmp_path / "expected", ROWS))
    return list(differences(SUBJECT.sinks, expected, content(job(tmp_path / "seen", *epochs))))


def test_where_epochs_were_cut_and_how_keys_lie_between_each_other_is_no_difference(tmp_path: Path) -> None:
    assert found(tmp_path, [("b", 2), ("a", 1)], [("b", 4)], [("a", 3)]) == []


@pytest.mark.parametrize(
    ("epochs", "words"),
    [
        ([ROWS[:3]], "4 rows expected, 3 seen; first difference, at row 3 by key"),
        ([ROWS, ROWS[:1]], "4 rows expected, 5 seen; first difference, at row 2 by key"),
        (
            [[("a", 3), ("a", 1), ("b", 2), ("b", 4)]],
            "expected {'key': 'a'}: {'key': 'a', 'value': 1}, seen {'key': 'a'}",
        ),
        ([[("a", 1), ("b", 2), ("a", 3), ("b", 5)]], "seen {'key': 'b'}: {'key': 'b', 'value': 5}"),
        ([], "4 rows expected, 0 seen"),
    ],
)
def test_what_is_lost_doubled_swapped_or_changed_is_named(tmp_path: Path, epochs: Any, words: str) -> None:
    (line,) = found(tmp_path, *epochs)
    assert line.startswith("sink s: ")
    assert words in line


def test_leftovers_are_named(tmp_path: Path) -> None:
    done = job(tmp_path, ROWS, ROWS)
    out = tmp_path / "out/s"
    fine = ["_vsc-0123-0/1._commit", "_vsc-0123-0/2._commit", "_vsc-0123-0/.1._commit.crc"]
    part = "part-0123456789abcdef-0-0000000000-00000.snappy.parquet"
    for name in (*fine, f".{part}.crc"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).touch()
    assert list(leftovers(done)) == []
    bad = ["_vsc-0123-0/_3._commit.new", "_vsc-0123-0/3-77/part-0.parquet", ".gone.parquet.crc", "part-0.parquet"]
    for name in (*bad, "_vsc-0123-0/0._commit", part.replace("-00000.", "-00000.gz.")):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).touch()
    assert sorted(leftovers(done)) == sorted(
        [
            *(f"sink s: {name} is left over" for name in bad),
            "sink s: 3 lists of epochs are kept, not two",
            "sink s: file 00000 of epoch 0000000000 is there 2 times",
        ]
    )


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_same_seed_makes_the_same_input(tmp_path: Path, name: str) -> None:
    seen = []
    for folder, seed in (("one", 1), ("same", 1), ("other", 2)):
        (tmp_path / folder).mkdir()
        SUBJECTS[name].write(tmp_path / folder, 3, seed)
        files = sorted(p for p in (tmp_path / folder).rglob("*") if p.is_file())
        seen.append([(p.relative_to(tmp_path / folder), p.read_bytes()) for p in files])
    assert seen[0] == seen[1]
    assert (seen[0] == seen[2]) == (name != "shop")  # the flights are what they are
