"""What workers learn before they start. No Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vsc.runtime.spark.session.session import OWN_SETTINGS, local_settings
from vsc.runtime.spark.session.ship import package_zip, ship

ROOT = str(Path(__file__).resolve().parents[4])


def shipped(master: str, python: str = "python3") -> SimpleNamespace:
    files: list[str] = []
    context = SimpleNamespace(
        master=master, environment={"PYTHONPATH": "/a"}, pythonExec=python, files=files, addPyFile=files.append
    )
    session: Any = SimpleNamespace(sparkContext=context)
    ship(session)
    ship(session)
    return context


def test_workers_on_this_machine_have_this_python_and_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    context = shipped("local[2]")
    assert (context.pythonExec, context.environment) == (sys.executable, {"PYTHONPATH": f"{ROOT}:/a"})
    assert shipped("local[2]", "/opt/python").pythonExec == "/opt/python"
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    assert shipped("local[2]").pythonExec == "python3"


@pytest.mark.parametrize(
    "files, hides",
    [
        (("helpers.py", "data/types.py", "random.txt"), False),
        (("types.py",), True),
        (("profile/__init__.py",), True),
        (("profile/a.json",), False),
        (("pyarrow.py",), True),
    ],
)
def test_a_working_directory_that_hides_modules_is_not_on_the_path_of_workers(
    files: tuple[str, ...], hides: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert ("PYTHONSAFEPATH" in shipped("local[2]").environment) is hides


def test_the_own_session_has_no_working_directory_on_the_path_of_workers() -> None:
    assert local_settings()["spark.executorEnv.PYTHONSAFEPATH"] == "1"


def test_a_cluster_gets_the_package_once_and_keeps_its_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    context = shipped("local-cluster[2,1,1024]")
    assert (context.pythonExec, context.environment) == ("python3", {"PYTHONPATH": "vsc.zip:/a"})
    assert [Path(file).name for file in context.files] == ["vsc.zip"]


def test_a_package_that_came_in_a_zip_is_not_sent_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """spark-submit has sent that zip to the executors, and one made of it would be empty."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("vsc.__file__", str(tmp_path / "own.zip" / "vsc" / "__init__.py"))
    context = shipped("spark://h:7077")
    assert (context.files, context.environment) == ([], {"PYTHONPATH": "own.zip:/a"})


def daemon_of(folder: Path, *of_python: str, path: str = "") -> subprocess.CompletedProcess[bytes]:
    """The daemon of an executor that works in `folder`, started as Spark does; it ends with its input."""
    module = OWN_SETTINGS["spark.python.daemon.module"]
    return subprocess.run(
        [sys.executable, *of_python, "-m", module, "pyspark.worker"],
        cwd=folder, env={"PYTHONPATH": f"vsc.zip:{path}"}, stdin=subprocess.DEVNULL, capture_output=True, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
def test_an_executor_loads_the_package_that_it_was_sent_before_it_forks_workers(tmp_path: Path) -> None:
    package_zip(tmp_path)
    found = daemon_of(tmp_path, "-v")
    assert len(found.stdout) == 4  # the port on which Spark asks for workers
    told = found.stderr.decode()
    assert re.search(r"import 'vsc.runtime.spark.stages.later_stage_processor' # <zipimporter .*vsc.zip/", told)
    assert "less than they need" not in told


def test_an_executor_that_lacks_packages_still_forks_workers(tmp_path: Path) -> None:
    """They tell what is missing: `vsc.runtime.spark.session.executors`."""
    package_zip(tmp_path)
    for package in ("pyspark", "py4j"):
        found = find_spec(package)
        assert found is not None and found.origin is not None
        (tmp_path / package).symlink_to(Path(found.origin).parent)
    daemon = daemon_of(tmp_path, "-S", path=".")
    assert len(daemon.stdout) == 4
    assert b"vsc's workers are forked with less than they need: ModuleNotFoundError" in daemon.stderr
