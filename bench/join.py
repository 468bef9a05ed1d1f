"""The stream-table join beside its peers, each in a process of its own, one after the other on the same files."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from bench.measuring import Measured
from bench.workload import Workload, write_stream, write_table

__all__ = ["PEERS", "run"]

PEERS = {
    "vsc": "bench.peers.vsc_join",
    "asof_join": "bench.peers.asof_join",
    "handwritten": "bench.peers.handwritten",
}
"""Name of a peer and the module that measures it."""


def run(workload: Workload, few: Workload) -> dict[str, Measured]:
    """Measures every peer; the hand-written one, which is slow, over the workload `few`.

    Raises subprocess.CalledProcessError when one fails; what it printed has been seen then.
    """
    found = {}
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        for peer in PEERS:
            load = few if peer == "handwritten" else workload
            folder = Path(name) / ("few" if load is few else "all")
            if not folder.exists():
                write_table(folder / "rates", load)
                write_stream(folder / "payments", load.batch, load.warm_up + load.measured)
            print(f"measuring {peer} ...", flush=True)
            found[peer] = _in_process(peer, folder, load)
            print(f"  {found[peer].rate:,.0f} rows/s, batches {found[peer].batches}", flush=True)
    return found


def _in_process(peer: str, folder: Path, workload: Workload) -> Measured:
    result = folder / f"{peer}.json"
    command = [sys.executable, "-m", "bench.join", peer, str(folder), str(result), json.dumps(asdict(workload))]
    log = folder / f"{peer}.log"
    with log.open("wb") as out:
        ended = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False)
    if ended.returncode:
        print(log.read_text(errors="replace")[-10_000:], file=sys.stderr)
        ended.check_returncode()
    return Measured(**json.loads(result.read_text()))


def main() -> None:
    """Measures one peer: the child of `run`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("workload", type=json.loads)
    arguments = parser.parse_args()
    workload = replace(Workload(), **arguments.workload)
    measured = importlib.import_module(PEERS[arguments.peer]).measure(arguments.folder, workload)
    arguments.result.write_text(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
