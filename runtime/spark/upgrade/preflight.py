"""What can be refused of an upgrade before anything is carried over: before Spark starts, if its checkpoints are local.

Imports little, so that a refusal is quick. Not for what only counts while no query runs on the old checkpoint: that
is `check_unchanged`, which the job calls once it holds the claim.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from vsc.changes import Change, compare
from vsc.plan import Plan
from vsc.runtime.errors import CheckpointError, UpgradeError
from vsc.runtime.expressions import check_allowed
from vsc.runtime.spark.base.checksummed import LocalFiles, ReadableFiles, epochs_in
from vsc.runtime.spark.base.folders import NO_ROOM_HELP, unwritable
from vsc.runtime.spark.base.hadoop import Files, default_is_local
from vsc.runtime.spark.base.paths import is_local, local_path
from vsc.runtime.spark.checkpoint.ancestry import ORIGIN, check_current, check_finished
from vsc.runtime.spark.checkpoint.claim import check_unclaimed
from vsc.runtime.spark.checkpoint.identity import IDENTITY, Identity, check_whole, read_identity
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.preflight import check
from vsc.runtime.spark.upgrade.decisions import check_decided, check_placed, settled_positions

__all__ = ["Comparison", "PreparedUpgrade", "Upgrade", "check_ended", "check_target", "check_unchanged", "prepare"]

Show = Callable[[Sequence[Change]], None]
"""Shows what the new topology changes, before any of it is refused."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What to do: the new plan, the paths of the old and the new checkpoint, and the decisions about stores."""

    plan: Plan
    old: str
    new: str
    variables: Mapping[str, str]
    partitions: int | None = None
    reset: frozenset[str] = frozenset()
    accept: frozenset[str] = frozenset()
    dry_run: bool = False
    positions: Mapping[str, str] = field(default_factory=dict)
    """Where sources begin, by name, instead of where the old query stopped."""
    functions: tuple[str, ...] = ()
    """The modules from which the new plan may call functions."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The old checkpoint as it said that it `was`, and what the new plan `changes` of it: all of that is decided."""

    was: Identity
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class PreparedUpgrade:
    """An upgrade that `prepare` has checked: its sources and sinks, and the `positions` that sources were given, as
    their connectors write them.

    `local`: paths without a scheme were taken to be on this machine. `compared`: None if only Spark reaches the old
    checkpoint.
    """

    job: Upgrade
    ends: Ends
    positions: Mapping[str, str]
    local: bool
    show: Show
    compared: Comparison | None

    def reach(self, spark: SparkSession) -> tuple[PreparedUpgrade, Comparison]:
        """Refuses what is seen of the checkpoints that only Spark reaches; the rest is not looked at again."""
        local = default_is_local(spark)
        if local != self.local:  # a file of Hadoop's may say so
            return prepare(self.job, local, self.show).reach(spark)
        new = Files(spark, self.job.new)
        if self.compared is None:
            compared = _compared(self.job, Files(spark, self.job.old), new, self.show)
            return replace(self, compared=compared), compared
        if not new.is_local:
            check_target(new)
        return self, self.compared


def prepare(job: Upgrade, local: bool = True, show: Show = lambda changes: None) -> PreparedUpgrade:
    """Refuses what can be refused without Spark; `local`: paths without a scheme are on this machine."""
    for path, option in ((job.old, "--from"), (job.new, "--checkpoint")):
        if not path.strip():
            raise CheckpointError(f"{option}: the checkpoint has no name", "give the path of a folder")
    new = _opened(job.new, local)
    if new is not None:
        _check_writable(job.new)
    old = _opened(job.old, local)
    if old is not None:
        check_unclaimed(local_path(job.old), reads=True)
    compared = None if old is None else _compared(job, old, new, show)
    check_allowed(job.plan, job.functions)
    ends = check(job.plan, job.variables, "available-now", default_local=local)
    return PreparedUpgrade(job, ends, settled_positions(ends, job.positions), local, show, compared)


def check_unchanged(old: ReadableFiles, was: Identity) -> None:
    """Refuses what another query may have done to the old checkpoint since it was compared: Spark takes seconds to
    start, and nobody is kept out before the claim. VscRuntimeError."""
    if read_identity(old) != was:
        raise CheckpointError(
            f"the checkpoint {old.root} has gone on with another topology while this upgrade began",
            "repeat the command: it compares the new one with that",
        )
    check_current(old)
    check_ended(old)


def check_target(new: ReadableFiles) -> None:
    """CheckpointError for a folder in which a new checkpoint cannot be made. An unfinished upgrade is redone."""
    check_whole(new)
    if new.exists(IDENTITY):
        raise CheckpointError(
            f"{new.root} is a checkpoint already",
            "give --checkpoint a new folder; or, if it was made by this upgrade, run it with `vsc run`",
        )
    others = [name for name in new.names() if not name.startswith(".") and name != "vsc"]
    if others and not new.exists(ORIGIN):
        raise CheckpointError(f"the folder {new.root} is not empty ({others[0]})", "give --checkpoint a new folder")


def _compared(job: Upgrade, old: ReadableFiles, new: ReadableFiles | None, show: Show) -> Comparison:
    """Shows what the new plan changes. VscRuntimeError if that cannot be done, or if the names or small files of a
    folder show a problem. `new` None: that folder cannot be seen yet."""
    check_finished(old)
    was = read_identity(old)
    check_current(old)
    if new is not None:
        _check_apart(old.root, new.root)
        check_target(new)
    check_ended(old)
    changes = compare(was.plan(old), job.plan)
    show(changes)
    check_decided(changes, job.reset, job.accept, job.plan)
    check_placed(changes, job.plan, job.positions)
    return Comparison(was, changes)


def _opened(path: str, local: bool) -> LocalFiles | None:
    """The folder of a checkpoint; None if only Spark reaches it."""
    return LocalFiles(os.path.abspath(local_path(path))) if is_local(path, local) else None


def _check_writable(path: str) -> None:
    folder = local_path(path)
    problem = unwritable(folder)
    if os.path.exists(folder) and not os.path.isdir(folder):
        problem = "it is a file"
    if problem is not None:
        raise CheckpointError(f"the checkpoint {path} cannot be written: {problem}", NO_ROOM_HELP)


def _check_apart(old: str, new: str) -> None:
    """CheckpointError for a new checkpoint that is the old one, or in it, or around it."""
    was, now = (_path(root) for root in (old, new))
    if was == now:
        raise CheckpointError(f"{old} is the old checkpoint", "give --checkpoint a new folder")
    if f"{now}/".startswith(f"{was}/") or f"{was}/".startswith(f"{now}/"):
        where = "in" if len(now) > len(was) else "around"
        raise CheckpointError(f"{new} is {where} the old checkpoint {old}", "give --checkpoint a folder beside it")


def _path(root: str) -> str:
    """A folder under the one name by which it can be compared with others."""
    return os.path.realpath(local_path(root)) if is_local(root) else root.rstrip("/")


def check_ended(old: ReadableFiles) -> None:
    """Refuses a checkpoint without an epoch, or with one that was begun and has not ended."""
    planned, done = epochs_in(old, "offsets"), epochs_in(old, "commits")
    if not done:
        seeded = any(name.startswith("seed-") for name in old.names("vsc/control"))
        raise CheckpointError(
            f"the query of {old.root} has not committed an epoch yet",
            "run it once, so that it takes up its state; then repeat this command"
            if seeded
            else "nothing is lost with a new checkpoint",
        )
    if max(planned, default=-1) > max(done) or epochs_in(old, "vsc/back"):
        raise UpgradeError(
            f"the checkpoint {old.root} has an epoch that was begun and has not ended: its rows may be in the sinks",
            "run its topology once more until it has ended, then repeat this command",
        )
