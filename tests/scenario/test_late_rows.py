"""Late rows of both sides of a versioned join: each record finds the version of its time, or the one known so far."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from vsc.scenario import load, play

DOCS = Path(__file__).parents[2] / "docs"
FILE = Path(__file__).parent / "late_rows" / "late_rows.scenario.yaml"


@pytest.mark.parametrize(("clock", "partitions"), [("records", 1), ("input", 1), ("input", 2), ("input", 7)])
def test_late_rows_are_answered_right(clock: str, partitions: int) -> None:
    (scenario,) = load(str(FILE), FILE.read_text(encoding="utf-8"), {"clock": clock}).scenarios
    assert play(replace(scenario, partitions=partitions)).wrong == ()


def test_the_table_in_the_documents_says_what_vsc_answers() -> None:
    (scenario,) = load(str(FILE), FILE.read_text(encoding="utf-8"), {"clock": "input"}).scenarios
    answers = [
        {(record["key"]["k"], record["value"]["at"]): record["value"]["found"] for record in found}
        for found in ([one.fields for one in each.records or ()] for each in scenario.steps[-1].expect)
    ]
    rows = re.findall(r"^\| (`S .*?) \|.*\| (\w+) \| (\w+) \|$", (DOCS / "time.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) == 6
    for records, *told in rows:
        for key, at in re.findall(r"`S (\w) (\d+)`", records):
            assert told == [f"{key}{found[key, int(at)]}" for found in answers], records
