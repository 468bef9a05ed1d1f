"""What Kafka Streams 4.3.1 was recorded to do, step by step, for the topologies that this version runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.recordings import load, play
from vsc.compiler import TopologyError, compile_topology

NOT_YET = "VSC190"

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
CASES = [(path, number) for path in RECORDED for number in range(len(load(path).cases))]


def test_the_recordings_are_here() -> None:
    assert len(RECORDED) >= 25


@pytest.mark.parametrize(("path", "number"), CASES, ids=[f"{path.stem}-{number}" for path, number in CASES])
def test_gives_what_kafka_streams_gave(path: Path, number: int) -> None:
    recording = load(path)
    play(recording, recording.cases[number])


@pytest.mark.parametrize("folder", ["named", "random"])
def test_all_shared_recordings_of_supported_topologies(shared: Path, folder: str) -> None:
    """Whatever compiles must give what was recorded; whatever does not is refused as a form that is not there yet."""
    played, refused = set(), set()
    for path in sorted((shared / "conformance" / folder).glob("*.json")):
        recording = load(path)
        try:
            compile_topology(recording.topology, path=path.name)
        except TopologyError as error:
            errors = {d.code for d in error.diagnostics if d.severity == "error"}
            assert errors == {NOT_YET}, f"{recording.name} is refused for another reason: {errors}"
            refused.add(recording.name)
            continue
        for case in recording.cases:
            play(recording, case)
        played.add(recording.name)
    mine = {path.stem for path in RECORDED if path.stem.startswith("random") == (folder == "random")}
    assert mine <= played
