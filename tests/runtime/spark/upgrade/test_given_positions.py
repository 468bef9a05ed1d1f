"""Positions that the user gives to sources: what they may be, and what Spark gets of them. Without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from tests.runtime.spark.upgrade.test_positions import Folder, known
from vsc.runtime.errors import PositionError
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.upgrade.decisions import settled_positions
from vsc.runtime.spark.upgrade.positions import positions, write_positions

KAFKA = "stream s (k string) from kafka (bootstrap_servers = 'x:1', topic = 't', format = 'json') key k;\n"
FILES = "stream s (k string) from files (path = '/s', format = 'json') key k;\n"
JDBC = "stream s (k string) from jdbc (url = 'jdbc:postgresql://x/y', table = 's') key k;\n"
DELTA = "stream s (k string, at timestamp) from delta (path = '/s') key k timestamp at;\n"
SINK = "sink s to noop ();\n"


@pytest.fixture(autouse=True)
def ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {0: (3, 7), 1: (0, 0)}
    monkeypatch.setattr("vsc.runtime.spark.connectors.kafka.position.offset_ranges", lambda options: found)


@pytest.mark.parametrize(
    ("text", "given", "settled"),
    [
        (KAFKA, "earliest", '{"t": {"0": 3, "1": 0}}'),
        (KAFKA, "latest", '{"t": {"0": 7, "1": 0}}'),
        (KAFKA, '{"t": {"1": -1, "0": 5}}', '{"t": {"0": 5, "1": 0}}'),
        (KAFKA, '{"t": {"0": -2, "1": 0}}', '{"t": {"0": 3, "1": 0}}'),
        (KAFKA, '{"t": {"0": 7, "1": 0}}', '{"t": {"0": 7, "1": 0}}'),
        (FILES, "now", "now"),
        (FILES, "beginning", "beginning"),
        (JDBC, "beginning", "beginning"),
        (DELTA, "beginning", "beginning"),
    ],
)
def test_a_position_is_settled_before_anything_is_written(text: str, given: str, settled: str) -> None:
    assert settled_positions(Ends(compiled(text + SINK)), {"s": given}) == {"s": settled}


@pytest.mark.parametrize(
    ("text", "given", "words", "help"),
    [
        (KAFKA, "now", "`--position` cannot be 'now'", "write 'earliest', 'latest', or an offset for"),
        (KAFKA, "{", "`--position` is not JSON", "write 'earliest'"),
        (KAFKA, '{"u": {"0": 1}}', "`--position` has to name the topic 't'", "write 'earliest'"),
        (KAFKA, '{"t": {"0": 5}}', "partition 1 of the topic 't' has no offset", "that it has: 0: 3 to 7; 1: 0 to 0"),
        (KAFKA, '{"t": {"0": 5, "1": 0, "2": 0}}', "the topic 't' has no partition 2", "that it has: 0: 3 to 7"),
        (KAFKA, '{"t": {"0": 2, "1": 0}}', "has the offsets 3 to 7, 2 is outside", "that it has: 0: 3 to 7"),
        (KAFKA, '{"t": {"0": 8, "1": 0}}', "has the offsets 3 to 7, 8 is outside", "that it has: 0: 3 to 7"),
        (FILES, "earliest", "files has no position 'earliest'", "'now' takes all files"),
        (JDBC, "now", "jdbc has no position 'now'", "jdbc can only be read from its 'beginning'"),
        (DELTA, "7", "delta has no position '7'", "delta can only be read from its 'beginning'"),
    ],
)
def test_what_a_position_may_not_be(text: str, given: str, words: str, help: str) -> None:
    with pytest.raises(PositionError) as caught:
        settled_positions(Ends(compiled(text + SINK)), {"s": given})
    assert caught.value.message.startswith("source s (line 1): ")
    assert words in caught.value.message
    assert help in str(caught.value.help)


@pytest.mark.parametrize(
    ("was", "now", "given", "told", "written"),
    [
        (FILES, KAFKA, '{"t": {"0": 5}}', "source s: begins at t 0: 5", '\0v1\n{"t": {"0": 5}}'),
        (KAFKA, KAFKA, '{"t": {"0": 5}}', "source s: begins at t 0: 5", '\0v1\n{"t": {"0": 5}}'),
        (KAFKA, FILES, "beginning", "source s: begins at its beginning", None),
        (DELTA, DELTA, "beginning", "source s: begins at its beginning", None),
        (
            KAFKA,
            FILES,
            "now",
            "source s: begins at what comes from now on: all files that are there count as read",
            "\n".join(["v1", *known("/s/a%20b", time=5)]),
        ),
    ],
)
def test_what_spark_is_told(was: str, now: str, given: str, told: str, written: str | None, tmp_path: Path) -> None:
    new: Any = Folder(tmp_path / "new")
    offsets = ["-", json.dumps({"t": {"0": 9}})]
    [one] = positions(compiled(was + SINK), Ends(compiled(now + SINK)), {"s": "s"}, offsets, {"s": given})
    assert str(one) == told
    write_positions([one], new, new, lambda node: [("file:///s/a%20b", 5)])
    assert (new.read("sources/1/0") if new.exists("sources/1/0") else None) == written


def test_a_new_source_may_have_a_position_too(tmp_path: Path) -> None:
    new: Any = Folder(tmp_path / "new")
    [one] = positions(compiled(FILES + SINK), Ends(compiled(KAFKA + SINK)), {}, ["-", "-"], {"s": '{"t": {"0": 5}}'})
    write_positions([one], new, new, lambda node: [])
    assert str(one) == "source s: begins at t 0: 5"
    assert new.read("sources/1/0") == '\0v1\n{"t": {"0": 5}}'
