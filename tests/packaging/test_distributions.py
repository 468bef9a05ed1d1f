"""What is in the wheel and the sdist: all of vsc, as real files in place of the links, and nothing beside it."""

from __future__ import annotations

import base64
import email
import hashlib
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from vsc import __version__

DATA = ("vsc/py.typed", "vsc/grammar/vsc.lark", "vsc/grammar/tables.json", "vsc/grammar/forms.json")


@pytest.fixture(scope="module")
def expected(root: Path) -> set[str]:
    """Every module, page and table of the package as the checkout has it, by its path inside an archive."""
    folders = {"compiler": "vsc/compiler", "grammar": "vsc/grammar", "runtime": "vsc/runtime"}
    modules = {str(file.relative_to(root)) for file in (root / "vsc").rglob("*.py")}  # what is behind links is not seen
    for folder, inside in folders.items():
        modules |= {f"{inside}/{file.relative_to(root / folder)}" for file in (root / folder).rglob("*.py")}
    pages = {f"vsc/compiler/diagnostics/pages/{page.name}" for page in (root / "docs/diagnostics").glob("*.md")}
    rows = {f"vsc/compiler/parser/rows/{file.name}" for file in (root / "compiler/parser/rows").glob("*.txt")}
    folders_of_data = (root / "vsc/completions", root / "vsc/template")
    data = [file for folder in folders_of_data for file in folder.rglob("*") if file.is_file()]
    data += (root / "vsc").rglob("*.pyi")
    return modules | pages | rows | set(DATA) | {str(file.relative_to(root)) for file in data}


def test_the_wheel_holds_the_package_and_nothing_else(dist: Path, expected: set[str]) -> None:
    (wheel,) = dist.glob("versioned_streams-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        assert archive.testzip() is None
        contents = {name: archive.read(name) for name in names}
    (about,) = {name.split("/")[0] for name in names if name.split("/")[0].endswith(".dist-info")}
    data = {f"{about}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt")}
    assert names == expected | data | {f"{about}/licenses/LICENSE"}

    rows = [line.split(",") for line in contents[f"{about}/RECORD"].decode().splitlines()]
    recorded = {name: digest for name, digest, _ in rows if digest}
    assert recorded.keys() == names - {f"{about}/RECORD"}
    for name, digest in recorded.items():
        found = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=").decode()
        assert digest == f"sha256={found}", name


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


def test_the_sdist_holds_real_files(dist: Path, expected: set[str]) -> None:
    (sdist,) = dist.glob("versioned_streams-*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    assert expected - members.keys() == set()
    assert [name for name, member in members.items() if member.issym() or member.islnk()] == []
