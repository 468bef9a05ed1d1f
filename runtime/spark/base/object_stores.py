"""What Spark needs for object stores that pyspark lacks, and what their errors say."""

from __future__ import annotations

import re

import pyspark

from vsc.runtime.errors import SinkError, VscRuntimeError
from vsc.runtime.spark.base.releases import minor_release

__all__ = ["cloud_package", "refused", "without_store"]

_CLOUD = "org.apache.spark:spark-hadoop-cloud_2.13"
_RELEASES = {"4.0": "4.0.2", "4.1": "4.1.1"}
"""The newest release that has been published, for each of Spark's; 4.2.0 for all that are newer."""
_SCHEMES = ("s3a", "abfs", "abfss", "wasb", "wasbs", "gs")
_NO_CLASS = re.compile(r"Class (org\.apache\.hadoop\.fs\.s3a\.\S+|\S*(?:FileSystem|Credentials\w*|Provider)) not found")
_ERROR = re.compile(
    r"^(?!\s+at )(?:.*(?: terminated with exception|\.AccessDeniedException): |Caused by: |: )?"
    r"(.*\b(?:software\.amazon\.awssdk\.(?:services\.s3|core)|org\.apache\.hadoop\.fs\.(?:s3a|azurebfs|gs)"
    r"|com\.google\.cloud\.(?:storage|hadoop))\.(?![\w.]*NoSuchKey)[\w.]*Exception\b.*?)"
    r"(?: SQLSTATE: \w+)?$",
    re.MULTILINE,
)
"""A line in which Spark tells an error of an object store's client."""
_NO_SCHEME = re.compile(r'No FileSystem for scheme "(\w+)"')


def cloud_package(spark: str = pyspark.__version__) -> str:
    """The Maven coordinates of Spark's own module for object stores, which brings the clients of S3, Azure and Google
    Cloud Storage, for a release of Spark, such as 4.1.4."""
    return f"{_CLOUD}:{_RELEASES.get(minor_release(spark), '4.2.0')}"


def without_store(problem: str) -> str | None:
    """What to do where Hadoop says that it lacks what it needs for a file system; None if it says something else."""
    scheme = _NO_SCHEME.search(problem)
    if scheme is not None and scheme.group(1) in ("s3", "s3n"):
        return "write s3a://... instead of s3://...: Hadoop's scheme for Amazon S3, and for stores like it"
    if scheme is not None and scheme.group(1) not in _SCHEMES:
        return "correct the scheme; Hadoop has hdfs, s3a, abfss, gs and others"
    if scheme is not None or _NO_CLASS.search(problem):
        return f"run with --packages {cloud_package()}, or with --jars and the jars of your store's client"
    return None


def refused(text: str) -> VscRuntimeError | None:
    """The error for what Spark says when an object store refused something or did not answer; None for other texts."""
    found = _ERROR.search(text)
    if found is None:
        return None
    return SinkError(
        f"the object store refuses, or does not answer: {found.group(1)[:400]}",
        "allow the run to list, read, write and delete objects there, then run again: nothing is lost",
    )
