"""Mutation runs: how many small changes of the code the tests notice. ``make mutants`` runs it.

``python -m tools.mutants [AREA ...] [--sample N] [--seed N] [--jobs N]``: for each area, cosmic-ray changes a sample of
places in a copy of the checkout, one at a time, and runs the area's tests. What they do not notice is shown as a diff:
a test is missing there, or the change means nothing. The same seed takes the same places, as long as the code is the
same.

It runs in an environment of its own, for cosmic-ray needs much that vsc does not; the tests run in ``.venv``.
Annotations, which nothing reads, and errors that are raised stay as they are.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

__all__ = ["AREAS", "Area", "main"]

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "mutants"
SECONDS = 600
"""After which the tests of one mutant are taken for hung; that counts as noticed."""


Position = tuple[int, int]
"""A line, from 1, and a column."""


@dataclass(frozen=True)
class Area:
    """A part of the code, and the tests that have to notice a change of it: those that notice most come first.

    `slow`: with those that are marked so.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    slow: bool = False


_RANDOM = ("tests/oracle", "tests/random_topologies/test_found.py", "tests/random_topologies/test_cuts.py")

AREAS = {
    "state": Area(("runtime/state",), ("tests/runtime/state", "tests/runtime/operators/test_migrations.py", *_RANDOM)),
    "protocol": Area(
        ("runtime/spark/state/protocol.py", "runtime/spark/state/local_folder.py"),
        tuple(f"tests/runtime/spark/state/test_{name}.py" for name in ("protocol", "local_folder", "protocol_model")),
        slow=True,
    ),
    "aggregate": Area(
        ("runtime/operators/aggregate",),
        (*_RANDOM, "tests/runtime/operators/aggregate"),
        slow=True,
    ),
    "joins": Area(
        (
            "runtime/operators/joining.py", "runtime/operators/stream_table_join.py",
            "runtime/operators/stream_global_join.py", "runtime/operators/table_table_join.py",
            "runtime/operators/foreign_key_join.py", "runtime/operators/subscribe.py", "runtime/operators/answer.py",
            "runtime/operators/grace.py", "runtime/operators/tables",
        ),
        (
            *_RANDOM, *(
                f"tests/runtime/operators/test_{name}.py"
                for name in ("foreign_key_join", "joins_of_tables", "stream_table_join", "grace", "tables")
            ),
        ),
        slow=True,
    ),
    "clock": Area(
        (
            "runtime/operators/aggregate/windows/clock.py", "runtime/operators/aggregate/windows/columns.py",
            "runtime/operators/aggregate/windows/results.py", "runtime/operators/aggregate/windows/closings.py",
            "runtime/operators/aggregate/windows/time_windows.py",
        ),
        (*_RANDOM, "tests/runtime/operators/aggregate"),
        slow=True,
    ),
}  # fmt: skip


def main() -> int:
    """See the module. Returns 0, whatever survives: the figures are for people."""
    parser = argparse.ArgumentParser(prog="make mutants", description="which small changes of the code no test notices")
    parser.add_argument("areas", nargs="*", choices=[*AREAS, []], help=f"default: all of {', '.join(AREAS)}")
    parser.add_argument("--sample", type=int, default=40, help="places in each area (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which places (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="areas at the same time (default: %(default)s)")
    options = parser.parse_args()
    areas = options.areas or list(AREAS)
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(_run, name, AREAS[name], options.sample, options.seed) for name in areas]
        for run in runs:
            print(run.result(), flush=True)
    return 0


def _run(name: str, area: Area, sample: int, seed: int) -> str:
    """The figures of an area, and what survived in it."""
    shutil.rmtree(BUILD / name, ignore_errors=True)
    tree, session, config = (BUILD / name / part for part in ("tree", "session.sqlite", "config.toml"))
    _copy(tree)
    config.write_text(_config(area))
    _cosmic_ray(tree, "baseline", str(config))
    _cosmic_ray(tree, "init", str(config), str(session))
    with use_db(session) as db:
        places = _chosen(db, tree, sample, random.Random(seed))
    _cosmic_ray(tree, "exec", str(config), str(session))
    with use_db(session) as db:
        return _report(name, db, places)


def _copy(tree: Path) -> None:
    """Copies what git knows of the checkout, as it is now; links stay links."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in listed.decode().split("\0"):
        if name and ((ROOT / name).exists() or (ROOT / name).is_symlink()):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)


def _config(area: Area) -> str:
    python = ROOT / ".venv" / "bin" / "python"
    tests = " ".join(area.tests)
    marked = "not spark" if area.slow else "not spark and not slow"
    command = f"{python} -m pytest -q -x -n 0 -p no:cacheprovider -m '{marked}' {tests}"
    return (
        f"[cosmic-ray]\nmodule-path = {list(area.modules)}\ntimeout = {SECONDS}\nexcluded-modules = []\n"
        f'test-command = "{command}"\n[cosmic-ray.distributor]\nname = "local"\n'
    )


def _cosmic_ray(tree: Path, *arguments: str) -> None:
    """Runs a command of cosmic-ray in the copy. `baseline` fails if the tests fail before anything is changed."""
    tool = Path(sys.executable).parent / "cosmic-ray"
    done = subprocess.run([tool, *arguments], cwd=tree, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"cosmic-ray {arguments[0]} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def _chosen(db: WorkDB, tree: Path, sample: int, rng: random.Random) -> int:
    """Leaves a sample to be run, and returns how many places there are."""
    items = sorted(db.pending_work_items, key=_place)
    spans = {path: list(_meaningless(ast.parse((tree / path).read_text()))) for path in {_place(i)[0] for i in items}}
    places = [i for i in items if not any(start <= _place(i)[1] < end for start, end in spans[_place(i)[0]])]
    taken = {item.job_id for item in rng.sample(places, min(sample, len(places)))}
    db.set_multiple_results([i.job_id for i in items if i.job_id not in taken], WorkResult(WorkerOutcome.SKIPPED))
    return len(places)


def _place(item: WorkItem) -> tuple[str, Position, str, int]:
    (change,) = item.mutations
    return str(change.module_path), change.start_pos, change.operator_name, change.occurrence


def _meaningless(module: ast.Module) -> Iterator[tuple[Position, Position]]:
    """Where annotations and errors that are raised begin and end."""
    for node in ast.walk(module):
        found: ast.AST | None = None
        match node:
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
                found = annotation
            case ast.FunctionDef(returns=returns):
                found = returns
            case ast.Raise():
                found = node
        if isinstance(found, ast.expr | ast.stmt):
            yield (found.lineno, found.col_offset), (found.end_lineno or 0, found.end_col_offset or 0)


def _report(name: str, db: WorkDB, places: int) -> str:
    done = [result for _, result in db.completed_work_items if result.worker_outcome is not WorkerOutcome.SKIPPED]
    survivors = [result for result in done if result.test_outcome is TestOutcome.SURVIVED]
    killed = len(done) - len(survivors)
    head = f"{name}: {killed} of {len(done)} noticed ({places} places)"
    return "\n".join([head, *(f"{result.diff}" for result in survivors)])


if __name__ == "__main__":
    sys.exit(main())
