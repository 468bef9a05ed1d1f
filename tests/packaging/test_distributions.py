"""What is in the wheel and the sdist: all of vsc, as real files in place of the links, and nothing beside it."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest

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
    data = [
        file for folder in ("vsc/completions", "vsc/template") for file in (root / folder).rglob("*") if file.is_file()
    ]
    return modules | pages | rows | set(DATA) | {str(file.relative_to(root)) for file in data}


def test_the_wheel_holds_the_package_and_nothing_else(dist: Path, expected: set[str]) -> None:
    (wheel,) = dist.glob("versioned_streams-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert expected - names == set()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"vsc", "versioned_streams"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_sdist_holds_real_files(dist: Path, expected: set[str]) -> None:
    (sdist,) = dist.glob("versioned_streams-*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    assert expected - members.keys() == set()
    assert [name for name, member in members.items() if member.issym() or member.islnk()] == []
