"""The rows of a source that never become records: always counted, and kept as dead letters if a sink takes them.

The counterpart of `dead_letters.Losses` for rows, which may have no key and no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Node
from vsc.runtime.metrics import Dropped, Metrics, group_of
from vsc.runtime.operators.dead_letters import Letters, Lost, Message, json_rows
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.records import Int64s, Mask, Order

__all__ = ["SourceLosses"]


class SourceLosses:
    """The lost ones among `rows` of source `node`."""

    def __init__(self, letters: Letters, node: Node, rows: SourceRows) -> None:
        self._node, self._offsets = node, rows.offsets
        self._takers = letters.takers(Dropped, node.name)
        self.metrics = Metrics()
        self.found: list[Lost] = []

    def lose(
        self,
        why: Dropped,
        rows: SourceRows,
        bad: Mask,
        message: Message | None = None,
        times: Int64s | None = None,
    ) -> None:
        """Notes the `bad` rows as lost. `message` has details by the row's place; `times` are the times of all rows."""
        places = np.flatnonzero(bad).tolist()
        self.metrics.count(self._node.name, group_of(why), why, len(places))
        if not self._takers or not places:
            return
        none: list[Any] = [None] * len(places)
        key = value = raw = none
        if why is Dropped.UNREADABLE:
            if rows.broken is not None:
                raw = [rows.broken(place)[1] for place in places]
        else:
            key, value = self._shown(rows, places)
        time = none if times is None else times[bad].tolist()
        told = none if message is None else [message(place) for place in places]
        cause = np.searchsorted(self._offsets, rows.offsets[bad])
        name = self._node.name
        self.found.append(Lost(self._takers, name, why.value, cause, True, name, time, key, value, told, raw))

    def joined(self, later: Sequence[Lost], order: Order) -> tuple[list[Lost], Order]:
        """All losses of the rows and of the records made from them, whose order is `order`; and the losses' order.

        Lost rows may have no time, so all losses are in the order of the source partition alone.
        """
        none = np.zeros(len(self._offsets), dtype=np.int64)
        whole = Order(none, none.astype(np.int32), self._offsets, none.reshape(-1, 1)[:, :0])
        found = [replace(lost, cause=np.searchsorted(self._offsets, order.offset[lost.cause])) for lost in later]
        return [*self.found, *found], whole

    def _shown(self, rows: SourceRows, places: list[int]) -> tuple[list[str | None], list[str | None]]:
        """Keys and values; null for a row without value."""
        schema, names = self._node.schema, [c.name for c in self._node.source.columns]
        chosen = pa.array(places, pa.int64())
        keys, values = (
            [rows.columns[names.index(c.name)].take(chosen) for c in part] for part in (schema.key, schema.value)
        )
        none: list[str | None] = [None] * len(places)
        key = json_rows(schema.key, keys, len(places)) if schema.key else none
        value = json_rows(schema.value, values, len(places))
        if rows.deleted is not None:
            gone = rows.deleted[places].tolist()
            value = [None if deleted else text for text, deleted in zip(value, gone, strict=True)]
        return key, value
