"""Compiled topologies, compared with what was recorded: the plan and every other form of it.

A change that is meant is recorded with ``VSC_UPDATE_GOLDEN=1``, and then read in the diff.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vsc.compiler import compile_topology
from vsc.compiler.emit import EMITTERS
from vsc.plan import load

HERE = Path(__file__).parent
TOPOLOGIES = sorted(HERE.glob("*.vdsl"))
_SUFFIX = {
    "plan": "plan.json", "topology": "txt", "graph": "graph.json", "mermaid": "mmd", "dot": "dot", "svg": "svg",
}  # fmt: skip


@pytest.mark.parametrize("form", EMITTERS)
@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_a_topology_compiles_to_what_was_recorded(path: Path, form: str) -> None:
    plan = compile_topology(path.read_text(encoding="utf-8"), path=path.name)
    text = EMITTERS[form](plan)
    recorded = path.with_suffix(f".{_SUFFIX[form]}")
    if os.environ.get("VSC_UPDATE_GOLDEN"):
        recorded.write_text(text, encoding="utf-8")
    assert text == recorded.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_a_recorded_plan_loads_as_the_plan_that_was_compiled(path: Path) -> None:
    plan = compile_topology(path.read_text(encoding="utf-8"), path=path.name)
    assert load(path.with_suffix(".plan.json").read_text(encoding="utf-8")) == plan


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_every_form_is_the_same_whatever_the_hash_seed(seed: str) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from vsc.compiler import compile_topology\n"
        "from vsc.compiler.emit import EMITTERS\n"
        "for path in sys.argv[1:]:\n"
        "    plan = compile_topology(Path(path).read_text(encoding='utf-8'), path=Path(path).name)\n"
        "    for form in EMITTERS.values():\n"
        "        sys.stdout.write(form(plan))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, TOPOLOGIES)],
        capture_output=True,
        check=True,
        cwd=HERE.parents[1],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
    )
    expected = "".join(
        path.with_suffix(f".{_SUFFIX[form]}").read_text(encoding="utf-8") for path in TOPOLOGIES for form in EMITTERS
    )
    assert done.stdout.decode("utf-8") == expected
