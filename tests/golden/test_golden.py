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
from vsc.compiler.emit import emit
from vsc.plan import load

HERE = Path(__file__).parent
TOPOLOGIES = sorted(HERE.glob("*.vdsl"))
FORMS = {
    "plan.json": ("plan", False),
    "txt": ("topology", False),
    "graph.json": ("graph", False),
    **{
        f"{kind}{suffix}": (form, as_it_runs)
        for kind, as_it_runs in (("", False), ("physical.", True))
        for suffix, form in (("mmd", "mermaid"), ("dot", "dot"), ("svg", "svg"))
    },
}
"""What is recorded, by the suffix of its file."""


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_a_topology_compiles_to_what_was_recorded(path: Path, suffix: str) -> None:
    plan = compile_topology(path.read_text(encoding="utf-8"), path=path.name)
    text = emit(plan, *FORMS[suffix])
    recorded = path.with_suffix(f".{suffix}")
    if os.environ.get("VSC_UPDATE_GOLDEN"):
        recorded.write_text(text, encoding="utf-8")
    assert text == recorded.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_a_recorded_plan_loads_as_the_plan_that_was_compiled(path: Path) -> None:
    plan = compile_topology(path.read_text(encoding="utf-8"), path=path.name)
    assert load(path.with_suffix(".plan.json").read_text(encoding="utf-8")) == plan


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", ["4711", "0", "1"])
def test_every_form_is_the_same_whatever_the_hash_seed(seed: str) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from vsc.compiler import compile_topology\n"
        "from vsc.compiler.emit import emit\n"
        "from tests.golden.test_golden import FORMS\n"
        "for path in sys.argv[1:]:\n"
        "    plan = compile_topology(Path(path).read_text(encoding='utf-8'), path=Path(path).name)\n"
        "    for form in FORMS.values():\n"
        "        sys.stdout.write(emit(plan, *form))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, TOPOLOGIES)],
        capture_output=True,
        check=True,
        cwd=HERE.parents[1],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
    )
    expected = "".join(
        path.with_suffix(f".{suffix}").read_text(encoding="utf-8") for path in TOPOLOGIES for suffix in FORMS
    )
    assert done.stdout.decode("utf-8") == expected
