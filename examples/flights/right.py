"""What has to come out of the flights example, by pandas: each flight with the weather that was valid at departure."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds

from examples.flights.demo import FLIGHT

__all__ = ["departures", "written"]


def departures(data: Path) -> pd.DataFrame:
    """The flights in `data` with their weather, by `merge_asof`."""
    flights = pd.read_parquet(data / "flights.parquet")
    flights["departed_at"] = flights["departed_at"].astype("datetime64[us, UTC]")
    weather = pd.read_csv(data / "weather.csv", parse_dates=["observed_at"])
    weather["observed_at"] = weather["observed_at"].astype("datetime64[us, UTC]")
    found = pd.merge_asof(
        flights.sort_values("departed_at", kind="stable"),
        weather.sort_values("observed_at"),
        left_on="departed_at",
        right_on="observed_at",
        by="origin",
        direction="backward",
    )
    return found.sort_values(FLIGHT, ignore_index=True)


def written(out: Path) -> pd.DataFrame:
    """What the sink `departures` holds."""
    found: pd.DataFrame = ds.dataset(out / "departures", format="parquet").to_table().to_pandas()
    return found.sort_values(FLIGHT, ignore_index=True)
