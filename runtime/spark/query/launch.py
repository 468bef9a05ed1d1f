"""Starts a Spark session for ``vsc run``, quietly: what Java and Spark print goes to a log file of its own."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.core import context
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from vsc.plan.nodes import Plan
from vsc.plan.secrets import instead_of_secret, is_secret
from vsc.runtime.errors import StartError, VscRuntimeError
from vsc.runtime.spark.connectors.jars import connector_settings, unfetched
from vsc.runtime.spark.session.interrupts import SIGNALS, Interrupted, Interrupts
from vsc.runtime.spark.session.local_files import use_local_files
from vsc.runtime.spark.session.names import executor_locale, utf8_names
from vsc.runtime.spark.session.session import OWN_SETTINGS, is_here, local_jvm, local_settings
from vsc.runtime.spark.session.ship import ship
from vsc.runtime.spark.session.standalone import check_answers, registering

__all__ = ["ASK_DOCTOR", "launched", "local_session", "new_log"]

_THROWN = re.compile(
    r"^(?:: |Caused by: |Exception in thread \S+ )?[\w.$]+\.\w*(?:Exception|Error): (\S.*)", re.MULTILINE
)
"""An exception's message where Java prints it."""
_SAID = re.compile(
    r"^(?:.* has been killed\. Reason: (.+)|(Invalid .* heap size: .+|Unrecognized (?:VM )?option.+)"
    r"|ExitCodeException exitCode=\d+:\s*(\S.*))$",
    re.MULTILINE,
)
"""What a cluster's client, the JVM itself and a program like `tar` print before they give up; the exceptions that
follow say less."""


ASK_DOCTOR = "vsc doctor may find the cause; "
_LOCAL = "local[*]"
_PACKAGES = "spark.jars.packages"
_PYTHON = "spark.pyspark.python"
"""The Python of workers; of this setting pyspark itself knows only its variable."""
_SUBMIT = "PYSPARK_SUBMIT_ARGS"
"""The variable with what pyspark tells spark-submit beside settings."""
_RESOLVED = ("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles")
"""What spark-submit itself changes: paths in full, and with the files of packages."""
_ALWAYS = {"spark.sql.session.timeZone": "UTC", "spark.executorEnv.TZ": "UTC"}
"""Settings of every run, whatever the user gives: see docs/time.md."""


@contextlib.contextmanager
def launched(
    name: str,
    master: str,
    conf: Mapping[str, str],
    packages: Sequence[str],
    log: Path,
    interrupts: Interrupts,
    arguments: Sequence[str] = (),
    from_files: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session on `master`, stopped afterwards. `log` receives the JVM's stdout and stderr.

    `arguments` are spark-submit's beside settings; `from_files` are those of the settings `conf` that it reads itself.

    StartError, with the reason from the log, when Spark does not start or refuses a setting of `conf`;
    MissingJarsError when it cannot fetch a connector.
    Interrupted when a signal has ended the JVM.
    """
    check_answers(master)
    os.environ["PYSPARK_PYTHON"] = _workers_python(conf)
    os.environ["TZ"] = "UTC"  # the JVM's, and that of its workers
    # A NullHandler keeps py4j from printing tracebacks of failures that are reported properly anyway.
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    try:
        settings = {**_defaults(master), **conf, **_packages(packages, conf), **_ALWAYS}
        jvm = local_jvm(settings) if is_here(master) else contextlib.nullcontext()
        with (
            _output_to(log),
            _signals_for_us_alone(interrupts, from_files or {}),
            _told(arguments),
            utf8_names(),
            jvm,
            registering(master, interrupts.kill_jvm),
        ):
            spark = _session(name, master, settings, interrupts)
    except (PySparkException, Exception) as error:
        if interrupts.at_once:
            raise Interrupted from error
        raise _not_started(master, settings, log, error) from error
    try:
        spark.sparkContext.setLogLevel("WARN")
        if is_here(master):
            use_local_files(spark)
        ship(spark)
        yield spark
    except Exception as error:
        if interrupts.at_once:
            raise Interrupted from error
        raise
    finally:
        _stop(spark, interrupts)


def local_session(plan: Plan) -> SparkSession:
    """The active session, or a new one on this machine for `plan`, which lives as long as the process.

    StartError when Spark does not start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    log = new_log()
    os.environ["PYSPARK_PYTHON"] = _workers_python({})
    settings = {**_defaults(_LOCAL), **connector_settings(plan, {}, ()), **_ALWAYS}
    try:
        with _output_to(log), utf8_names(), local_jvm(settings):
            spark = _built("vsc", _LOCAL, settings)
            use_local_files(spark)
            return spark
    except Exception as error:
        raise _not_started(_LOCAL, settings, log, error) from error


def _workers_python(conf: Mapping[str, str]) -> str:
    return conf.get(_PYTHON) or os.environ.get("PYSPARK_PYTHON") or sys.executable


def _not_started(master: str, settings: Mapping[str, str], log: Path, error: BaseException) -> VscRuntimeError:
    if isinstance(error, VscRuntimeError):
        return error
    reason = _reason(log, error)
    missing = unfetched(settings.get(_PACKAGES, ""), reason)
    if missing is not None:
        return missing
    return StartError(
        f"Spark did not start on {master}: {reason}",
        f"{ASK_DOCTOR}Spark's log is {log}",
    )


def _stop(spark: SparkSession, interrupts: Interrupts) -> None:
    """Stops the session. A JVM that is gone cannot be stopped, and the result stands already."""
    if not interrupts.at_once:
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # pyspark's, of a JVM that a signal ends meanwhile
            spark.stop()


def _session(name: str, master: str, conf: Mapping[str, str], interrupts: Interrupts) -> SparkSession:
    """A new session. What can be set while it runs is set then. Only then does Spark check ``spark.sql`` values, and
    pyspark, which reads them to report an error, hangs if one of them is the error."""
    sql = {key: value for key, value in conf.items() if key.startswith("spark.sql.")}
    spark = _built(name, master, {key: value for key, value in conf.items() if key not in sql})
    interrupts.launched(spark)
    fixed = {key: value for key, value in sql.items() if not spark.conf.isModifiable(key)}
    if fixed:
        spark.stop()
        now = {key: value for key, value in conf.items() if key not in sql or key in fixed}
        spark = _built(name, master, now)
        interrupts.launched(spark)
    for key in sql.keys() - fixed.keys():
        spark.conf.set(key, sql[key])
    return spark


def _built(name: str, master: str, conf: Mapping[str, str]) -> SparkSession:
    """A session, on the JVM that runs or a new one. pyspark sets all settings once more in it; not so those that
    spark-submit has changed: executors would lack the jars of packages, and the Python code beside files."""
    launch = SparkConf(loadDefaults=False).setAll([("spark.app.name", name), ("spark.master", master), *conf.items()])
    SparkContext._ensure_initialized(conf=launch)
    kept: dict[str, Any] = {key: value for key, value in conf.items() if key not in _RESOLVED}
    return SparkSession.builder.appName(name).master(master).config(map=kept).getOrCreate()


@contextlib.contextmanager
def _told(arguments: Sequence[str]) -> Iterator[None]:
    """A context in which pyspark gives these to spark-submit, with what the user has it told."""
    before = os.environ.get(_SUBMIT)
    if arguments:
        os.environ[_SUBMIT] = f"{shlex.join(arguments)} {before or 'pyspark-shell'}"
    try:
        yield
    finally:
        if before is not None:
            os.environ[_SUBMIT] = before
        else:
            os.environ.pop(_SUBMIT, None)


def _defaults(master: str) -> dict[str, str]:
    found = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"} | OWN_SETTINGS
    found |= executor_locale(master)
    if master.startswith("local"):
        found["spark.driver.host"] = "127.0.0.1"
        found["spark.driver.bindAddress"] = "127.0.0.1"
    if is_here(master):
        found |= local_settings()
    return found


def _packages(packages: Sequence[str], conf: Mapping[str, str]) -> dict[str, str]:
    """`packages` beside those that `conf` names."""
    named = [*packages, *filter(None, [conf.get(_PACKAGES)])]
    return {_PACKAGES: ",".join(named)} if named else {}


@contextlib.contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """In this context, what this process and its children print to stdout and stderr goes to `log`."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("a") as target, contextlib.redirect_stdout(target), contextlib.redirect_stderr(target):
        os.dup2(target.fileno(), 1)
        os.dup2(target.fileno(), 2)
        try:
            yield
        finally:
            for saved, descriptor in zip(kept, (1, 2), strict=True):
                os.dup2(saved, descriptor)
                os.close(saved)


@contextlib.contextmanager
def _signals_for_us_alone(interrupts: Interrupts, from_files: Mapping[str, str]) -> Iterator[None]:
    """A JVM started in this context ignores SIGINT and SIGTERM: what is sent to the whole group stops only us.

    The JVM ends when this process closes its end of the pipe, for whatever reason. pyspark shields its JVM from SIGINT
    only, and would take over SIGINT here as soon as it has a context, with calls to the JVM that is ended. The JVM's
    command line, which all users see, has no secrets, and no settings `from_files`: spark-submit reads these itself,
    and pyspark sets all settings once more when the JVM runs.
    """
    gateway: Any = java_gateway
    of_context: Any = context
    popen = gateway.Popen

    def started(command: list[str], **how: Any) -> Any:
        process = popen(_without_secrets(command, from_files), **{**how, "preexec_fn": _ignore_signals})
        interrupts.launching(process)
        return process

    gateway.Popen = started
    of_context.signal = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda number, handler: None)
    try:
        yield
    finally:
        gateway.Popen = popen
        of_context.signal = signal


def _without_secrets(command: Sequence[str], from_files: Mapping[str, str]) -> list[str]:
    """A command of spark-submit without the settings that are secrets, or hold one, or come from files."""
    kept: list[str] = []
    for part in command:
        name, equals, value = part.partition("=")
        is_setting = bool(kept and equals) and kept[-1] == "--conf"
        hidden = is_secret(name) or instead_of_secret(value) is not None or from_files.get(name) == value
        if is_setting and hidden:
            kept.pop()
        else:
            kept.append(part)
    return kept


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _reason(log: Path, error: BaseException) -> str:
    """Why Spark did not start: the message of Java's exception in the error or the log, if there is one."""
    logged = log.read_text(errors="replace")
    found = _SAID.search(logged) or _THROWN.search(str(error)) or _THROWN.search(logged)
    if found is not None:
        return next(part for part in found.groups() if part is not None)[:300]
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def new_log() -> Path:
    """A new file for Spark's log."""
    handle, path = tempfile.mkstemp(prefix="vsc-spark-", suffix=".log")
    os.close(handle)
    return Path(path)
