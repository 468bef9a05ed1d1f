"""What an upgrade has been checked for is not checked again; what may have changed until its claim is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.upgrade.support import ID, OLD, checkpoint
from vsc.compiler import compile_topology
from vsc.plan import dump
from vsc.runtime.errors import CheckpointError, UpgradeError
from vsc.runtime.spark.base.checksummed import LocalFiles, with_checksum
from vsc.runtime.spark.checkpoint.ancestry import SUCCESSOR
from vsc.runtime.spark.checkpoint.identity import Identity, read_identity
from vsc.runtime.spark.upgrade import Upgrade, preflight, prepare
from vsc.runtime.spark.upgrade.preflight import check_unchanged

RENAMED = OLD.replace("table t", "table sums").replace("sink t", "sink sums")
SPARK: Any = None
"""No session: what asks for it is replaced."""


class Folder(LocalFiles):
    """A folder as Spark reaches it, on this machine or, behind ``far://``, on a distant file system."""

    def __init__(self, spark: object, root: str) -> None:
        super().__init__(root.removeprefix("far://"))
        self.is_local = not root.startswith("far://")


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    checkpoint(tmp_path / "old")
    (tmp_path / "in").mkdir()
    monkeypatch.setattr(preflight, "Files", Folder)
    monkeypatch.setattr(preflight, "default_is_local", lambda spark: True)
    variables = {"in": str(tmp_path / "in")}
    return Upgrade(compile_topology(RENAMED), str(tmp_path / "old"), str(tmp_path / "new"), variables)


def far(job: Upgrade, *sides: str) -> Upgrade:
    """The same, on a distant file system."""
    old, new = (f"far://{getattr(job, side)}" if side in sides else getattr(job, side) for side in ("old", "new"))
    return replace(job, old=old, new=new)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The checks that have been made, in their order."""
    made: list[str] = []

    def noted(name: str, check: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            made.append(name)
            return check(*arguments, **named)

        return called

    for name in ("check_unclaimed", "check", "settled_positions", "_compared", "check_target", "check_decided"):
        monkeypatch.setattr(preflight, name, noted(name, getattr(preflight, name)))
    return made


LOCAL = ["check_unclaimed", "_compared", "check_target", "check_decided", "check", "settled_positions"]


@pytest.mark.parametrize(
    ("sides", "before", "with_spark"),
    [
        ((), LOCAL, []),
        (("new",), [name for name in LOCAL if name != "check_target"], ["check_target"]),
        (("old", "new"), ["check", "settled_positions"], ["_compared", "check_target", "check_decided"]),
    ],
)
def test_each_check_is_made_once(
    sides: tuple[str, ...], before: list[str], with_spark: list[str], job: Upgrade, looks: list[str]
) -> None:
    shown: list[tuple[str, ...]] = []

    def show(changes: Any) -> None:
        shown.append(tuple(change.name for change in changes if change.kind == "store"))

    prepared = prepare(far(job, *sides), show=show)
    assert looks == before
    looks.clear()
    ready, compared = prepared.reach(SPARK)
    assert looks == with_spark
    assert shown == [("sums", "sums#groups")]
    assert ready.compared is compared and compared.was.id == ID
    assert ready.reach(SPARK)[1] is compared


def test_a_default_file_system_that_only_spark_knows_is_asked(
    job: Upgrade, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare(job)
    monkeypatch.setattr(preflight, "default_is_local", lambda spark: False)
    looks.clear()
    ready, compared = prepared.reach(SPARK)
    assert looks == ["check", "settled_positions", "_compared", "check_target", "check_decided"]
    assert (ready.local, [c.name for c in compared.changes if c.kind == "sink"]) == (False, ["sums to noop"])


def test_what_another_query_does_while_spark_starts_is_seen(job: Upgrade) -> None:
    old, was = LocalFiles(job.old), read_identity(LocalFiles(job.old))
    check_unchanged(old, was)
    folder = Path(job.old)
    (folder / "offsets/1").write_text("v1\n")
    with pytest.raises(UpgradeError, match="has an epoch that was begun and has not ended"):
        check_unchanged(old, was)
    (folder / "commits/1").write_text("v1\n")
    check_unchanged(old, was)  # it has gone on, and rests again: that is what is carried over
    (folder / SUCCESSOR).write_text(with_checksum({"path": "/new", "id": "1"}))
    with pytest.raises(CheckpointError, match="was upgraded to /new, and that has written to its sinks since"):
        check_unchanged(old, was)
    (folder / SUCCESSOR).unlink()
    changed = Identity(ID, 2, dump(compile_topology(RENAMED)))
    (folder / "vsc/identity.json").write_text(changed.dump("t"))
    (folder / "vsc/plan.json").write_text(changed.plan_text)
    with pytest.raises(CheckpointError, match="has gone on with another topology while this upgrade began"):
        check_unchanged(old, was)
