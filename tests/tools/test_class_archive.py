"""The options of the JVMs of tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.class_archive import JVM_OPTIONS, use_archive


def test_without_an_archive_none_is_asked_for(tmp_path: Path) -> None:
    assert use_archive(tmp_path / "none.jsa") == f"{JVM_OPTIONS} -Xshare:auto"


@pytest.mark.spark
def test_an_archive_that_does_not_fit_is_not_talked_about(tmp_path: Path) -> None:
    import pyspark

    [jar] = (Path(pyspark.__file__).parent / "jars").glob("spark-launcher_*.jar")
    archive = tmp_path / "of_other_jars.jsa"
    launcher = ["-cp", str(jar), "org.apache.spark.launcher.Main"]  # ends at once, as it is not told what to launch
    subprocess.run(["java", f"-XX:ArchiveClassesAtExit={archive}", *launcher], capture_output=True, check=False)
    command = ["java", *use_archive(archive).split(), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, [line for line in done.stderr.splitlines() if "archive" in line]) == ("", [])
