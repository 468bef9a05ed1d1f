"""Values in the names of folders."""

from __future__ import annotations

from datetime import date

from vsc.plan.nodes import Column
from vsc.plan.types import BIGINT, DATE, STRING
from vsc.runtime.operators.source.partition_folders import folder_texts, folder_values

COLUMNS = (Column("name", STRING), Column("n", BIGINT), Column("day", DATE))


def test_folders_give_texts_and_values() -> None:
    path = "file:/data/n=1/name=a%3Db/n=x/day=__HIVE_DEFAULT_PARTITION__/=y/file=1.json"
    assert folder_texts(path) == {"n": "x", "name": "a=b", "day": None}
    found = folder_values(path, COLUMNS)
    assert {COLUMNS[i].name: value.repeated(2).to_pylist() for i, value in found.items()} == {
        "name": ["a=b", "a=b"],
        "n": [None, None],
        "day": [None, None],
    }
    assert [value.problem for value in found.values()] == [
        None,
        "column 'n' (bigint) cannot hold the folder's 'x'",
        None,
    ]


def test_a_folder_s_date_is_a_date() -> None:
    for text in ("202601", "20260105", "2026-01", "2026-02-30", "08:15"):
        ((_, found),) = folder_values(f"file:/data/day={text}/a.json", COLUMNS).items()
        assert found.problem == f"column 'day' (date) cannot hold the folder's {text!r}"
    ((_, found),) = folder_values("file:/data/day=2026-01-05/a.json", COLUMNS).items()
    assert (found.problem, found.value.to_pylist()) == (None, [date(2026, 1, 5)])


def test_a_folder_s_text_is_utf_8() -> None:
    ((_, found),) = folder_values("file:/data/name=gr%C3%BCn/a.json", COLUMNS).items()
    assert (found.problem, found.value.to_pylist()) == (None, ["grün"])
    ((_, found),) = folder_values("file:/data/name=gr%FCn/a.json", COLUMNS).items()
    assert found.problem == "column 'name': the folder's 'gr%FCn' is not UTF-8 text"
    assert found.value.to_pylist() == [None]
