"""``make cluster``: the flights example on a Spark cluster, one of whose workers is killed on the way.

Starts a standalone master and two workers on loopback, runs ``vsc run`` on them, kills a worker and its executor
with ``kill -9`` while they work, and compares each flight's weather with what pandas finds. All that it has started
is gone at the end, also after Ctrl-C. Exit status: 0 if each flight is there once and right, 1 otherwise.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from pandas.testing import assert_frame_equal

from examples.flights import right
from examples.flights.demo import FLIGHT
from servers.spark import SparkCluster

HERE = Path(__file__).parent
_FIRST_OFFSETS = "offsets/0"
"""What a checkpoint has once the first epoch has begun."""
_SECONDS_OF_WORK = 5.0
"""How long the workers work before one is killed."""


def main() -> int:
    """Runs the example from the top of the checkout and says whether the result is right."""
    out = Path("out").resolve() / "flights_on_cluster"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cluster = SparkCluster(out / "cluster")
    try:
        print("starting a master and two workers", flush=True)
        cluster.start()
        status = _run(cluster, out)
    except KeyboardInterrupt:
        return 130
    finally:
        cluster.stop()
    return status or _compared(out)


def _run(cluster: SparkCluster, out: Path) -> int:
    command = ["vsc", "run", str(HERE / "topology.vdsl"), "--master", cluster.url]
    command += ["--checkpoint", str(out / "checkpoint"), "--var", f"data={HERE / 'data'}", "--var", f"out={out}"]
    print(f"$ {shlex.join(command)}\n", flush=True)
    with subprocess.Popen([sys.executable, "-m", *command, "--progress", "lines"]) as process:
        while process.poll() is None and not (out / "checkpoint" / _FIRST_OFFSETS).exists():
            time.sleep(0.2)
        time.sleep(_SECONDS_OF_WORK)
        if process.poll() is None:
            print("kill -9: one of the two workers, and its executor", flush=True)
            cluster.kill_worker(0)
        else:
            print("the run has ended before a worker could be killed", flush=True)
        return process.wait()


def _compared(out: Path) -> int:
    found, wanted = right.written(out), right.departures(HERE / "data")
    doubled = int(found.duplicated(FLIGHT).sum())
    print(f"\n{len(found):,} flights, of {len(wanted):,}; {doubled:,} more than once")
    try:
        assert_frame_equal(found, wanted[list(found.columns)], check_dtype=False, check_exact=True)
    except AssertionError as error:
        print(f"not as pandas has it: {error}")
        return 1
    print("each has the weather that pandas finds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
