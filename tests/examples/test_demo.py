"""The demo's comparison, on four flights."""

from __future__ import annotations

import pyarrow as pa
import pytest

from examples.flights import demo


def _table(**columns: list[object]) -> pa.Table:
    flights = {"carrier": ["AS"] * 4, "flight": [1, 2, 3, 4], "origin": ["SEA"] * 4, "departed_at": [10, 20, 30, 40]}
    return pa.table(flights | columns)


def test_a_flight_is_wrong_where_the_two_joins_found_different_observations() -> None:
    departures = _table(observed_at=[9, 19, None, None], temp=[50.0, 60.0, None, None])
    guesses = _table(observed_at=[9, 29, 29, None], temp=[50.0, 53.5, 53.5, None]).take([3, 1, 0, 2])
    assert demo.compare(demo.lined_up(departures, guesses)) == demo.Comparison(
        flights=4, without_weather=2, wrong=2, temp=6.5
    )


def test_results_of_different_flights_are_not_compared() -> None:
    departures = _table(observed_at=[9] * 4, temp=[1.0] * 4)
    with pytest.raises(ValueError, match="4 departures and 3 guesses"):
        demo.lined_up(departures, departures.slice(1))


def test_the_end_says_what_was_learned() -> None:
    run = demo.Run(status=0, seconds=30.0, finished={"input_rows": 1200}, batch_ms=20_000)
    text = demo.learned(run, demo.Comparison(flights=1000, without_weather=2, wrong=730, temp=22.1))
    assert "All 1,000 flights have the weather of their departure" in text
    assert "after they had landed; 2 found none." in text
    assert "given 730 of them (73%) the wrong weather, off by up to 22 °F, and no error." in text
    assert "1,200 rows in 20 s, and 10 s for Spark to start and stop." in text
