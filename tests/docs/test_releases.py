"""The table of what runs where is what the code, the Makefile and the workflow say; tests stand behind each column."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml

from tests.seams import shown
from tests.supported import SEAMS, SPARKS, rows
from tools.docs.blocks import ROOT
from vsc import __version__
from vsc.cli import machine

PAGE = (ROOT / "docs/releases.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/support.yml").read_text(encoding="utf-8"))
MATRIX: dict[str, list[str]] = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]


def _table(first: str) -> list[list[str]]:
    lines = PAGE[PAGE.index(f"\n| {first} | ") + 1 :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|--")]


def test_the_table_of_sparks() -> None:
    head, *found = _table("Spark")
    assert head == ["Spark", *SEAMS, "Tested with"]
    assert [row[:-1] for row in found] == rows()


def test_each_column_has_a_test_that_shows_it() -> None:
    seams = {seam for seam, _ in shown()}
    assert {column: set(wanted) - seams for column, wanted in SEAMS.items()} == {column: set() for column in SEAMS}


def test_what_each_spark_is_tested_with() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    versions = dict(re.findall(r"^(PYSPARK\w*) := (\S+)$", makefile, re.MULTILINE))
    made = {"PYSPARK": "make test", "PYSPARK_NEWEST": "make newest", "PYSPARK_OLDEST": "make oldest"}
    tested = {row[0]: row[-1] for row in _table("Spark")[1:]}
    for name, command in made.items():
        version = versions[name]
        assert tested[version.rpartition(".")[0]] == f"`{command}`: {version}"
    assert min(SPARKS) == versions["PYSPARK_OLDEST"].rpartition(".")[0]
    assert max(SPARKS) == versions["PYSPARK_NEWEST"].rpartition(".")[0]


def test_the_bounds_of_the_package_are_those_of_the_table() -> None:
    assert f"pyspark>={min(SPARKS)},<4.{int(max(SPARKS)[2:]) + 1}" in PROJECT["optional-dependencies"]["spark"]
    (bounds,) = (one[2:] for one in machine._PACKAGES if one[0] == "pyspark")
    assert bounds == ((4, int(min(SPARKS)[2:])), (4, int(max(SPARKS)[2:]) + 1))


def test_pythons_and_javas_are_those_of_the_workflow() -> None:
    supported = {row[0]: row[1].split(", ") for row in _table("What else")}
    assert (supported["Python"], supported["Java"]) == (MATRIX["python"], MATRIX["java"])


def test_pythons_and_javas_are_those_of_the_code() -> None:
    classifiers = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one]
    assert classifiers == MATRIX["python"]
    assert PROJECT["requires-python"] == f">={MATRIX['python'][0]}"
    assert [int(java) for java in MATRIX["java"]] == [*machine._JAVA]
    assert MATRIX["tests"] == ["test", "newest", "oldest"]


def test_the_page_names_this_release() -> None:
    for name in re.findall(r"versioned_streams-(\S+?)-py3|TAG=v([\w.]+)|versioned-streams==(\S+)", PAGE):
        assert "".join(name) in (__version__, "...")
