"""What Hadoop and Spark say about object stores, in the user's words. No Spark."""

from __future__ import annotations

import pytest

from vsc.runtime.errors import CheckpointError, SourceError
from vsc.runtime.spark.base.hadoop import file_errors_as
from vsc.runtime.spark.base.object_stores import cloud_package, refused, without_store
from vsc.runtime.spark.query.failures import translated

PACKAGE = "org.apache.spark:spark-hadoop-cloud_2.13:4.1.1"
S3A = "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
GONE = "software.amazon.awssdk.services.s3.model.S3Exception: the store is gone (Service: S3, Status Code: 403)"


def test_the_module_of_each_spark() -> None:
    assert cloud_package("4.0.2") == "org.apache.spark:spark-hadoop-cloud_2.13:4.0.2"
    assert cloud_package("4.1.4") == PACKAGE
    assert cloud_package("4.2.0") == cloud_package("4.3.0") == "org.apache.spark:spark-hadoop-cloud_2.13:4.2.0"


@pytest.mark.parametrize(
    ("problem", "help"),
    [
        (f"java.lang.ClassNotFoundException: {S3A}", "run with --packages org.apache.spark:spark-hadoop-cloud_2.13:"),
        (
            "java.lang.ClassNotFoundException: Class software.amazon.awssdk.auth.CredentialsProvider not found",
            "run with",
        ),
        ('No FileSystem for scheme "s3"', "write s3a://... instead of s3://..."),
        ('No FileSystem for scheme "gs"', "run with --packages org.apache.spark:spark-hadoop-cloud_2.13:"),
        ('No FileSystem for scheme "hdsf"', "correct the scheme"),
        ("Class org.example.Main not found", None),
        ("Permission denied", None),
    ],
)
def test_what_is_missing(problem: str, help: str | None) -> None:
    found = without_store(problem)
    assert found is None if help is None else found is not None and found.startswith(help)


def test_what_is_missing_is_the_help_of_whatever_failed() -> None:
    def fail(problem: str) -> str | None:
        with (
            pytest.raises(CheckpointError) as raised,
            file_errors_as(CheckpointError, "the checkpoint x", "take another"),
        ):
            raise OSError(problem)
        assert raised.value.message == f"the checkpoint x cannot be used: {problem}"
        return raised.value.help

    assert str(fail(S3A)).startswith("run with --packages")
    assert fail("Permission denied") == "take another"


@pytest.mark.parametrize(
    "text",
    [
        f"[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: ck/offsets: PUT 0-byte object: {GONE} "
        "SQLSTATE: XXKST\n=== Streaming Query ===",
        f"Job aborted\n\tat org.apache\nCaused by: java.nio.file.AccessDeniedException: ck/offsets: PUT 0-byte object: "
        f"{GONE}\n\tat x\nCaused by: {GONE}",
        f"Task 1 failed: java.nio.file.AccessDeniedException: ck/offsets: PUT 0-byte object: {GONE}",
        f"An error occurred\n: java.nio.file.AccessDeniedException: ck/offsets: PUT 0-byte object: {GONE}\n\tat x",
    ],
)
def test_a_refusal(text: str) -> None:
    error = refused(text)
    assert error is not None
    assert error.message == f"the object store refuses, or does not answer: ck/offsets: PUT 0-byte object: {GONE}"


@pytest.mark.parametrize(
    "text",
    [
        "java.nio.file.AccessDeniedException: /x\n\tat org.apache.hadoop.fs.s3a.S3AFileSystem.x",
        "Caused by: x\n\tat software.amazon.awssdk.services.s3.model.S3Exception$Builder.build(S3Exception.java:1)",
        "FileNotFoundException: No such file: software.amazon.awssdk.services.s3.model.NoSuchKeyException: no key",
        "Caused by: software.amazon.awssdk.services.glue.model.AccessDeniedException: no right",
    ],
)
def test_other_errors_are_no_refusals(text: str) -> None:
    assert refused(text) is None


def test_kafka_may_speak_of_the_clouds_credentials() -> None:
    cause = "Caused by: software.amazon.awssdk.core.exception.SdkClientException: Unable to load credentials"
    error = translated(Exception(f"org.apache.kafka.common.errors.SaslAuthenticationException: no\n{cause}"))
    assert isinstance(error, SourceError)
