"""`vsc store purge`: all rows of some keys leave the checkpoint of a stopped query.

Spark keeps the states of the newest 100 epochs, and blobs hold versions that are long gone. So the checkpoint is
replaced, in its folder, by one that goes on where it stopped, as `vsc upgrade` makes it, without those rows: nothing of
the former states is left. The local folders that executors may have kept go with the next run.

Guarantees: what is written is read again and looked through before the old checkpoint is given up; a purge that is
interrupted before that has changed nothing, one that is interrupted later is finished when it is repeated, and nothing
else can be done with the checkpoint until then (`vsc.runtime.spark.checkpoint.replacing`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import SparkSession

from vsc.plan import Plan
from vsc.plan.words import counted
from vsc.runtime.errors import CheckpointError, StateError, UpgradeError
from vsc.runtime.operators.carry import Carry, Purged, computed_from, purged, unbounded
from vsc.runtime.operators.views import StoreInfo
from vsc.runtime.operators.views.catalog import find_store
from vsc.runtime.spark.base.checksummed import LocalFiles, ReadableFiles
from vsc.runtime.spark.base.folders import is_hidden
from vsc.runtime.spark.base.hadoop import Files, default_is_local
from vsc.runtime.spark.base.paths import is_local, local_path
from vsc.runtime.spark.checkpoint.ancestry import ORIGIN, Forerunner, check_current, check_finished
from vsc.runtime.spark.checkpoint.claim import Claim, check_unclaimed, claim
from vsc.runtime.spark.checkpoint.epoch_state import EpochState
from vsc.runtime.spark.checkpoint.identity import REPLACED, Identity, read_identity
from vsc.runtime.spark.checkpoint.relocation import follow_logs
from vsc.runtime.spark.checkpoint.replacing import MAKING, decide, finish
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.preflight import check
from vsc.runtime.spark.state.seeds import seed_row
from vsc.runtime.spark.upgrade.carried import State
from vsc.runtime.spark.upgrade.positions import Position, inherit_sinks, positions, read_files, write_same_positions
from vsc.runtime.spark.upgrade.preflight import check_ended
from vsc.runtime.spark.upgrade.successor import check_space, make_successor
from vsc.runtime.state.changelog import decode_changelog

__all__ = ["Purge", "prepare", "purge"]

ReadKey = Callable[[StoreInfo, str], Mapping[str, Any]]
"""The key columns that a text gives, by the types of a store."""


@dataclass(frozen=True, slots=True)
class Purge:
    """What to do: the `keys`, as texts that `read_key` reads, leave all `stores` that are named, and their like."""

    checkpoint: str
    stores: tuple[str, ...]
    keys: tuple[str, ...]
    read_key: ReadKey
    variables: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False

    @property
    def fingerprint(self) -> str:
        """Tells purges apart, and no key."""
        return f"{zlib.crc32(json.dumps([self.stores, self.keys]).encode()):08x}"


def prepare(job: Purge, local: bool = True) -> None:
    """Refuses what can be refused without Spark; `local`: paths without a scheme are on this machine."""
    if is_local(job.checkpoint, local):
        folder = local_path(job.checkpoint)
        files = LocalFiles(folder)
        if not files.exists(REPLACED):
            _checked(job, files, local)
        check_unclaimed(folder)


def purge(job: Purge, spark: SparkSession, tell: Callable[[str], None]) -> None:
    """Purges the keys. VscRuntimeError if it is refused, before anything is removed."""
    files = Files(spark, job.checkpoint)
    if not files.exists(REPLACED):
        read_identity(files)  # only a checkpoint is claimed
    elif job.dry_run:
        tell("a purge was interrupted: without --dry-run, this finishes it")
        return
    held = claim(spark, files)
    try:
        earlier = finish(files, held.check)
        if earlier is None:
            _purge(job, spark, files, held, tell)
        elif earlier == job.fingerprint:
            tell("an interrupted purge of these keys is finished")
        else:
            raise CheckpointError(
                f"the purge of other keys from {files.root} had been interrupted, and is finished now",
                "run the query until it has committed an epoch, then repeat this command",
            )
    finally:
        held.release()


def _checked(job: Purge, files: ReadableFiles, local: bool) -> tuple[Identity, Plan, Purged, Ends]:
    """The identity of a checkpoint from which keys can be purged, its plan, what is left out, and its sources and
    sinks."""
    identity = read_identity(files)
    check_finished(files)
    check_current(files)
    plan = identity.plan(files)
    stores = (find_store(plan, name) for name in job.stores)
    left_out = purged(plan, [(store, _key(job, plan, store, text)) for store in stores for text in job.keys])
    check_ended(files)
    return identity, plan, left_out, check(plan, job.variables, "available-now", default_local=local)


def _key(job: Purge, plan: Plan, store: StoreInfo, text: str) -> Mapping[str, Any]:
    """The key columns that a text gives: a plain one that of a group, without the bounds of its windows."""
    return job.read_key(store if text.lstrip().startswith("{") else replace(store, key=unbounded(plan, store)), text)


def _purge(job: Purge, spark: SparkSession, files: Files, held: Claim, tell: Callable[[str], None]) -> None:
    """Makes the new checkpoint, and has it take the place of the old one, on which the caller has the claim."""
    identity, plan, left_out, ends = _checked(job, files, default_is_local(spark))
    forerunner = Forerunner(spark, files, identity.id)
    forerunner.check()
    SparkLogs(files).check()
    follow_logs(files)
    state = EpochState.open(spark, job.checkpoint)
    whole = _looked(state, identity, left_out, tell)
    found = _positions(plan, ends, SparkLogs(files).offsets(state.epoch))
    for one in found:
        if one.source.restarts is not None:
            tell(str(one))
    taken = [_taken(one, files, left_out, plan) for one in found if one.source.is_snapshot]
    if job.dry_run:
        return
    new = Files(spark, files.path(MAKING))
    check_space(whole.size, new, "free some space there: the state is written once more beside the old one")
    new.delete("")
    origin = forerunner.may_go_on
    if origin is not None:
        new.write(ORIGIN, origin.dump())
    write_same_positions(found, files, new)
    inherit_sinks(plan, plan, ends.sinks, files, new)
    id_, carried = make_successor(state, identity, new, plan, None, found, whole, tell)
    _check_gone(state, new, whole.carry)
    held.check()
    if SparkLogs(files).newest != state.epoch:
        raise CheckpointError(f"the checkpoint {files.root} has gone on meanwhile", "stop its query, then repeat this")
    decide(files, id_, job.fingerprint, [folder for folder in taken if folder is not None])
    finish(files, held.check)
    tell(f"the checkpoint {files.root} was written again without them ({carried})")


def _looked(state: EpochState, identity: Identity, left_out: Purged, tell: Callable[[str], None]) -> State:
    """The state that is carried over; says what is not. UpgradeError if records wait, which may hold the keys."""
    plan, partitions = state.plan, identity.partitions
    whole = State(state, Carry.of(plan, plan, partitions, partitions, frozenset(), frozenset(), purged=left_out))
    whole.look()
    if whole.waiting:
        raise UpgradeError(
            f"{counted(whole.waiting, 'record')} that wait for other sources may have these keys",
            "run the query with --trigger available-now, until it has read all of its sources; then repeat this",
        )
    for name, count in sorted(whole.purged.items()):
        tell(f"store {name}: {counted(count, 'row')} of these keys")
    others = computed_from(plan, left_out)
    if others:
        tell(f"not purged, and computed from such rows: {', '.join(others)}")
    return whole


def _positions(plan: Plan, ends: Ends, offsets: list[str]) -> list[Position]:
    """Where the sources go on: where they were."""
    try:
        return positions(plan, ends, {node.name: node.name for node in plan.sources}, offsets, {})
    except UpgradeError as error:
        raise UpgradeError(
            error.message, "keys cannot be purged from this checkpoint; a new one begins with what its sources have now"
        ) from error


def _taken(one: Position, files: Files, left_out: Purged, plan: Plan) -> str | None:
    """The folder of what a source has taken once, if the query has read all of it: its files go. UpgradeError if that
    may still hold a row of these keys."""
    folder = f"vsc/sources/{one.node.source.rank}"
    there = {name for name in files.sizes(folder) if not is_hidden(name)}
    read = {unquote(path).rpartition("/")[2] for path, _ in read_files(one, files)} if one.was_read else set()
    if there <= read:
        return folder
    if one.node.name in left_out.sources(plan):
        raise UpgradeError(
            f"source {one.node.name} has taken rows into the checkpoint that the query has not read yet",
            "run the query with --trigger available-now, until it has read all of its sources; then repeat this",
        )
    return None


def _check_gone(state: EpochState, new: Files, carry: Carry) -> None:
    """Reads what was written, and looks through it. StateError if a row of these keys is in it."""
    lines = state.spark.read.text(new.path("vsc/control"))
    left = lines.mapInArrow(partial(_left, carry), "left bigint").agg({"left": "sum"}).first()
    if left is not None and left[0]:
        raise StateError(
            f"{counted(left[0], 'row')} of these keys would have stayed in the checkpoint, which is as it was",
            "report this as a bug",
        )


def _left(carry: Carry, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many rows of purged keys are in lines of the control source."""
    for batch in batches:
        seeds = filter(None, (seed_row(line.encode()) for line in batch.column(0).to_pylist()))
        left = sum(carry.is_purged(seed.dest, key) for seed in seeds for key, _ in decode_changelog(seed.payload)[2])
        yield pa.RecordBatch.from_pydict({"left": pa.array([left], pa.int64())})
