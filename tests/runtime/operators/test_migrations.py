"""Former layouts of the state are brought to the present one."""

from __future__ import annotations

import struct

from tests.runtime.operators.carry.carrying import compiled
from tests.runtime.operators.carry.test_carry import text
from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.operators.migrations import MIGRATIONS, migrate
from vsc.runtime.operators.views.catalog import stores_of
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.kv_base import store_root
from vsc.runtime.state.passed import PassedTimes


def test_meta_rows_of_format_version_1() -> None:
    plan, kv = compiled(text("counts", "windows", "sessions", "once")), MemoryKV()
    stores = {store.kind: store for store in stores_of(plan) if store.kind in MIGRATIONS}
    assert stores.keys() == MIGRATIONS.keys()
    for kind, store in stores.items():
        meta = ("<4sHHqq", b"VSTD", 1, 0, 9, 8) if kind == "passed" else ("<4sHHqqqqq", b"VSTA", 1, 0, 7, 6, 5, 4, 3)
        kv.write([(store_root(store.prefix) + b"m", struct.pack(*meta))])
    (stage,) = {store.stage for store in stores.values()}
    for _ in range(2):  # what is of the present layout stays as it is
        migrate(plan, stage, kv)
        for kind, store in stores.items():
            if kind == "passed":
                passed = PassedTimes(kv, store.prefix)
                assert (passed.stream_time, passed.floor) == (9, 8)
            else:
                state = AggregateState(kv, store.prefix, True)
                assert (state.stream_time, state.arrivals, state.closed, state.highest, state.open) == (7, 6, 5, 4, 3)
                assert state.forgotten == -1


def test_a_new_state_needs_nothing() -> None:
    kv = MemoryKV()
    migrate(compiled(text("counts", "once")), 1, kv)
    assert list(kv.scan(b"", None)) == []
