"""What a scenario expects to be counted: `metrics` of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsc.scenario import ScenarioError, accepted, load, play

TOPOLOGY = """
table rates (c string, rate int, at bigint) from memory () key c timestamp at
materialize versioned (retention = 1 hour);
stream payments (id string, c string, at bigint) from memory () key id timestamp at;
stream priced = left join payments with rates on c select id, rate;
sink priced to memory ();
"""
SCENARIO = """
topology: t.vdsl
scenarios:
  - name: a late rate
    steps:
      - payments: {{id: p, c: EUR, at: 25}}
      - rates: {{c: EUR, rate: 1, at: 20}}
        metrics: {metrics}
"""


def told(tmp_path: Path, metrics: str) -> list[tuple[tuple[str, ...], int]]:
    (tmp_path / "t.vdsl").write_text(TOPOLOGY, encoding="utf-8")
    file = load(str(tmp_path / "a.scenario.yaml"), SCENARIO.format(metrics=metrics), {})
    (scenario,) = file.scenarios
    return [(one.expected.path, one.seen) for one in play(scenario).wrong]  # type: ignore[union-attr, misc]


def test_only_what_is_named_is_compared_and_what_was_not_counted_is_0(tmp_path: Path) -> None:
    assert told(tmp_path, "{late_versions: {priced: 1}}") == []
    right = "{grace_needed: {priced: 6}, missed_lookups: {priced: {no_record: 1, too_old: 0}}, late_versions: {}}"
    assert told(tmp_path, right) == []
    wrong = "{late_versions: {priced: 0}, dropped_records: {priced: {null_key: 2}}}"
    assert told(tmp_path, wrong) == [
        (("late_versions", "priced"), 1), (("dropped_records", "priced", "null_key"), 0),
    ]  # fmt: skip


def test_accepted_the_number_that_was_counted_is_written(tmp_path: Path) -> None:
    (tmp_path / "t.vdsl").write_text(TOPOLOGY, encoding="utf-8")
    text = SCENARIO.format(metrics="{late_versions: {priced: 7}}")
    file = load(str(tmp_path / "a.scenario.yaml"), text, {})
    assert accepted(text, [play(one) for one in file.scenarios], {}) == text.replace("priced: 7", "priced: 1")


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("{late: {priced: 1}}", "number `late`"),
        ("{late_versions: {prized: 1}}", "node `prized`"),
        ("{missed_lookups: {priced: {gone: 1}}}", "reason `gone`"),
        ("{late_versions: {priced: many}}", "whole number"),
        ("{late_versions: 3}", "mapping"),
    ],
)
def test_what_cannot_be_counted_is_refused(tmp_path: Path, metrics: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        told(tmp_path, metrics)
