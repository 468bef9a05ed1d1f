"""The intervals on which changes are valid, and their parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.records import Int64s, Mask

__all__ = ["cut", "divided"]


def cut(flow: Flow, earliest: Int64s) -> Flow:
    """The changes, with intervals from the `earliest` time on; those that end before it are empty."""
    return replace(flow, time=np.maximum(flow.time, earliest))


def divided(flow: Flow, row: Int64s, time: Int64s) -> tuple[Int64s, Flow, Mask]:
    """The intervals of changes, divided at the times that lie within them: the change of each part, the part as a flow,
    and which parts are the last ones. Changes whose intervals are empty have none.

    `row` are the places of the changes, ascending, `time` the times, ascending for each.
    """
    assert flow.until is not None
    there = np.flatnonzero(flow.time < flow.until)
    rows = np.concatenate([there, row])
    order = np.argsort(rows, kind="stable")
    rows, begins = rows[order], np.concatenate([flow.time[there], time])[order]
    last = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
    until = np.where(last, flow.until[rows], np.append(begins[1:], 0)[: len(rows)])
    return rows, replace(flow.take(rows), time=begins, until=until), last
