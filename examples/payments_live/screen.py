"""Shows the run: a panel that moves on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

__all__ = ["Screen", "State"]

_EVERY = 5.0
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class State:
    """What there is to see at one moment. `totals`: each currency's payments and dollars, the largest first."""

    published: int
    changes: int
    priced: int
    epochs: int
    totals: Sequence[tuple[str, int, Decimal | None]]


class Screen:
    """`show` is for the state, `tell` for what happens."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._began, self._shown = time.monotonic(), float("-inf")

    def tell(self, text: str) -> None:
        """A line that stays."""
        self._console.print(f"{self._clock()}  {text}", soft_wrap=True)

    def show(self, state: State) -> None:
        """The state; not on a terminal, only every few seconds."""
        if self._console.is_terminal:
            if not self._live.is_started:
                self._live.start()
            self._live.update(self._panel(state), refresh=True)
        elif time.monotonic() - self._shown >= _EVERY:
            self._shown = time.monotonic()
            self.tell(_line(state))

    def close(self) -> None:
        """Leaves the terminal as it was."""
        self._live.stop()

    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes}:{seconds:02}"

    def _panel(self, state: State) -> Group:
        table = Table("currency")
        table.add_column("payments", justify="right")
        table.add_column("dollars", justify="right")
        for currency, payments, usd in state.totals:
            table.add_row(currency, f"{payments:,}", _dollars(usd))
        return Group(f"{self._clock()}  {_counts(state)}", table)


def _line(state: State) -> str:
    largest = " · ".join(f"{currency} {_dollars(usd)}" for currency, _, usd in state.totals[:_SHOWN])
    return " · ".join(filter(None, [_counts(state), largest]))


def _counts(state: State) -> str:
    return (
        f"{state.published:,} payments and {state.changes:,} changes of rates published · "
        f"{state.priced:,} priced · {state.epochs} epochs"
    )


def _dollars(usd: Decimal | None) -> str:
    return "-" if usd is None else f"{usd:,.2f}"
