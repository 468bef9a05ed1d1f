"""The buffer of a join with grace: order, clock, restarts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsc.runtime.errors import StateError
from vsc.runtime.state.grace_buffer import Buffered, TimeOrderedBuffer
from vsc.runtime.state.kv import MemoryKV, OverlayKV, apply_changelog
from vsc.runtime.state.suppressed import Suppressed, SuppressedRow

KEYS = (b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"a\0\xff", b"a\x01", b"ab", b"\xff")

record = st.tuples(st.integers(0, 6), st.sampled_from(KEYS))
operations = st.lists(
    st.one_of(record, st.lists(record, max_size=5), st.integers(-1, 7), st.just("restart")), max_size=25
)


def add(buffer: TimeOrderedBuffer, time: int, key: bytes, payload: bytes) -> None:
    buffer.pass_through(1, time, [(0, Buffered(time, key, payload))])


@settings(max_examples=200, deadline=None)
@given(ops=operations)
def test_records_come_out_by_time_key_and_arrival(ops: list[object]) -> None:
    base = MemoryKV()
    overlay = OverlayKV(base)
    buffer = TimeOrderedBuffer(overlay, b"p")
    waiting: list[tuple[int, bytes, int]] = []
    arrived, clock = 0, -1
    for op in ops:
        if op == "restart":
            apply_changelog(base, overlay.changelog())
            overlay = OverlayKV(base)
            buffer = TimeOrderedBuffer(overlay, b"p")
        elif isinstance(op, int):
            due = sorted(one for one in waiting if one[0] <= op)
            waiting = [one for one in waiting if one[0] > op]
            assert list(buffer.pop_until(op)) == [(time, key, b"%d" % at) for time, key, at in due]
        else:
            new = op if isinstance(op, list) else [op]
            rows = [(time, key, arrived + at) for at, (time, key) in enumerate(new)]
            if isinstance(op, list):
                passed = [Buffered(time, key, b"%d" % at) for time, key, at in rows]
                buffer.pass_through(len(rows), max((row[0] for row in rows), default=-1), list(enumerate(passed)))
            else:
                add(buffer, rows[0][0], rows[0][1], b"%d" % rows[0][2])
            waiting += rows
            arrived += len(rows)
            clock = max([clock, *(row[0] for row in rows)])
        assert (len(buffer), buffer.stream_time) == (len(waiting), clock)
    assert list(buffer.scan()) == [(time, key, b"%d" % at) for time, key, at in sorted(waiting)]


def test_prefixes_do_not_mix() -> None:
    kv = MemoryKV()
    one, other = TimeOrderedBuffer(kv, b"a"), TimeOrderedBuffer(kv, b"ab")
    add(one, 5, b"k", b"1")
    add(other, 3, b"k", b"2")
    assert list(one.pop_until(9)) == [(5, b"k", b"1")]
    assert list(other.pop_until(2**63 - 1)) == [(3, b"k", b"2")]
    assert (one.stream_time, other.stream_time) == (5, 3)


def test_bytes_stay_the_same() -> None:
    kv = MemoryKV()
    add(TimeOrderedBuffer(kv, b"p"), 258, b"a\0b", b"payload")
    assert {key.hex(): value.hex() for key, value in kv.scan(b"", None)} == {
        "00017062" + "0000000000000102" + "6100ff62" + "0000" + "0000000000000000": b"payload".hex(),
        "0001706d": "56535442" + "01000000" + "0201000000000000" + "0100000000000000" + "0100000000000000",
    }


def test_foreign_bytes_are_refused() -> None:
    kv = MemoryKV()
    kv.write([(b"\0\x01pm", b"VSTS\x01\0")])
    with pytest.raises(StateError, match="not the buffer of a join with grace of format version 1"):
        TimeOrderedBuffer(kv, b"p")


def test_a_record_behind_what_was_taken_out_is_found() -> None:
    buffer = TimeOrderedBuffer(MemoryKV(), b"p")
    add(buffer, 9, b"k", b"late")
    assert list(buffer.pop_until(5)) == []
    add(buffer, 2, b"k", b"early")
    assert list(buffer.pop_until(3)) == [(2, b"k", b"early")]
    assert (len(buffer), buffer.stream_time) == (1, 9)


class Visited(dict[bytes, bytes]):
    """Counts the look-ups of scans."""

    looked_at = 0

    def get(self, key: bytes, default: Any = None) -> Any:
        self.looked_at += 1
        return super().get(key, default)


class Own(MemoryKV):
    """The map of an overlay's own rows."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = Visited()

    def get(self, key: bytes) -> bytes | None:
        return dict.get(self._rows, key)


class Counting(OverlayKV):
    """Counts the keys of its own that scans come by."""

    def discard(self) -> None:
        super().discard()
        self._own = Own()

    @property
    def looked_at(self) -> int:
        assert isinstance(self._own.rows, Visited)
        return self._own.rows.looked_at


def test_what_has_gone_out_is_not_looked_at_again() -> None:
    kv, count = Counting(MemoryKV()), 500
    buffer = TimeOrderedBuffer(kv, b"p")
    for time in range(count):
        add(buffer, time, b"k", b"v")
        assert len(list(buffer.pop_until(time - 20))) == (time >= 20)
    assert kv.looked_at < 4 * count


def test_what_a_suppress_has_sent_is_not_looked_at_again() -> None:
    kv, count = Counting(MemoryKV()), 500
    held = Suppressed(kv, b"p")
    for time in range(count):
        held.replace([], [SuppressedRow(time, b"%d" % time, b"v", None, time)], time)
        due = list(held.until(time - 20))
        assert len(due) == (time >= 20)
        held.replace(due, [], time)
        held.skip(time - 20)
    assert kv.looked_at < 4 * count


def test_a_scan_does_not_come_by_what_was_deleted_in_the_overlay() -> None:
    kv = Counting(MemoryKV())
    rows = [(b"%d" % number, b"v") for number in range(100)]
    kv.write(rows)
    kv.write(rows[:1], [key for key, _ in rows])
    assert list(kv.scan(b"", None)) == rows[:1]
    assert kv.looked_at == 1
