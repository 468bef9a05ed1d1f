"""The encoding of file names in a JVM, which takes it from its environment when it starts.

In the locale ``C``, which cron and many images have, Java reads and writes every letter outside ASCII as another one:
Hadoop does not find such files, and leaves them out of a folder without a word.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

from pyspark.sql import SparkSession

from vsc.runtime.spark.base.java import java_class

__all__ = ["LOCALE", "UTF8", "executor_locale", "tell_encoding", "utf8_names"]

LOCALE, UTF8 = "LC_ALL", "C.UTF-8"
"""The variable that decides, and the locale for every language."""
_log = logging.getLogger(__name__)
_DECIDING = (LOCALE, "LC_CTYPE", "LANG")
"""The variables that say the encoding: the first one that is set."""


def executor_locale(master: str) -> dict[str, str]:
    """The settings by which the JVMs of executors elsewhere than on `master` itself read every file name."""
    if master.startswith("local") and not master.startswith("local-cluster"):
        return {}
    return {f"spark.executorEnv.{LOCALE}": UTF8}


def tell_encoding(spark: SparkSession) -> None:
    """Warns of a driver's JVM that cannot read every file name: a session that others have started."""
    encoding = str(java_class(spark, "java.lang.System").getProperty("sun.jnu.encoding"))
    if encoding.upper() != "UTF-8":
        _log.warning(
            "Spark's JVM reads names of files as %s, and one with another letter stops the run: start it with %s=%s",
            encoding, LOCALE, UTF8,
        )  # fmt: skip


@contextlib.contextmanager
def utf8_names() -> Iterator[None]:
    """A context in which a JVM that starts reads every file name."""
    said = next(filter(None, map(os.environ.get, _DECIDING)), "")
    if "utf8" in said.lower().replace("-", ""):
        yield
        return
    before = os.environ.get(LOCALE)
    os.environ[LOCALE] = UTF8
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(LOCALE, None)
        else:
            os.environ[LOCALE] = before
