"""Runs a comparison: its peers one after the other, each in its own process, on the same files."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from bench.comparison import Comparison, Peer
from bench.comparisons import NAMES, comparison
from bench.measuring import Measured
from bench.workload import Workload

__all__ = ["check", "check_results", "run"]


def run(compared: Comparison, quick: bool) -> dict[str, Measured]:
    """Measures every peer, with `quick` over a few rows. Returns the measurements by the peer's module.

    Raises subprocess.CalledProcessError if a peer fails; its output has been shown by then. Raises ValueError if two
    peers give different results.
    """
    found: dict[str, list[Measured]] = {peer.module: [] for peer in compared.peers}
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        written: dict[Workload, Path] = {}
        for peer in _turns(compared, quick):
            workload = compared.workload_of(peer, quick)
            if workload not in written:
                written[workload] = Path(name) / str(len(written))
                written[workload].mkdir()
                import_module(f"bench.comparisons.{compared.name}.rows").write(written[workload], workload)
            print(f"{compared.title}: measuring {peer.title} ...", flush=True)
            measured = _in_process(compared.name, peer.module, written[workload], workload)
            print(f"  {measured.rate:,.0f} rows/s, batches {measured.batches}", flush=True)
            found[peer.module].append(measured)
    middle = {peer: sorted(runs, key=lambda run: run.rate)[len(runs) // 2] for peer, runs in found.items()}
    check(middle)
    return middle


def check(found: Mapping[str, Measured]) -> None:
    """Raises ValueError if peers that count their results disagree."""
    check_results({peer: measured.result for peer, measured in found.items()})


def check_results(found: Mapping[str, tuple[int, int] | None]) -> None:
    """Raises ValueError if results, as far as they are counted, differ."""
    results = {peer: result for peer, result in found.items() if result is not None}
    if len(set(results.values())) > 1:
        raise ValueError(f"the peers have different results (rows, with a partner): {results}")


def _turns(compared: Comparison, quick: bool) -> list[Peer]:
    """The peers in the order in which they run: one after the other in each round, slow ones only in the first."""
    again = [peer for peer in compared.peers if peer.few is None]
    return [*compared.peers, *again * (0 if quick else compared.rounds - 1)]


def _in_process(name: str, peer: str, rows: Path, workload: Workload) -> Measured:
    """Measures one peer in its own process. Leaves `rows` as it was."""
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as at:
        folder = Path(at)
        for written in rows.iterdir():
            (folder / written.name).symlink_to(written)
        result, log = folder / "result.json", folder / "log"
        arguments = [name, peer, str(folder), str(result), json.dumps(asdict(workload))]
        with log.open("wb") as out:
            command = [sys.executable, "-m", "bench.running", *arguments]
            ended = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False)
        if ended.returncode:
            print(log.read_text(errors="replace")[-10_000:], file=sys.stderr)
            ended.check_returncode()
        return Measured.load(result.read_text())


def main() -> None:
    """Measures one peer, in a child process of `run`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparison", choices=NAMES)
    parser.add_argument("peer")
    parser.add_argument("folder", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("workload", type=json.loads)
    arguments = parser.parse_args()
    peers = [peer.module for peer in comparison(arguments.comparison).peers]
    if arguments.peer not in peers:
        parser.error(f"{arguments.comparison} has no peer {arguments.peer}: it has {', '.join(peers)}")
    module = import_module(f"bench.comparisons.{arguments.comparison}.{arguments.peer}")
    measured = module.measure(arguments.folder, Workload(**arguments.workload))
    arguments.result.write_text(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
