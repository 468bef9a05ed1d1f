"""The join of two streams of the real Kafka Streams: recordings that lie beside the repository, as they are many."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.recordings import ONE_IN, Recording, load, play, play_at_once

FOLDERS = ("named", "random")
FOUND = {  # a record is found by the clock of the input, not by the newest one of its side
    "ssj_aggregate_changes": (0,), "ssj_inner_asymmetric_grace": (1,), "ssj_inner_only_after": (2,),
    "ssj_inner_session": (1,), "ssj_left_retention": (1,), "ssj_left_retention_grace": (0,),
    "ssj_left_table_versioned": (0,), "ssj_left_window": (2,), "ssj_outer_asymmetric_grace": (1,),
    "ssj_random_032": (1,), "ssj_random_036": (0,), "ssj_random_066": (0,), "ssj_random_083": (0,),
    "ssj_two_mixed": (1,),
}  # fmt: skip
MOVED = {  # the clock is moved by rows that the node does not get, and releases before the row
    "ssj_left_as_of": (2,), "ssj_left_table_versioned": (1,), "ssj_outer_as_of_grace": (0, 1, 2),
    "ssj_outer_long_grace": (0, 2), "ssj_random_014": (0, 1), "ssj_random_019": (0, 1), "ssj_random_028": (0, 1),
    "ssj_random_032": (0,), "ssj_random_036": (1,), "ssj_random_047": (0, 1), "ssj_random_050": (0, 1),
    "ssj_random_060": (0, 1), "ssj_random_062": (0, 1), "ssj_random_073": (0,),
    "ssj_random_081": (0, 1), "ssj_random_082": (0, 1), "ssj_random_083": (1,), "ssj_rekeyed_right": (1, 2),
    "ssj_table_changes": (0, 1), "ssj_two_left": (0, 1, 2), "ssj_two_mixed": (0, 2),
}  # fmt: skip
WAIT = {  # late within the grace, a record waits for its partner (D32)
    "ssj_left_equal_times": (0, 1, 2), "ssj_left_only_after": (0, 1), "ssj_left_retention_grace": (1, 2),
    "ssj_merged": (0, 1), "ssj_one_key": (1,), "ssj_outer_asymmetric_grace": (0, 2),
    "ssj_outer_equal_times": (0, 1, 2), "ssj_outer_long_grace": (1,), "ssj_random_011": (0, 1),
    "ssj_random_018": (0,), "ssj_random_063": (0,), "ssj_random_073": (1,), "ssj_random_079": (0, 1),
}  # fmt: skip
DIFFER = {name: {n for rule in (FOUND, MOVED, WAIT) for n in rule.get(name, ())} for name in {**FOUND, **MOVED, **WAIT}}


def _cases(shared: Path, folder: str) -> Iterator[tuple[Recording, int, dict[str, Any]]]:
    for path in sorted((shared / "conformance" / "stream_stream" / folder).glob("*.json")):
        recording = load(path)
        yield from ((recording, number, case) for number, case in enumerate(recording.cases))


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_gives_what_kafka_streams_gave(shared: Path, folder: str) -> None:
    """Some of the recordings; `test_every_case_gives_the_same_at_once_and_some_one_by_one` plays all."""
    some = list(_cases(shared, folder))[::8]
    for recording, _, case in some:
        play(recording, case)
    assert len(some) >= 8


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_case_gives_the_same_at_once_and_some_one_by_one(shared: Path, folder: str) -> None:
    for place, (recording, number, case) in enumerate(_cases(shared, folder)):
        if place % ONE_IN == 0:
            play(recording, case)
        rng, steps = random.Random(f"{recording.name}-{number}"), range(1, len(case["steps"]))
        play_at_once(recording, case)
        play_at_once(recording, case, sorted(rng.sample(steps, min(rng.randint(1, 5), len(steps)))))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_clock_of_the_input_gives_the_same_or_differs_by_a_rule(shared: Path, folder: str) -> None:
    """Every case that differs, and some that do not."""
    for place, (recording, number, case) in enumerate(_cases(shared, folder)):
        if number not in DIFFER.get(recording.name, ()):
            if place % ONE_IN == 1 % ONE_IN:
                play(recording, case, clock="input")
            continue
        with pytest.raises(AssertionError, match=recording.name):
            play(recording, case, clock="input")


def test_the_documents_say_how_many_differ(shared: Path) -> None:
    count = sum(1 for folder in FOLDERS for _ in _cases(shared, folder))
    found, moved, wait = (sum(map(len, one.values())) for one in (FOUND, MOVED, WAIT))
    text = (Path(__file__).parents[2] / "docs" / "time.md").read_text(encoding="utf-8")
    assert f"{count - found - moved - wait} of the {count} recorded cases" in text
    assert f"({found} cases)" in text
    assert f"(D32, {wait} cases)" in text
    assert f"the other {moved}" in text
