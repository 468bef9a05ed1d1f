"""`vsc.compile`, and what all that take a topology make of a path, a string and a plan."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vsc
from vsc.api import Topology
from vsc.extras import install
from vsc.plan import Plan, PlanError, dump
from vsc.testing import TopologyTestDriver

TEXT = "topology t;\nstream s (a int) from memory () key a;\nsink s to noop ();\n"


def _by_driver(given: Topology) -> Plan:
    with TopologyTestDriver(given) as driver:
        return driver.plan


@pytest.fixture(params=[vsc.compile, _by_driver], ids=["compile", "driver"])
def door(request: pytest.FixtureRequest) -> Callable[[Topology], Plan]:
    found: Callable[[Topology], Plan] = request.param
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_topology_in_a_file_has_many_names(door: Callable[[Topology], Plan], folder: Path) -> None:
    expected = door(TEXT)
    assert (expected.name, [n.name for n in expected.nodes]) == ("t", ["s"])
    (folder / "t.vdsl").write_text(TEXT)
    (folder / "marked.vdsl").write_text("\ufeff" + TEXT, encoding="utf-8")
    (folder / "of another name").write_text(TEXT)
    for given in ("t.vdsl", folder / "t.vdsl", str(folder / "t.vdsl"), "marked.vdsl", "of another name"):
        assert door(given) == expected


def test_a_string_with_a_semicolon_or_a_line_break_is_never_a_path(folder: Path) -> None:
    text = "stream s (a int) from memory (); sink s to noop (); -- see t.vdsl"
    assert [n.name for n in vsc.compile(text).nodes] == ["s"]
    assert [n.name for n in vsc.compile(text.replace("; ", ";\n")).nodes] == ["s"]
    (folder / "a;b").write_text(TEXT)
    assert vsc.compile(folder / "a;b").name == "t"
    with pytest.raises(vsc.TopologyError):
        vsc.compile("a;b")


def test_a_plan_is_taken_as_it_is(door: Callable[[Topology], Plan], folder: Path) -> None:
    plan = vsc.compile(TEXT)
    (folder / "plan.json").write_text(dump(plan))
    assert door(plan) is plan
    for given in ("plan.json", folder / "plan.json", dump(plan), dump(plan).replace("\n", "")):
        assert door(given) == plan
    with pytest.raises(PlanError):
        door("{}")


@pytest.mark.parametrize("given", ["none.vdsl", "none.json", "a/b.vdsl", Path("none"), Path("a/b.vdsl")])
def test_a_path_to_nothing_is_named(door: Callable[[Topology], Plan], given: Topology) -> None:
    with pytest.raises(FileNotFoundError, match=f"^there is no file {given}$"):
        door(given)


def test_a_folder_and_what_is_no_text_are_named(door: Callable[[Topology], Plan], folder: Path) -> None:
    (folder / "latin.vdsl").write_bytes(TEXT.encode() + b"-- \xe9\n")
    for given, message in (
        (str(folder), f"{folder} is a directory; name the file in it, as in {folder}/topology.vdsl"),
        (folder, f"{folder} is a directory; name the file in it, as in {folder}/topology.vdsl"),
        ("latin.vdsl", "latin.vdsl is not UTF-8 text: byte 0xE9 on line 4; save the file as UTF-8"),
    ):
        with pytest.raises(OSError) as caught:
            door(given)
        assert str(caught.value) == message


@pytest.mark.parametrize("given", [5, None, b"t.vdsl"])
def test_what_is_no_topology_is_named(door: Callable[[Any], Plan], given: Any) -> None:
    with pytest.raises(ValueError, match="a topology is its text or a path, not "):
        door(given)


def test_a_misspelt_path_is_told_from_a_mistake_in_a_text() -> None:
    with pytest.raises(vsc.TopologyError, match=r"topology.vdsl:1:1: VSC005") as caught:
        vsc.compile("payments/topology")
    assert caught.value.__notes__ == ["'payments/topology' names no file, so it was taken for the text of a topology"]
    with pytest.raises(vsc.TopologyError) as caught:
        vsc.compile("nonsense;")
    assert not hasattr(caught.value, "__notes__")


def test_variables_and_findings(folder: Path) -> None:
    (folder / "t.vdsl").write_text(TEXT.replace("sink s", "stream u = filter s where a > ${least};\nsink u"))
    with pytest.raises(vsc.TopologyError, match=r"^t\.vdsl:3:31: VSC\d+: .*least"):
        vsc.compile("t.vdsl")
    assert len(vsc.compile("t.vdsl", {"least": "3"}).nodes) == 2


def test_a_package_that_is_imported_loads_nothing() -> None:
    code = "import sys, vsc; print(sorted(n for n in sys.modules if n.startswith('vsc')), vsc.__version__)"
    assert _python(code) == f"['vsc'] {vsc.__version__}"


def test_to_compile_loads_no_heavy_library() -> None:
    heavy = ("numpy", "pyarrow", "pyspark", "pandas")
    code = f"import sys\nfrom vsc import compile\ncompile({TEXT!r})\nprint([n for n in {heavy} if n in sys.modules])"
    assert _python(code) == "[]"


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'vsc' has no attribute 'nothing'"):
        vsc.nothing  # type: ignore[attr-defined]  # noqa: B018
    assert set(vsc.__all__) <= set(dir(vsc))
    for name in vsc.__all__:
        assert getattr(vsc, name) is not None


@pytest.mark.slow
def test_type_checkers_know_the_same_names(folder: Path) -> None:
    stub = Path(vsc.__file__).with_suffix(".pyi").read_text()
    assert f"__all__ = {vsc.__all__}".replace("'", '"') in stub
    (folder / "user.py").write_text(
        "from pathlib import Path\nimport vsc\nfrom vsc import compile\n"
        "reveal_type(compile(Path('t.vdsl')))\nreveal_type(vsc.__version__)\nvsc.start(5, checkpoint='ck')\n"
    )
    alone = ["--no-site-packages", "--follow-imports=silent"]  # else the packages behind vsc are looked at, for 10 s
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-incremental", "--cache-dir", os.devnull, *alone, "user.py"],
        env={**os.environ, "MYPYPATH": str(Path(vsc.__file__).parents[1])},  # mypy does not see editable installs
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("user.py")]
    assert [line.partition(": ")[2] for line in lines if "note" in line] == [
        'note: Revealed type is "vsc.plan.nodes.Plan"',
        'note: Revealed type is "str"',
    ]
    assert [line[:15] for line in lines if "error" in line] == ["user.py:6: erro"]


def test_without_pyspark_start_names_the_extra() -> None:
    code = (
        f"import sys\nsys.modules['pyspark'] = None\nimport vsc\ntry:\n    vsc.start({TEXT!r}, checkpoint='ck')\n"
        "except ImportError as error:\n    print(error)"
    )
    missing = "vsc.runtime.spark needs the package `pyspark`, which is not installed"
    assert _python(code) == f"{missing}: {install('spark')}"


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
