"""Converts the state of a plan to that of another plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from vsc.plan.nodes import Plan
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.carry.filled import Filled
from vsc.runtime.operators.carry.purged import NOTHING, Purged
from vsc.runtime.operators.carry.stores import Move, Told, moves
from vsc.runtime.operators.carry.waiting import CarriedWaiting
from vsc.runtime.operators.views.catalog import open_view, stores_of
from vsc.runtime.operators.views.question import StoreInfo
from vsc.runtime.records import partition_of
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.moving import META
from vsc.runtime.state.waiting import row as waiting_row

__all__ = ["Carried", "Carry"]

_AT_ONCE = 256
"""How many rows are processed together."""


class Carried(NamedTuple):
    """A row of the map of a new stage and partition."""

    stage: int
    partition: int
    key: bytes
    value: bytes


@dataclass(frozen=True)
class Carry:
    """How the rows of the stores of `old`, in `old_partitions`, become those of `new`, in `partitions`.

    A store that has to be rebuilt begins empty if it is in `reset`, and is kept as it is if it is in `accept`. The
    whole state of the new plan is `common`, given what `told` reports of all old partitions, and `rows` of each of
    them; no row comes twice. `functions`: the modules from which `new` may call functions. `purged`: the rows of `old`
    that are left out.
    """

    old: Plan
    new: Plan
    old_partitions: int
    partitions: int
    reset: frozenset[str]
    accept: frozenset[str]
    functions: tuple[str, ...] = ()
    purged: Purged = NOTHING

    @classmethod
    def of(
        cls, old: Plan, new: Plan, old_partitions: int, partitions: int, reset: frozenset[str], accept: frozenset[str],
        functions: tuple[str, ...] = (), purged: Purged = NOTHING,
    ) -> Carry:  # fmt: skip
        """Raises ConfigurationError if a store has to be rebuilt and is in neither, or cannot be kept."""
        carry = cls(old, new, old_partitions, partitions, reset, accept, functions, purged)
        assert carry._moves is not None
        return carry

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def _moves(self) -> list[Move]:
        return moves(self.old, self.new, self.reset, self.accept)

    @cached_property
    def _dropped(self) -> list[StoreInfo]:
        """The old stores that hold something back and are not moved."""
        moved = {(move.was.stage, move.root) for move in self._moves}
        holding = (one for one in stores_of(self.old) if not one.is_table and self.old.node(one.node).operation.waits)
        return [one for one in holding if (one.stage, store_root(one.prefix)) not in moved]

    @cached_property
    def _waiting(self) -> CarriedWaiting:
        return CarriedWaiting(self.old, self.new, self.old_partitions, self.partitions)

    @cached_property
    def _filled(self) -> Filled:
        return Filled(self.old, self.new, self.partitions, self._moves, self.functions)

    def told(self, stage: int, partition: int, kv: OrderedKV) -> Told:
        """What `common` needs to know about an old stage and partition, whose state is `kv`."""
        told = Told(stage, partition)
        for move in self._from(stage, partition):
            home, meta = move.home, kv.get(move.root + META)
            if meta is not None:
                told.metas[home] = meta
            if move.moving.counted is not None and self._counts(move):
                for to, key, value in self._moved(move, partition, kv, meta):
                    at = len(move.new_root)
                    one = move.moving.counted(meta, key[at : at + 1], key[at + 1 :], value)
                    sums = told.counts.get((home, to))
                    told.counts[home, to] = one if sums is None else tuple(map(sum, zip(sums, one, strict=True)))
            if self.purged.touches(stage, move.root) and not (partition and move.was.replicated):
                told.purged[move.was.name] = sum(1 for row in self._found(move, kv) if self._is_purged(move, *row[:2]))
        for store in self._dropped:
            held = open_view(self.old, store, kv).held if store.stage == stage else 0
            if held:
                told.held[store.name] = held
        self._waiting.tell(told, kv)
        for to_stage, to, waiting in self._filled.rows(stage, partition, kv, told.lost):
            told.filled[to_stage, to] = told.filled.get((to_stage, to), 0) + waiting.records
        return told

    def common(self, told: Iterable[Told]) -> Iterator[Carried]:
        """The rows that exist once per store and new partition. Raises ConfigurationError if records would be lost."""
        by_place = sorted(told, key=lambda one: (one.stage, one.partition))
        self._waiting.check(by_place)
        for move in self._moves:
            of = {one.partition: one for one in by_place if move.home in one.metas}
            for to in range(self.partitions) if of else ():
                ours = list(of.values()) if self._spreads(move) else [one for p, one in of.items() if p == to]
                if ours:
                    yield Carried(move.now.stage, to, move.new_root + META, self._meta(move, ours, to))
        for stage, partition, key, value in self._waiting.metas(by_place):
            yield Carried(stage, partition, key, value)

    def rows(self, stage: int, partition: int, kv: OrderedKV) -> Iterator[Carried]:
        """The other rows that come from an old stage and partition, whose state is `kv`."""
        for move in self._from(stage, partition):
            meta = kv.get(move.root + META)
            for to, key, value in self._moved(move, partition, kv, meta):
                yield Carried(move.now.stage, to, key, value)
        for row in self._waiting.rows(stage, partition, kv):
            yield Carried(*row)
        for number, (to_stage, to, one) in enumerate(self._filled.rows(stage, partition, kv, Metrics())):
            sequence = (number * len(self.old.stages) + stage) * self.old_partitions + partition
            yield Carried(to_stage, to, *waiting_row(one, sequence))

    def is_purged(self, stage: int, key: bytes) -> bool:
        """Whether a row of the map of a new stage would be one of those that are left out."""
        for move in self._moves:
            start = len(move.new_root)
            if move.now.stage == stage and key.startswith(move.new_root) and key[start : start + 1] != META:
                return self._is_purged(move, key[start : start + 1], key[start + 1 :])
        return False

    def _from(self, stage: int, partition: int) -> Sequence[Move]:
        """The moves that take rows from a stage and partition; replicated rows that move come from partition 0 only."""
        of_stage = (move for move in self._moves if move.was.stage == stage)
        return [m for m in of_stage if not (partition and m.was.replicated and self._spreads(m))]

    def _meta(self, move: Move, of: Sequence[Told], to: int) -> bytes:
        """The meta row of a new partition, merged from what belongs there `of` the old ones."""
        home, meta = move.home, of[0].metas[move.home]
        if self._counts(move):
            counts = [one.counts[home, to] for one in of if (home, to) in one.counts]
            meta = move.moving.merged([one.metas[home] for one in of], tuple(map(sum, zip(*counts, strict=True))))
        return move.moving.earlier(meta, move.earlier) if move.moving.earlier is not None else meta

    def _counts(self, move: Move) -> bool:
        """Whether a partition's rows differ from those before."""
        return move.recode is not None or self._spreads(move) or self.purged.touches(move.was.stage, move.root)

    def _is_purged(self, move: Move, letter: bytes, rest: bytes) -> bool:
        return self.purged.has(move.was.stage, move.root, move.moving.keys[letter](rest))

    def _spreads(self, move: Move) -> bool:
        return move.respread or self.partitions != self.old_partitions

    def _moved(
        self, move: Move, partition: int, kv: OrderedKV, meta: bytes | None
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """The rows, without the meta row, each with its new partition."""
        found, recode, moving = self._found(move, kv), move.recode, move.moving
        joined = self._spreads(move) and self.old_partitions > 1 and not move.was.replicated
        purges = self.purged.touches(move.was.stage, move.root)
        while rows := list(islice(found, _AT_ONCE)):
            kept: list[tuple[bytes, bytes, bytes]] = []
            for letter, rest, value in rows:
                if purges and self._is_purged(move, letter, rest):
                    continue
                if joined:
                    letter = moving.merged_letter(meta, letter, rest)
                if recode is not None:
                    assert moving.recoded is not None
                    value = moving.recoded(letter, value, recode)
                kept.append((letter, rest, value))
            for places, (letter, rest, value) in zip(self._places(move, partition, kept), kept, strict=True):
                for to in places:
                    yield to, move.new_root + letter + rest, value

    @staticmethod
    def _found(move: Move, kv: OrderedKV) -> Iterator[tuple[bytes, bytes, bytes]]:
        """The letter, the rest and the value of each row of an old store, without the meta row."""
        start = len(move.root)
        for key, value in kv.scan(move.root, prefix_end(move.root)):
            letter = key[start : start + 1]
            if letter != META:
                yield letter, key[start + 1 :], value

    def _places(
        self, move: Move, partition: int, rows: Sequence[tuple[bytes, bytes, bytes]]
    ) -> Iterable[Sequence[int]]:
        """The new partitions of each of the rows."""
        if not self._spreads(move):
            return [(partition,)] * len(rows)
        if move.now.replicated:
            return [range(self.partitions)] * len(rows)
        keys = []
        for letter, rest, _ in rows:
            keys.append(move.codec.first(move.moving.keys[letter](rest)))
        return [(to,) for to in partition_of(keys, self.partitions).tolist()]
