"""Tells others what a run reads and writes (``vsc run --lineage``): OpenLineage's events, into a file or over HTTP.

Guarantees: the query never waits for who takes the events, and does not fail with them. What could not be delivered is
counted, and said: the first time with its reason, and at the end. No event has more of a connector's options than what
names its place.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPMessage
from queue import SimpleQueue
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from uuid import uuid4

from pyspark.sql import SparkSession

from vsc.lineage.events import EventType, run_event
from vsc.lineage.job import Job, given_namespace, job_of
from vsc.plan.nodes import Plan
from vsc.plan.words import counted
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.spark.base.hadoop import default_files, first_line
from vsc.runtime.spark.base.lineage_target import HELP, KEY
from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["Delivery", "RunLineage"]

_log = logging.getLogger(__name__)

_PATH = "/api/v1/lineage"
"""Where servers take events."""
_PERIOD_S = 60.0
"""The least time between two events of a run that goes on."""
_TIMEOUT_S = 5.0
"""For one event, and for what is left at the end."""
_EVENT_BYTES = 1 << 20
"""An event is hardly larger."""


class Delivery:
    """Delivers events to a `target` that has been checked, one after the other, on a thread of its own."""

    def __init__(self, target: str) -> None:
        """Raises ConfigurationError for a file that cannot be written, and for a key that is none."""
        self._target = target
        self._deliver: Callable[[bytes], None] = _Server(target) if "://" in target else _File(target)
        self._events: SimpleQueue[bytes | None] = SimpleQueue()
        self._given = self._delivered = 0
        self._thread: threading.Thread | None = None

    def send(self, event: dict[str, Any]) -> None:
        """Takes an event; does not wait for it."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="vsc-lineage", daemon=True)
            thread.start()
            self._thread = thread
        self._given += 1
        self._events.put(json.dumps(event, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Waits a little for what is left, and says how many events could not be delivered."""
        if self._thread is None:
            return
        self._events.put(None)
        self._thread.join(_TIMEOUT_S)
        missing = self._given - self._delivered
        if missing:
            given = counted(self._given, "event")
            _log.warning("%d of %s of OpenLineage did not reach %s", missing, given, self._target)

    def _work(self) -> None:
        warned = False
        while (event := self._events.get()) is not None:
            try:
                self._deliver(event)
                self._delivered += 1
            except (OSError, HTTPException, ValueError) as error:
                if not warned:
                    _log.warning("OpenLineage's events do not reach %s: %s; the run goes on", self._target, _why(error))
                warned = True


def _why(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"the server says {error.code} {error.reason}".rstrip()
    reason = error.reason if isinstance(error, URLError) else error
    return first_line(reason if isinstance(reason, Exception) else error)


class _File:
    """Appends events to a file, a line each."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)
        try:
            self(b"")
        except OSError as error:
            problem = error.strerror or str(error)
            raise ConfigurationError(f"--lineage {path} cannot be written: {problem}", HELP) from error

    def __call__(self, text: bytes) -> None:
        with open(self._path, "ab", buffering=_EVENT_BYTES) as file:  # one write an event: runs may share the file
            file.write(text)


class _Server:
    """Posts events to a server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url = url if parts.path.strip("/") else parts._replace(path=_PATH).geturl()
        self._headers = {"Content-Type": "application/json"}
        key = os.environ.get(KEY, "").strip()
        if key:
            if not (key.isascii() and key.isprintable()):
                raise ConfigurationError(f"the variable {KEY} is not a key", "it is text of ASCII characters, one line")
            self._headers["Authorization"] = f"Bearer {key}"
        self._opener = build_opener(_NoRedirects)

    def __call__(self, event: bytes) -> None:
        request = Request(self._url, event, self._headers, method="POST")
        with self._opener.open(request, timeout=_TIMEOUT_S):
            pass


class _NoRedirects(HTTPRedirectHandler):
    """Redirected, a POST would become a GET without the event, which succeeds, and the key would go to others."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """None: the answer is an error."""


class RunLineage:
    """The events of one run of a plan whose variables are `resolved`. `now` is ``time.monotonic``, but for tests."""

    def __init__(self, resolved: Plan, target: str, now: Callable[[], float] = time.monotonic) -> None:
        """Raises ConfigurationError for a file that cannot be written, and for a key that is none."""
        self._plan = resolved
        self._delivery = Delivery(target)
        self._now = now
        self._run = str(uuid4())
        self._job: Job | None = None
        self._engine = ""
        self._read: Counter[str] = Counter()
        self._written: Counter[str] = Counter()
        self._told = 0.0
        self._ended = False
        self._lock = threading.Lock()

    def begin(self, spark: SparkSession) -> None:
        """The run has begun, on this session."""
        with self._guarded():
            self._job = job_of(self._plan, given_namespace(), {}, default_files(spark))
            self._engine = str(spark.version)
            self._tell("START")

    def epoch(self, report: EpochReport) -> None:
        """Takes an epoch in; for foreachBatch, on its thread."""
        with self._guarded():
            if self._job is None:
                return
            self._read.update(report.read)
            self._written.update(report.written)
            if self._now() - self._told >= _PERIOD_S:
                self._tell("RUNNING")

    def end(self, kind: EventType, failure: str | None = None) -> None:
        """The run has ended; `failure`: why. Only the first call counts, and that only after `begin`."""
        with self._guarded():
            self._tell(kind, failure)
        with self._lock:
            ended, self._ended, self._job = self._ended, True, None
        if not ended:
            self._delivery.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """For one thread at a time. What fails in it ends the events, not the run."""
        with self._lock:
            try:
                yield
            except Exception as error:
                self._job = None
                reason = f"{type(error).__name__}: {first_line(error)}"
                _log.warning("there are no more events of OpenLineage: %s; the run goes on", reason)

    def _tell(self, kind: EventType, failure: str | None = None) -> None:
        if self._job is not None:
            self._told = self._now()
            self._delivery.send(run_event(self._job, kind, self._run, self._engine, self._read, self._written, failure))
