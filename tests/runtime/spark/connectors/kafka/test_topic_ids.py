"""Topics that are deleted and created again, and records that Kafka deletes before they are read: what is decided."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.base.checksummed import LocalFiles
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.connectors.kafka.topic_ids import lost, skipped
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.connectors.spark_source import Input, Offsets
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.upgrade.successor import _renamed

PLAN = """
stream other (id int) from files (path = '/in', format = 'json') key id;
stream a (id int) from kafka (bootstrap_servers = 'b:1', topic = 'read', format = 'json'{more}) key id;
sink a to kafka (bootstrap_servers = 'b:1', topic = 'written', format = 'json');
sink other to noop ();
"""
GOES_ON = ", 'failOnDataLoss' = 'false'"
OFFSETS = ["v1", "{}", '{"logOffset":0}', '{"logOffset":3}', '{"read":{"0":100,"1":7}}']


class Written(LocalFiles):
    """Files of a checkpoint that can be written without Spark, on a file system that has checksums."""

    is_local = False

    def write(self, name: str, text: str, aside: str = "") -> None:
        (Path(self.root) / name).write_text(text, encoding="utf-8")


class Read(Input):
    """What the running epoch has read of the second source."""

    def begins(self) -> Offsets:
        return {("read", 0): 1, ("read", 1): 2}

    def ends(self) -> Offsets:
        return {("read", 0): 8, ("read", 1): 4}


class Case:
    """A checkpoint that has read the topic of the second source up to `OFFSETS`, in epoch 1."""

    def __init__(self, folder: Path, more: str = "", low: int = 3, **ids: str | None) -> None:
        self.now: dict[str, str | None] = {"read": "R", "written": "W", **ids}
        self.paces = {1: Pace(topics={"2": "R", "to written": "W"}).dump()}
        for name in ("offsets/0", "offsets/1", "commits/0", "commits/1", "sources/2/0"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("\n".join(OFFSETS))
        self.folder, self.fresh, self.files = folder, False, Written(str(folder))
        self.ends, self.low = Ends(compiled(PLAN.format(more=more))), low
        self.ends.sources[1].running = Read()

    def pace(self, epoch: int) -> str | None:
        return self.paces.get(epoch)

    identities = Checkpoint.identities

    def begin(self) -> None:
        with patch("vsc.runtime.spark.connectors.kafka.connector.TopicLook", lambda spark: self):
            self.ends.identify(cast(Any, None), cast(Checkpoint, self))

    def id(self, options: Options) -> str | None:
        return self.now[options.text("topic")]

    def ranges(self, options: Options) -> Mapping[int, tuple[int, int]]:
        return {0: (self.low, 9), 1: (0, 5)}

    def place(self, name: str = "offsets/1") -> str:
        return (self.folder / name).read_text()


def refused(case: Case) -> tuple[str, str | None]:
    with pytest.raises(SourceError) as caught:
        case.begin()
    return caught.value.message, caught.value.help


def test_the_same_topics_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    case = Case(tmp_path)
    case.begin()
    assert case.ends.identities == {"2": "R", "to written": "W"}
    assert case.place() == "\n".join(OFFSETS)
    assert not caplog.records


@pytest.mark.parametrize("kept", [{}, {1: Pace().dump()}, {0: Pace(topics={"1": "X"}).dump()}])
def test_a_checkpoint_without_ids_takes_the_topics_that_are_there(tmp_path: Path, kept: dict[int, str]) -> None:
    case = Case(tmp_path, read="new")
    case.paces = kept
    case.begin()
    assert case.ends.identities == {"2": "new", "to written": "W"}


def test_a_new_checkpoint_knows_no_topic(tmp_path: Path) -> None:
    case = Case(tmp_path, read="new")
    case.fresh = True
    case.begin()
    assert case.ends.identities["2"] == "new"


def test_a_broker_without_ids_is_not_compared(tmp_path: Path) -> None:
    case = Case(tmp_path, read=None, written=None)
    case.begin()
    assert case.ends.identities == {}
    assert not case.ends.check_read(EpochReport(2))


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_topic_that_was_created_again_stops_the_run(tmp_path: Path, epoch: int) -> None:
    """Also if the newest epoch was begun, and ended before its ids were kept."""
    case = Case(tmp_path, read="new")
    case.paces = {epoch: case.paces[1]}
    assert refused(case) == (
        "source 'a' (line 3): the topic 'read' was deleted and created again since this checkpoint read it",
        "start with a new checkpoint; or write 'failOnDataLoss' = 'false', to go on with all that the new topic holds",
    )
    assert case.place() == "\n".join(OFFSETS)


def test_a_source_may_go_on_at_the_beginning_of_the_new_topic(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    case = Case(tmp_path, GOES_ON, read="new")
    with caplog.at_level(logging.WARNING, "vsc"):
        case.begin()
    assert case.place().splitlines() == [*OFFSETS[:4], json.dumps({"read": {"0": 3, "1": 0}})]
    assert case.place("offsets/0") == "\n".join(OFFSETS)
    assert case.ends.identities["2"] == "new"
    assert [record.getMessage() for record in caplog.records] == [
        "source 'a' (line 3): the topic 'read' was deleted and created again: what the old one held is lost, as far as "
        "it was not read; the new one is read from its beginning"
    ]


def test_what_an_upgrade_has_written_begins_again_as_well(tmp_path: Path) -> None:
    case = Case(tmp_path, GOES_ON, read="new")
    for name in ("offsets/0", "offsets/1", "commits/0", "commits/1"):
        (tmp_path / name).unlink()
    case.paces = {-1: case.paces[1]}
    case.begin()
    assert case.place("sources/2/0") == '\0v1\n{"read": {"0": 3, "1": 0}}'


@pytest.mark.parametrize(("done", "help"), [
    ((0,), "run with --back-to 0, which forgets that epoch"), ((), "start with a new checkpoint"),
])  # fmt: skip
def test_an_epoch_that_has_not_ended_is_not_read_from_another_topic(
    tmp_path: Path, done: tuple[int, ...], help: str
) -> None:
    case = Case(tmp_path, GOES_ON, read="new")
    for epoch in {0, 1} - set(done):
        (tmp_path / f"commits/{epoch}").unlink()
    message, advice = refused(case)
    assert message.endswith("was deleted and created again: epoch 1, which had begun, cannot be read again")
    assert advice == help


def test_a_sink_says_that_its_topic_is_another_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    case = Case(tmp_path, written="new")
    with caplog.at_level(logging.WARNING, "vsc"):
        case.begin()
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith(
        "the sink of 'a' (line 4): the topic 'written' was deleted and created again since the checkpoint wrote to it; "
        "only new results are written"
    )


def test_a_topic_that_is_created_again_while_it_is_read_stops_the_run(tmp_path: Path) -> None:
    case = Case(tmp_path)
    case.begin()
    case.now["read"] = "new"
    with pytest.raises(SourceError) as caught:
        case.ends.check_read(EpochReport(2))
    assert caught.value.message == (
        "source 'a' (line 3): the topic 'read' was deleted and created again while the query read it"
    )


def test_or_what_is_not_read_of_the_new_one_is_counted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    case, report = Case(tmp_path, GOES_ON, low=0), EpochReport(2)
    case.begin()
    case.now["read"] = "new"
    with caplog.at_level(logging.WARNING, "vsc"):
        assert case.ends.check_read(report)
        assert not case.ends.check_read(EpochReport(3))
    assert report.metrics.as_dict()["dropped_records"] == {"a": {"lost": 3}}
    assert case.ends.identities["2"] == "new"
    assert [record.getMessage() for record in caplog.records] == [
        "source 'a' (line 3): the topic 'read' was deleted and created again while the query read it: epoch 2 goes on "
        "in the new one, behind its first 3 records, counted as lost"
    ]


@pytest.mark.parametrize(("more", "counted"), [("", {}), (GOES_ON, {"a": {"lost": 2}})])
def test_only_a_source_that_may_go_on_counts_what_kafka_has_deleted(
    tmp_path: Path, more: str, counted: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Spark stops the others."""
    case, report = Case(tmp_path, more), EpochReport(2)
    case.begin()
    with caplog.at_level(logging.WARNING, "vsc"):
        assert not case.ends.check_read(report)
    assert report.metrics.as_dict()["dropped_records"] == counted
    assert len(caplog.records) == len(counted)


@pytest.mark.parametrize(
    ("begins", "ends", "first", "expected"),
    [
        ({0: 5}, {0: 9}, {0: 5}, 0),
        ({0: 5}, {0: 9}, {0: 0}, 0),
        ({0: 5}, {0: 9}, {0: 8}, 3),
        ({0: 5}, {0: 9}, {0: 20}, 4),  # all of them: what comes later is for a later epoch
        ({0: 5}, {0: 5}, {0: 20}, 0),
        ({}, {0: 4}, {0: 3}, 3),  # a new partition
        ({0: 5, 1: 1}, {0: 9, 1: 4}, {0: 5}, 3),  # a partition that is gone
        ({0: 5, 1: 1}, {0: 9, 1: 4}, {0: 7, 1: 2}, 3),
        ({0: 5}, {0: 2}, {0: 0}, 0),  # cut at its end: what is there was read
    ],
)
def test_how_many_are_lost(begins: dict[int, int], ends: dict[int, int], first: dict[int, int], expected: int) -> None:
    places = ({("t", part): offset for part, offset in of.items()} for of in (begins, ends, first))
    assert lost(*places) == expected


@pytest.mark.parametrize(
    ("begins", "ends", "first", "expected"),
    [
        ({0: 5}, {0: 9}, {0: 0}, 5),
        ({0: 5}, {0: 3}, {0: 0}, 3),  # it is shorter: the epoch ends, without a row, at its end
        ({0: 5}, {0: 9}, {0: 4}, 1),
        ({0: 5}, {0: 9}, {0: 7}, 0),
        ({0: 5}, {0: 9, 1: 4}, {0: 0, 1: 0}, 5),  # what is a new partition is read whole
        ({0: 5, 1: 5}, {0: 9}, {0: 0}, 5),
        ({0: 5, 1: 5}, {0: 9, 1: 9}, {0: 0}, 5),  # Spark still goes by the partitions of the old one
    ],
)
def test_how_many_of_a_new_topic_are_skipped(
    begins: dict[int, int], ends: dict[int, int], first: dict[int, int], expected: int
) -> None:
    places = ({("t", part): offset for part, offset in of.items()} for of in (begins, ends, first))
    assert skipped(*places) == expected


def test_ids_follow_sources_to_other_numbers() -> None:
    known = {"1": "A", "2": "B", "to t": "C"}
    assert _renamed(known, {"2": "3", "4": "1"}) == {"3": "B", "to t": "C"}


def test_ids_are_part_of_an_epoch_s_pace() -> None:
    pace = Pace(topics={"2": "R"})
    assert Pace.load(pace.dump()) == pace
    assert "topics" not in Pace().dump()
