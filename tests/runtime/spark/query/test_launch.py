"""The session that ``vsc run`` starts, in a process of its own: settings that Spark does not take."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from pyspark.core import context

from vsc.runtime.spark.query import launch
from vsc.runtime.spark.session.interrupts import Interrupts
from vsc.runtime.spark.session.session import local_jvm

TOPOLOGY = "topology t; stream r (value bigint, at timestamp) from rate (rows_per_second = 10); sink r to noop ();"


STACK = "org.apache.spark.SparkException: {}\n\tat org.apache.spark.SparkContext.<init>(SparkContext.scala:1)\n"


@pytest.mark.parametrize(
    ("error", "log", "reason"),
    [
        ("An error occurred\n: " + STACK.format("Could not parse 'x'"), "", "Could not parse 'x'"),
        ("An error occurred", "26/11/21 ERROR SparkContext: Error\n" + STACK.format("no room"), "no room"),
        ("[GONE] no port", 'Exception in thread "main" ' + STACK.format("set HADOOP_CONF_DIR"), "set HADOOP_CONF_DIR"),
        ("[GONE] no port", "Invalid maximum heap size: -Xmx1x\nError: Could not", "Invalid maximum heap size: -Xmx1x"),
        (
            "An error occurred while calling None.X.",
            "ERROR SparkContext: Error.\nExitCodeException exitCode=2: \ngzip: not in gzip format\ntar: Exiting\n",
            "gzip: not in gzip format",
        ),
        (
            "stopped\n: " + STACK.format("Cannot call methods on a stopped SparkContext."),
            STACK.format("thrown in awaitResult") + "ERROR Backend: Application has been killed. Reason: No master.\n",
            "No master.",
        ),
        ("a line\nand more", "nothing is wrong here", "a line"),
        ("", "", "RuntimeError"),
    ],
)
def test_why_spark_did_not_start(error: str, log: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log)
    assert launch._reason(tmp_path / "log", RuntimeError(error)) == reason


def test_the_command_line_of_the_jvm_has_no_secrets() -> None:
    pairs = ["spark.ui.enabled=false", "spark.hadoop.fs.s3a.secret.key=hush", "spark.x.url=postgresql://me:hush@h/d",
             "spark.y=password", "spark.z=a=b", "spark.file=1", "spark.both=2"]  # fmt: skip
    given = ["spark-submit", *(part for pair in pairs for part in ("--conf", pair)), "--name", "n", "pyspark-shell"]
    kept = ["--conf", "spark.ui.enabled=false", "--conf", "spark.y=password", "--conf", "spark.z=a=b"]
    kept += ["--conf", "spark.both=2"]
    from_files = {"spark.file": "1", "spark.both": "1"}
    assert launch._without_secrets(given, from_files) == ["spark-submit", *kept, "--name", "n", "pyspark-shell"]


def test_pyspark_does_not_take_over_signals() -> None:
    before = signal.getsignal(signal.SIGINT)
    with launch._signals_for_us_alone(Interrupts(), {}):
        context.signal.signal(context.signal.SIGINT, signal.SIG_DFL)  # type: ignore[attr-defined]  # as pyspark does
        assert signal.getsignal(signal.SIGINT) is before
    assert context.signal is signal  # type: ignore[attr-defined]


def test_what_spark_submit_has_resolved_is_not_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It adds the jars of packages to `spark.jars`, and Python code to `spark.files`."""
    told: dict[str, str] = {}
    builder = Mock()
    for name in ("appName", "master", "config"):
        getattr(builder, name).return_value = builder
    monkeypatch.setattr("pyspark.SparkContext._ensure_initialized", lambda conf: told.update(conf.getAll()))
    monkeypatch.setattr(launch, "SparkSession", SimpleNamespace(builder=builder))
    conf = {
        "spark.jars": "a.jar",
        "spark.files": "f",
        "spark.submit.pyFiles": "p.py",
        "spark.archives": "z",
        "spark.x": "1",
    }
    launch._built("n", "local[1]", conf)
    assert told == {"spark.app.name": "n", "spark.master": "local[1]", **conf}
    builder.config.assert_called_once_with(map={"spark.x": "1"})


def test_what_is_no_setting_goes_to_spark_submit_beside_what_the_user_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--verbose pyspark-shell")
    with launch._told(["--properties-file", "a b.conf"]):
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--properties-file 'a b.conf' --verbose pyspark-shell"
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--verbose pyspark-shell"
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    with launch._told(["--proxy-user", "u"]):
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--proxy-user u pyspark-shell"
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_the_python_of_workers_is_that_of_the_setting_or_the_variable_or_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "./variable/python")
    assert launch._workers_python({"spark.pyspark.python": "./setting/python"}) == "./setting/python"
    assert launch._workers_python({}) == "./variable/python"
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert launch._workers_python({}) == sys.executable


@pytest.mark.parametrize("given", [None, "-XX:Tier4BackEdgeThreshold=7 -Dx=y"])
def test_the_options_of_a_jvm_are_there_while_it_starts(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    if given is not None:
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", given)
    with local_jvm():
        options = os.environ["SPARK_SUBMIT_OPTS"].split()
    assert options[0] == "-XX:+IgnoreUnrecognizedVMOptions"
    assert options[5:] == ([] if given is None else given.split())
    assert os.environ.get("SPARK_SUBMIT_OPTS") == given


@pytest.mark.spark
def test_c2_waits_ten_times_as_long_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:Tier4BackEdgeThreshold=7")
    with local_jvm():
        options = os.environ["SPARK_SUBMIT_OPTS"].split()
    said = [
        subprocess.run(["java", *own, "-XX:+PrintFlagsFinal", "-version"], capture_output=True, text=True).stdout
        for own in ([], options)
    ]
    plain, own = (dict(re.findall(r" (Tier4\w+) += (\d+)", text)) for text in said)
    assert own["Tier4BackEdgeThreshold"] == "7"
    for name in ("Tier4InvocationThreshold", "Tier4MinInvocationThreshold", "Tier4CompileThreshold"):
        assert int(own[name]) == 10 * int(plain[name]) > 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("spark.sql.shuffle.partitions=abc", "spark.sql.shuffle.partitions"),
        ("spark.sql.warehouse.dir=", None),  # cannot be set while a session runs
    ],
)
def test_a_setting_of_spark_sql(tmp_path: Path, setting: str, message: str | None) -> None:
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)
    value = setting if message is not None else setting + str(tmp_path / "warehouse")
    command = [sys.executable, "-m", "vsc", "compile", str(tmp_path / "t.vdsl"), "--emit", "spark"]
    ended = subprocess.run(
        [*command, "--master", "local[1]", "--conf", value], capture_output=True, text=True, timeout=300
    )
    if message is None:
        assert ended.returncode == 0, ended.stderr
        assert "== Physical Plan ==" in ended.stdout
    else:
        assert ended.returncode == 1
        assert "Spark did not start" in ended.stderr and message in ended.stderr
        assert "Traceback" not in ended.stderr
