"""``make live``: the example with a real Kafka and a real PostgreSQL, killed once on the way, and checked at the end.

Starts both servers on loopback, publishes payments and changes of rates while ``vsc run`` reads them, kills it with
``kill -9`` while it writes an epoch, starts it again, and compares all results with a plain Python program. Everything
that it has started is gone at the end, also after Ctrl-C. Exit status: 0 if each result is there once and right, 1
otherwise, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from examples.payments_live import expected
from examples.payments_live.feed import Feed
from examples.payments_live.job import Job, JobError
from examples.payments_live.results import TOPIC, Growth, by_currency, read_priced, read_totals
from examples.payments_live.screen import Screen, State
from examples.payments_live.story import PAYMENTS, RATES, Story, story
from examples.payments_live.verdict import lines, verdict
from servers.kafka import Broker
from servers.missing import MissingProgramError
from servers.postgres import PostgresServer, programs

_SPEED = 10
"""Event time passes so many times as fast as ours."""
_FIRST, _KILL_AT = 0.05, 0.4
"""How much is published before Spark has started. The kill comes when so much has been published, and vsc writes."""
_SECONDS = 300


class Live:
    """One run of the example, in `folder`."""

    def __init__(self, folder: Path, stack: ExitStack, screen: Screen) -> None:
        self._screen = screen
        found = programs()
        self._broker = Broker(folder / "kafka")
        stack.callback(self._broker.stop)
        self._broker.start()
        for topic in (RATES, PAYMENTS, TOPIC):
            self._broker.create(topic, 2)
        self._database = PostgresServer(found)
        stack.callback(self._database.stop)
        self._database.create()
        self._database.start()
        self._database.query("create database vsc", database="postgres")
        variables = {"brokers": self._broker.address, "database": self._database.url(), "pg_user": "vsc"}
        self._job = Job(folder, variables, {"pg_password": self._database.password})
        stack.callback(self._job.kill)
        self._growth = Growth(self._broker)
        stack.callback(self._growth.close)
        screen.tell(f"Kafka is at {self._broker.address}, PostgreSQL at 127.0.0.1:{self._database.port}")

    def run(self, told: Story) -> bool:
        """Publishes the story and lets vsc work on it; whether everything came out right."""
        feed = Feed(self._broker, told.records(), _SPEED)
        self._job.start("--trigger", "1 second")
        self._screen.tell("vsc run has been started")
        self._feed(feed, until=lambda: feed.share >= _FIRST)
        self._wait(until=lambda: self._job.epochs() > 0)
        self._screen.tell("Spark is running: the rest of the data comes now")
        feed.resume()
        self._feed(feed, until=lambda: feed.share >= _KILL_AT)
        before = self._growth.appended()
        self._feed(feed, until=lambda: self._growth.appended() > before)
        self._job.kill()
        self._screen.tell("kill -9 in the middle of an epoch; the same command again")
        self._job.start("--trigger", "1 second")
        self._feed(feed, until=lambda: feed.done)
        feed.flush()
        self._screen.tell("everything is published: vsc run is stopped, then run to the end of its input (--drain)")
        self._job.stop()
        self._job.start("--drain")
        self._job.finish()
        return self._check(told)

    def _feed(self, feed: Feed, until: Callable[[], bool]) -> None:
        shown = float("-inf")

        def published() -> bool:
            nonlocal shown
            feed.publish_due()
            if time.monotonic() - shown >= 1:
                shown = time.monotonic()
                priced, totals = self._growth.committed(), by_currency(self._database)
                self._screen.show(State(feed.payments, feed.changes, priced, self._job.epochs(), totals))
            return until()

        self._wait(until=published)

    def _wait(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SECONDS
        while not until():
            self._job.check()
            if time.monotonic() > deadline:
                raise JobError(f"vsc run has come no further for {_SECONDS} s")
            time.sleep(0.02)

    def _check(self, told: Story) -> bool:
        priced = verdict(expected.priced(told), read_priced(self._broker))
        totals = verdict(expected.totals(told), list(read_totals(self._database).items()))
        self._screen.close()
        late = expected.lateness(told)
        for line in lines(len(told.payments), len(told.changes), priced, totals, late):
            print(line)
        return priced.good and totals.good


def main() -> int:
    """Runs the example."""
    parser = argparse.ArgumentParser(prog="python -m examples.payments_live.live", description="the live example")
    parser.add_argument("--seconds", type=int, default=45, help="for how long data is published (default: 45)")
    parser.add_argument("--rate", type=int, default=200, help="payments a second (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the data (default: 1)")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    screen = Screen()
    screen.tell("starting Kafka and PostgreSQL (the first time, Maven fetches Kafka)")
    try:
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="vsc-live-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(screen.close)
            live = Live(folder, stack, screen)
            end = int(time.time() * 1000)
            told = story(given.seed, end - given.seconds * 1000 * _SPEED, end, given.rate / _SPEED)
            return 0 if live.run(told) else 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (MissingProgramError, JobError) as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0]} failed with status {error.returncode}", file=sys.stderr)
        return 1


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
