"""Ctrl-C and SIGTERM while Spark starts and runs.

Guarantees: while a query runs, the first signal asks it to stop after its batch; otherwise, and from the second one
on, the JVM ends at once, which leaves a checkpoint to go on from. The handler raises nothing: an exception could come
up anywhere, also in a finalizer, where Python prints it and goes on. Whatever waits for the JVM fails when that ends.
Only a JVM that this process has not started cannot be ended: then the handler raises KeyboardInterrupt.
"""

from __future__ import annotations

import logging
import signal
import threading
from subprocess import Popen, TimeoutExpired
from types import FrameType, TracebackType
from typing import Any, Self

from pyspark.sql import SparkSession

__all__ = ["Interrupted", "Interrupts"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ENDING_S = 2.0
"""How long a JVM may take to end once it answers no more."""


class Interrupted(Exception):
    """The run was stopped by a signal; it can go on from its checkpoint."""


class Interrupts:
    """A context that handles signals.

    `requested`: a signal has come; `at_once`: the JVM has been ended. `orderly` is set by the caller while it watches
    `requested`.
    """

    def __init__(self) -> None:
        self.requested = False
        self.at_once = False
        self.orderly = False
        self._jvm: Popen[bytes] | None = None
        self._foreign = False
        self._before: dict[signal.Signals, Any] = {}
        self._excepthook = threading.excepthook

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        logging.getLogger().removeFilter(self._is_news)
        threading.excepthook = self._excepthook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def launching(self, jvm: Popen[bytes] | None) -> None:
        """Notes a JVM that is starting; kills it if the run was already interrupted."""
        self._jvm = jvm
        if self.at_once and jvm is not None:
            jvm.kill()

    def launched(self, spark: SparkSession) -> None:
        """Notes the JVM of a session, and keeps pyspark from printing what breaks off when it is ended."""
        self.launching(getattr(spark.sparkContext._gateway, "proc", None))
        self._foreign = self._jvm is None
        server: Any = spark.sparkContext._accumulatorServer
        shown = server.handle_error
        server.handle_error = lambda *call: None if self._is_over() else shown(*call)
        logging.getLogger().addFilter(self._is_news)
        threading.excepthook = lambda call: None if self._is_over() else self._excepthook(call)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested or not self.orderly:
            self._end()
        self.requested = True

    def _is_over(self) -> bool:
        """Whether the JVM has ended, or just does, where something of it has broken off."""
        return self.at_once or self.jvm_status() is not None

    def _is_news(self, record: logging.LogRecord) -> bool:
        """Whether a record of the root logger is not only py4j's about a JVM that has ended."""
        return "py4j" not in record.pathname or not self._is_over()

    def _end(self) -> None:
        if self._foreign:
            raise KeyboardInterrupt
        self.at_once = True
        logging.disable()
        self.kill_jvm()

    def jvm_status(self) -> int | None:
        """The exit status of a JVM of this process's that has ended, by itself or as the system killed it: negative for
        a signal. None while it runs, and if a signal to this process has ended it."""
        if self.at_once or not isinstance(self._jvm, Popen):
            return None
        try:
            return self._jvm.wait(_ENDING_S)
        except TimeoutExpired:
            return None

    def kill_jvm(self) -> None:
        """Ends the JVM, if this process has started it."""
        if self._jvm is not None:
            self._jvm.kill()
