"""Why executors of a standalone cluster end as they start, by the pages of its master and its workers.

Spark starts others in their place, for ever if it has several workers, and says nothing of it. Most often they cannot
connect to the driver.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from html import unescape
from urllib.parse import urljoin

from vsc.plan.secrets import masked
from vsc.plan.words import counted
from vsc.runtime.errors import StartError

__all__ = ["ended_as_they_started", "text_of"]

_SECONDS = 10
_FEWEST = 2
"""One executor may end for a reason of its own."""
_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_ENDED = re.compile(r"<td>\s*(?:EXITED|FAILED)\s*</td>")
_LOG = re.compile(r'href="([^"]*)/logPage/(\?[^"]*logType=stderr)"')
_NO_WAY = re.compile(r"(?:Failed to connect to|Connecting to) \S+")
_NO_JVM = "Error: Could not create the Java Virtual Machine"
"""What Java says on stderr; why, it says on stdout."""
_CAUSE = re.compile(r"^(?:Caused by: |Exception in thread \S+ |Error: )(.+)$", re.MULTILINE)


def ended_as_they_started(page: str, application: str, driver: str, read: Callable[[str], str]) -> StartError | None:
    """The error for an application without an executor, if some have ended; None if not.

    `page` is the address of the master's page, `driver` that at which executors are to find the driver; `read` gets
    what an address has, or raises OSError.
    """
    rows = _ROW.findall(read(f"{page}/app/?appId={application}"))
    ended = [row for row in rows if _ENDED.search(row)]
    if len(ended) < _FEWEST:
        return None
    found = _LOG.search(ended[-1])
    place = None if found is None else urljoin(f"{page}/", unescape(f"{found[1]}/log/{found[2]}"))
    log = "" if place is None else _read(read, place)
    if place is not None and _NO_JVM in log:
        log = _read(read, place.replace("=stderr", "=stdout"))
    shown = "the log of executors says more" if place is None else f"the log of one is {place}"
    number = counted(len(ended), "executor")
    if _NO_WAY.search(log):
        return StartError(
            f"executors cannot connect to this driver at {driver}: {number} ended as they started",
            "set spark.driver.host to a name or an address of this machine that they reach, and open the ports of "
            f"spark.driver.port and spark.driver.blockManager.port; {shown}",
        )
    return StartError(f"{number} ended as they started: {_reason(log)}", f"correct what it says; {shown}")


def _read(read: Callable[[str], str], place: str) -> str:
    try:
        return read(place)
    except OSError:  # a worker whose page the driver does not reach
        return ""


def _reason(log: str) -> str:
    lines = _CAUSE.findall(log) or [line for line in log.splitlines() if line.strip()]
    return masked(lines[-1].strip())[:300] if lines else "its worker does not say why"


def text_of(place: str) -> str:
    """What an address has. OSError if it does not answer."""
    with urllib.request.urlopen(place, timeout=_SECONDS) as answer:
        return bytes(answer.read()).decode(errors="replace")
