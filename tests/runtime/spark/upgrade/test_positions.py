"""Where the sources of an upgraded query go on: what is written for Spark, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.errors import UpgradeError
from vsc.runtime.spark.checkpoint.spark_logs import KNOWN
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.upgrade.positions import positions, write_positions

OLD = """
stream a (k string, at timestamp) from files (path = '/a', format = 'json') key k timestamp at;
stream b (k string) from kafka (bootstrap_servers = 'x:1', topic = 't', format = 'json') key k;
table c (k string, n bigint) from jdbc (url = 'jdbc:postgresql://x/y', table = 'c') key k;
stream d (k string, at timestamp) from iceberg (table = 'l.d') key k timestamp at;
stream e (value bigint, at timestamp) from rate (rows_per_second = 1) timestamp at;
stream z (k string, at timestamp) from files (path = '/z', format = 'json') key k timestamp at;
"""
SINKS = "".join(f"sink {name} to noop ();\n" for name in "abcdez")
NEW = (
    "stream first (k string, at timestamp) from files (path = '/f', format = 'json') key k timestamp at;\n"
    + "\n".join(sorted(OLD.strip().splitlines(), reverse=True))
)
OFFSETS = [
    '{"logOffset":0}', '{"logOffset":1}', '{"t":{"0":7,"1":0}}', '{"logOffset":0}', '{"snapshot_id":5,"position":1}',
    "12", "-",
]  # fmt: skip


class Folder:
    """A folder as far as positions need one; copied files get a path and a time of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self, name: str) -> bool:
        return (self.path / name).exists()

    def names(self, name: str) -> list[str]:
        return sorted(p.name for p in (self.path / name).iterdir())

    def read(self, name: str, most: int = 0) -> str:
        return (self.path / name).read_text()

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)

    overwrite = write

    def copy(self, name: str, to: Folder, new: str) -> None:
        for one in self.names(name):
            to.write(f"{new}/{one}", self.read(f"{name}/{one}"))

    def statuses(self, name: str) -> list[tuple[str, tuple[str, int]]]:
        return [(one, (f"file:///new/{name}/{one}", 99)) for one in self.names(name)]


def entry(path: str, batch: int) -> str:
    return json.dumps({"path": path, "timestamp": 5, "batchId": batch})


def test_what_spark_is_told_of_each_source(tmp_path: Path) -> None:
    old: Any = Folder(tmp_path / "old")
    new: Any = Folder(tmp_path / "new")
    old.write("sources/1/0", "\n".join(["v1", entry("file:///a/older", KNOWN), entry("file:///a/0%201", 0)]))
    old.write("sources/1/1", "\n".join(["v1", entry("file:///a/1", 1)]))
    old.write("sources/1/2", "\n".join(["v1", entry("file:///a/beyond", 2)]))
    before, after = compiled(OLD + SINKS), compiled(NEW + SINKS + "sink first to noop ();\n")
    taken = f"vsc/sources/{rank(before, 'c')}/part-0"
    old.write("sources/3/0", "\n".join(["v1", entry(f"file:///old/{taken}", 0)]))
    old.write(taken, "rows")
    found = positions(before, Ends(after), {name: name for name in "abcdez"}, OFFSETS, {})
    assert [(one.node.name, one.source.number, one.was) for one in found] == [
        ("c", 2, 3), ("z", 3, 6), ("e", 4, 5), ("d", 5, 4), ("b", 6, 2), ("a", 7, 1),
    ]  # fmt: skip
    assert [str(one).partition(": ")[2] for one in found] == [
        "goes on at entry 0 of its log", "nothing has been read of it yet", "its numbers begin at 0 again",
        "goes on at snapshot_id 5, position 1", "goes on at t 0: 7, t 1: 0", "goes on at entry 1 of its log",
    ]  # fmt: skip
    write_positions(found, old, new, lambda node: [])
    assert sorted(str(p.relative_to(new.path)) for p in new.path.rglob("*") if p.is_file()) == [
        "sources/2/0", "sources/5/offsets/0", "sources/6/0", "sources/7/0",
        *(f"vsc/sources/{rank(after, 'c')}/{name}" for name in ("_SUCCESS", "part-0")),
    ]  # fmt: skip
    assert new.read("sources/5/offsets/0") == OFFSETS[4]
    assert new.read("sources/6/0") == '\0v1\n{"t": {"0": 7, "1": 0}}'
    assert new.read("sources/7/0").splitlines() == ["v1", *known("/a/older", "/a/0%201", "/a/1", time=5)]
    assert new.read("sources/2/0").splitlines() == [
        "v1",
        *known(f"/new/vsc/sources/{rank(after, 'c')}/part-0", time=99),
    ]


def known(*paths: str, time: int) -> list[str]:
    return [f'{{"path":"file://{path}","timestamp":{time},"batchId":{KNOWN}}}' for path in paths]


def rank(plan: Any, name: str) -> int:
    return int(plan.node(name).source.rank)


def test_a_source_that_cannot_go_on_is_refused() -> None:
    plan = compiled("stream d (k string, at timestamp) from delta (path = '/d') key k timestamp at; sink d to noop ();")
    with pytest.raises(UpgradeError, match=r"source d \(line 1\) reads from delta, whose position vsc cannot carry"):
        positions(plan, Ends(plan), {"d": "d"}, ["-", '{"reservoirVersion":1}'], {})
