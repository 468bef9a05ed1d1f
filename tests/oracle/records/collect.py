"""Collects the records of one node that a stage hands out, and makes a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from vsc.plan.nodes import Column, Schema
from vsc.runtime.records import Batch, Order
from vsc.runtime.values import to_array

__all__ = ["Collector"]


class Collector:
    """A consumer that keeps what it is given. Numbers the records of one cause from 1, over all nodes of the stage.

    `moved`: the records have got another key in the stage.
    """

    __slots__ = ("_causes", "_context", "_counters", "_empty", "_keys", "_moved", "_schema", "_times", "_values")

    def __init__(self, schema: Schema, context: Context, moved: bool = False) -> None:
        self._schema = schema
        self._context = context
        self._moved = moved
        self._empty: dict[int, Batch] = {}
        self._reset()

    def _reset(self) -> None:
        self._causes: list[int] = []
        self._counters: list[int] = []
        self._keys: list[Row] = []
        self._values: list[Row | None] = []
        self._times: list[int] = []

    def stream(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        context = self._context
        context.counter += 1
        self._causes.append(context.cause)
        self._counters.append(context.counter)
        self._keys.append(key)
        self._values.append(value)
        self._times.append(time)

    def table(self, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        self.stream(key, new, time)

    def drain(self) -> Batch:
        """The collected records, in the order in which they came; the collector is empty afterwards."""
        order, origins = self._context.order, self._context.origins
        if not self._causes:
            return self._nothing(order.depth + 1)
        causes = np.array(self._causes, dtype=np.int64)
        values = self._values
        absent = (None,) * len(self._schema.value)
        batch = Batch(
            self._schema,
            origins,
            order.take(causes).extended(np.array(self._counters, dtype=np.int64), self._moved),
            np.array(self._times, dtype=np.int64),
            np.fromiter((v is not None for v in values), dtype=np.bool_, count=len(values)),
            _arrays(list(zip(*self._keys, strict=True)), self._schema.key),
            _arrays(list(zip(*(absent if v is None else v for v in values), strict=True)), self._schema.value),
        )
        self._reset()
        return batch

    def _nothing(self, depth: int) -> Batch:
        """The batch without records: most nodes give nothing for most of the small batches of a test driver."""
        if depth not in self._empty:
            keys, values = ([()] * len(c) for c in (self._schema.key, self._schema.value))
            none = np.zeros(0, dtype=np.int64)
            self._empty[depth] = Batch(
                self._schema, (), Order.empty(depth), none, none.astype(np.bool_),
                _arrays(keys, self._schema.key), _arrays(values, self._schema.value),
            )  # fmt: skip
        return self._empty[depth]


def _arrays(values: Sequence[Sequence[object]], columns: Sequence[Column]) -> tuple[Any, ...]:
    return tuple(to_array(v, c.type) for v, c in zip(values, columns, strict=True))
