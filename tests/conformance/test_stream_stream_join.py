"""The join of two streams of the real Kafka Streams: recordings that lie beside the repository, as they are many."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.recordings import Recording, load, play, play_at_once

FOLDERS = ("named", "random")


def _cases(shared: Path, folder: str) -> Iterator[tuple[Recording, int, dict[str, Any]]]:
    for path in sorted((shared / "conformance" / "stream_stream" / folder).glob("*.json")):
        recording = load(path)
        yield from ((recording, number, case) for number, case in enumerate(recording.cases))


@pytest.mark.parametrize("folder", FOLDERS)
def test_gives_what_kafka_streams_gave(shared: Path, folder: str) -> None:
    played = 0
    for recording, number, case in _cases(shared, folder):
        if number == 0:
            play(recording, case)
            played += 1
    assert played >= 30


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_gives_the_same_in_every_case_and_at_once(shared: Path, folder: str) -> None:
    for recording, number, case in _cases(shared, folder):
        if number:
            play(recording, case)
        rng, steps = random.Random(f"{recording.name}-{number}"), range(1, len(case["steps"]))
        play_at_once(recording, case)
        play_at_once(recording, case, sorted(rng.sample(steps, min(rng.randint(1, 5), len(steps)))))
