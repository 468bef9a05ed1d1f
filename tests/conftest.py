"""What all tests share: one Spark session for the whole run, and the folder of shared recordings where there is one."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.seams import mark_full
from tests.shares import keep_share, share
from tools.class_archive import use_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
_ON_SPARK = ROOT / "tests/runtime/spark"
_SMALL_DATA = {
    # Some rows are read faster than code for them is generated and compiled. (What `vsc run` starts generates it.)
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # As queries have it: otherwise, plain DataFrames have Python workers of their own.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
}
_SECONDS_ON_SPARK = 900
"""After which a test with a JVM is taken for hung: it may share a slow machine, and its fixtures may start servers."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--share``."""
    parser.addoption("--share", type=share, metavar="3/8", help="one share of what is marked full (tests/shares.py)")


def pytest_configure() -> None:
    """Sets what the processes of tests inherit, and that no example of Hypothesis fails because the machine is slow."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", use_archive())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are collected
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """Keeps Python's garbage collector from looking at thousands of collected tests again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the slow cases and what is left to `make full`, before pytest selects by markers.

    Puts the files that take longest first, so that all processes end together; gives tests with a JVM time.

    Py4J leaves its sockets to the garbage collector, which closes them in whatever test is running then.
    """
    _mark_slow_cases(items)
    mark_full(items)
    keep_share(config, items)
    ranks: dict[Path, int] = {}
    for item in items:
        on_spark = item.get_closest_marker("spark") is not None
        rank = 2 * on_spark + (item.get_closest_marker("slow") is not None)
        ranks[item.path] = max(rank, ranks.get(item.path, 0))
        if on_spark and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_SECONDS_ON_SPARK))
        if on_spark or _ON_SPARK in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
    items.sort(key=lambda item: -ranks[item.path])


def _mark_slow_cases(items: list[pytest.Item]) -> None:
    """Leaves as many cases of a test quick as its marker `quick` says."""
    cases: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("quick")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > marker.args[0]:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the specification and all recordings: ``VSC_SHARED``, or ``shared`` beside the checkout."""
    folder = Path(os.environ.get("VSC_SHARED") or ROOT.parent / "shared")
    if not (folder / "conformance").is_dir():
        pytest.skip("needs the shared recordings (VSC_SHARED)")
    return folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session on ``local[2]`` for all tests: a JVM takes longer to start than most tests to run."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else Spark's workers are the first python3 on the PATH
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from servers.jars import connector_jars, lake_jars, object_store_jars
    from vsc.runtime.spark.session.local_files import use_local_files
    from vsc.runtime.spark.session.session import local_settings

    session = (
        SparkSession.builder.master("local[2]")
        .appName("vsc-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder} -Duser.timezone=UTC")
        .config("spark.jars", ",".join([*connector_jars(), *lake_jars(), *object_store_jars()]))
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config(map={**local_settings(), **_SMALL_DATA})
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    use_local_files(session)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # pages about each failure that a test wants
    yield session
    session.stop()
