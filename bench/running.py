"""Runs a comparison: its peers one after the other, each in a process of its own, on the same files."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from bench.comparison import Comparison
from bench.comparisons import NAMES, comparison
from bench.measuring import Measured
from bench.workload import Workload

__all__ = ["run"]


def run(compared: Comparison, quick: bool) -> dict[str, Measured]:
    """Measures every peer; with `quick` over a few rows. The result is by the peer's module.

    Raises subprocess.CalledProcessError when one fails; what it printed has been seen then.
    """
    found = {}
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        written: dict[Workload, Path] = {}
        for peer in compared.peers:
            workload = compared.workload_of(peer, quick)
            if workload not in written:
                written[workload] = Path(name) / str(len(written))
                written[workload].mkdir()
                import_module(f"bench.comparisons.{compared.name}.rows").write(written[workload], workload)
            print(f"{compared.title}: measuring {peer.title} ...", flush=True)
            found[peer.module] = _in_process(compared.name, peer.module, written[workload], workload)
            print(f"  {found[peer.module].rate:,.0f} rows/s, batches {found[peer.module].batches}", flush=True)
    return found


def _in_process(name: str, peer: str, folder: Path, workload: Workload) -> Measured:
    result = folder / f"{peer}.json"
    arguments = [name, peer, str(folder), str(result), json.dumps(asdict(workload))]
    log = folder / f"{peer}.log"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "bench.running", *arguments]
        ended = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False)
    if ended.returncode:
        print(log.read_text(errors="replace")[-10_000:], file=sys.stderr)
        ended.check_returncode()
    return Measured(**json.loads(result.read_text()))


def main() -> None:
    """Measures one peer: the child of `run`."""
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
