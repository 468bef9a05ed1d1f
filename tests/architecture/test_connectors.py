"""A connector is a room: code outside of it asks for facts, and never for a connector by its name."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from vsc.plan.connectors import FACTS

ROOT = Path(__file__).parents[2]
ROOMS = ("vsc/plan/connectors/", "runtime/spark/connectors/")


def files() -> Iterator[Path]:
    for package in ("compiler", "runtime", "vsc"):
        for path in sorted((ROOT / package).rglob("*.py")):  # links are not followed
            if not str(path.relative_to(ROOT)).startswith(ROOMS):
                yield path


def names_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The kinds that a `kind` is compared with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            found = [one for side in sides for one in texts(side)]
            if found and any(ast.unparse(side).endswith("kind") for side in sides):
                yield from found
        elif isinstance(node, ast.Match) and ast.unparse(node.subject).endswith("kind"):
            yield from (found for case in node.cases for found in texts(case.pattern))


def texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value in FACTS:
            yield part.lineno, part.value


def test_no_connector_is_known_by_its_name_outside_of_its_room() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}: {name}" for path in files()
             for line, name in names_in(ast.parse(path.read_text()))]  # fmt: skip
    assert found == []


@pytest.mark.parametrize(
    "text", ['if connector.kind == "kafka": ...', 'x = kind in ("files", "jdbc")', 'match c.kind:\n  case "delta": ...']
)
def test_what_is_found(text: str) -> None:
    assert [name for _, name in names_in(ast.parse(text))] == [name for name in FACTS if f'"{name}"' in text]


def test_spark_has_a_connector_for_all_of_them() -> None:
    from vsc.runtime.spark.connectors.registry import CONNECTORS

    assert sorted(CONNECTORS) == sorted(FACTS)


def test_a_query_and_an_upgrade_may_import_no_room() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    by_id = {one["id"]: one for one in contracts}
    rooms = {name for layer in by_id["connectors"]["layers"][2:4] for name in layer.split(" | ")}
    assert {"builtin", "kafka", "lake"} <= rooms
    assert set(by_id["ends"]["forbidden_modules"]) == {f"vsc.runtime.spark.connectors.{name}" for name in rooms}
