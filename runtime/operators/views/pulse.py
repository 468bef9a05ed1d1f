"""What a store tells of itself at the end of every epoch: its clock, and how much waits in it. Costs one read."""

from __future__ import annotations

from typing import NamedTuple

from vsc.plan.nodes import Aggregate, Plan
from vsc.runtime.operators.aggregate.state import AggregateState
from vsc.runtime.operators.views.catalog import StoreInfo
from vsc.runtime.state.grace_buffer import TimeOrderedBuffer
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.suppressed import Suppressed
from vsc.runtime.state.versioned_layout import RowKeys, decode_meta

__all__ = ["Pulse", "pulse"]


class Pulse(NamedTuple):
    """`stream_time` in ms, None without a clock or before the first record; `held`: what waits for it to go on."""

    stream_time: int | None
    held: int


def pulse(plan: Plan, store: StoreInfo, kv: OrderedKV) -> Pulse:
    """The pulse of a store in the map of its stage and partition."""
    match store.kind:
        case "versioned":
            data = kv.get(RowKeys(store.prefix).meta)
            return Pulse(_time(-1 if data is None else decode_meta(data).observed), 0)
        case "windows" | "sessions":
            state = AggregateState(kv, store.prefix, False)
            operation = plan.node(store.node).operation
            final = isinstance(operation, Aggregate) and operation.final
            return Pulse(_time(state.stream_time), state.open if final else 0)
        case "waiting":
            buffer = TimeOrderedBuffer(kv, store.prefix)
            return Pulse(_time(buffer.stream_time), len(buffer))
        case "suppressed":
            held = Suppressed(kv, store.prefix)
            return Pulse(_time(held.stream_time), held.count)
        case _:
            return Pulse(None, 0)


def _time(ms: int) -> int | None:
    return None if ms < 0 else ms
