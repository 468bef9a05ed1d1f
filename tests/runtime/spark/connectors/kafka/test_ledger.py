"""What the notes of epochs say of their records."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from tests.runtime.spark.connectors.kafka.batches import records
from vsc.runtime.spark.connectors.kafka.epochs import Ledger

ROWS = [(b"a", b"1", 5), (b"b", None, 6), (None, b"", 7), (b"", b"xyz", 8), (b"c", b"\xff", 9)]
HEADERS = [None, [("h", b"1"), ("h", None)], [], [("", b"")], None]


def ledger(*batches: pa.RecordBatch) -> str:
    found = Ledger()
    for batch in batches:
        found.add(batch)
    return str(found)


@pytest.mark.parametrize("headers", [None, HEADERS])
def test_the_cuts_between_batches_do_not_matter(headers: object) -> None:
    whole = records(*ROWS, headers=headers)  # type: ignore[arg-type]
    found = {
        ledger(*(whole.slice(a, b - a) for a, b in itertools.pairwise((0, *cuts, len(ROWS)))))
        for count in range(3)
        for cuts in itertools.combinations(range(1, len(ROWS)), count)
    }
    assert found == {ledger(whole)}
    assert found.pop().startswith("5:")


def test_everything_else_does() -> None:
    others = [
        ROWS[:4],
        [ROWS[1], ROWS[0], *ROWS[2:]],  # the order
        [(b"a1", b"", 5), *ROWS[1:]],  # where the key ends
        [(b"a", b"1b", 5), (b"", None, 6), *ROWS[2:]],
        [*ROWS[:1], (b"b", b"", 6), *ROWS[2:]],  # null and empty
        [*ROWS[:2], (b"", b"", 7), *ROWS[3:]],
        [(b"a", b"1", 6), *ROWS[1:]],  # the time
        [(b"a", b"2", 5), *ROWS[1:]],
    ]
    found = [ledger(records(*rows)) for rows in (ROWS, *others)]
    moved = [HEADERS[1], HEADERS[0], *HEADERS[2:]]
    found += [ledger(records(*ROWS, headers=one)) for one in (HEADERS, moved)]
    assert len(set(found)) == len(found)
