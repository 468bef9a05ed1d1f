"""How many rows an epoch gives a sink, and their digest: kept by the sink, compared when the epoch comes again."""

from __future__ import annotations

from dataclasses import dataclass

from vsc.runtime.errors import SinkError

__all__ = ["Tally"]


@dataclass(frozen=True, slots=True)
class Tally:
    """What an epoch gives a sink: how many rows, and their digest (see `vsc.runtime.spark.exchange.digest`)."""

    count: int
    digest: int

    def differs(self, now: Tally, place: str, epoch: int, again: str) -> SinkError:
        """The error of a sink that has written this for an epoch that gives it `now`; `again` writes it once more."""
        what = f"{self.count} rows, now it has {now.count}"
        if self.count == now.count:
            what = f"other content in its {now.count} rows"
        return SinkError(
            f"{place}: epoch {epoch} was written before with {what}",
            "its input, the options or vsc itself have changed in between: restore what was there; or, to have the "
            f"epoch written again, {again}",
        )
