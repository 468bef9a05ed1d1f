"""Measures one peer: the CPU time of all its processes, over the rows after the warm-up. It checks the results."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.kafka_to_kafka.doors import Door, Files, Topics
from bench.kafka_to_kafka.peers import Peer, Setting
from bench.kafka_to_kafka.rows import GATE, Amount, Payments, Rates, digest_of
from bench.processes import cpu_seconds
from servers.kafka import Broker

__all__ = ["Measured", "measure"]

_IDLE = 0.3
"""CPU-seconds a second. An application that uses less has finished its work, commits and compactions included."""
_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Measured:
    """The rows, the CPU-seconds for them, and the seconds until the last result arrived."""

    rows: int
    cpu: float
    seconds: float

    @property
    def rate(self) -> float:
        """Rows a CPU-second."""
        return self.rows / self.cpu


def measure(peer: Peer, broker: Broker, every: Amount, folder: Path) -> Measured:
    """Runs one peer. Raises RuntimeError if its results are wrong, or if it ends too early."""
    amount = peer.amount(every)
    rates, payments = Rates.of(amount), Payments.of(amount)
    place = Setting(broker.address, f"{peer.name}-", folder)
    folder.mkdir()
    door: Door = Files(folder) if peer.files else Topics(broker, place.prefix)
    command = peer.command(place)
    with (folder / "log").open("wb") as log:
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        return _measured(_Run(process, door, folder / "log"), rates, payments, amount)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        door.close()


@dataclass(frozen=True, slots=True)
class _Run:
    process: subprocess.Popen[bytes]
    door: Door
    log: Path

    def take(self, count: int) -> list[bytes]:
        """Waits for `count` results."""
        found: list[bytes] = []

        def complete() -> bool:
            found.extend(self.door.results())
            return len(found) >= count

        self._until(complete)
        return found

    def settled(self) -> float:
        """Its CPU-seconds so far, once it is idle."""
        used = self.cpu()

        def idle() -> bool:
            nonlocal used
            time.sleep(1)
            before, used = used, self.cpu()
            return used - before < _IDLE

        self._until(idle)
        return used

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)

    def _until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SECONDS
        while not happened():
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = self.log.read_text(errors="replace")[-5000:]
                raise RuntimeError(f"status {self.process.poll()} of {self.process.args!r}:\n{said}")


def _measured(run: _Run, rates: Rates, payments: Payments, amount: Amount) -> Measured:
    run.door.rates(rates)
    run.door.payments(payments.part(0, GATE))  # later than all versions: their results show that the table is loaded
    run.take(GATE)
    run.door.payments(payments.part(GATE, GATE + amount.warm_up))
    run.take(amount.warm_up)
    measured = payments.part(GATE + amount.warm_up, amount.rows)
    before = run.settled()
    run.door.payments(measured)
    began = time.monotonic()
    results = run.take(amount.measured)
    seconds = time.monotonic() - began
    cpu = run.settled() - before
    if (found := digest_of(results)) != (right := measured.expected(rates)):
        raise RuntimeError(f"the results are not right: {found}, expected {right}")
    return Measured(amount.measured, cpu, seconds)
