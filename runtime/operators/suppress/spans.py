"""Computes how `suppress` holds the keys of one batch, in spans: array expressions over its changes, without rows.

A *span* begins with the change that makes a key held (or before the batch). It ends where the clock is `wait` past the
span's place in time, and includes the key's changes up to there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s, Mask

__all__ = ["Spans"]


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans: those from before the batch, in the given order, then the others. Changes are identified by place.

    `first` is the change that begins the span (-1: before the batch), `last` its last change (-1: none in the batch),
    `end` the event at which it comes out, or a later one if it stays held (see `Timing`).
    """

    key: Int64s
    place: Int64s
    first: Int64s
    last: Int64s
    end: Int64s

    @staticmethod
    def of(key: Int64s, place: Int64s, timing: Timing, wait: int, held: Int64s, held_place: Int64s) -> Spans:
        """The spans of changes of these keys; `place` is the place in time of a span that the change would begin.

        `timing` is the clock through the changes; `held` are the numbers of the keys that are held before the batch.
        """
        changes, before = len(key), len(held)
        keys = max((int(part.max()) + 1 for part in (key, held) if len(part)), default=0)
        held_end = timing.passes(held_place + wait)
        # Of a held key, the last change that still belongs to the span from before the batch; -1 if it is not held.
        until = np.full(keys, -1, dtype=np.int64)
        until[held] = timing.seen(held_end, held_place + wait) - 1
        # Each change as if it began a span: where that would end, and the last change that it would include.
        ends = timing.passes(place + wait, np.arange(changes))
        lasts = timing.seen(ends, place + wait) - 1

        # By key, then by arrival. A change joins the old span up to `until`, which is a prefix of its key's changes: so
        # the first one behind it begins a span for certain. Which later ones do depends on the spans before them.
        by_key = Segments(key, keys)
        event, group = by_key.order, by_key.group
        joins = event <= until[group]
        begins = ~joins & (by_key.firsts | np.append(False, joins[:-1]))
        begins = _chased(begins, group * (changes + 1) + event, group * (changes + 1) + lasts[event], group)

        # Behind the old spans, spans are numbered in the order of their beginnings. A change belongs to the last span
        # that began up to it, which is one of its own key: the first change of each key joins or begins.
        began = np.zeros(keys, dtype=np.int64)
        began[held] = np.arange(before)
        span = np.where(joins, began[group], before + np.cumsum(begins) - 1)
        first = event[begins]
        last = np.full(before + len(first), -1, dtype=np.int64)
        last[span] = event  # for repeated places, the last assignment counts
        return Spans(
            np.concatenate([held, key[first]]), np.concatenate([held_place, place[first]]),
            np.concatenate([np.full(before, -1, dtype=np.int64), first]), last, np.concatenate([held_end, ends[first]]),
        )  # fmt: skip


def _chased(begins: Mask, at: Int64s, end: Int64s, group: Int64s) -> Mask:
    """Where spans begin, given where each group's first one does: each begins after the end of the previous one.

    `at` and `end` are the places and ends of changes, sorted, with their group in front.
    """
    # Of every change, the one that would begin the next span. It lies behind, so that one pass in order settles all:
    # when the loop comes to a change, everything before it that could make it begin a span has been seen.
    following = np.searchsorted(at, end, side="right")
    inside = np.append(group, -1)[following] == group
    found = begins.tolist()
    for change, next_one in zip(np.flatnonzero(inside).tolist(), following[inside].tolist(), strict=True):
        if found[change]:
            found[next_one] = True
    return np.array(found, dtype=np.bool_)
