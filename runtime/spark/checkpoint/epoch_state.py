"""Looks into the state of a checkpoint, of a running or a stopped query, without touching either.

What Spark has committed is read through its own reader of state (``format("statestore")``): the manifests, and the
blobs that they name, checked as in a restore. Each partition is restored, one after the other, into a temporary
folder of the executor that reads it, and asked there. Nothing is written into the checkpoint, unless it was moved
(`relocation`), and nothing is known of the query's own local folders. All of one answer is of one epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan import Plan
from vsc.runtime.errors import CheckpointError, StateError
from vsc.runtime.operators.context import module_names
from vsc.runtime.operators.partition import partition_codecs
from vsc.runtime.operators.views import Question, StoreInfo
from vsc.runtime.operators.views.catalog import find_store, stores_of
from vsc.runtime.operators.views.question import question
from vsc.runtime.records import partition_of
from vsc.runtime.spark.base.checksummed import epochs_in
from vsc.runtime.spark.base.hadoop import Files, file_errors_as
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.identity import read_identity
from vsc.runtime.spark.checkpoint.relocation import follow_schemas
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.session.session import read_configuration, state_settings
from vsc.runtime.spark.session.ship import ship
from vsc.runtime.spark.state.node_clocks import NO_CLOCK, NodeClocks
from vsc.runtime.spark.state.protocol import Manifest
from vsc.runtime.spark.state.store_readers import ENCODED, SIZES_DDL, Ask, Reader, row_ddl, store_rows, store_sizes
from vsc.runtime.spark.state.store_sizes import PartSize, StoreSize
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.values import to_values

__all__ = ["EpochState", "read_store"]


def read_store(
    spark: SparkSession,
    checkpoint: str,
    store: str,
    *,
    key: Mapping[str, Any] | None = None,
    from_key: Mapping[str, Any] | None = None,
    to_key: Mapping[str, Any] | None = None,
    as_of: int | None = None,
    history: bool = False,
    from_ts: int | None = None,
    to_ts: int | None = None,
    at_epoch: int | None = None,
    functions: Sequence[str] = (),
) -> DataFrame:
    """The rows of a store in the checkpoint of a running or stopped query, as a DataFrame.

    `store` is the name of a store, or of the node that keeps it (``vsc store list`` shows all). `key` asks for one
    key, by column, in the values that `TopologyTestDriver` takes; `from_key` and `to_key` ask for a range, both
    included, and may name leading key columns only. `as_of` asks for what was valid at a time in ms; `history` for
    all versions that were valid at some time from `from_ts` to `to_ts`. `at_epoch` None is the newest committed
    epoch. `functions` are the modules from which results may be computed that no store keeps.

    Columns: the store's key columns and value columns, of their types in the topology; then ``_status`` (string):
    ``version``, ``tombstone``, ``no_record``, ``older_than_retention`` for a versioned store, ``row`` for an
    unversioned one, for groups and for subscriptions, ``open`` or ``closed`` for windows, ``waiting`` for what is
    held. Last come bigints, in ms: ``_valid_from`` and ``_valid_to`` (null: nothing newer is known) for tables;
    ``_timestamp`` for all others, with ``_rows`` (how many records a group has taken in) or ``_due`` (the stream time
    at which the row is emitted). Where the store has a column of such a name, it is called ``_vsc_status`` and so on.
    Where a status says that there is no row, the value columns are null. The rows come in no
    order. A row that answers for no version is there for `key` and, as ``older_than_retention``, for keys that the
    store does not answer for any more.

    The DataFrame belongs to a session of its own (`spark` keeps its settings) and is recomputed by each action.
    Raises CheckpointError where there is no checkpoint or the epoch is not kept, ConfigurationError for a store, a key
    or a time that makes no sense; an action raises StateError (quoted by Spark) where the state is damaged.
    """
    state = replace(EpochState.open(spark, checkpoint, at_epoch), functions=module_names(functions))
    info = find_store(state.plan, store)
    asked = question(
        info, key=key, from_key=from_key, to_key=to_key, as_of=as_of,
        history=history or from_ts is not None or to_ts is not None, start=from_ts, end=to_ts,
    )  # fmt: skip
    return state.rows(info, asked).drop(ENCODED).toDF(*info.names)


@dataclass(frozen=True, slots=True)
class EpochState:
    """What one epoch left, opened for reading. `clocks`: the input's clock, by source, if nodes go by it.

    `functions`: the modules from which results may be computed that no store keeps.
    """

    spark: SparkSession
    files: Files
    plan: Plan
    partitions: int
    epoch: int
    kept: Checkpoint
    clocks: Mapping[str, int]
    functions: tuple[str, ...] = ()

    @classmethod
    def open(cls, spark: SparkSession, checkpoint: str, at_epoch: int | None = None) -> EpochState:
        """Opens the state after epoch `at_epoch`, or the newest one. Raises CheckpointError if it does not exist."""
        with file_errors_as(CheckpointError, f"the checkpoint {checkpoint}", "give the folder of a checkpoint"):
            files = Files(spark, checkpoint)
            identity = read_identity(files)
            plan, partitions = identity.plan(files), identity.partitions
            epochs = sorted(epochs_in(files, "commits"))
        if not epochs:
            raise CheckpointError(
                f"the query of {checkpoint} has not committed an epoch yet", "wait for its first epoch"
            )
        epoch = epochs[-1] if at_epoch is None else at_epoch
        if epoch not in epochs:
            raise CheckpointError(
                f"epoch {epoch} is not kept in {checkpoint}: there are {epochs[0]} to {epochs[-1]}",
                "Spark keeps the newest 100, or as many as spark.sql.streaming.minBatchesToRetain said when it ran",
            )
        kept = Checkpoint(files, identity.id, partitions, False)
        clocks = _clocks_after(kept, epoch) if plan.clock == "input" else {}
        with file_errors_as(
            CheckpointError, f"the checkpoint {checkpoint}, which was moved,", "let vsc write into its folder"
        ):
            follow_schemas(files)
        # Spark's reader asks a coordinator that only exists once somebody has asked for the session's queries.
        spark.streams.active  # noqa: B018
        ship(spark)
        own = spark.newSession()
        for name, value in (read_configuration() | state_settings(files)).items():
            own.conf.set(name, value)
        return cls(own, files, plan, partitions, epoch, kept, clocks)

    def rows(self, store: StoreInfo, asked: Question) -> DataFrame:
        """The answer, the encoded key in front of all others, with the names of `row_ddl`."""
        manifests = self.manifests(store.stage, self._partition(store, asked))
        return self.asked(
            store.stage,
            manifests,
            partial(store_rows, self.plan, store, asked, self.clocks, self.functions),
            row_ddl(store),
        )

    def columns(self, store: StoreInfo, asked: Question, limit: int | None = None) -> list[list[Any]]:
        """The answer in this process, column by column: the store's as internal values, the status, what stands beside.

        The rows are in order: by key, a key's versions newest first; held rows by when they are due. `limit` None: all.
        """
        frame = self.rows(store, asked)
        if "due" in store.extra:
            frame = frame.orderBy("_due", ENCODED)
        elif store.is_table:
            frame = frame.orderBy(ENCODED, F.col("_valid_from").desc_nulls_last())
        else:
            frame = frame.orderBy(ENCODED, "_timestamp")
        table = (frame if limit is None else frame.limit(limit)).drop(ENCODED).toArrow()
        types = [c.type for c in (*store.key, *store.value)]
        found = [to_values(table.column(i), type) for i, type in enumerate(types)]
        return found + [column.to_pylist() for column in table.columns[len(types) :]]

    def sizes(self) -> list[StoreSize]:
        """All stores with their sizes."""
        listed: list[StoreSize] = []
        clocks, sources = NodeClocks(self.plan), self.clocks or _highest(self.kept, self.epoch)
        by_stage: dict[int, list[StoreInfo]] = {}
        for store in stores_of(self.plan):
            by_stage.setdefault(store.stage, []).append(store)
        for stage, stores in by_stage.items():
            manifests = self.manifests(stage)
            ask = partial(store_sizes, self.plan, stores, self.clocks)
            rows = self.asked(stage, manifests, ask, SIZES_DDL).collect()
            for i, store in enumerate(stores):
                parts = sorted((r for r in rows if r.store == i), key=lambda r: int(r.partition))
                lowest = min((r.stream_time for r in parts if r.stream_time is not None), default=None)
                sizes = tuple(PartSize(r.rows, r.bytes, r.stream_time) for r in parts)
                shown = clocks.shown(store.node, lowest, sources) if store.has_clock else NO_CLOCK
                listed.append(StoreSize(store, sizes, shown))
        return listed

    def _partition(self, store: StoreInfo, asked: Question) -> int | None:
        """The only partition that can answer; None: all of them."""
        if store.replicated:
            return 0
        if asked.key is None:
            return None
        codec: KeyCodec = partition_codecs(self.plan)[store.partitioned]
        values, _ = codec.decode_first(asked.key)
        return int(partition_of([codec.encode(values)], self.partitions)[0])

    def manifests(self, stage: int, only: int | None = None) -> dict[int, Manifest]:
        """The manifest of each partition; checked, so that damage is reported before anything is read."""
        by_partition = {p: Manifest() for p in range(self.partitions) if only in (None, p)}
        for row in self._variable(stage, "manifest").select("partition_id", "value.text").collect():
            if row.partition_id in by_partition:
                by_partition[row.partition_id] = Manifest.load(row.text)
                chain = by_partition[row.partition_id].blobs
                if any(blob.name.split("-")[1:2] != [str(stage)] for blob in chain):
                    raise StateError(f"the state of stage {stage} is not where it was expected: {chain[0].name!r}")
        return by_partition

    def asked(self, stage: int, manifests: Mapping[int, Manifest], ask: Ask, ddl: str) -> DataFrame:
        """What `ask` gives for each of the partitions of `manifests`: rows of the columns `ddl`."""
        return self._blobs(stage, manifests).mapInArrow(Reader(self.plan, stage, manifests, ask), ddl)

    def _blobs(self, stage: int, manifests: Mapping[int, Manifest]) -> DataFrame:
        """Rows (partition, place, data) for the readers: each partition's chunks in the order of its chain, all in one
        Spark partition, behind a row without data that makes sure that the partition is read at all."""
        order = []
        for partition, manifest in manifests.items():
            chunks = [(b.name, i) for b in manifest.blobs for i in range(len(b.lengths))]
            order += [(partition, place, name, i) for place, (name, i) in enumerate([("", 0), *chunks])]
        wanted = self.spark.createDataFrame(order, "partition int, place int, name string, chunk int")
        there = self._variable(stage, "blobs").select(
            F.col("partition_id").alias("partition"),
            F.col("user_map_key.name").alias("name"),
            F.col("user_map_key.chunk").alias("chunk"),
            F.col("user_map_value.data").alias("data"),
        )
        found = there.join(F.broadcast(wanted), ["partition", "name", "chunk"]).select("partition", "place", "data")
        first = wanted.where("place = 0").select("partition", "place", F.lit(None).cast("binary").alias("data"))
        whole = found.union(first).repartition(self.partitions, "partition")
        return whole.sortWithinPartitions("partition", "place")

    def _variable(self, stage: int, name: str) -> DataFrame:
        # Spark numbers the operators of a query from its end.
        operator = len(self.plan.stages) - 1 - stage
        return (
            self.spark.read.format("statestore")
            .option("operatorId", operator).option("stateVarName", name).option("batchId", self.epoch)
            .load(self.files.root)
        )  # fmt: skip


def _clocks_after(checkpoint: Checkpoint, epoch: int) -> dict[str, int]:
    """How far each source had come in what had gone on after `epoch`."""
    pace, report = checkpoint.pace(epoch), checkpoint.report(epoch)
    return {} if pace is None or report is None else Pace.load(pace).clocks_after(report)


def _highest(checkpoint: Checkpoint, epoch: int) -> dict[str, int]:
    """How far each source had come in what had been read until `epoch`, as far as that is kept."""
    found: dict[str, int] = {}
    for report in checkpoint.reports():
        for source, time in report.clocks.items() if report.epoch <= epoch else ():
            found[source] = max(time, found.get(source, time))
    return found
