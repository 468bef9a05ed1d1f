"""The keys under which a table's rows leave it: for a group (`group_changes`), for a joined row (`row_changes`), for
another table (`subscribe`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.runtime.expressions import null_rows
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.flow import Flow, chosen, stacked
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Mask
from vsc.runtime.state.keys import KeyCodec

__all__ = ["NewKeys", "keys_of_changes"]


@dataclass(frozen=True, slots=True)
class NewKeys:
    """The key of each row. Where `there` is False no row exists, or it goes nowhere."""

    there: Mask
    columns: tuple[pa.Array, ...]

    def nowhere(self) -> NewKeys:
        """As many keys, none of them there."""
        return NewKeys(np.zeros(len(self.there), dtype=np.bool_), self.columns)

    def same(self, other: NewKeys, codec: KeyCodec) -> Mask:
        """Where both are there and equal."""
        both = self.there & other.there
        same = np.zeros(len(both), dtype=np.bool_)
        if both.any():
            columns = stacked(chosen(self.columns, both), chosen(other.columns, both))
            _, numbers = codec.encode_columns(columns, keyless=True)
            half = len(numbers) // 2
            same[both] = numbers[:half] == numbers[half:]
        return same


def keys_of_changes(site: Site, flow: Flow, keys: Evaluation, nulls: bool) -> tuple[NewKeys, NewKeys]:
    """The keys of the rows before a table's changes, and of the rows after them.

    A row whose key fails goes nowhere, nor does one with a null in its key, unless `nulls` do. It is counted once: as
    the row after a change, not again as the row before the next.
    """
    found = keys.where(flow.columns, flow.time, flow.present)
    there = site.kept(flow, found.failed) & flow.present
    null = _null(found.columns, len(flow), nulls) & there
    site.lose(Dropped.NULL_JOIN_KEY, flow, null)
    after, old = NewKeys(there & ~null, found.columns), flow.old
    if old is None:
        return after.nowhere(), after
    found = keys.where((*flow.keys, *old.values), old.time, old.present)
    there = old.present & ~_null(found.columns, len(flow), nulls)
    there[list(found.failed)] = False
    return NewKeys(there, found.columns), after


def _null(keys: tuple[pa.Array, ...], count: int, nulls: bool) -> Mask:
    return np.zeros(count, dtype=np.bool_) if nulls else null_rows(keys, count)
