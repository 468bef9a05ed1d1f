"""Which archive of classes a JVM is to use, and that none stops or changes what the JVM does."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from vsc.runtime.spark.session.class_archive import Archive, Unarchived, archive_here, archive_options, writing
from vsc.runtime.spark.session.session import local_jvm

_OPTIONS = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of archives, of a Java 17 and a Spark with one jar."""
    for name in _OPTIONS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    (tmp_path / "spark/jars").mkdir(parents=True)
    (tmp_path / "spark/jars/spark-core_2.13-4.1.4.jar").touch()
    _java(tmp_path, monkeypatch, "17.0.15")
    return tmp_path / "cache/vsc"


def _java(folder: Path, monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    home = folder / f"java-{release}"
    home.mkdir(exist_ok=True)
    (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{release}"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))


def _put(archive: Archive) -> Path:
    """Puts one there of 4 bytes."""
    assert archive.can_be_made()
    (archive.folder / "made").write_text("made")
    archive.keep(archive.folder / "made")
    found = archive.found()
    assert found is not None
    return found


def test_java_17_uses_the_archive_that_is_there_and_makes_none(cache: Path) -> None:
    assert archive_options() == []
    assert not cache.exists()
    found = archive_here()
    assert found.name.startswith("java-17.0.15-spark-4.1.4-")
    path = _put(found)
    assert path == cache / f"{found.name}-4.jsa"
    assert archive_options() == [f"-XX:SharedArchiveFile={path}", "-XX:+VerifySharedSpaces", "-Xlog:cds*=off"]
    path.write_text("cut")
    assert archive_options() == []


def test_java_19_and_newer_make_it_themselves(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _java(tmp_path, monkeypatch, "21.0.8")
    path = cache / f"{archive_here().name}.jsa"
    for _ in range(2):
        assert archive_options()[:2] == ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={path}"]
        assert _put(archive_here()) == path
    assert cache.stat().st_mode & 0o777 == 0o700


def test_another_java_spark_or_jar_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [archive_here().name]
    (tmp_path / "spark/jars/other.jar").write_text("1")
    names.append(archive_here().name)
    (tmp_path / "spark/jars/other.jar").write_text("12")
    names.append(archive_here().name)
    (tmp_path / "spark/jars/spark-core_2.13-4.1.4.jar").rename(tmp_path / "spark/jars/spark-core_2.13-4.3.0.jar")
    names.append(archive_here().name)
    _java(tmp_path, monkeypatch, "17.0.16")
    names.append(archive_here().name)
    assert len(set(names)) == 5
    assert names[3].startswith("java-17.0.15-spark-4.3.0-")


@pytest.mark.parametrize("name", _OPTIONS)
@pytest.mark.parametrize("option", ["-Xshare:off", "-XX:ArchiveClassesAtExit=a", "-XX:SharedArchiveFile=a"])
def test_options_of_the_user_decide(name: str, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(archive_here())
    monkeypatch.setenv(name, f"-Xmx1g {option}")
    with pytest.raises(Unarchived, match=f"{name} decides"):
        archive_here()
    assert archive_options() == []


def test_a_setting_of_the_user_decides() -> None:
    _put(archive_here())
    assert archive_options({"spark.driver.extraJavaOptions": "-Xmx1g -Xshare:off"}) == []
    assert archive_options({"spark.driver.extraClassPath": "/opt/own.jar"}) == []
    assert archive_options({"spark.driver.extraJavaOptions": "-Xmx1g"}) != []


def test_a_jvm_of_a_session_gets_the_options() -> None:
    path = _put(archive_here())
    with local_jvm():
        assert f"-XX:SharedArchiveFile={path}" in os.environ["SPARK_SUBMIT_OPTS"].split()
    with local_jvm({"spark.driver.extraClassPath": "/opt/own.jar"}):
        assert "SharedArchiveFile" not in os.environ["SPARK_SUBMIT_OPTS"]


def test_what_others_can_write_is_not_used(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _put(archive_here())
    path.chmod(0o666)
    assert archive_options() == []
    path.unlink()
    path.symlink_to(tmp_path)
    assert archive_options() == []
    _java(tmp_path, monkeypatch, "21.0.8")
    (cache / f"{archive_here().name}.jsa").symlink_to(tmp_path)
    assert archive_options() == []
    cache.chmod(0o777)
    with pytest.raises(Unarchived, match="others can write to"):
        archive_here()


def test_a_cache_that_cannot_be_made_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _java(tmp_path, monkeypatch, "21.0.8")
    (tmp_path / "cache").touch()
    assert archive_options() == []


def test_a_path_with_a_blank_is_one_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    path = _put(archive_here())
    assert archive_options()[0] == f'"-XX:SharedArchiveFile={path}"'


def test_what_is_of_no_use_any_more_is_cleared(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = archive_here()
    month = 31 * 24 * 3600
    os.utime(_put(before), (time.time() - month, time.time()))
    _java(tmp_path, monkeypatch, "21.0.8")
    other = _put(archive_here())
    (tmp_path / "spark/jars/other.jar").touch()
    now = archive_here()
    path = _put(now)
    os.utime(path, (time.time() - month, time.time()))
    gone = subprocess.Popen(["true"])
    gone.wait()
    (cache / f"{before.name}.{gone.pid}").touch()
    (cache / f"{now.name}.{gone.pid}").touch()
    now.to_be_made().touch()
    (cache / "of-another-kind.jsa").touch()
    (cache / "folder.1").mkdir()
    now.clear()
    assert {one.name for one in cache.iterdir()} == {
        path.name,
        other.name,
        now.to_be_made().name,
        "of-another-kind.jsa",
        "folder.1",
    }


def test_without_a_release_of_java_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "java-17.0.15/release").unlink()
    with pytest.raises(Unarchived, match="does not say which release"):
        archive_here()


@pytest.mark.spark
@pytest.mark.parametrize("harm", ["none", "cut", "flipped", "text", "folder"])
def test_a_broken_archive_does_not_keep_java_from_running(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark

    monkeypatch.delenv("JAVA_HOME")
    java = shutil.which("java")
    assert java is not None
    [jar] = (Path(pyspark.__file__).parent / "jars").glob("spark-launcher_*.jar")
    archive = archive_here()
    assert archive.can_be_made()
    made = archive.folder / "made"
    launcher = ["-cp", str(jar), "org.apache.spark.launcher.Main"]  # ends at once, as it is not told what to launch
    subprocess.run([java, *writing(made), *launcher], capture_output=True, check=False)
    archive.keep(made)
    path = archive.found()
    assert path is not None
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    if harm == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif harm == "flipped":
        for place in range(len(data) // 2, len(data), 1000):
            data[place] ^= 0xFF
        path.write_bytes(data)
    elif harm == "text":
        path.write_text("no archive")
    elif harm == "folder":
        path.unlink()
        path.mkdir()
    options = archive.options()
    assert bool(options) == (harm in ("none", "flipped"))
    runs = [
        subprocess.run([java, *own, *launcher], capture_output=True, text=True, check=False) for own in ([], options)
    ]
    assert runs[0].stderr == runs[1].stderr
    assert (runs[0].returncode, runs[0].stdout) == (runs[1].returncode, runs[1].stdout)
