"""The recordings with the clock of the input: they give the same, but where a rule of docs/time.md says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.recordings import load, play

FOLDER = Path(__file__).parent / "recorded"
LOOK_UPS = {  # they go by the clock of the record that looks up, not by that of the table
    "agg_stream_versioned_store": (0, 1), "chain_enrich": (1,), "chain_table_of_join": (0, 1),
    "global_then_table": (0, 1), "pk_inner_versioned_store": (1,),
    "random_079": (0, 1), "random_140": (0,), "st_filtered_mapped_grace_inner": (0, 1),
    "st_filtered_mapped_grace_left": (0, 1), "st_grace_is_retention_inner": (0, 1),
    "st_grace_is_retention_left": (0, 1), "st_grace_zero_inner": (0,), "st_grace_zero_left": (1,),
    "st_on_versioned_left": (1,), "st_retention_zero": (0, 1), "st_segment_long": (0,), "st_short_retention": (0, 1),
    "st_to_table_grace": (0, 1), "st_two_joins": (0,), "st_versioned_inner": (0,), "stream_rekey": (1,),
}  # fmt: skip
DROPPED_ON_THE_WAY = {"random_106": (0, 1), "suppress_mapped": (0, 1)}  # a row that a node does not get moves its clock
RELEASED_BEFORE = {"suppress_limit_agg": (1,), "suppress_limit_window": (0, 1)}  # the row that moves the clock
OF_ONE_MOMENT = {"win_session_aggregated": (1,)}  # a session that a record of the same moment joins is replaced (D28)
STILL_OPEN = {"suppress_sliding": (0, 1)}  # a window that a record may still change is not sent (D31)
NEWEST_RESULT = {"fk_inner_versioned_store": (0,), "fk_left_versioned_store": (1,)}  # it is not lost in the store (D33)
RULES = (LOOK_UPS, DROPPED_ON_THE_WAY, RELEASED_BEFORE, OF_ONE_MOMENT, STILL_OPEN, NEWEST_RESULT)
DIFFER = {name: numbers for rule in RULES for name, numbers in rule.items()}
CASES = [(path.stem, number) for path in sorted(FOLDER.glob("*.json")) for number in range(len(load(path).cases))]
QUICK = {("st_versioned_inner", 0), ("random_106", 0), ("suppress_limit_agg", 1), ("suppress_limit_agg", 0)}


@pytest.mark.parametrize(
    ("name", "number"), [pytest.param(*case, marks=[] if case in QUICK else [pytest.mark.slow]) for case in CASES]
)
def test_it_gives_what_kafka_streams_gave_or_differs_by_a_rule(name: str, number: int) -> None:
    recording = load(FOLDER / f"{name}.json")
    if number not in DIFFER.get(name, ()):
        play(recording, recording.cases[number], clock="input")
        return
    with pytest.raises(AssertionError, match=name):
        play(recording, recording.cases[number], clock="input")


def test_the_documents_say_how_many() -> None:
    differ = [sum(map(len, one.values())) for one in RULES]
    text = (Path(__file__).parents[2] / "docs" / "time.md").read_text(encoding="utf-8")
    assert f"{len(CASES) - sum(differ)} of the {len(CASES)} recorded cases" in text
    assert all(f"({count} case" in text for count in differ)
