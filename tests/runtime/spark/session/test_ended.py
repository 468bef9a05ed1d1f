"""What a master's page and the logs of executors say of executors that end as they start."""

from __future__ import annotations

import pytest

from vsc.runtime.spark.session.ended import ended_as_they_started

PAGE, DRIVER = "http://m:8080", "driver:4040"
LOG = "http://w:8081/log/?appId=app-1&executorId=3&logType=stderr"
REFUSED = """26/11/28 05:36:56 INFO SecurityManager: acls disabled
Exception in thread "main" java.lang.reflect.UndeclaredThrowableException
\tat org.apache.hadoop.security.UserGroupInformation.doAs(UserGroupInformation.java:1894)
Caused by: java.io.IOException: Failed to connect to /10.0.0.1:4040
Caused by: java.net.NoRouteToHostException
"""
LATE = "26/11/28 05:40:44 WARN NettyRpcEnv: Ignored: java.io.IOException: Connecting to /10.0.0.1:4040 timed out (1 ms)"
STACK = """Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
STDOUT = """
The Java thread stack size specified is too small. Specify at least 136k

"""


def row(number: int, state: str, page: str = "http://w:8081") -> str:
    """An executor, as the page of an application shows it."""
    address = f"{page}/logPage/?appId=app-1&amp;executorId={number}&amp;logType="
    return (
        f'<tr><td>{number}</td><td><a href="{page}">worker</a></td><td>1</td>\n<td>{state}</td>'
        f'<td><a href="{address}stdout">stdout</a><a href="{address}stderr">stderr</a></td></tr>'
    )


def said(rows: str, log: str | None, place: str = LOG) -> tuple[str, str | None] | None:
    def read(asked: str) -> str:
        if asked == f"{PAGE}/app/?appId=app-1":
            return f"<tbody>{rows}</tbody>"
        assert asked in (place, place.replace("stderr", "stdout"))
        if log is None:
            raise ConnectionRefusedError
        return log if asked == place else STDOUT

    error = ended_as_they_started(PAGE, "app-1", DRIVER, read)
    return None if error is None else (error.message, error.help)


ENDED = row(1, "EXITED") + row(4, "RUNNING") + row(3, "FAILED")


@pytest.mark.parametrize("rows", ["", row(1, "RUNNING") + row(2, "RUNNING"), row(1, "EXITED") + row(2, "RUNNING")])
def test_one_that_ends_is_not_enough(rows: str) -> None:
    assert said(rows, STACK) is None


@pytest.mark.parametrize("log", [REFUSED, LATE])
def test_a_driver_that_they_cannot_reach(log: str) -> None:
    assert said(ENDED, log) == (
        "executors cannot connect to this driver at driver:4040: 2 executors ended as they started",
        "set spark.driver.host to a name or an address of this machine that they reach, and open the ports of "
        f"spark.driver.port and spark.driver.blockManager.port; the log of one is {LOG}",
    )


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (STACK, "The Java thread stack size specified is too small. Specify at least 136k"),
        ("Error: no main class\nbye\n", "no main class"),
        ('Exception in thread "main" java.lang.Error: a\n\tat x\n', "java.lang.Error: a"),
        ('Exception in thread "main" java.lang.Error: a\nCaused by: java.lang.Error: b?password=hush', "..."),
        ("Killed\n\n", "Killed"),
        (None, "its worker does not say why"),
    ],
)
def test_another_reason(log: str | None, reason: str) -> None:
    found = said(ENDED, log)
    assert found is not None
    message, help = found
    assert message.startswith("2 executors ended as they started: ") and message.endswith(reason)
    assert "hush" not in message and help == f"correct what it says; the log of one is {LOG}"


def test_a_worker_behind_the_masters_page() -> None:
    place = LOG.replace("http://w:8081", f"{PAGE}/proxy/w")
    found = said(row(1, "EXITED", "/proxy/w") + row(3, "EXITED", "/proxy/w"), STACK, place)
    assert found is not None and found[1] == f"correct what it says; the log of one is {place}"


def test_a_page_without_logs() -> None:
    found = said("<tr><td>EXITED</td></tr>" * 2, None)
    assert found == (
        "2 executors ended as they started: its worker does not say why",
        "correct what it says; the log of executors says more",
    )
