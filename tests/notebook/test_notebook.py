"""The notebook in the examples, executed from its first cell to its last."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).resolve().parents[2] / "examples/payments"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """What each cell with code shows."""
    notebook = nbformat.read(FOLDER / "payments.ipynb", as_version=4)
    own = tmp_path_factory.mktemp("home")
    places = {name: str(own / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")}
    client = NotebookClient(notebook, timeout=600, startup_timeout=300, resources={"metadata": {"path": str(FOLDER)}})
    client.execute(env={**os.environ, **places})
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def test_the_topology_shows_itself_and_its_run(outputs: list[list[Any]]) -> None:
    picture, status = outputs[1]
    assert sorted(picture.data) == ["image/svg+xml", "text/html", "text/plain"]
    assert '<th style="text-align:left">rates</th>' in picture.data["text/html"]
    title, *lines = status.data["text/plain"].splitlines()
    assert re.fullmatch(r"payments-\w{8}: ended", title)
    found = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if not line.startswith("  not found")}
    assert found["done"] == "1 epoch, 11 rows in, 7 out"
    assert found["read"] == "payments 6, rates 5"
    assert found["written"] == "large 1, priced 6"
    assert "  not found  1 tombstone in 'priced'" in lines
    assert "<caption" in status.data["text/html"]


def test_the_results_are_those_of_the_example(outputs: list[list[Any]]) -> None:
    table = outputs[2][0].data["text/plain"]
    usd = {line.split()[0]: line.split()[-1] for line in table.splitlines() if line.startswith("p")}
    assert usd == {"p1": "110.0", "p2": "11700.0", "p3": "25.0", "p4": "60.0", "p5": "NaN", "p6": "44000.0"}


def test_the_status_is_asked_for_again(outputs: list[list[Any]]) -> None:
    assert outputs[3][0].data == outputs[1][1].data


def test_the_driver_takes_the_plan(outputs: list[list[Any]]) -> None:
    assert outputs[4][0].data["text/plain"] == "11.0"


def test_a_mistake_shows_its_caret(outputs: list[list[Any]]) -> None:
    [error] = outputs[5]
    lines = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback)).splitlines()
    assert (error.ename, lines[1]) == ("TopologyError", " --> cell:6:5")
    assert lines[3:5] == ["6 | key curency", "  |     ^^^^^^^"]


def test_the_file_holds_no_output() -> None:
    notebook = nbformat.read(FOLDER / "payments.ipynb", as_version=4)
    assert [cell.outputs for cell in notebook.cells if cell.cell_type == "code"] == [[]] * 6
