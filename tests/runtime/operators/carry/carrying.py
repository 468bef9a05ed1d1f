"""A topology that is changed in the middle of its input, in one process."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle import Stores, by_key, chunks
from tests.oracle.epochs import EpochRow
from tests.oracle.playing import shown_records
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.carry import Carry, Purged
from vsc.runtime.operators.carry.purged import NOTHING
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.views import Question
from vsc.runtime.operators.views.catalog import open_view, stores_of

__all__ = ["SENT", "Changed", "carried", "changed", "compiled", "content", "epoch", "run"]

COLUMNS = {
    "s": ("k", "v", "at", "z"),
    "o": ("k", "x", "at"),
    "t": ("k", "w", "at", "z"),
    "p": ("k", "w", "at", "z"),
    "g": ("k", "name", "at"),
}
"""The columns of the rows of each source, whatever it declares."""

SENT = dict[str, dict[Any, list[Any]]]
"""By node and key what came out: event time and value, or None."""


def compiled(text: str) -> Plan:
    return compile_topology(text, path="t.vdsl", variables={})


def epoch(plan: Plan, rows: Iterable[tuple[Any, ...]], start: int = 0) -> list[EpochRow]:
    """Rows, each a source and its columns; the one called `at` is the event time."""
    found = []
    for offset, (source, *values) in enumerate(rows, start):
        if any(node.name == source for node in plan.sources):
            row = dict(zip(COLUMNS[source], values, strict=False))
            found.append(EpochRow(source, "f", offset, row, row["at"]))
    return found


def run(
    plan: Plan, epochs: Sequence[Sequence[EpochRow]], stores: Stores, partitions: int = 1, drain: bool = False,
    later_stage: type[LaterStage] = LaterStage,
) -> SENT:  # fmt: skip
    """What comes out of all nodes in the last of the epochs, and behind it."""
    shown = [node.name for node in plan.nodes if node.part_of is None]
    runtime = LocalRuntime(plan, stores, shown, partitions, RunOptions(on_error="drop"), later_stage, stores.starts)
    sent: dict[str, list[Any]] = {}
    for rows in epochs:
        sent = {name: shown_records(batch) for name, batch in runtime.process(chunks(plan, rows)).items()}
    if drain:
        for name, batch in runtime.drain().items():
            sent[name] = sent.get(name, []) + shown_records(batch)
    stores.starts = runtime.starts
    return {name: by_key(records) for name, records in sent.items()}


def carried(
    old: Plan, new: Plan, stores: Stores, before: int = 1, after: int = 1,
    reset: Iterable[str] = (), accept: Iterable[str] = (), left_out: Purged = NOTHING,
) -> Stores:  # fmt: skip
    """The state of the new plan, made of that of the old one."""
    whole = Carry.of(old, new, before, after, frozenset(reset), frozenset(accept), purged=left_out)
    carry = pickle.loads(pickle.dumps(whole))
    places = [(stage.id, partition) for stage in old.stages[1:] for partition in range(before)]
    told = [pickle.loads(pickle.dumps(carry.told(*place, stores(*place)))) for place in places]
    rows = [*carry.common(told), *(row for place in places for row in carry.rows(*place, stores(*place)))]
    assert len({row[:3] for row in rows}) == len(rows), "a row comes twice"
    found = Stores()
    found.starts = {name: clock for name, clock in stores.starts.items() if name in {node.name for node in new.sources}}
    for stage, partition, key, value in rows:
        assert 0 < stage < len(new.stages) and 0 <= partition < after
        found(stage, partition).write([(key, value)])
    return found


def content(plan: Plan, stores: Stores, partitions: int) -> dict[str, Any]:
    """What lies in the stores, whatever the partitions."""
    found: dict[str, Any] = defaultdict(list)
    for store in stores_of(plan):
        for partition in range(1 if store.replicated else partitions):
            view = open_view(plan, store, stores(store.stage, partition), stores.starts)
            found[f"{store.name} in {store.stage}"] += [
                (str(e.status), e.encoded, repr(e.value), e.extra) for e in view.answer(Question(history=True))
            ]
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


@dataclass(frozen=True)
class Changed:
    """What came out of the second half under the changed text, and what would have if all had been read under it."""

    sent: SENT
    whole: SENT
    kept: dict[str, Any]
    whole_kept: dict[str, Any]


def changed(
    old_text: str, new_text: str, first: Sequence[tuple[Any, ...]], second: Sequence[tuple[Any, ...]],
    before: int = 1, after: int = 1, reset: Iterable[str] = (), accept: Iterable[str] = (), drain: bool = True,
    later_stage: type[LaterStage] = LaterStage,
) -> Changed:  # fmt: skip
    """The first rows under the old text, the second ones under the new one."""
    old, new = compiled(old_text), compiled(new_text)
    stores = Stores()
    run(old, [epoch(old, first)], stores, before)
    state = carried(old, new, stores, before, after, reset, accept)
    later = epoch(new, second, len(first))
    sent = run(new, [later], state, after, drain, later_stage)
    all_stores = Stores()
    whole = run(new, [epoch(new, first), later], all_stores, after, drain)
    return Changed(sent, whole, content(new, state, after), content(new, all_stores, after))
