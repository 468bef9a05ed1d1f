"""``vsc doctor --warm`` makes an archive of classes, from which the JVM of another session then loads Spark's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tools.class_archive import JVM_OPTIONS
from vsc.runtime.spark.session.class_archive import archive_here
from vsc.runtime.spark.session.session import local_jvm

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_warm_start_loads_classes_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "classes.log"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", JVM_OPTIONS)
    assert archive_here().found() is None
    doctor = [sys.executable, "-m", "vsc", "doctor", "--warm"]
    warm = subprocess.run(doctor, capture_output=True, text=True, check=False)
    assert warm.returncode == 0, warm.stdout + warm.stderr
    path = archive_here().found()
    assert path is not None
    assert [path] == list((tmp_path / "cache/vsc").iterdir())
    assert str(path) in warm.stdout
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", f"{JVM_OPTIONS} -Xlog:class+load:file={log}")
    with local_jvm():
        submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
        subprocess.run([submit, "--version"], capture_output=True, check=True)
    loaded = [line for line in log.read_text().splitlines() if "org.apache.spark.deploy.SparkSubmit " in line]
    assert len(loaded) == 1
    assert loaded[0].endswith("source: shared objects file (top)")
