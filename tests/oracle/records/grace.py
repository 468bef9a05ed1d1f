"""The grace buffer in front of a stream-table join (KIP-923): a record waits until stream time is `grace` past it.

Records come out in the order of (event time, encoded key, arrival), after each record that was taken in. One that is
too late to wait is joined at once, and moves nothing. The buffer's clock is the highest time that it has taken in; it
is kept with the buffer, so a restart changes nothing (D11). What comes out is caused by the record that moved the
clock: it carries that one's order, and its own time.
"""

from __future__ import annotations

from tests.oracle.records.context import Context
from tests.oracle.records.stream_table_join import StreamTableJoin
from tests.oracle.records.tables import RecordBuffer
from vsc.plan.nodes import Schema
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.rows import RowCodec

__all__ = ["GraceBuffer"]

_END_OF_TIME = 2**63 - 1


class GraceBuffer:
    """Holds the stream records of one join. `schema` is the stream's."""

    __slots__ = ("_buffer", "_context", "_grace", "_join", "_keys", "_name", "_rows")

    def __init__(
        self, name: str, grace: int, schema: Schema, buffer: RecordBuffer, join: StreamTableJoin, context: Context
    ) -> None:
        self._name = name
        self._grace = grace
        self._keys = KeyCodec([c.type for c in schema.key])
        self._rows = RowCodec([c.type for c in schema.value])
        self._buffer = buffer
        self._join = join
        self._context = context

    def __len__(self) -> int:
        return len(self._buffer)

    def process(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record; one without value is dropped, and moves nothing (D14).

        Nor does one without key, which is joined at once (D26).
        """
        if not self._join.takes(key, value):
            return
        assert value is not None
        if None in key or self._buffer.stream_time - self._grace > time:
            self._join.join(kb, key, value, time)
        else:
            self._buffer.add(time, kb, self._rows.encode(value))
            self.flush(self._buffer.stream_time - self._grace)

    def flush(self, until: int) -> None:
        """Joins all that waits with an event time up to `until`."""
        for waiting in self._buffer.pop_until(until):
            self.release(waiting)

    def take_all(self) -> list[tuple[int, bytes, bytes]]:
        """Removes all that waits: (event time, encoded key, payload), in the order in which it would come out.

        The buffer's clock stays where the records have moved it.
        """
        return list(self._buffer.pop_until(_END_OF_TIME))

    def release(self, waiting: tuple[int, bytes, bytes]) -> None:
        """Joins one record that has waited."""
        time, kb, payload = waiting
        self._join.join(kb, self._keys.decode(kb), self._rows.decode(payload), time)
