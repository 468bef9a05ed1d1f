"""The results of windows that a loop has found, as columns, and in the result table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Node
from vsc.runtime.operators.columns.flow import Flow, Old, taken
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.loop import TableLoop, columns_of, there
from vsc.runtime.operators.columns.moments import LAST, Give, turns
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.records import Int64s
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.values import arrow_type, to_array, to_values

__all__ = ["Sent", "WindowResults"]

Sent = tuple[int, bytes, int, int, Row | None, Row | None, bool, int]
"""A change: the record that made it, the group's encoded key, the bounds, the new row, the old one, whether that is
sure (else the result table says it, if there is one), the event time."""

_MILLISECOND = 1000
_TIMESTAMP = 1 << 63
_BOUNDS = 16


class WindowResults:
    """What a windowed aggregate gives in one batch. `old`: somebody asks for the rows before the changes.

    `space` takes the keys of the windows; `loop` puts the changes into the result table.
    """

    def __init__(self, node: Node, space: KeySpace, old: bool, give: Give, loop: TableLoop) -> None:
        self._schema, self._space, self._give, self._loop = node.schema, space, give, loop
        self._columns, self._bound = node.schema.key[:-2], arrow_type(node.schema.key[-1].type)
        self._codec = KeyCodec([c.type for c in self._columns])
        self.asked = old
        self.old_wanted = old and loop.put is None
        """The aggregate has to know the rows before the changes: there is no store that knows them."""
        self._gone: list[tuple[bytes, int]] = []

    def decode(self, kb: bytes) -> Row:
        """A group's key."""
        return self._codec.decode(kb)

    def rows(self, flow: Flow) -> Sequence[Row]:
        """The keys of the groups of a flow's records."""
        columns = [to_values(column, c.type) for column, c in zip(flow.keys, self._columns, strict=True)]
        return list(zip(*columns, strict=True)) if columns else [()] * len(flow)

    def forget(self, kb: bytes, record: int) -> None:
        """Takes the key of a window that no record behind this one can reach."""
        self._gone.append((kb, record))

    def flow(self, flow: Flow, sent: Sequence[Sent]) -> Flow:
        """The changes that were sent for the records of `flow`, as far as the result table takes them."""
        fields: Any = zip(*sent, strict=True) if sent else [()] * 8
        records, kbs, starts, ends, news, olds, sure, times = fields
        record = _numbers(records)
        bounds = np.stack([_numbers(starts), _numbers(ends)], axis=1) * _MILLISECOND
        changed = Flow(
            self._give(flow.at.take(record), turns(record)), self._space.encoded(_names(kbs, bounds)), self._space,
            _numbers(times), there(news), self._keys(flow, kbs, bounds), columns_of(news, self._schema.value),
            Old(there(olds), columns_of(olds, self._schema.value)) if self.asked else None,
        )  # fmt: skip
        if self._gone:
            names, behind = zip(*self._gone, strict=True)
            at = flow.at.take(_numbers(behind))
            self._loop.forget(names, self._give(at, np.full(len(at), LAST)))
        return self._loop.stored(changed, ~np.array(sure, dtype=np.bool_))

    def _keys(self, flow: Flow, kbs: Sequence[bytes], bounds: Int64s) -> tuple[pa.Array, ...]:
        """The key columns: those of a record of the group, decoded where the batch has none."""
        keys = flow.space.keys
        place = {keys[number]: row for row, number in enumerate(flow.key.tolist())}
        columns = flow.keys
        if decoded := [kb for kb in dict.fromkeys(kbs) if kb not in place]:
            place.update((kb, len(flow) + number) for number, kb in enumerate(decoded))
            values = zip(*map(self.decode, decoded), strict=True)
            added = [to_array(list(v), c.type) for v, c in zip(values, self._columns, strict=True)]
            columns = tuple(pa.concat_arrays([a, b]) for a, b in zip(columns, added, strict=True))
        rows = _numbers([place[kb] for kb in kbs])
        start, end = (pa.array(np.ascontiguousarray(bounds[:, i])).view(self._bound) for i in (0, 1))
        return (*taken(columns, rows), start, end)


def _numbers(values: Sequence[int]) -> Int64s:
    return np.array(values, dtype=np.int64)


def _names(kbs: Sequence[bytes], bounds: Int64s) -> list[bytes]:
    """The encoded keys of windows, as `bounds_key` makes them."""
    packed = (bounds.astype(np.uint64) + np.uint64(_TIMESTAMP)).astype(">u8").tobytes()
    return [kb + packed[at : at + _BOUNDS] for kb, at in zip(kbs, range(0, len(packed), _BOUNDS), strict=True)]
