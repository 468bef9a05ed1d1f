"""docs/architecture.md lists the layers that import-linter checks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPERATORS = {"aggregate", "answer", "distinct", "to_table"}
"""Some of the operators: the layer that has them is called after what they are."""


def contracts() -> dict[str, list[list[str]]]:
    """The layers by contract, each with its modules."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        one["id"]: [[name.strip(" ()") for name in re.split(r"[|:]", layer)] for layer in one["layers"]]
        for one in project["tool"]["importlinter"]["contracts"]
        if one["type"] == "layers"
    }


def written() -> dict[str, list[list[str]]]:
    """The same, as the document has them."""
    text = " ".join((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split())
    _, _, listed = text.partition("## Who may import whom")
    return {
        id: [[name.strip(" {}") for name in layer.split(",")] for layer in layers.split(">")]
        for id, layers in re.findall(r"\* (\w+): `([^`]*)`", listed)
    }


@pytest.mark.parametrize("id", sorted(contracts()))
def test_the_document_has_the_layers_that_are_checked(id: str) -> None:
    layers = [
        ["the operators"] if set(layer) >= OPERATORS else layer for layer in contracts()[id] if layer != ["__main__"]
    ]
    assert [set(layer) for layer in written()[id]] == [set(layer) for layer in layers]
