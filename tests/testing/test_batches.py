"""Micro-batches and restarts of the test driver."""

from __future__ import annotations

import pytest

from vsc.testing import TopologyTestDriver

TOPOLOGY = """\
stream s (id string, at bigint) from memory () key id timestamp at;
table r (id string, x int, at bigint) from memory () key id timestamp at materialize versioned (retention = 1 day);
stream j = left join s with r select x;
table n = aggregate s group by id select count(*) as total;
sink j to console ();
sink n to console ();
"""


def test_a_batch_is_merged_by_event_time_and_is_kept_whole_or_not_at_all() -> None:
    with TopologyTestDriver(TOPOLOGY) as driver:
        with driver.batch():
            driver.pipe("s", {"id": "a", "at": 5})
            driver.pipe("r", {"id": "a", "x": 1, "at": 4})
            assert driver.read("j") == []
        assert [record.value for record in driver.read("j")] == [{"x": 1}]
        with pytest.raises(KeyError), driver.batch():
            driver.pipe("s", {"id": "b", "at": 5})
            raise KeyError
        with driver.batch(), pytest.raises(ValueError, match="a batch cannot be inside another one"), driver.batch():
            pass
        with pytest.raises(ValueError, match="the end of the input cannot be inside a batch"), driver.batch():
            driver.drain()
        assert driver.read("j") == []


def test_a_restart_goes_on_with_state_and_counts() -> None:
    with TopologyTestDriver(TOPOLOGY, partitions=3) as driver:
        driver.pipe("r", {"id": "a", "x": 1, "at": 4})
        driver.pipe("s", {"id": "a", "at": 5})
        driver.pipe("s", {"id": "a", "at": -1})
        driver.restart()
        driver.pipe("s", {"id": "a", "at": 6})
        assert [record.value for record in driver.read("j")] == [{"x": 1}, {"x": 1}]
        assert [record.value for record in driver.read("n")] == [{"total": 1}, {"total": 2}]
        assert driver.metrics()["dropped_records"] == {"s": {"negative_timestamp": 1}}
