"""The bound on bad rows, without Spark."""

from __future__ import annotations

import pytest

from vsc.runtime.errors import ConfigurationError
from vsc.runtime.spark.report.bad_rows import MaxBad


def test_a_bound_is_a_number_or_a_share() -> None:
    assert [MaxBad.of("2").allows(bad, 1000) for bad in (2, 3)] == [True, False]
    assert [MaxBad.of("0.1 %").allows(bad, 1000) for bad in (1, 2)] == [True, False]
    assert [MaxBad.of("0").allows(bad, 5) for bad in (0, 1)] == [True, False]
    for text in ("", "x", "-1", "1.5", "101%", "1%%"):
        with pytest.raises(ConfigurationError, match="neither a number of rows nor a percentage"):
            MaxBad.of(text)
