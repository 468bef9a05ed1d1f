"""What a user has after installing: the command, the package's data, and a word on what is missing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.packaging.conftest import Vsc

EXAMPLES = ("features", "flights", "fraud", "inventory", "orders", "payments", "prices", "revenue", "sensors")
HEAVY = ("pyspark", "pandas", "pyarrow", "numpy", "rocksdict", "yaml")


@pytest.mark.quick(1)
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_are_accepted(ask: Vsc, root: Path, example: str) -> None:
    done = ask("-m", "vsc", "check", root / f"examples/{example}/topology.vdsl", "--deny-warnings")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_broken_topology_is_refused(ask: Vsc, tmp_path: Path) -> None:
    broken = tmp_path / "broken.vdsl"
    broken.write_text("stream s (a int) from rate (rows_per_second = 1);\nstream t = filter missing where a > 1;\n")
    done = ask("-m", "vsc", "check", broken, "--format", "json")
    assert done.returncode == 1
    places = [(finding["severity"], finding["line"]) for finding in json.loads(done.stdout)]
    assert ("error", 2) in places


def test_the_console_script_does_the_same(python: str, root: Path, tmp_path: Path) -> None:
    script = Path(python).parent / "vsc"
    command: list[str | Path] = [script, "check", root / "examples/payments/topology.vdsl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_plan_is_compiled(ask: Vsc, root: Path) -> None:
    done = ask("-m", "vsc", "compile", root / "examples/payments/topology.vdsl")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "payments"


def test_the_pages_of_codes_are_installed(ask: Vsc) -> None:
    done = ask("-m", "vsc", "explain", "VSC303")
    assert done.returncode == 0, done.stderr
    assert "VSC303" in done.stdout


def test_the_package_is_marked_as_typed(ask: Vsc) -> None:
    code = "from importlib.resources import files; print(files('vsc').joinpath('py.typed').is_file())"
    assert ask("-c", code).stdout == "True\n"


def test_nothing_but_vsc_is_put_at_the_top(ask: Vsc) -> None:
    code = (
        "from importlib.util import find_spec; print([n for n in ('compiler', 'grammar', 'runtime') if find_spec(n)])"
    )
    assert ask("-E", "-c", code).stdout == "[]\n"  # PYTHONPATH may name a checkout


@pytest.mark.quick(1)
@pytest.mark.parametrize("example", EXAMPLES)
def test_check_loads_no_heavy_library(ask: Vsc, root: Path, example: str) -> None:
    done = ask("-X", "importtime", "-m", "vsc", "check", root / f"examples/{example}/topology.vdsl")
    assert done.returncode == 0, done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "vsc.compiler" in loaded
    assert sorted(name for name in loaded if name.split(".")[0] in HEAVY) == []


@pytest.mark.slow
def test_the_scenarios_of_the_examples_hold(ask: Vsc, root: Path) -> None:
    done = ask("-m", "vsc", "test", root / "examples")
    if ask("-c", "import rocksdict, yaml").returncode:
        assert (done.returncode, "[test]" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
    else:
        assert (done.returncode, done.stderr.endswith(" passed, 0 failed\n")) == (0, True), done.stdout


def test_a_missing_extra_is_named(ask: Vsc, root: Path, tmp_path: Path) -> None:
    if ask("-c", "import pyspark").returncode == 0:
        pytest.skip("this interpreter has pyspark")
    done = ask("-m", "vsc", "run", root / "examples/payments/topology.vdsl", "--checkpoint", tmp_path / "c")
    assert done.returncode == 2
    assert "[spark]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_new_project_is_in_order(ask: Vsc, tmp_path: Path) -> None:
    """The templates and the completion scripts are package data."""
    assert ask("-m", "vsc", "init", "shop").returncode == 0
    assert ask("-m", "vsc", "check", "--deny-warnings", "shop").stderr == "1 file: no findings\n"
    assert ask("-m", "vsc", "fmt", "--check", "shop").stderr == "1 file unchanged\n"
    assert "complete " in ask("-m", "vsc", "completion", "bash").stdout
