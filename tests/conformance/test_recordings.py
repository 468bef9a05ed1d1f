"""What Kafka Streams 4.3.1 was recorded with, step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.recordings import ONE_IN, load, play, play_at_once

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
CASES = [(path, number) for path in RECORDED for number in range(len(load(path).cases))]
SLOW_BUT_THE_FIRST = [
    pytest.param(path, number, id=f"{path.stem}-{number}", marks=[pytest.mark.slow] if number else [])
    for path, number in CASES
]


def test_the_recordings_are_here() -> None:
    assert len(RECORDED) >= 110


@pytest.mark.seam("recordings of Kafka Streams")
@pytest.mark.quick(8)
@pytest.mark.parametrize(("path", "number"), SLOW_BUT_THE_FIRST)
def test_gives_what_kafka_streams_gave(path: Path, number: int) -> None:
    recording = load(path)
    play(recording, recording.cases[number])


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("folder", ["named", "random"])
def test_all_shared_recordings(shared: Path, folder: str) -> None:
    """At once; some of them step by step as well."""
    copies, found = {path.stem: path.read_bytes() for path in RECORDED}, set()
    for place, path in enumerate(sorted((shared / "conformance" / folder).glob("*.json"))):
        found.add(path.stem)
        if path.read_bytes() == copies.get(path.stem):
            continue  # played above
        recording = load(path)
        for case in recording.cases:
            play_at_once(recording, case)
            if place % ONE_IN == 0:
                play(recording, case)
    assert {name for name in copies if name.startswith("random") == (folder == "random")} <= found
