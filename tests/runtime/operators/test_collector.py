"""The garbage collector pauses while a batch is processed, and goes on behind it."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest

from tests.runtime.operators.topologies import Builder, batches
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage, collector_paused
from vsc.runtime.state.kv import MemoryKV


def test_it_pauses_and_goes_on() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_exception() -> None:
    with pytest.raises(RuntimeError), collector_paused():
        raise RuntimeError
    assert gc.isenabled()


def test_a_stage_pauses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    b.source("s", "stream")
    b.aggregate("made", "s")
    task = LaterStage(b.plan(), 1, MemoryKV(), RunOptions(), frozenset({"made"}))
    seen, entering = [], task._entering

    def watched(*given: Any) -> Any:
        seen.append(gc.isenabled())
        return entering(*given)

    monkeypatch.setattr(task, "_entering", watched)
    result = task.process(batches([(0, ("s", "a", 1, (1, "x")))], random.Random(0)))
    assert [len(batch) for name, batch in result.batches if name == "made"] == [1]
    assert seen == [False]
    assert gc.isenabled()
