"""``python -m bench.kafka [--quick] [--rows N] [--output FILE] [PEER ...]``: the versioned join from Kafka to Kafka.

It compares vsc with Kafka Streams and Quix Streams, on one broker in one run, and with vsc from files to files. A rate
is rows divided by the CPU time of the application's processes, without the broker's. All results are checked before a
figure is given. Exit status 1: a floor is missed. ``--quick`` only shows that everything runs: its figures mean
nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from bench.comparison import Floor
from bench.kafka_to_kafka.measure import Measured, measure
from bench.kafka_to_kafka.peers import DEFAULT, FILES, ONE, PEERS, VSC
from bench.kafka_to_kafka.rows import Amount
from bench.report import floor_lines, machine
from servers.kafka import Broker

_QUICK = Amount(keys=1_000, versions=5, warm_up=20_000, measured=20_000)
_FLOORS = ((DEFAULT, 2.0, "floor"), (ONE, 2.5, "goal"), (FILES, 0.5, "floor"), (FILES, 0.9, "goal"))


def main() -> int:
    """Measures, prints the page, and writes it if all peers have been measured in full."""
    names = [peer.name for peer in PEERS]
    parser = argparse.ArgumentParser(prog="python -m bench.kafka", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PEER", help=f"only these, and no page: {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="few rows: does it run?")
    parser.add_argument("--rows", type=int, default=1_000_000, help="measured rows (default: 1000000)")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "kafka.md")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(names)):
        parser.error(f"unknown peer {', '.join(unknown)}")
    amount = _QUICK if given.quick else Amount(warm_up=2 * given.rows, measured=given.rows)
    load, found = os.getloadavg()[0], {}
    with tempfile.TemporaryDirectory(prefix="vsc-bench-", ignore_cleanup_errors=True) as name:
        broker = Broker(Path(name) / "kafka")
        broker.start()
        try:
            for peer in PEERS:
                if not given.names or peer.name in given.names:
                    print(f"measuring {peer.title} ...", flush=True)
                    found[peer.name] = one = measure(peer, broker, amount, Path(name) / peer.name)
                    print(f"  {one.rate:,.0f} rows a CPU-second, {one.cpu:.1f} CPU-seconds, {one.seconds:.1f} s")
        finally:
            broker.stop()
    if VSC.name not in found:
        return 0
    held = floors(found)
    page = "\n".join(lines(found, amount, load))
    print("\n" + page)
    if not given.names and not given.quick:
        given.output.write_text(page)
    return 0 if given.quick or all(floor.held for floor in held if not floor.name.startswith("goal")) else 1


def floors(found: Mapping[str, Measured]) -> list[Floor]:
    """The floors of vsc relative to those of its peers that were measured."""
    rate = found[VSC.name].rate
    return [
        Floor(f"{kind}: vsc from Kafka to Kafka beside {peer.title}", round(least, 2), rate / found[peer.name].rate)
        for peer, least, kind in _FLOORS
        if peer.name in found
    ]


def lines(found: Mapping[str, Measured], amount: Amount, load: float) -> list[str]:
    """The page. `load` is the load average before anything was measured."""
    rate = found[VSC.name].rate
    rows = [
        f"| {peer.title} | {one.rate:,.0f} | {rate / one.rate:.2f} | {one.cpu:.1f} | {one.rows / one.seconds:,.0f} |"
        for peer in PEERS
        if (one := found.get(peer.name)) is not None
    ]
    fewer = [f"{p.title}: {found[p.name].rows:,}" for p in PEERS if p.few is not None and p.name in found]
    return [
        "# From Kafka to Kafka",
        "",
        f"Written by `python -m bench.kafka`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC. {machine()} "
        f"Load average {load:.1f} before, {os.getloadavg()[0]:.1f} after: where it is high, only the ratios of "
        "CPU time say something.",
        "",
        f"The join of a stream with a versioned table of {amount.keys:,} keys with {amount.versions} versions each, as "
        f"of event times all over their history. Keys are text, values JSON, topics have two partitions, each "
        f"application two threads or cores. {amount.warm_up:,} rows warm up, {amount.measured:,} are measured"
        f"{' (' + '; '.join(fewer) + ')' if fewer else ''}: the CPU time of all processes of the application, without "
        "the broker, until it is idle again. All results are the right ones: their number and digest are compared "
        "with a computation in numpy.",
        "",
        *floor_lines(floors(found)),
        "| what | rows a CPU-second | vsc is x times as fast | CPU-seconds | rows a second |",
        "|---|---:|---:|---:|---:|",
        *rows,
        "",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
