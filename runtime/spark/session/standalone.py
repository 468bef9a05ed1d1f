"""Says within seconds that a master does not answer, has nothing to run executors on, or has forgotten a run.

Spark itself tries for a minute and a half, or waits for ever, also while executors end as they start. A standalone
master shows on its page what its workers have free, and which executors have ended. Where nothing says whether
executors are still to come (YARN and Kubernetes start machines for them), there is a warning, and Spark waits on.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyspark
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from vsc.plan.words import counted
from vsc.runtime.errors import StartError
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.session.ended import ended_as_they_started, text_of

__all__ = ["check_answers", "looking_for_slots", "no_room", "registering", "watch_master"]

_log = logging.getLogger(__name__)

_PATIENCE = 10.0
"""How many seconds pass without an executor before something is said."""
_SILENCE = 300.0
"""How many seconds executors may take to answer: Spark sends them archives first, and their Python has to start."""
_LOOK = 1.0
_LOOK_RUNNING = 30.0
"""How often a master is asked whether it still knows a run."""
_WAITING = "StandaloneSchedulerBackend.waitForRegistration"
_STANDALONE = "spark://"
_PORTS = "org.apache.spark.deploy.master.MasterMessages$BoundPortsRequest$"


def check_answers(master: str) -> None:
    """StartError for a standalone master that takes no connection, within seconds; with several, if none does."""
    if not master.startswith(_STANDALONE):
        return
    reasons, until = [], time.monotonic() + _PATIENCE
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), max(until - time.monotonic(), 1.0)).close()
            return
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            reasons.append(f"{host}:{port}: {reason}")
    raise StartError(
        f"no master answers at {master} ({'; '.join(reasons)})",
        "correct --master, start the master, or open the way to its port",
    )


@contextlib.contextmanager
def registering(master: str, end: Callable[[], None]) -> Iterator[None]:
    """A context in which a session starts. StartError if a standalone master does not take it up within seconds; then
    `end` is called, which ends the JVM: Spark would try on, and say only that the master is unresponsive."""
    over, refused = threading.Event(), threading.Event()

    def watch() -> None:
        waited = 0.0
        while not over.wait(_LOOK) and waited < _PATIENCE:
            waited = waited + _LOOK if _is_registering() else 0.0
        if not over.is_set():
            refused.set()
            end()

    if master.startswith(_STANDALONE):
        threading.Thread(target=watch, name="vsc-registering", daemon=True).start()
    try:
        yield
    except Exception as error:
        if not refused.is_set():
            raise
        raise StartError(
            f"{master} takes connections, but does not answer as a master of Spark {pyspark.__version__}",
            "correct the port in --master, or use the cluster's release of Spark: the master's log says more",
        ) from error
    finally:
        over.set()


def _is_registering() -> bool:
    """Whether a session is just waiting for its master."""
    if SparkContext._jvm is None:
        return False
    try:
        beans = java_class(SparkContext, "java.lang.management.ManagementFactory")
        threads = beans.getThreadMXBean().dumpAllThreads(False, False)
        return any(_WAITING in one.toString() for one in threads)
    except (Py4JNetworkError, OSError):  # it ends
        return False


def _addresses(master: str) -> Iterator[tuple[str, int]]:
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise StartError(f"{master} is not the address of a master", "write spark://HOST:PORT")
        yield host.strip("[]"), int(port)


@contextlib.contextmanager
def looking_for_slots(spark: SparkSession, started: Callable[[], bool]) -> Iterator[None]:
    """A context that runs a short job in Python; `started` says whether there is an executor. StartError if there will
    be none, none that a task fits into, or if they do not answer: an executor that comes or goes may have no room at
    one look, but not at two."""
    context, tag = spark.sparkContext, f"vsc-{uuid.uuid4().hex}"
    found: list[StartError] = []
    over = threading.Event()

    def watch() -> None:
        warned, narrow, silent = False, 0, 0.0
        while not over.wait(_PATIENCE):
            there = started()
            too_narrow = _too_narrow(spark) if there else None
            narrow = narrow + 1 if too_narrow is not None else 0
            silent = silent + _PATIENCE if there and too_narrow is None else 0.0
            problem = (too_narrow if narrow > 1 else _unanswered(silent)) if there else _no_room(spark)
            if problem is not None:
                found.append(problem)
                context.cancelJobsWithTag(tag)
                return
            if not there and not warned:
                warned = True
                _log.warning("there is no executor yet, %.0f seconds after the first was asked for", _PATIENCE)

    watching = threading.Thread(target=watch, name="vsc-slots", daemon=True)
    context.addJobTag(tag)
    watching.start()
    try:
        yield
    except Exception as error:
        if found:
            raise found[0] from error
        raise
    finally:
        context.removeJobTag(tag)
        over.set()


def watch_master(spark: SparkSession, query: StreamingQuery, failed: Callable[[StartError], None]) -> None:
    """Ends `query` once its standalone master no longer knows the application, as one that has been started again
    without recovery: its workers stop the executors, and Spark would wait for others for ever. `failed` gets the error
    first."""
    context = spark.sparkContext
    application = context.applicationId
    forgotten = StartError(
        f"the master {context.master} no longer knows this run ({application}): it was started again",
        "the same command continues; with spark.deploy.recoveryMode, a master keeps what it knows",
    )

    def watch() -> None:
        missed = 0
        while not _ended(query, _LOOK_RUNNING):
            found = _in_charge(spark)
            missed = 0 if found is None or _known(found[1], application) else missed + 1
            if missed > 1:
                failed(forgotten)
                context.cancelJobGroup(str(query.runId))

    if (context.master or "").startswith(_STANDALONE):
        threading.Thread(target=watch, name="vsc-master", daemon=True).start()


def _ended(query: StreamingQuery, seconds: float) -> bool:
    """Whether `query` ends within so many seconds."""
    try:
        return bool(query.awaitTermination(seconds))  # type: ignore[arg-type]
    except Exception:  # its failure is its caller's to see
        return True


def _unanswered(seconds: float) -> StartError | None:
    """That executors have not answered for so long; None while they may yet."""
    if seconds < _SILENCE:
        return None
    return StartError(
        f"the executors have not answered for {seconds:.0f} seconds: their Python does not start, or they still fetch "
        "what they need",
        "name another Python with PYSPARK_PYTHON (or --conf spark.pyspark.python); their logs say what they wait for",
    )


def _too_narrow(spark: SparkSession) -> StartError | None:
    """That no executor that there is has room for a task; None if one has, or Spark does not say."""
    context: Any = spark.sparkContext._jsc.sc()
    try:
        if int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile())):
            return None
    except (Py4JError, OSError):
        _log.debug("Spark does not say how many tasks its executors can run", exc_info=True)
        return None
    cores = counted(int(spark.sparkContext.getConf().get("spark.task.cpus") or 1), "core")
    return StartError(
        f"no executor of {spark.sparkContext.master} has room for a task, which takes {cores} (spark.task.cpus)",
        "set spark.task.cpus to 1, or give executors more cores (--executor-cores); the same for spark.task.resource",
    )


def _no_room(spark: SparkSession) -> StartError | None:
    """Why a standalone master has no executor for this application; None if it has, or does not say."""
    context, found = spark.sparkContext, _in_charge(spark)
    if found is None:
        return None
    page, state = found
    cores = int(context.getConf().get("spark.executor.cores") or 1)
    return no_room(context.master or "", state, context.applicationId, cores) or _ended_ones(spark, page)


def _ended_ones(spark: SparkSession, page: str) -> StartError | None:
    """That executors end as they start; None if they do not, or no page says so."""
    context = spark.sparkContext
    driver = ":".join(str(context.getConf().get(f"spark.driver.{part}")) for part in ("host", "port"))
    try:
        return ended_as_they_started(page, context.applicationId, driver, text_of)
    except OSError:
        _log.debug("the page of the application at %s cannot be read", page, exc_info=True)
        return None


def _in_charge(spark: SparkSession) -> tuple[str, Mapping[str, Any]] | None:
    """The address of the page of the standalone master in charge, and what it shows; None where there is none, or none
    answers."""
    master = spark.sparkContext.master or ""
    for host, port in _addresses(master) if master.startswith(_STANDALONE) else ():
        try:
            page = _page(spark, host, port)
            state: Mapping[str, Any] = json.loads(text_of(f"{page}/json/"))
        except (Py4JError, OSError, ValueError):
            _log.debug("the page of the master at %s:%s cannot be read", host, port, exc_info=True)
        else:
            if state["status"] == "ALIVE":
                return page, state
    return None


def _page(spark: SparkSession, host: str, port: int) -> str:
    """The address of a master's page: it is asked for the port."""
    environment = spark.sparkContext._jsc.sc().env()
    request = java_class(spark, "java.lang.Class").forName(_PORTS).getField("MODULE$").get(None)
    address = java_class(spark, "org.apache.spark.rpc.RpcAddress")(host, port)
    master = environment.rpcEnv().setupEndpointRef(address, "Master")
    answer = master.askSync(request, java_class(spark, "scala.reflect.ClassTag").Any())
    return f"http://{host}:{answer.webUIPort()}"


def no_room(master: str, state: Mapping[str, Any], application: str, cores: int) -> StartError | None:
    """Why no executor has room, from what the page says; an executor takes so many `cores`."""
    own = _known(state, application)
    if own is None or own["state"] != "WAITING":
        return None
    memory = int(own["memoryperexecutor"])
    workers = [one for one in state["workers"] if one["state"] == "ALIVE"]
    if any(one["coresfree"] >= cores and one["memoryfree"] >= memory for one in workers):
        return None
    why = _why(workers, cores, memory)
    return StartError(f"{master} has no room for an executor: {why}", _help(state, application))


def _known(state: Mapping[str, Any], application: str) -> Mapping[str, Any] | None:
    """What a master's page says of an application; None if it does not know one of that id."""
    return next((one for one in state.get("activeapps", ()) if one["id"] == application), None)


def _why(workers: Sequence[Mapping[str, Any]], cores: int, memory: int) -> str:
    if not workers:
        return "it has no workers"
    most = max(one["memory"] for one in workers)
    if most < memory:
        return f"an executor takes {memory} MiB (spark.executor.memory), a worker has {most} at most"
    if max(one["cores"] for one in workers) < cores:
        return f"an executor takes {cores} cores (spark.executor.cores), a worker has fewer"
    free, every = sum(one["coresfree"] for one in workers), sum(one["cores"] for one in workers)
    memories = ", ".join(str(one["memoryfree"]) for one in workers)
    return (
        f"its {counted(len(workers), 'worker')} have {free} of {counted(every, 'core')} free, and {memories} MiB; "
        f"an executor takes {counted(cores, 'core')} and {memory} MiB"
    )


def _help(state: Mapping[str, Any], application: str) -> str:
    running = (one for one in state["activeapps"] if one["id"] != application and one["cores"])
    others = [f"{one['name']} ({one['id']})" for one in running]
    if not others:
        return "start workers that have it, or ask for less: --conf spark.executor.memory=..., spark.executor.cores=..."
    return f"stop what runs there, or give it fewer cores with spark.cores.max: {', '.join(others)}"
