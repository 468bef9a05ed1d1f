"""Which old store becomes which new one, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vsc.changes import Change, Verdict, compare, decision
from vsc.changes.nodes import Nodes, shortened
from vsc.plan.nodes import Column, Correct, Plan, Stage
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.carry.columns import Columns, Unfitting
from vsc.runtime.operators.operator import operator_of
from vsc.runtime.operators.partition import partition_codecs
from vsc.runtime.operators.views.catalog import left_behind, side_store_of, stores_of
from vsc.runtime.operators.views.question import StoreInfo
from vsc.runtime.state import versioned_layout
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import store_root
from vsc.runtime.state.moving import Moving, Recode
from vsc.runtime.state.timed_rows import TimestampedStore

__all__ = ["Move", "Told", "moves", "nearest"]

_OF_TABLES = {"versioned": versioned_layout.MOVING, "unversioned": TimestampedStore.MOVING}


Home = tuple[int, bytes]
"""A store of the new plan: its stage and its root."""
Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """The move of an old store to a new one. `recode`: its rows get other columns.

    `codec` encodes the columns that decide a row's partition. `respread`: rows may move to other partitions even if the
    number of partitions stays the same. `earlier`: by how many ms the stream time goes back.
    """

    was: StoreInfo
    now: StoreInfo
    root: bytes
    new_root: bytes
    moving: Moving
    codec: KeyCodec
    recode: Recode | None
    respread: bool
    earlier: int = 0

    @property
    def home(self) -> Home:
        """The new store."""
        return self.now.stage, self.new_root


@dataclass(frozen=True, slots=True)
class Told:
    """What one old stage and partition reports, for the rows that exist once per new partition.

    By new store: the meta row (`metas`), and by new partition the counts of its rows (`counts`).

    `waiting`: by new stage and partition, the next sequence number and how many records wait, `steps` how many of them
    are steps of the input's clock. `homeless`: by node name, the records that wait for a node that no longer exists.
    `filled`: how many records made from tables' rows go to a new stage and partition; `lost`: which of them were
    dropped. `held`: by old store, how many rows that it holds back are dropped; `purged`: how many are left out.
    """

    stage: int
    partition: int
    metas: dict[Home, bytes] = field(default_factory=dict)
    counts: dict[tuple[Home, int], Counts] = field(default_factory=dict)
    waiting: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    steps: dict[tuple[int, int], int] = field(default_factory=dict)
    homeless: dict[str, int] = field(default_factory=dict)
    filled: dict[tuple[int, int], int] = field(default_factory=dict)
    lost: Metrics = field(default_factory=Metrics)
    held: dict[str, int] = field(default_factory=dict)
    purged: dict[str, int] = field(default_factory=dict)


def moves(old: Plan, new: Plan, reset: frozenset[str], accept: frozenset[str]) -> list[Move]:
    """All moves. Raises ConfigurationError for a store that must be rebuilt and is in neither `reset` nor `accept`."""
    nodes, verdicts = Nodes(old, new), {c.name: c for c in compare(old, new) if c.kind == "store"}
    _check_names(verdicts, reset, accept)
    _check_together(new, verdicts, reset, accept)
    before: dict[tuple[str, bool], list[StoreInfo]] = {}
    for store in stores_of(old):
        before.setdefault((store.node, store.is_table), []).append(store)
    found = []
    for store in stores_of(new):
        node = nodes.pairs.get(store.node)
        was = before.get((node.name, store.is_table)) if node is not None else None
        if was and verdicts[store.name].verdict is not Verdict.NEW and store.name not in reset:
            near = nearest(old, new.stages[store.stage], nodes)
            found.append(_move(old, new, min(was, key=lambda one: near.index(one.stage)), store))
    return [*found, *_prompt(old, new, nodes)]


def _prompt(old: Plan, new: Plan, nodes: Nodes) -> Iterator[Move]:
    """What waits at joins that no longer have a `grace`: they join it at once."""
    for store in stores_of(old):
        node = nodes.successors.get(store.node)
        if store.is_table or node is None or node.operation.keeps is not None:
            continue
        homes = [stage for stage in new.stages[1:] if node.name in stage.nodes]
        if homes and operator_of(node.operation).left is not None:
            yield _move(old, new, store, left_behind(new, homes[0], node))


def nearest(old: Plan, stage: Stage, nodes: Nodes) -> list[int]:
    """The numbers of the old stages, first those with the most nodes of a new stage.

    If possible, a stage takes everything over from one old stage: stages are not all equally far.
    """
    names = {nodes.pairs[name].name for name in stage.nodes if name in nodes.pairs}
    later = old.stages[1:]
    return [one.id for one in sorted(later, key=lambda one: (-len(names.intersection(one.nodes)), one.id))]


def _move(old: Plan, new: Plan, was: StoreInfo, now: StoreInfo) -> Move:
    try:
        columns = _columns(old, new, was, now)
    except Unfitting as error:
        raise ConfigurationError(f"store '{now.name}' cannot be kept: {error}", f"--reset {now.name}") from error
    moving = _moving(new, now)
    codec, before = partition_codecs(new)[now.partitioned], partition_codecs(old)[was.partitioned]
    return Move(
        was, now, store_root(was.prefix), store_root(now.prefix), moving, codec,
        None if columns.same else columns.recode,
        codec.types != before.types or was.replicated != now.replicated, _shortened(old, new, was, now),
    )  # fmt: skip


def _shortened(old: Plan, new: Plan, was: StoreInfo, now: StoreInfo) -> int:
    """By how many ms rows come out sooner: what is due is looked for only where it has not been looked yet."""
    return 0 if now.is_table else shortened(old.node(was.node), new.node(now.node))


def _columns(old: Plan, new: Plan, was: StoreInfo, now: StoreInfo) -> Columns:
    if was.kind != now.kind:
        raise Unfitting(f"it was {was.kind}, is {now.kind}")
    if [c.type for c in was.key] != [c.type for c in now.key]:
        raise Unfitting(f"its key was ({_shown(was.key)}), is ({_shown(now.key)})")
    before, after = _encoded(old, was), _encoded(new, now)
    held, holds = (getattr(plan.node(one.node).operation, "until", None) for plan, one in ((old, was), (new, now)))
    if not now.is_table and held != holds:
        raise Unfitting("it holds its rows until something else happens")
    names = [plan.node(one.node).schema.key for plan, one in ((old, was), (new, now))]
    if isinstance(new.node(now.node).operation, Correct) and names[0] != names[1]:
        raise Unfitting(f"the key of its results was ({_shown(names[0])}), is ({_shown(names[1])})")
    if before != after and _moving(new, now).recoded is None:
        raise Unfitting("it computes something else")
    return Columns(before, after)


def _shown(columns: Sequence[Column]) -> str:
    return ", ".join(f"{c.name} {c.type}" for c in columns)


def _moving(plan: Plan, store: StoreInfo) -> Moving:
    if store.is_table:
        return _OF_TABLES[store.kind]
    node = plan.node(store.node)
    return side_store_of(node).moving(node.operation)


def _encoded(plan: Plan, store: StoreInfo) -> tuple[Column, ...]:
    """The columns that the rows of a store are encoded with."""
    node = plan.node(store.node)
    return node.schema.value if store.is_table else side_store_of(node).encoded(plan, node, node.operation)


def _check_names(verdicts: dict[str, Change], reset: frozenset[str], accept: frozenset[str]) -> None:
    rebuilt = {name for name, change in verdicts.items() if change.verdict is Verdict.REBUILD}
    for name in sorted(reset | accept):
        if name not in verdicts or verdicts[name].verdict is Verdict.DROPPED:
            there = ", ".join(sorted(n for n, c in verdicts.items() if c.verdict is not Verdict.DROPPED))
            raise ConfigurationError(f"there is no store '{name}'", f"there are {there}" if there else None)
        if name not in rebuilt:
            what = verdicts[name].verdict.value
            raise ConfigurationError(f"store '{name}' does not need it: its verdict is {what}", "leave it out")
        if name in accept and (verdicts[name].fresh or verdicts[name].gone):
            why = "new" if verdicts[name].fresh else "gone"
            raise ConfigurationError(f"store '{name}' cannot be kept: it is {why}", f"--reset {name}")
    if both := sorted(reset & accept):
        raise ConfigurationError(f"store '{both[0]}' cannot be both reset and accepted", "choose one")
    if left := sorted(rebuilt - reset - accept):
        why = "; ".join(f"{name}: {verdicts[name].reason}" for name in left)
        raise ConfigurationError(
            f"decide what becomes of these stores: {why}", decision([verdicts[name] for name in left])
        )


def _check_together(new: Plan, verdicts: dict[str, Change], reset: frozenset[str], accept: frozenset[str]) -> None:
    """State computed from a table reflects the table's rows: it cannot be kept if these are gone."""
    of_node: dict[str, list[StoreInfo]] = {}
    for store in stores_of(new):
        of_node.setdefault(store.node, []).append(store)

    def empty(name: str) -> str | None:
        """The first store of a node, or of the tables that it is computed from, that begins empty."""
        own = of_node.get(name, [])
        for store in own:
            if store.name in reset or verdicts[store.name].verdict is Verdict.NEW:
                return store.name
        if any(store.is_table for store in own):
            return None
        return behind(name)

    def behind(name: str) -> str | None:
        tables = (
            n for n in map(new.node, new.node(name).inputs) if n.kind == "table" or n.part_of == new.node(name).owner
        )
        return next(filter(None, map(empty, (table.name for table in tables))), None)

    for name, stores in of_node.items():
        for store in stores:
            if store.name in accept:
                own = next((one.name for one in stores if one.name in reset), None)
                gone = own or behind(name)
                if gone is not None:
                    raise ConfigurationError(
                        f"store '{store.name}' cannot be kept: it knows rows of '{gone}', which begins empty",
                        f"--reset {store.name}",
                    )
