"""What a failure means: vsc's own words where it has some."""

from __future__ import annotations

import pytest

from vsc.runtime.errors import LostProcessError
from vsc.runtime.spark.query.failures import in_a_line, translated

PROXY = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "epoch.py", line 1, in call
    sink.write()
"""
JAVA = """py4j.protocol.Py4JJavaError: An error occurred while calling o9.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 1.0 failed 4 times, \
most recent failure: Lost task 1.3 in stage 1.0 (TID 9) (192.0.2.2 executor 2): {}
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
"""


def test_an_exception_without_text_has_no_words_of_ours() -> None:
    assert translated(Exception()) is None


@pytest.mark.parametrize(
    "said, message, help",
    [
        (
            "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: Command exited with "
            "code 137",
            "Spark lost the executors of a task, one after the other: (executor 2 exited caused by one of the running "
            "tasks) Reason: Command exited with code 137",
            "--executor-memory",
        ),
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting 'x'.",
            "a Python worker of Spark ended at work, as one does that the system kills for memory",
            "spark.executor.memoryOverhead",
        ),
        (
            "java.util.concurrent.RejectedExecutionException: Task org.apache.spark.executor.Executor$TaskRunner@1 "
            "rejected from java.util.concurrent.ThreadPoolExecutor@2[Terminated, pool size = 0]",
            "an executor that was ending refused a task",
            "the same command continues",
        ),
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "a JVM of Spark ran out of memory: java.lang.OutOfMemoryError: Java heap space",
            "--driver-memory",
        ),
    ],
)
def test_what_spark_says_of_a_process_that_it_lost(said: str, message: str, help: str) -> None:
    found = translated(Exception(PROXY + JAVA.format(said)))
    assert isinstance(found, LostProcessError) and found.message == message
    assert found.help is not None and help in found.help and "same command continues" in found.help


def test_an_unknown_failure_is_told_in_the_line_that_says_most() -> None:
    assert in_a_line(Exception(PROXY + JAVA.format("java.io.IOException: odd"))).startswith(
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 1.0 failed 4 times"
    )
    assert in_a_line(Exception(f"{PROXY}ValueError: odd\n")) == "ValueError: odd"
    assert in_a_line(Exception("one\ntwo")) == "one"
