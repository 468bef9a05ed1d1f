"""What a table whose rows expire, or are forgotten, keeps beside them: when each is, by time and key; a view of it."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.plan.nodes import Column, Node, Operation, Plan
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Contents, Entry, SideStore, clock
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.suppressed import FAR, MOVING, Suppressed

__all__ = ["EXPIRY", "SUFFIX"]

SUFFIX = b"x"


def _after(node: Node) -> int:
    """How far behind the clock, in ms, rows go."""
    return node.expire or node.forget or 0


class _View:
    """The keys of the rows; `due`: the stream time at which the row goes. Nothing is held back: the table has it."""

    held = 0

    def __init__(self, node: Node, operation: Operation, info: StoreInfo, kv: OrderedKV) -> None:
        self._rows, self._after = Suppressed(kv, info.prefix), _after(node)
        self._keys = KeyCodec([c.type for c in info.key])

    @property
    def stream_time(self) -> int | None:
        return clock(self._rows.stream_time)

    def rows(self) -> int:
        return self._rows.count

    def answer(self, question: Question) -> Iterator[Entry]:
        for row in self._rows.all():
            if question.wants(row.key):
                yield Entry(
                    Status.ROW, row.key, self._keys.decode(row.key), (), (row.timestamp, row.place + self._after)
                )


def _contents(plan: Plan, node: Node, operation: Operation) -> Contents:
    return Contents(("timestamp", "due"), node.schema.key, (), node.name)


def _encoded(plan: Plan, node: Node, operation: Operation) -> tuple[Column, ...]:
    return ()


def _due(node: Node, operation: Operation, kv: OrderedKV, prefix: bytes) -> int | None:
    first = next(Suppressed(kv, prefix).until(FAR), None)
    return None if first is None else first.place + _after(node)


EXPIRY = SideStore(SUFFIX, _contents, _View, lambda _: MOVING, _encoded, _due)
