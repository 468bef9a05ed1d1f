"""``vsc pack``, with packages that a test installs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

from vsc.cli import main

RELEASE = "{}.{}".format(*sys.version_info[:2])
FOLDER = f"lib/python{RELEASE}/site-packages"
FILES = "topology t; stream s (k string) from files (path = 'a', format = 'json') key k; sink s to noop ();"
JDBC = FILES.replace("noop ()", "jdbc (url = 'jdbc:postgresql://h/d', table = 'a')")


class Place:
    """A folder of packages, the only one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def distribution(self, name: str) -> Distribution:
        for found in Distribution.discover(name=name, path=[str(self.folder)]):
            return found
        raise PackageNotFoundError(name)

    def install(self, name: str, needs: Sequence[str] = (), files: Sequence[str] = (), **told: str) -> None:
        info = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        requires = "".join(f"Requires-Dist: {one}\n" for one in needs)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
        own = [f"{name}/__init__.py", f"{info.name}/METADATA", *files]
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in (*own, f"../../../bin/{name}")))
        (self.folder / name).mkdir()
        (self.folder / name / "__init__.py").write_text(f"NAME = '{name}'\n")
        for file, text in told.items():
            (info / file.replace("__", ".")).write_text(text)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    made = Place(tmp_path / "packages")
    made.install("versioned-streams", ["psycopg[binary]<4; extra == 'postgres'", "numpy<3"])
    for name in ("numpy", "pyarrow", "rocksdict", "protobuf"):
        made.install(name)
    made.install(
        "pandas", ["numpy", "dates; python_version > '3'", "excel; extra == 'excel'", "old; python_version < '3'"]
    )
    made.install("dates", ["pandas"])
    monkeypatch.setattr("vsc.cli.pack.need_packages", lambda command: None)
    monkeypatch.setattr("vsc.cli.installed.distribution", made.distribution)
    monkeypatch.setattr("vsc.runtime.spark.session.packages.requires", lambda name: made.distribution(name).requires)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files.vdsl").write_text(FILES)
    (tmp_path / "jdbc.vdsl").write_text(JDBC)
    yield made


def packed(path: str) -> set[str]:
    with tarfile.open(path) as archive:
        names = archive.getnames()
    assert len(names) == len(set(names))
    return {name.removeprefix(f"{FOLDER}/").partition("/")[0] for name in names if not name.endswith("METADATA")}


def test_an_archive_holds_what_tasks_import_and_what_that_needs(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pack", "files.vdsl"]) == 0
    assert packed("env.tar.gz") == {"bin", "dates", "numpy", "pandas", "protobuf", "pyarrow", "rocksdict"}
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("env.tar.gz: 6 packages, ") and said[0].endswith(f" with Python {RELEASE}")
    assert said[1] == "  in it: dates 1.0, numpy 1.0, pandas 1.0, protobuf 1.0, pyarrow 1.0, rocksdict 1.0"
    assert said[2].startswith(f"  not in it: Python {RELEASE}, Java and Spark")
    assert said[3] == "  use it: PYSPARK_PYTHON=./env/bin/python vsc run ... --conf spark.archives=env.tar.gz#env"


def test_a_connector_brings_its_package_with_the_extras_that_vsc_asks_for(place: Place) -> None:
    place.install("psycopg", ["psycopg_binary; extra == 'binary'"])
    place.install("psycopg_binary")
    assert main(["pack", "jdbc.vdsl", "-o", "a.tgz"]) == 0
    assert {"psycopg", "psycopg_binary"} <= packed("a.tgz")
    assert main(["pack", "files.vdsl", "-o", "b.tgz"]) == 0
    assert "psycopg" not in packed("b.tgz")
    assert main(["pack", "-o", "c.tgz"]) == 0
    assert packed("c.tgz") == packed("a.tgz")


def test_the_python_of_an_archive_is_that_of_the_machine_with_its_packages(place: Place, tmp_path: Path) -> None:
    assert main(["pack", "files.vdsl"]) == 0
    with tarfile.open("env.tar.gz") as archive:
        archive.extractall("env", filter="data")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("dirname", "uname"):
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / f"python{RELEASE}").write_text("#!/bin/sh\nexit 1\n")  # a shim of a release that is not there
    (programs / f"python{RELEASE}").chmod(0o755)
    found = _start(tmp_path)
    assert found.returncode == 127 and f"there is no python{RELEASE} on the PATH of " in found.stderr
    (programs / "python3").symlink_to(sys.executable)
    found = _start(tmp_path)
    assert found.stdout.splitlines() == [f"pandas {RELEASE}", str(tmp_path / "env" / FOLDER / "pandas/__init__.py")]


def _start(folder: Path) -> subprocess.CompletedProcess[str]:
    code = "import pandas, sys; print(pandas.NAME, '%d.%d' % sys.version_info[:2]); print(pandas.__file__)"
    return subprocess.run(
        ["./env/bin/python", "-c", code], cwd=folder, env={"PATH": str(folder / "programs"), "PYTHONPATH": "/none"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("told", "message", "help"),
    [
        ({"INSTALLER": "conda\n"}, "psycopg is installed by conda, with libraries outside of", "with conda-pack"),
        ({"direct_url__json": json.dumps({"dir_info": {"editable": True}})}, "as a link to its source", "without -e"),
        ({"RECORD": ""}, "the package psycopg does not say which files it has", "virtual environment"),
        (
            {"RECORD": "psycopg/gone.py,,\npsycopg/gone.pyc,,\n"},
            "psycopg/gone.py of the package psycopg is missing",
            "",
        ),
    ],
)
def test_packages_that_cannot_be_packed(
    place: Place, told: dict[str, str], message: str, help: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place.install("psycopg", **told)
    assert main(["pack", "jdbc.vdsl"]) == 1
    said = capsys.readouterr().err
    assert message in said and help in said
    assert not [name for name in os.listdir() if "env.tar" in name]


def test_what_a_topology_needs_has_to_be_installed(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "jdbc.vdsl"]) == 1
    said = capsys.readouterr().err
    assert "vsc pack: the package psycopg is not installed" in said and "versioned-streams[postgres]" in said
    assert main(["pack", "jdbc.vdsl", "-o", "env.zip"]) == 2
    assert "-o env.zip is not the name of an archive" in capsys.readouterr().err
    assert main(["pack", "files.vdsl", "-o", "none/env.tgz"]) == 1
    assert "none/env.tgz cannot be written: No such file" in capsys.readouterr().err
