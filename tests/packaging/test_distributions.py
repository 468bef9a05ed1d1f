"""What is in the wheel and the sdist: all of vsc, as real files in place of the links, and nothing beside it."""

from __future__ import annotations

import email
import tarfile
import tomllib
import zipfile
from pathlib import Path

from tools.wheel import faults, package_files
from vsc import __version__


def test_the_wheel_holds_the_package_and_nothing_else(dist: Path, root: Path) -> None:
    (wheel,) = dist.glob("versioned_streams-*.whl")
    assert faults(wheel, root) == []
    inside = package_files(root)
    assert {
        "vsc/py.typed", "vsc/__init__.pyi", "vsc/grammar/vsc.lark", "vsc/grammar/tables.json", "vsc/grammar/forms.json",
        "vsc/compiler/diagnostics/pages/VSC303.md", "vsc/template/topology.vdsl", "vsc/runtime/spark/__init__.py",
    } <= inside.keys()  # fmt: skip


def test_a_wheel_with_another_file_is_refused(dist: Path, root: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("versioned_streams-*.whl")
    with zipfile.ZipFile(wheel) as good, zipfile.ZipFile(tmp_path / wheel.name, "w") as bad:
        for name in good.namelist():
            if name != "vsc/cli/run.py":
                bad.writestr(name, b"" if name == "vsc/py.typed" else good.read(name) + b"#" * (name == "vsc/api.py"))
        bad.writestr("vsc/old.py", b"")
    assert faults(tmp_path / wheel.name, root) == [
        "it lacks vsc/cli/run.py",
        "it holds vsc/old.py",
        "vsc/api.py is not that of the checkout",
        "RECORD has another hash of vsc/api.py",
        "RECORD has another hash of vsc/old.py",
    ]


def test_the_wheel_says_what_it_is_and_needs(dist: Path, root: Path) -> None:
    (wheel,) = dist.glob("versioned_streams-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        about = email.message_from_bytes(archive.read(name))
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert (about["Name"], about["Version"]) == ("versioned-streams", __version__)
    assert (about["License-Expression"], about["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    needed = [one for one in about.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert {one.split("<")[0].split(">")[0] for one in needed} == {"lark", "networkx"}
    assert set(about.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert wheel.name == f"versioned_streams-{__version__}-py3-none-any.whl"  # of any Python and machine


def test_the_sdist_holds_real_files(dist: Path, root: Path) -> None:
    (sdist,) = dist.glob("versioned_streams-*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    assert package_files(root).keys() - members.keys() == set()
    assert [name for name, member in members.items() if member.issym() or member.islnk()] == []
